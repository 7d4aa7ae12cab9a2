"""What an audit, a report, a measurement or a store of tables reads: the files at some paths, resolved once. Imports no Spark.

Spark comes to read later than the look that found the files. A living writer renames its open file about once a second, and
its last line may be half written. Of such a file a copy is read, up to its last whole line; the rest comes with a later look.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from quarterdeck.backend.hazelcast.logs.lines.file_splits import end_of_last_line
from quarterdeck.backend.hazelcast.logs.reader import log_files, may_be_log
from quarterdeck.backend.journal.files import (
    OPEN_SUFFIX,
    RUN_PREFIX,
    SEALED_SUFFIX,
    NoJournal,
    current_path,
    journal_files,
    run_of_file,
    sealed_name,
)
from quarterdeck.backend.pipeline import commit

Kind = Literal["journal", "logs", "store"]
"""Our journals, the product's own member logs, or a store of tables that `pipeline tables` has made of journals."""

Source = Literal["auto", "journal", "logs"]
"""What paths hold, as somebody says; `auto` looks it up."""

Stamp = tuple[int, int]
"""Size and time of the last change, in nanoseconds: another one means that the file is to be read again."""

SHRUNK = 15
"""Lines as Parquet take about so many times less."""


class InputFile(NamedTuple):
    """A file that will still be there when Spark comes to read it."""

    read: Path
    """What Spark reads: `place`, or a copy of it while it is open."""
    place: Path
    """Where the file is, with links followed."""
    listed: Path
    """The name by which people know it."""
    stamp: Stamp

    @property
    def is_open(self) -> bool:
        """Whether a writer had not finished it."""
        return self.read != self.place


@dataclass(frozen=True)
class AuditInput:
    """The files of journals, or of members' logs, at `paths`; each file once."""

    kind: Kind
    paths: tuple[Path, ...]
    files: tuple[InputFile, ...]

    @cached_property
    def size_bytes(self) -> int:
        """How many bytes there are to read, as text."""
        return sum(file.stamp[0] for file in self.files) * (SHRUNK if self.kind == "store" else 1)

    @cached_property
    def read(self) -> tuple[Path, ...]:
        """The files that Spark reads."""
        return tuple(file.read for file in self.files)

    @cached_property
    def names(self) -> Mapping[Path, Path]:
        """By the file that Spark reads, the name by which people know it."""
        return {file.read: file.listed for file in self.files}

    @cached_property
    def run_directories(self) -> Mapping[str, Path]:
        """By run, the directory that holds its files, as far as there is one."""
        directories = {file.listed.parent for file in self.files} if self.kind == "journal" else set()
        return {
            directory.name.removeprefix(RUN_PREFIX): directory
            for directory in sorted(directories)
            if directory.name.startswith(RUN_PREFIX)
        }

    @cached_property
    def replayable_paths(self) -> Mapping[str, Path]:
        """By run, what the console can replay: the run's directory, or else the path that holds it, where several were named."""
        several = self.files if len(self.paths) > 1 else ()
        loose = [file for file in several if not file.listed.parent.name.startswith(RUN_PREFIX)]
        runs = ((run_of_file(file.read), file.listed) for file in reversed(loose))
        others = {run: self._path_of(name) for run, name in runs if run is not None}
        return {**others, **self.run_directories}

    def replayable_path(self, run: str) -> Path | None:
        """What the console can replay to show `run`; None for logs, which it does not replay."""
        return self.replayable_paths.get(run, self.paths[0]) if self.kind == "journal" else None

    def without(self, known: Mapping[str, Stamp]) -> AuditInput:
        """The same but for the finished files that are `known`, by place, as they are now."""
        new = (file for file in self.files if file.is_open or known.get(str(file.place)) != file.stamp)
        return replace(self, files=tuple(new))

    def _path_of(self, name: Path) -> Path:
        return next(path for path in self.paths if path == name or path in name.parents)


def resolve_input(paths: Sequence[Path], staging: Path, source: Source = "auto") -> AuditInput:
    """The files at `paths`: journals (roots, directories of runs, single files), or logs. Copies of open files go into `staging`.

    A single path may be a store of tables. Raises `NoJournal` or `NoLogs` where a path holds nothing, `StoreRefused` for a
    damaged store, and `OSError` for what cannot be read.
    """
    if source != "logs" and len(paths) == 1 and commit.read_manifest(paths[0]) is not None:
        return AuditInput("store", tuple(paths), tuple(_stored(paths[0])))
    kind = kind_of(paths) if source == "auto" else source
    files = _logs(paths) if kind == "logs" else _journals(paths, staging)
    return AuditInput(kind, tuple(paths), tuple({file.read: file for file in files}.values()))


def are_addresses(paths: Sequence[Path | str]) -> bool:
    """Whether these are addresses such as `s3a://…`, which only the engine can read. Raises `NoJournal` where some are."""
    some = [str(path) for path in paths if "://" in str(path)]
    if some and len(some) < len(paths):
        raise NoJournal(f"{some[0]}: addresses and paths of this machine cannot be read together")
    return bool(some)


def kind_of(paths: Sequence[Path]) -> Kind:
    """What the first path holds that tells it.

    A directory with a record in it is a journal, whatever else is there. Without one it is a directory of logs if it has any,
    also beside JSON lines of somebody else.
    """
    for path in paths:
        if path.is_file() and not path.name.endswith((SEALED_SUFFIX, OPEN_SUFFIX)) and run_of_file(path) is None:
            return "logs"
        if path.is_dir():
            if _holds_records(path):
                return "journal"
            if any(may_be_log(file) for file in path.rglob("*") if file.is_file()):
                return "logs"
    return "journal"


def _holds_records(directory: Path) -> bool:
    try:
        return any(run_of_file(file) is not None for file in journal_files(directory))
    except NoJournal:
        return False
    except FileNotFoundError:  # what is renamed between listing and looking has just been finished by a living writer
        return True


def _logs(paths: Sequence[Path]) -> Iterator[InputFile]:
    for file in log_files(paths):
        yield InputFile(file, file, file, _stamp(file))


def _stored(store: Path) -> Iterator[InputFile]:
    for file in sorted((store / "events").glob(f"{RUN_PREFIX}*/*.parquet")):
        yield InputFile(file, file, file, _stamp(file))


def _journals(paths: Sequence[Path], staging: Path) -> Iterator[InputFile]:
    for number, listed in enumerate([file for path in paths for file in journal_files(path)]):
        place = current_path(listed.resolve())
        if place is not None and place.name.endswith(OPEN_SUFFIX):
            copy = staging / f"{number:06d}" / sealed_name(place.name)
            if _copied(place, copy):
                yield InputFile(copy, place, listed, _stamp(copy))
                continue
            place = current_path(place)  # finished since
        if place is not None:
            yield InputFile(place, place, listed, _stamp(place))


def _stamp(file: Path) -> Stamp:
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def _copied(place: Path, copy: Path) -> bool:
    """Copy the whole lines of an open file; whether it was still there."""
    copy.parent.mkdir(exist_ok=True)
    try:
        shutil.copyfile(place, copy)
    except FileNotFoundError:
        return False
    with copy.open("r+b") as file:
        file.truncate(end_of_last_line(file))
    return True

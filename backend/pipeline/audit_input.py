"""What an audit, a report, a measurement or a store of tables reads: the files at some paths. Imports no Spark.

Spark reads later than the files are listed. A living writer renames its open file about once a second, and its last line may be
half written. Of such a file a copy is read, up to its last whole line; a later call reads the rest.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal

from msgspec import Struct

from quarterdeck.backend.hazelcast.logs.lines.file_splits import end_of_last_line
from quarterdeck.backend.hazelcast.logs.reader import log_files, may_be_log
from quarterdeck.backend.journal.files import (
    OPEN_SUFFIX,
    RETIRED_SUFFIX,
    RUN_PREFIX,
    SEALED_SUFFIX,
    NoJournal,
    current_path,
    journal_files,
    run_of_file,
    sealed_name,
)
from quarterdeck.backend.journal.upkeep import retired_of
from quarterdeck.backend.pipeline import commit

Kind = Literal["journal", "logs", "store"]
"""Our journals, Hazelcast's own member logs, or a store of tables that `pipeline tables` has made of journals."""

Source = Literal["auto", "journal", "logs"]
"""What the user says paths hold; with `auto` it is detected."""

Stamp = tuple[int, int]
"""Size and time of the last change. Another stamp means that the file has to be read again."""

SHRUNK = 15
"""How many times smaller lines are as Parquet, about."""


class InputFile(Struct, frozen=True):
    """A file that an audit reads."""

    read: str
    """What is read: the file, or a copy of it while it is open; for Spark, an address."""
    listed: str
    """The name that users know."""
    size_bytes: int = 0
    changed: int = 0
    opened: str = ""
    """The open file of which `read` is a copy; empty for a finished file."""

    @property
    def place(self) -> str:
        """Where the file is, as tables name it: files of this machine by their path, with links followed."""
        return self.opened or re.sub("^file:/+", "/", self.read)

    @property
    def stamp(self) -> Stamp:
        """Another one means that the file is to be read again."""
        return self.size_bytes, self.changed


Group = tuple[InputFile, ...]
"""Files that are judged together: most often those of one run."""


@dataclass(frozen=True)
class AuditInput:
    """The files of journals, of a store or of members' logs at `paths`; each file once."""

    kind: Kind
    paths: tuple[Path | str, ...]
    files: tuple[InputFile, ...]
    is_far: bool = False
    """Whether `paths` are addresses that only Spark reads. Such files are finished, and the console cannot replay them."""

    @cached_property
    def size_bytes(self) -> int:
        """How many bytes there are to read, as text."""
        return sum(file.size_bytes for file in self.files) * (SHRUNK if self.kind == "store" else 1)

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The files that are read."""
        return tuple(file.read for file in self.files)

    @cached_property
    def run_directories(self) -> Mapping[str, Path]:
        """By run, the directory on this machine that holds its files, if there is one."""
        is_replayable = self.kind == "journal" and not self.is_far
        directories = {Path(file.listed).parent for file in self.files} if is_replayable else set()
        return {
            directory.name.removeprefix(RUN_PREFIX): directory
            for directory in sorted(directories)
            if directory.name.startswith(RUN_PREFIX)
        }

    @cached_property
    def _loose_runs(self) -> Mapping[str, Path]:
        """By run, which of several paths holds its files, where these are in no directory of the run."""
        files = [(file, Path(file.listed)) for file in reversed(self.files)] if len(self.paths) > 1 else []
        runs = [
            (run_of_file(Path(file.read)), listed)
            for file, listed in files
            if not listed.parent.name.startswith(RUN_PREFIX)
        ]
        paths = list(map(Path, self.paths))
        return {
            run: next(path for path in paths if path == listed or path in listed.parents)
            for run, listed in runs
            if run is not None
        }

    def replayable_path(self, run: str) -> Path | None:
        """Return what the console can replay to show `run`; None for logs, stores and addresses."""
        if self.kind != "journal" or self.is_far:
            return None
        return self.run_directories.get(run) or self._loose_runs.get(run) or Path(self.paths[0])

    @cached_property
    def retired(self) -> Mapping[str, str]:
        """By run, what of its beginning was removed by its writers, in words."""
        found = {}
        for run, directory in self.run_directories.items():
            notes = [
                (note.name.removesuffix(RETIRED_SUFFIX), retired_of(note))
                for note in sorted(directory.glob(f"*{RETIRED_SUFFIX}"))
            ]
            if notes:
                names = ", ".join(writer for writer, _ in notes)
                until_s = max(note.until_utc_s for _, note in notes)
                until = datetime.fromtimestamp(until_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
                count = sum(note.files for _, note in notes)
                found[run] = f"its beginning was retired: {count} files of {names}, the last of {until}"
        return found

    def without(self, known: Mapping[str, Stamp]) -> AuditInput:
        """Leave out the finished files that are `known`, by place, with the stamps that they have now."""
        return replace(
            self, files=tuple(file for file in self.files if file.opened or known.get(file.place) != file.stamp)
        )

    def groups(self) -> list[Group]:
        """Group the files by run, as far as that is known without reading them at addresses."""
        groups: dict[str, list[InputFile]] = defaultdict(list)
        for file in self.files:
            directory = PurePosixPath(file.listed).parent.name
            if directory.startswith(RUN_PREFIX):
                groups[directory.removeprefix(RUN_PREFIX)].append(file)
            elif self.kind == "store":
                groups[file.read].append(file)
            else:
                groups["" if self.is_far else run_of_file(Path(file.read)) or ""].append(file)
        return list(map(tuple, groups.values()))


def resolve_input(paths: Sequence[Path], staging: Path, source: Source = "auto") -> AuditInput:
    """Find the files at `paths`: journals (roots, directories of runs, single files), or logs; copy open ones to `staging`.

    A single path may be a store of tables. Raises `NoJournal` or `NoLogs` where a path holds nothing, `StoreRefused` for a
    damaged store, and OSError for what cannot be read.
    """
    kind: Kind
    if source != "logs" and len(paths) == 1 and commit.read_manifest(paths[0]) is not None:
        kind, files = "store", _finished(sorted((paths[0] / "events").rglob("*.parquet")))
    else:
        kind = kind_of(paths) if source == "auto" else source
        files = _finished(log_files(paths)) if kind == "logs" else _journals(paths, staging)
    return AuditInput(kind, tuple(paths), tuple({file.read: file for file in files}.values()))


def are_addresses(paths: Sequence[Path | str]) -> bool:
    """Return whether these are addresses such as `s3a://…`, which only Spark reads. Raises `NoJournal` where some are."""
    addresses = [str(path) for path in paths if "://" in str(path)]
    if addresses and len(addresses) < len(paths):
        raise NoJournal(f"{addresses[0]}: addresses and paths of this machine cannot be read together")
    return bool(addresses)


def kind_of(paths: Sequence[Path]) -> Kind:
    """Return what the first path holds that shows it.

    A directory with a record in it is a journal, whatever else is there. Without one, it is a directory of logs if it has any,
    even beside JSON lines of another program.
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
    except FileNotFoundError:  # a living writer has just finished, and so renamed, a file that was listed
        return True


def _finished(files: Sequence[Path]) -> Iterator[InputFile]:
    return (_input_file(file, file) for file in files)


def _journals(paths: Sequence[Path], staging: Path) -> Iterator[InputFile]:
    for number, listed in enumerate([file for path in paths for file in journal_files(path)]):
        place = current_path(listed.resolve())
        if place is not None and place.name.endswith(OPEN_SUFFIX):
            copy = staging / f"{number:06d}" / sealed_name(place.name)
            if _copy_whole_lines(place, copy):
                yield _input_file(copy, listed, str(place))
                continue
            place = current_path(place)  # finished since
        if place is not None:
            yield _input_file(place, listed)


def _input_file(read: Path, listed: Path, opened: str = "") -> InputFile:
    status = read.stat()
    return InputFile(str(read), str(listed), status.st_size, status.st_mtime_ns, opened)


def _copy_whole_lines(place: Path, copy: Path) -> bool:
    """Copy the whole lines of an open file. Return whether it was still there."""
    copy.parent.mkdir(exist_ok=True)
    try:
        shutil.copyfile(place, copy)
    except FileNotFoundError:
        return False
    with copy.open("r+b") as file:
        file.truncate(end_of_last_line(file))
    return True

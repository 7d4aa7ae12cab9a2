"""What an audit, a report, a measurement or a store of tables reads: the files at some paths. Imports no Spark.

Files are read later than they are listed. A living writer renames its open file about once a second, and its last line may be
half written. Of such a file a copy is read, up to its last whole line; a later call reads the rest. At addresses such as `s3a://…`
only finished files are read.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from io import BufferedReader
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quarterdeck.backend.hazelcast.logs.lines.file_splits import end_of_last_line
from quarterdeck.backend.hazelcast.logs.log_files import NoLogs, is_archive, log_files, may_be_log
from quarterdeck.backend.journal.files import (
    FINDINGS_FILE,
    OPEN_SUFFIX,
    RETIRED_SUFFIX,
    RUN_PREFIX,
    SEALED_SUFFIX,
    NoJournal,
    as_record,
    current_path,
    journal_files,
    run_of_file,
    sealed_name,
)
from quarterdeck.backend.journal.upkeep import retired_of
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.address import Address, FileStatus, Place, address_of, is_address
from quarterdeck.backend.pipeline.delta_snapshot import UPDATES, DeltaSnapshot, newest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    """What is read: the file, or a copy of it while it is open."""
    listed: str
    """The name that users know."""
    size_bytes: int = 0
    changed: int = 0
    opened: str = ""
    """The open file of which `read` is a copy; empty for a finished file."""
    source: Address | None = None
    """Where it is, for a file at an address."""

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
    """Whether `paths` are addresses. Such files are finished, and the console cannot replay them."""
    store: Path | DeltaSnapshot | None = None
    """A store: where it is, or the state in which it was found."""

    @cached_property
    def size_bytes(self) -> int:
        """How many bytes there are to read, as text."""
        return sum(file.size_bytes for file in self.files) * (SHRUNK if self.kind == "store" else 1)

    @cached_property
    def read(self) -> tuple[str, ...]:
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

    def stored_files(self, table: str) -> list[Place]:
        """Return the files of a table of the store."""
        if isinstance(self.store, Path):
            return [*commit.files_of(self.store, table)]
        return [] if self.store is None else [*self.store.files(table)]

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


def resolve_input(
    paths: Sequence[Path | str], staging: Path, source: Source = "auto", spark: SparkSession | None = None
) -> AuditInput:
    """Find the files at `paths`: journals (roots, directories of runs, single files), or logs; copy open ones to `staging`.

    A single path may be a store of tables. `spark` is the session whose configuration has the keys for addresses. Raises
    `NoJournal` or `NoLogs` where a path holds nothing, `StoreRefused` for a damaged store, and OSError for what cannot be read.
    """
    if are_addresses(paths):
        return _resolve_addresses(list(map(str, paths)), source, spark)
    return _resolve_here(list(map(Path, paths)), staging, source)


def _resolve_here(paths: Sequence[Path], staging: Path, source: Source) -> AuditInput:
    if source != "logs" and len(paths) == 1 and (paths[0] / UPDATES / "_delta_log").is_dir():
        return _resolve_addresses([f"file://{paths[0].resolve()}"], source, None)
    if source != "logs" and len(paths) == 1 and commit.read_manifest(paths[0]) is not None:
        store = paths[0].resolve()  # executors stand elsewhere
        files = commit.files_of(store, "events")
        if not files:  # an empty table has one
            raise commit.StoreRefused(f"{paths[0]}: its events are gone; remove the directory and make the tables anew")
        return AuditInput("store", tuple(paths), tuple(_input_file(file, file) for file in files), store=store)
    kind = kind_of(paths) if source == "auto" else source
    found = (_input_file(file, file) for file in log_files(paths)) if kind == "logs" else _journals(paths, staging)
    return AuditInput(kind, tuple(paths), tuple({file.read: file for file in found}.values()))


def are_addresses(paths: Sequence[Path | str]) -> bool:
    """Return whether these are addresses such as `s3a://…`. Raises `NoJournal` where only some are."""
    addresses = [path for path in paths if is_address(path)]
    if addresses and len(addresses) < len(paths):
        raise NoJournal(f"{addresses[0]}: addresses and paths of this machine cannot be read together")
    return bool(addresses)


def kind_of(paths: Sequence[Path]) -> Kind:
    """Return what the paths hold; a journal where nothing shows it.

    A directory with a record in it is a journal, whatever else is there. Without one, it is a directory of logs if it has any,
    even beside JSON lines of another program. Raises `NoJournal` where some paths hold a journal, and others logs.
    """
    kinds: dict[Path | str, Kind] = {path: kind for path in paths if (kind := _kind_at(path)) is not None}
    return _only_kind(kinds) if kinds else "journal"


def _only_kind(kinds: Mapping[Path | str, Kind]) -> Kind:
    """Return the kind that all paths are of. Raises `NoJournal` where some hold a journal, and others logs."""
    path_of = {kind: path for path, kind in kinds.items()}
    if len(path_of) > 1:
        raise NoJournal(
            f"{path_of['logs']}: holds no records, and {path_of['journal']} is a journal; logs are audited by themselves"
        )
    return next(iter(path_of))


def _kind_at(path: Path) -> Kind | None:
    if path.is_dir():
        if _holds_records(path):
            return "journal"
        return (
            "logs" if any(may_be_log(file) or is_archive(file) for file in path.rglob("*") if file.is_file()) else None
        )
    is_log = path.is_file() and not path.name.endswith((SEALED_SUFFIX, OPEN_SUFFIX)) and run_of_file(path) is None
    return "logs" if is_log else None


def _holds_records(directory: Path) -> bool:
    try:
        return any(run_of_file(file) is not None for file in journal_files(directory))
    except NoJournal:
        return False
    except FileNotFoundError:  # a living writer has just finished, and so renamed, a file that was listed
        return True


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


# Addresses

LINES_SAMPLED = 10
"""How many lines of a file are read to see whether it holds records."""


def _resolve_addresses(paths: Sequence[str], source: Source, spark: SparkSession | None) -> AuditInput:
    files: dict[str, InputFile] = {}
    kinds: dict[Path | str, Kind] = {}
    for path in paths:
        address = address_of(path, spark)
        found = [_far_file(file) for file in address.files()]
        if not found:
            raise NoJournal(f"{path}: nothing is there that can be read")
        state = newest(address) if len(paths) == 1 and source != "logs" else None
        if state is not None:
            events = _stored_events(path, state, found)
            return AuditInput("store", tuple(paths), events, is_far=True, store=state)
        logs_here = [file for file in found if may_be_log(PurePosixPath(file.read)) and source != "journal"]
        sealed = (file for file in found if file.read.endswith(SEALED_SUFFIX) and source != "logs")
        journals_here = [file for file in sealed if PurePosixPath(file.read).name != FINDINGS_FILE]
        if logs_here and not any(map(_is_journal, journals_here)):
            journals_here = []  # JSON lines of another program, beside logs
        if not journals_here and not logs_here:
            if source == "logs":
                raise NoLogs(f"{path}: holds no log of a member")
            expected = f"{RUN_PREFIX}…/*{SEALED_SUFFIX} or *{SEALED_SUFFIX} in it"
            raise NoJournal(
                f"{path}: holds no journal; expected {expected}" + ", or logs of members" * (source == "auto")
            )
        kinds[path] = "journal" if journals_here else "logs"
        files |= {file.read: file for file in journals_here or logs_here}
    return AuditInput(_only_kind(kinds), tuple(paths), tuple(files.values()), is_far=True)


def _stored_events(path: str, state: DeltaSnapshot, found: Sequence[InputFile]) -> tuple[InputFile, ...]:
    """Return those of the files found that the state has as events. Raises `NoJournal`, and `StoreRefused` where one is gone."""
    if not state.number:
        raise NoJournal(f"{path}: the first update of these tables was not finished; run `pipeline tables` again")
    names = {str(file) for file in state.files("events")}
    if missing := names - {file.read for file in found}:
        raise commit.StoreRefused(f"{min(missing)}: the file is gone; remove the directory and make the tables anew")
    return tuple(file for file in found if file.read in names)


def _far_file(file: FileStatus) -> InputFile:
    return InputFile(str(file.place), str(file.place), file.size_bytes, file.changed_us, source=file.place)


def _is_journal(file: InputFile) -> bool:
    if PurePosixPath(file.read).parent.name.startswith(RUN_PREFIX):
        return True
    assert file.source is not None
    with BufferedReader(file.source.open()) as lines:  # type: ignore[type-var]
        return any(as_record(line) is not None for line in islice(lines, LINES_SAMPLED))

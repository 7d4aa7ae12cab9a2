"""Where a journal keeps its files, and which files belong to a given path.

A journal root holds one directory for each run with its finished files, and `_open` for the files still being written::

    root/run=<run>/<writer>-<number>.jsonl
    root/run=<run>/<writer>-<first number>.<last number>.jsonl    several of these, merged
    root/_open/<writer>-<number>.jsonl.open

A finished file never changes again: streaming readers look at each file once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from quarterdeck.backend.core.events import Record

OPEN_DIRECTORY = "_open"
OPEN_SUFFIX = ".jsonl.open"
SEALED_SUFFIX = ".jsonl"
RETIRED_SUFFIX = ".retired"
"""Of the note beside a writer's files that says what of them was removed for good."""
RUN_PREFIX = "run="
FINDINGS_FILE = "findings.jsonl"
"""What an audit that follows a journal keeps beside it; it is no part of the journal."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NUMBERED = re.compile(r"(.+)-(\d{6,})(?:\.(\d{6,}))?\.jsonl")
_RECORD = msgspec.json.Decoder(Record)

NOT_DECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding a line raises: it is no JSON, not of the wanted form, no UTF-8, or nested too deeply."""


class NoJournal(ValueError):
    """A path that is no journal, or a name that no journal can have. The message names it and gives a hint."""


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Name the file in failures within the block: the system does not where it is open already."""
    try:
        yield
    except OSError as problem:
        problem.filename = problem.filename or str(file)
        raise


def checked_name(what: str, name: str) -> str:
    """Return the `name` of a run or a writer, which must be a valid file name everywhere. Raises `NoJournal`."""
    if not _NAME.fullmatch(name):
        raise NoJournal(f"{name!r} cannot name a {what}: letters and digits, then also '.', '-' and '_'")
    return name


def usable_name(text: str) -> str:
    """Make `text` a part of a run's name: letters and digits, and a hyphen for everything else."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in text).strip("-") or "run"


def seeded_run(name: str, seed: int) -> str:
    """Return the name for the run of a scenario under `seed`: always the same, because the run is."""
    return f"{usable_name(name)}-seed-{seed}"


def run_directory(root: Path, run: str) -> Path:
    """Return the folder of `run` under the journal root `root`."""
    return root / f"{RUN_PREFIX}{run}"


def sealed_files(directory: Path) -> list[Path]:
    """Return the finished files directly inside `directory`, in the order in which each writer wrote them."""
    files = (path for path in directory.glob(f"*{SEALED_SUFFIX}") if path.name != FINDINGS_FILE)
    return without_merged(sorted(path for path in files if path.is_file()))


class FileNumbers(NamedTuple):
    """Which of a writer's files a finished file holds; the writer is empty for a file of another name."""

    writer: str = ""
    first: int = 0
    last: int = 0

    @property
    def is_merged(self) -> bool:
        return self.last > self.first

    def holds(self, other: FileNumbers) -> bool:
        """Return whether all that `other` holds is here, too."""
        return self.writer == other.writer and self.first <= other.first and other.last <= self.last


def numbers_of(name: str) -> FileNumbers:
    """Return what the name of a finished file says."""
    found = _NUMBERED.fullmatch(name)
    return FileNumbers(found[1], int(found[2]), int(found[3] or found[2])) if found else FileNumbers()


def merged_name(writer: str, first: int, last: int) -> str:
    """Return the name of the file that holds those with these numbers; it stands where the first of them stood."""
    return f"{file_stem(writer, first)}.{last:06d}{SEALED_SUFFIX}"


def writer_files(directory: Path, writer: str) -> list[Path]:
    """Return the finished files of one writer in the order of writing; of those that begin alike, the merged one first."""
    found = [path for path in directory.iterdir() if numbers_of(path.name).writer == writer]
    return sorted(found, key=lambda path: (numbers_of(path.name).first, -numbers_of(path.name).last))


def without_merged(paths: Sequence[Path]) -> list[Path]:
    """Leave out the files of a directory whose records stand in a merged file beside them as well."""
    numbered = [(path, numbers_of(path.name)) for path in paths]
    merged = [numbers for _, numbers in numbered if numbers.is_merged]
    return [
        path for path, numbers in numbered if not any(other != numbers and other.holds(numbers) for other in merged)
    ]


def open_files(directory: Path) -> list[Path]:
    """Return the files directly inside `directory` that a writer has not finished."""
    return sorted(path for path in directory.glob(f"*{OPEN_SUFFIX}") if path.is_file())


def sealed_name(open_name: str) -> str:
    """Return the name that an open file gets when it is finished."""
    return open_name.removesuffix(".open")


def next_number(root: Path, run: str, writer: str) -> int:
    """Return one more than the highest number that `writer` has used in this run or has open."""
    pattern = re.compile(re.escape(writer) + r"-(?:\d+\.)?(\d+)\.jsonl(\.open)?")
    directories = (root / OPEN_DIRECTORY, run_directory(root, run))
    matches = (pattern.fullmatch(path.name) for directory in directories for path in directory.glob("*"))
    return 1 + max((int(match[1]) for match in matches if match), default=0)


def file_stem(writer: str, number: int) -> str:
    """Return the name of a file without suffix; padding makes the order of names the order of writing."""
    return f"{writer}-{number:06d}"


def as_record(line: bytes) -> Record | None:
    """Return the record that `line` holds, or None."""
    try:
        return _RECORD.decode(line)
    except NOT_DECODABLE:
        return None


def run_of_file(path: Path) -> str | None:
    """Return the run of the first readable line of a file, or None."""
    with naming(path), path.open("rb") as lines:
        for line in lines:
            record = as_record(line)
            if record is not None:
                return record.run
    return None


def journal_files(path: Path) -> list[Path]:
    """Return the files at `path`: a journal root, the directory of one run, a directory of files, or one file.

    Files still open are included; of a run's directory only those whose events are of that run. Open files are listed before
    finished ones, so that a file finished meanwhile is seen twice rather than never: readers drop what they have seen.

    Raises:
        NoJournal: There is nothing.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise NoJournal(f"{path}: no such file or directory; name a journal, a run=… directory or a .jsonl file")
    still_open = open_files(path) + open_files(path / OPEN_DIRECTORY)
    if path.name.startswith(RUN_PREFIX):
        run = path.name.removeprefix(RUN_PREFIX)
        still_open += [file for file in open_files(path.parent / OPEN_DIRECTORY) if _is_of_run(file, run)]
    sealed = sealed_files(path)
    for directory in sorted(path.glob(f"{RUN_PREFIX}*")):
        sealed += sealed_files(directory)
    if not sealed and not still_open:
        raise NoJournal(f"{path}: holds no journal; expected {RUN_PREFIX}…/*{SEALED_SUFFIX} or *{SEALED_SUFFIX} in it")
    return sealed + still_open


def current_path(path: Path) -> Path | None:
    """Return where the records of the file listed as `path` are now, or None when they are gone.

    An open file may have been finished since, and a finished one merged with others.
    """
    if path.exists():
        return path
    numbers = numbers_of(path.name)
    if numbers.writer and path.parent.is_dir():
        merged = (file for file in writer_files(path.parent, numbers.writer) if numbers_of(file.name).holds(numbers))
        return next(merged, None)
    if path.name.endswith(OPEN_SUFFIX):
        root = path.parent.parent if path.parent.name == OPEN_DIRECTORY else path.parent
        return next(iter(sorted(root.glob(f"{RUN_PREFIX}*/{sealed_name(path.name)}"))), None)
    return None


def _is_of_run(path: Path, run: str) -> bool:
    try:
        return run_of_file(path) == run
    except FileNotFoundError:  # finished between listing and looking; its new name is listed next
        return False

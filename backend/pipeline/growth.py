"""How far journals have grown: an offset says what can be read of each file, and pieces of files are what lies between two.

Offsets are small, and the same for every reader. A writer numbers its files, and a finished file never changes, so that of
finished files the numbers suffice, also when their writer has merged several into one.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from quarterdeck.backend.hazelcast.logs.lines.file_splits import end_of_last_line
from quarterdeck.backend.journal.files import (
    OPEN_DIRECTORY,
    RUN_PREFIX,
    SEALED_SUFFIX,
    NoJournal,
    as_record,
    current_path,
    file_stem,
    numbers_of,
    open_files,
    run_directory,
    sealed_name,
)

RunOffset = dict[str, str]
"""By writer: which files are finished, and how much there is of open ones, such as ``1-17 19 20:4096``."""

Offset = dict[str, dict[str, RunOffset]]
"""By the root of a journal, and by run."""

SAME_TICK_NS = 250_000_000
"""A file that comes within the same tick of the file system's clock does not change the time of its directory."""


class Piece(NamedTuple):
    """Whole lines of a file: its bytes from `start` to `end`, where None is the end of the finished file."""

    root: str
    run: str
    name: str
    """Of the file once it is finished."""
    start: int
    end: int | None

    @property
    def file(self) -> Path:
        """The path of the file once it is finished."""
        return run_directory(Path(self.root), self.run) / self.name

    def read(self) -> bytes:
        """Read the piece, or the file in which it was merged. Raises FileNotFoundError for a file that was removed."""
        still_open = Path(self.root) / OPEN_DIRECTORY / f"{self.name}.open"
        for place in (self.file, still_open, self.file):  # finished between the two looks
            try:
                with place.open("rb") as content:
                    content.seek(self.start)
                    return content.read() if self.end is None else content.read(self.end - self.start)
            except FileNotFoundError:
                continue
        merged = current_path(self.file)
        if merged is None:
            raise FileNotFoundError(2, "No such file", str(self.file))
        return merged.read_bytes()

    def size_bytes(self) -> int:
        """Return how long it is; 0 where the file was removed."""
        if self.end is not None:
            return self.end - self.start
        return self.file.stat().st_size - self.start if self.file.exists() else 0


class GrowingJournals:
    """The journals at `paths`: roots, or directories of single runs. Raises `NoJournal`."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._only: dict[Path, set[str]] = defaultdict(set)
        """By root, the only runs that count; all where there are none."""
        for path in paths:
            if not path.is_dir():
                raise NoJournal(f"{path}: no such directory; name a journal, or a {RUN_PREFIX}… directory in one")
            is_run = path.name.startswith(RUN_PREFIX)
            only = self._only[path.parent.resolve() if is_run else path.resolve()]
            if is_run:
                only.add(path.name.removeprefix(RUN_PREFIX))
        self._listed: dict[Path, tuple[int, dict[str, set[int]]]] = {}
        """By directory, when it had changed last when it was listed, and by writer the numbers of its finished files."""

    def offset(self) -> Offset:
        return {str(root): self._offset_at(root, only) for root, only in self._only.items()}

    def _offset_at(self, root: Path, only: set[str]) -> dict[str, RunOffset]:
        # Open files first: one that is finished meanwhile is seen twice rather than never.
        lengths: dict[str, dict[str, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
        for run, writer, number, length in _open_lengths(root):
            lengths[run][writer][number] = length
        runs = {path.name.removeprefix(RUN_PREFIX): path for path in root.glob(f"{RUN_PREFIX}*")}
        return {
            run: self._offset_of(runs.get(run), lengths.get(run, {}))
            for run in sorted(runs.keys() | lengths.keys())
            if not only or run in only
        }

    def _offset_of(self, directory: Path | None, lengths: dict[str, dict[int, int]]) -> RunOffset:
        finished = {} if directory is None else self._finished(directory)
        return {
            writer: _text(finished.get(writer, set()), lengths.get(writer, {}))
            for writer in sorted(finished.keys() | lengths.keys())
        }

    def _finished(self, directory: Path) -> dict[str, set[int]]:
        changed_ns = directory.stat().st_mtime_ns
        known = self._listed.get(directory)
        if known is not None and known[0] == changed_ns:
            return known[1]
        finished: dict[str, set[int]] = defaultdict(set)
        with os.scandir(directory) as files:
            for file in files:
                numbers = numbers_of(file.name)
                if numbers.writer and file.is_file():
                    finished[numbers.writer].update(range(numbers.first, numbers.last + 1))
        if time.time_ns() - changed_ns > SAME_TICK_NS:
            self._listed[directory] = changed_ns, finished
        return finished


def pieces_between(start: Offset, end: Offset) -> Iterator[Piece]:
    """Yield what was written from one offset to another. What was removed since is no piece."""
    for root, runs in end.items():
        for run, after in runs.items():
            yield from pieces_of_run(root, run, start.get(root, {}).get(run, {}), after)


def pieces_of_run(root: str, run: str, before: RunOffset, after: RunOffset) -> Iterator[Piece]:
    """Yield what was written of a run from one offset to another."""
    for writer, text in after.items():
        if text == before.get(writer):
            continue
        was_finished, was_long = _parsed(before.get(writer, ""))
        finished, lengths = _parsed(text)
        ends: dict[int, int | None] = dict.fromkeys(finished) | lengths
        for number in sorted(ends.keys() - was_finished):
            begin, until = was_long.get(number, 0), ends[number]
            if until is None or until > begin:
                yield Piece(root, run, f"{file_stem(writer, number)}{SEALED_SUFFIX}", begin, until)


def with_merged(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield these pieces, and in place of those whose files were merged the whole merged file, once."""
    merged: set[Path] = set()
    for piece in pieces:
        place = piece.file if piece.end is not None or piece.file.exists() else current_path(piece.file)
        if place is None or place == piece.file:
            yield piece
        elif place not in merged:
            merged.add(place)
            yield piece._replace(name=place.name, start=0)


def _open_lengths(root: Path) -> Iterator[tuple[str, str, int, int]]:
    """Yield run, writer and number of each open file, and how long its whole lines are."""
    for file in open_files(root / OPEN_DIRECTORY):
        numbers = numbers_of(sealed_name(file.name))
        if not numbers.writer:
            continue
        try:
            with file.open("rb") as content:
                head = next(filter(None, map(as_record, content)), None)
                if head is not None:
                    yield head.run, numbers.writer, numbers.first, end_of_last_line(content)
        except FileNotFoundError:  # finished since it was listed
            continue


def _text(finished: set[int], lengths: dict[int, int]) -> str:
    spans: list[list[int]] = []
    for number in sorted(finished):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    words = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    return " ".join(
        words + [f"{number}:{length}" for number, length in sorted(lengths.items()) if number not in finished]
    )


def _parsed(text: str) -> tuple[set[int], dict[int, int]]:
    finished: set[int] = set()
    lengths: dict[int, int] = {}
    for word in text.split():
        number, _, length = word.partition(":")
        if length:
            lengths[int(number)] = int(length)
        else:
            first, _, last = word.partition("-")
            finished.update(range(int(first), int(last or first) + 1))
    return finished, lengths

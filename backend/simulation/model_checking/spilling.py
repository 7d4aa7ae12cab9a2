"""What a search keeps and memory may be too small for: snapshots, states that were met, and states to be looked at.

Each begins in memory. Past its bound it goes on in files of a folder, which belong to this process alone.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

CODE_BYTES = 16
"""The number of bytes that distinguish a state from others."""

STATE_BYTES = 120
"""The memory for a state that was met."""
ENTRY_BYTES = 900
"""The memory for a state that is to be looked at."""

LENGTH_BYTES = 8
"""The number of bytes of a file that give the length of the next batch."""

SEGMENT = 10_000
"""The number of states to be looked at in one file."""
MOST_RUNS = 6
"""The number of files of met states beside each other before they become one."""

Entry = TypeVar("Entry")


class SpillingFolder:
    """A folder for data beyond the memory's bound; it is made at its first use."""

    def __init__(self) -> None:
        self._made: tempfile.TemporaryDirectory[str] | None = None

    def path(self) -> Path:
        if self._made is None:
            self._made = tempfile.TemporaryDirectory(prefix="quarterdeck-check-")
        return Path(self._made.name)

    def remove(self) -> None:
        if self._made is not None:
            self._made.cleanup()
            self._made = None


class Snapshots:
    """Snapshots of members by number; past a number of bytes in a file."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held = 0
        self._known: dict[int, bytes | tuple[int, int]] = {}
        """The snapshot itself, or where it stands in the file and how long it is."""
        self._file: BinaryIO | None = None

    def __setitem__(self, number: int, snapshot: bytes) -> None:
        if self._held + len(snapshot) <= self._most_bytes:
            self._held += len(snapshot)
            self._known[number] = snapshot
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="quarterdeck-snapshots-")
        self._known[number] = (self._file.seek(0, os.SEEK_END), len(snapshot))
        self._file.write(snapshot)

    def __getitem__(self, number: int) -> bytes:
        kept = self._known[number]
        if isinstance(kept, bytes):
            return kept
        assert self._file is not None
        self._file.seek(kept[0])
        return self._file.read(kept[1])


class SortedRun:
    """Codes in order, in a file that does not change any more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._bytes) // CODE_BYTES

    def __getitem__(self, place: int) -> bytes:
        return self._bytes[place * CODE_BYTES : (place + 1) * CODE_BYTES]

    def __iter__(self) -> Iterator[bytes]:
        return map(self.__getitem__, range(len(self)))

    def __contains__(self, code: bytes) -> bool:
        place = bisect_left(self, code)
        return place < len(self) and self[place] == code


class MetStates:
    """The codes of all states that were met."""

    def __init__(self, most: int, folder: SpillingFolder) -> None:
        """More than `most` codes are not held in memory."""
        self._most = max(most, 1)
        self._folder = folder
        self._recent: set[int] = set()
        self._runs: list[SortedRun] = []
        self._written = 0
        self.count = 0

    def add(self, code: int) -> bool:
        if code in self._recent:
            return False
        if self._runs and (as_bytes := code.to_bytes(CODE_BYTES)) and any(as_bytes in run for run in self._runs):
            return False
        self._recent.add(code)
        self.count += 1
        if len(self._recent) >= self._most:
            self._spill()
        return True

    def write(self, path: Path) -> None:
        _write_codes(path, self._in_order(self._runs))

    def read(self, path: Path) -> None:
        """Take the codes of this file in place of all others."""
        run = SortedRun(path) if path.stat().st_size else ()
        self.count = len(run)
        if isinstance(run, SortedRun) and len(run) > self._most:
            own = self._next_path()
            shutil.copyfile(path, own)
            self._runs, self._recent = [SortedRun(own)], set()
        else:
            self._runs, self._recent = [], {int.from_bytes(code) for code in run}

    def _in_order(self, runs: Iterable[SortedRun]) -> Iterator[bytes]:
        recent = (code.to_bytes(CODE_BYTES) for code in sorted(self._recent))
        return merge(recent, *runs)

    def _spill(self) -> None:
        path = self._next_path()
        together = self._runs if len(self._runs) + 1 >= MOST_RUNS else []
        _write_codes(path, self._in_order(together))
        for run in together:
            run.path.unlink()
        self._runs = [*([] if together else self._runs), SortedRun(path)]
        self._recent = set()

    def _next_path(self) -> Path:
        self._written += 1
        return self._folder.path() / f"met-{self._written:06}"


def _write_codes(path: Path, codes: Iterable[bytes]) -> None:
    with path.open("wb", buffering=1 << 20) as file:
        for code in codes:
            file.write(code)


class SpillingQueue(Generic[Entry]):
    """A queue: first in, first out. Past a bound its end stands in files."""

    def __init__(
        self,
        most: int,
        folder: SpillingFolder,
        encode: Callable[[list[Entry]], bytes],
        decode: Callable[[bytes], list[Entry]],
    ) -> None:
        """More than `most` entries are not held in memory, and at least two files full."""
        self._most = max(most, 2 * SEGMENT)
        self._folder, self._encode, self._decode = folder, encode, decode
        self._first: deque[Entry] = deque()
        self._files: deque[Path] = deque()
        self._last: list[Entry] = []
        self._written = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, entry: Entry) -> None:
        self._count += 1
        if not self._files and not self._last and len(self._first) < self._most - SEGMENT:
            self._first.append(entry)
            return
        self._last.append(entry)
        if len(self._last) == SEGMENT:
            self._written += 1
            path = self._folder.path() / f"waiting-{id(self):x}-{self._written:06}"
            path.write_bytes(self._encode(self._last))
            self._files.append(path)
            self._last = []

    def pop(self) -> Entry:
        """Remove and return the entry that has waited longest."""
        self._count -= 1
        if not self._first and self._files:
            path = self._files.popleft()
            self._first.extend(self._decode(path.read_bytes()))
            path.unlink()
        elif not self._first:
            self._first.extend(self._last)
            self._last = []
        return self._first.popleft()

    def write(self, path: Path) -> None:
        """Write everything that waits into one file, in order."""
        with path.open("wb") as file:
            for batch in self._batches():
                file.write(len(batch).to_bytes(LENGTH_BYTES) + batch)

    def read(self, path: Path) -> None:
        """Let the states of this file wait, after all others."""
        with path.open("rb") as file:
            while length := file.read(LENGTH_BYTES):
                for entry in self._decode(file.read(int.from_bytes(length))):
                    self.append(entry)

    def _batches(self) -> Iterator[bytes]:
        first = iter(self._first)
        while batch := list(islice(first, SEGMENT)):
            yield self._encode(batch)
        for path in self._files:
            yield path.read_bytes()
        if self._last:
            yield self._encode(self._last)

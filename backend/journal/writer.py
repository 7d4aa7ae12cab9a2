"""Writing events down: one JSON line each, soon on disk, in files that are finished and renamed about once a second.

`append` only puts the line into memory; one background thread writes, so nobody waits for a disk. A kill of the process
loses only what was appended in the last few milliseconds, and nothing that was appended before a `flush`.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal.files import (
    OPEN_DIRECTORY,
    OPEN_SUFFIX,
    checked_name,
    file_stem,
    next_number,
    run_directory,
)
from quarterdeck.backend.journal.recovery import Recovered, is_same_file, lock_if_free, recover_open_files, seal

WRITE_DELAY_SECONDS = 0.02
"""How long a line may wait in memory."""
WRITE_RECORDS = 256
"""So many waiting lines are written at once, without waiting longer."""
MOST_WAITING_RECORDS = 100_000
"""A disk that falls this far behind makes `append` wait: memory stays bounded."""
ROTATE_SECONDS = 1.0
ROTATE_BYTES = 8 * 1024 * 1024


class JournalFailed(OSError):
    """The journal could not be written; nothing appended since the last `flush` is sure to be in it."""


class JournalWriter:
    """Appends the records of one run under `root`; `writer` names this process among the writers of the run.

    Files that dead processes left open under `root` are finished first; `recovered` says what became of them.
    Raises `NoJournal` for a name that cannot be a file name, OSError when the directories cannot be made.
    """

    recovered: tuple[Recovered, ...]

    def __init__(self, root: Path, run: str, writer: str) -> None:
        self._root, self._run, self._writer = root, checked_name("run", run), checked_name("writer", writer)
        (root / OPEN_DIRECTORY).mkdir(parents=True, exist_ok=True)
        run_directory(root, run).mkdir(exist_ok=True)
        self.recovered = recover_open_files(root)
        self._number = next_number(root, run, writer)
        self._encoder = msgspec.json.Encoder()
        self._waiting: list[bytes] = []
        self._changed = threading.Condition()  # guards _waiting, _closing, _failure
        self._closing = False
        self._failure: OSError | None = None
        self._file = threading.Lock()  # guards what follows; taken before _changed, never after it
        self._descriptor: int | None = None
        self._path = root
        self._size = 0
        self._opened_at = 0.0
        self._thread = threading.Thread(target=self._write_loop, name=f"journal {writer}", daemon=True)
        self._thread.start()

    @property
    def run(self) -> str:
        """The run whose records this takes."""
        return self._run

    @property
    def directory(self) -> Path:
        """Where the finished files of the run are."""
        return run_directory(self._root, self._run)

    def append(self, record: Record) -> None:
        """Take one record. Raises `JournalFailed` after a failed write or `close`, ValueError for another run."""
        if record.run != self._run:
            raise ValueError(f"a record of run {record.run!r} does not belong into the journal of run {self._run!r}")
        line = self._encoder.encode(record) + b"\n"
        with self._changed:
            self._raise_failure()
            while len(self._waiting) >= MOST_WAITING_RECORDS:
                self._changed.wait()
                self._raise_failure()
            self._waiting.append(line)
            if len(self._waiting) in (1, WRITE_RECORDS):
                self._changed.notify_all()

    def flush(self) -> None:
        """Return when everything appended so far would survive a kill of this process. Raises `JournalFailed`."""
        try:
            self._write_waiting()
        except OSError as failure:
            self._fail(failure)
        with self._changed:
            if self._failure is not None:
                self._raise_failure()

    def close(self) -> None:
        """Write what waits and finish the file. Closing twice is harmless. Raises `JournalFailed`."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        try:
            if self._failure is None:
                self._write_waiting()
                self._rotate()
        except OSError as failure:
            self._fail(failure)
        finally:
            self._close_file()
        if self._failure is not None:
            raise JournalFailed(f"{self._path}: {self._failure}") from self._failure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # The background thread

    def _write_loop(self) -> None:
        while True:
            with self._changed:
                if not self._waiting and not self._closing:
                    self._changed.wait(self._seconds_to_rotation())
                if self._waiting and not self._closing:
                    self._changed.wait_for(
                        lambda: self._closing or len(self._waiting) >= WRITE_RECORDS, WRITE_DELAY_SECONDS
                    )
                if self._closing or self._failure is not None:
                    return
            try:
                self._write_waiting()
                if self._seconds_to_rotation() == 0 or self._size >= ROTATE_BYTES:
                    self._rotate()
            except OSError as failure:
                self._fail(failure)

    def _seconds_to_rotation(self) -> float | None:
        """None while no file is open."""
        if self._descriptor is None:
            return None
        return max(0.0, self._opened_at + ROTATE_SECONDS - time.monotonic())

    # The file

    def _write_waiting(self) -> None:
        with self._file:
            with self._changed:
                lines, self._waiting = self._waiting, []
                self._changed.notify_all()
            if not lines:
                return
            if self._descriptor is None:
                self._open()
            assert self._descriptor is not None
            rest = memoryview(b"".join(lines))
            while rest:
                written = os.write(self._descriptor, rest)
                self._size += written
                rest = rest[written:]

    def _open(self) -> None:
        while True:
            path = self._root / OPEN_DIRECTORY / f"{file_stem(self._writer, self._number)}{OPEN_SUFFIX}"
            self._number += 1
            try:
                descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o644)
            except FileExistsError:  # a writer of the same name in another process took this number
                continue
            if lock_if_free(descriptor) and is_same_file(descriptor, path):
                break
            os.close(descriptor)  # somebody's recovery got hold of it while it was empty and not yet locked
        self._descriptor, self._path, self._size, self._opened_at = descriptor, path, 0, time.monotonic()

    def _rotate(self) -> None:
        with self._file:
            if self._descriptor is not None:
                seal(self._descriptor, self._path, run_directory(self._root, self._run))
        self._close_file()

    def _close_file(self) -> None:
        with self._file:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _fail(self, failure: OSError) -> None:
        with self._changed:
            if self._failure is None:
                self._failure = failure
            self._changed.notify_all()

    def _raise_failure(self) -> None:
        """With `_changed` held."""
        if self._failure is not None:
            raise JournalFailed(f"{self._path}: {self._failure}") from self._failure
        if self._closing:
            raise JournalFailed(f"the journal of {self._writer} is closed")

"""Writes events: one JSON line each, soon on disk, in files that are finished and renamed about once a second.

`append` only puts the line into memory; one background thread writes. A kill of the process loses only what was appended in the
last few milliseconds, and nothing that was appended before a `flush`.

When the disk is full or fails, writing is tried again every second, and continues after the last whole line. Meanwhile records
wait in memory, as many as there is room for; what comes after that is lost, and counted. A disk that falls behind, or hangs,
makes `append` wait, unless the journal is one that drops records: a member must not miss its heartbeats for a disk.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal import files
from quarterdeck.backend.journal.recovery import Recovered, is_same_file, lock_if_free, recover_open_files, seal
from quarterdeck.backend.journal.upkeep import UNLIMITED, Retention, keep_up

WRITE_DELAY_SECONDS = 0.02
"""How long a line may wait in memory."""
WRITE_RECORDS = 256
"""So many waiting lines are written at once, without further delay."""
MOST_WAITING_RECORDS = 100_000
"""Records that wait for a disk which has not failed."""
RETRY_SECONDS = 1.0
"""How often a disk that has failed is tried again."""
MOST_KEPT_RECORDS = 10_000
"""So many records wait for such a disk at most, those included that are to be written again."""
CLOSE_SECONDS = 30.0
"""How long `close` waits for a disk that hangs."""
ROTATE_SECONDS = 1.0
ROTATE_BYTES = 8 * 1024 * 1024
UPKEEP_SECONDS = 60.0
"""How often finished files are merged and retired; also after so many bytes as a file may have."""


_LOG = logging.getLogger(__name__)


class JournalFailed(OSError):
    """The journal cannot be written, or is incomplete; what was appended since the last `flush` may be missing."""


class JournalInUse(OSError):
    """A living process writes under the same name into the same run."""


class JournalCondition(Struct, frozen=True):
    """The condition of a journal's writing."""

    failure: str = ""
    """Why nothing can be written just now; empty when all is well."""
    waiting: int = 0
    """Records that are not written yet."""
    lost: int = 0
    """Records that are missing from the journal for ever."""


class JournalWriter:
    """Appends the records of one run under `root`; `writer` names this process among the writers of the run.

    A file is finished after `rotate_seconds`. Finished files are merged, and removed when `retention` says so. Files that dead
    processes left open under `root` are finished first; `recovered` says what became of them. `on_change` is called, in the
    background thread, when writing begins to fail and when it continues. A writer that `drops` records counts those that the
    disk is too slow for as lost, so that no caller waits. Raises `NoJournal` for a name that cannot be a file
    name, OSError when the directories cannot be made, and `JournalInUse` when the writer is to be `alone` under its name and
    is not.
    """

    recovered: tuple[Recovered, ...]

    def __init__(
        self,
        root: Path,
        run: str,
        writer: str,
        *,
        alone: bool = False,
        drops: bool = False,
        rotate_seconds: float = ROTATE_SECONDS,
        retention: Retention = UNLIMITED,
    ) -> None:
        self.on_change: Callable[[JournalCondition], None] | None = None
        self.retention: Callable[[], Retention] = lambda: retention
        """What is kept; may be replaced."""
        self._rotate_seconds = rotate_seconds
        self._drops = drops
        self._upkeep_due_s, self._unkept_bytes = 0.0, 0
        self._root, self._run, self._writer = root, files.checked_name("run", run), files.checked_name("writer", writer)
        self._make_directories()
        self._name_lock = _lock_name(root, run, writer) if alone else None
        self.recovered = recover_open_files(root)
        self._number = files.next_number(root, run, writer)
        self._encoder = msgspec.json.Encoder()
        self._waiting: list[bytes] = []
        self._changed = threading.Condition()  # guards _waiting, _closing, _failure, _lost
        self._closing = False
        self._failure: OSError | None = None
        self._lost = 0
        self._file = threading.Lock()  # guards what follows; taken before _changed, never after it
        self._unwritten = b""
        """Lines that no longer wait, and are not on disk yet."""
        self._unwritten_records = 0
        self._descriptor: int | None = None
        self._path = root
        self._size = 0
        self._opened_at = 0.0
        self._thread = threading.Thread(target=self._write_loop, name=f"journal {writer}", daemon=True)
        self._thread.start()

    @property
    def run(self) -> str:
        return self._run

    @property
    def directory(self) -> Path:
        return files.run_directory(self._root, self._run)

    @property
    def condition(self) -> JournalCondition:
        with self._changed:
            failure = _reason(self._failure) if self._failure is not None else ""
            return JournalCondition(failure, len(self._waiting) + self._unwritten_records, self._lost)

    def append(self, record: Record) -> None:
        """Append a record. Raises `JournalFailed` after `close`, ValueError for another run."""
        if record.run != self._run:
            raise ValueError(f"a record of run {record.run!r} does not belong into the journal of run {self._run!r}")
        line = self._encoder.encode(record) + b"\n"
        with self._changed:
            while self._is_behind and not self._drops and self._failure is None and not self._closing:
                self._changed.wait()
            if self._closing:
                raise JournalFailed(f"the journal of {self._writer} is closed")
            if self._is_behind:
                self._lost += 1
                return
            self._waiting.append(line)
            if len(self._waiting) in (1, WRITE_RECORDS):
                self._changed.notify_all()

    @property
    def _is_behind(self) -> bool:
        """Whether as many records wait as may, also those that are being written or written again."""
        most = MOST_WAITING_RECORDS if self._failure is None else MOST_KEPT_RECORDS
        return len(self._waiting) + self._unwritten_records >= most

    def flush(self) -> None:
        """Return when everything appended so far would survive a kill of this process. Raises `JournalFailed`."""
        try:
            self._write_waiting()
        except OSError as failure:
            self._fail(failure)
            raise JournalFailed(f"{self._path}: {failure}") from failure

    def close(self) -> None:
        """Write what waits and finish the file. Closing twice is harmless. Raises `JournalFailed` when something is missing."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify_all()
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            raise JournalFailed(f"{self._path}: the disk does not answer; the last records are missing")
        try:
            self._write_waiting()
            self._rotate()
        except OSError as failure:
            raise JournalFailed(f"{self._path}: {failure}") from failure
        finally:
            self._keep_up()
            self._close_file()
            if self._name_lock is not None:
                _lock_path(self._root, self._run, self._writer).unlink(missing_ok=True)
                os.close(self._name_lock)
        if self._lost:
            raise JournalFailed(f"{self._path}: {self._lost} records are missing, for the disk did not take them")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _write_loop(self) -> None:
        while True:
            with self._changed:
                if self._failure is not None:
                    self._changed.wait_for(lambda: self._closing, RETRY_SECONDS)
                elif not self._waiting and not self._closing:
                    self._changed.wait(min(self._seconds_to_rotation(), UPKEEP_SECONDS))
                if self._waiting and not self._closing and self._failure is None:
                    self._changed.wait_for(
                        lambda: self._closing or len(self._waiting) >= WRITE_RECORDS, WRITE_DELAY_SECONDS
                    )
                if self._closing:
                    return
            try:
                self._write_waiting()
                if self._seconds_to_rotation() == 0 or self._size >= self._rotate_bytes:
                    self._rotate()
                if time.monotonic() >= self._upkeep_due_s or self._unkept_bytes >= self._rotate_bytes:
                    self._keep_up()
            except OSError as failure:
                self._fail(failure)
            except Exception as problem:  # noqa: BLE001 - reported as a failure: a thread that ended would lose all that follows
                _LOG.exception("the journal of run %s cannot be written", self._run)
                self._fail(OSError(f"{type(problem).__name__}: {problem}"))
            else:
                self._go_on()

    def _keep_up(self) -> None:
        self._upkeep_due_s, self._unkept_bytes = time.monotonic() + UPKEEP_SECONDS, 0
        try:
            kept = self.retention()
            if kept.most_bytes:  # room for the open file, and for what is finished until the next time
                kept = replace(kept, most_bytes=max(1, kept.most_bytes - 2 * self._rotate_bytes))
            keep_up(self.directory, self._writer, kept, time.time())
        except OSError as problem:  # what is recorded is written all the same
            _LOG.warning("the files of the journal of run %s are not merged or retired now: %s", self._run, problem)

    @property
    def _rotate_bytes(self) -> int:
        """How long a file becomes: a small part of what is kept, so that what is kept stays within its limit."""
        return min(ROTATE_BYTES, self.retention().most_bytes // 8 or ROTATE_BYTES)

    def _seconds_to_rotation(self) -> float:
        if self._descriptor is None:
            return inf
        return max(0.0, self._opened_at + self._rotate_seconds - time.monotonic())

    def _write_waiting(self) -> None:
        with self._file:
            with self._changed:
                lines, self._waiting = self._waiting, []
                self._unwritten_records += len(lines)
                self._changed.notify_all()
            self._unwritten += b"".join(lines)
            while self._unwritten:
                if self._descriptor is None:
                    self._open()
                room = self._rotate_bytes - self._size
                if len(self._unwritten) <= room:
                    self._write(len(self._unwritten))
                else:  # a file longer than its part of what is kept would stay beyond the limit
                    self._write(max(self._unwritten.rfind(b"\n", 0, room), self._unwritten.find(b"\n")) + 1)
                    self._finish_file()
        with self._changed:
            self._changed.notify_all()

    def _write(self, size: int) -> None:
        """Write the first `size` bytes of the unwritten lines, which are whole lines, into the open file."""
        assert self._descriptor is not None
        written = 0
        try:
            while written < size:
                written += os.write(self._descriptor, memoryview(self._unwritten)[written:size])
        except OSError:
            self._keep_whole_lines(self._descriptor, written)
            raise
        self._size += size
        self._unwritten_records = 0 if size == len(self._unwritten) else self._unwritten.count(b"\n", size)
        self._unwritten = self._unwritten[size:]

    def _keep_whole_lines(self, descriptor: int, written: int) -> None:
        """Cut off the beginning of a line after a failure in its middle, so that it can be written again."""
        whole = self._unwritten[:written].rfind(b"\n") + 1
        os.ftruncate(descriptor, self._size + whole)
        self._size += whole
        self._unwritten_records -= self._unwritten[:whole].count(b"\n")
        self._unwritten = self._unwritten[whole:]

    def _open(self) -> None:
        self._make_directories()
        while True:
            path = (
                self._root / files.OPEN_DIRECTORY / f"{files.file_stem(self._writer, self._number)}{files.OPEN_SUFFIX}"
            )
            self._number += 1
            try:
                descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o600)
            except FileExistsError:  # a writer of the same name in another process took this number
                continue
            if lock_if_free(descriptor) and is_same_file(descriptor, path):
                break
            os.close(descriptor)  # the recovery of another process got hold of it while it was empty and not yet locked
        self._descriptor, self._path, self._size, self._opened_at = descriptor, path, 0, time.monotonic()

    def _rotate(self) -> None:
        with self._file:
            self._finish_file()

    def _finish_file(self) -> None:
        """Finish the open file, if there is one; the caller holds `_file`."""
        if self._descriptor is None:
            return
        try:
            seal(self._descriptor, self._path, files.run_directory(self._root, self._run))
            self._unkept_bytes += self._size
        except FileNotFoundError:  # the file was removed: what was in it is gone
            self._close_descriptor()
            raise
        self._close_descriptor()

    def _make_directories(self) -> None:
        (self._root / files.OPEN_DIRECTORY).mkdir(parents=True, exist_ok=True)
        files.run_directory(self._root, self._run).mkdir(exist_ok=True)

    def _close_file(self) -> None:
        with self._file:
            self._close_descriptor()

    def _close_descriptor(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _fail(self, failure: OSError) -> None:
        with self._changed:
            is_new, self._failure = self._failure is None, failure
            self._changed.notify_all()
        if is_new:
            _LOG.error("the journal of run %s cannot be written, and is tried again: %s", self._run, _reason(failure))
            self._report()

    def _go_on(self) -> None:
        with self._changed:
            had_failed, self._failure = self._failure is not None, None
        if had_failed:
            _LOG.warning("the journal of run %s is written again; %d records are lost", self._run, self._lost)
            self._report()

    def _report(self) -> None:
        if self.on_change is not None:
            self.on_change(self.condition)


def _reason(failure: OSError) -> str:
    return (failure.strerror or str(failure)) + (f": {failure.filename}" if failure.filename else "")


def _lock_path(root: Path, run: str, writer: str) -> Path:
    return root / files.OPEN_DIRECTORY / f"{run}.{writer}.lock"


def _lock_name(root: Path, run: str, writer: str) -> int:
    """Return the open file whose lock stands for the name. Raises `JournalInUse`."""
    path = _lock_path(root, run, writer)
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        if not lock_if_free(descriptor):
            os.close(descriptor)
            raise JournalInUse(f"a process that runs writes the records of {writer} in run {run} into {root} already")
        if is_same_file(descriptor, path):
            return descriptor
        os.close(descriptor)  # the former owner of the name has just removed the file

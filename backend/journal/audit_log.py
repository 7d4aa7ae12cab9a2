"""The audit log of a member: who asked it for what over HTTP, and what became of it. One JSON line for each request.

The first requests of a client within a minute have lines of their own; the others of that minute are one line with their
number, so that no client can push out what others did. The files stand beside the journal, and only the member's user may
read them::

    root/_audit/<label>.jsonl               is written now
    root/_audit/<label>-<time>.jsonl        is finished
"""

from __future__ import annotations

import heapq
import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from quarterdeck.backend.journal.files import NOT_DECODABLE, naming
from quarterdeck.backend.journal.minute_counter import MINUTE_SECONDS, OTHERS, MinuteCounter
from quarterdeck.backend.journal.upkeep import UNLIMITED, Retention, retire

AUDIT_LOG_FOLDER = "_audit"
SUFFIX = ".jsonl"
ROTATE_BYTES = 8 * 1024 * 1024
ROTATE_SECONDS = 24 * 3_600.0
MOST_WAITING = 10_000
"""Entries that wait for the disk; later ones are lost, and counted."""
RETRY_SECONDS = 1.0
LINES_OF_A_USER = 60
"""Of one user at one host, for one kind of request, within a minute."""
LINES_OF_A_STRANGER = 10
"""Of all refused requests of one host whose user is not identified, within a minute."""
FINISHED = r"-\d{8}T\d{12}Z"
"""The time in the name of a finished file, after the name of the member's files."""
_LOG = logging.getLogger(__name__)

Outcome = Literal["done", "refused", "unknown"]


class AuditEntry(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One request, or several of one kind."""

    at: str
    """UTC, as 2026-01-31T12:00:00.123Z."""
    member: str
    """The label of the member that was asked."""
    address: str
    """Host and port of the client; of several requests the host."""
    user: str
    """The name under which the client has identified itself, or tried to; empty if it gave none."""
    identified: bool = False
    """Whether its password or token was right."""
    role: str = ""
    what: str
    """Method and path."""
    detail: str = ""
    """What was to be changed, without values of maps and secrets."""
    outcome: Outcome
    """Unknown: the answer was an error of the member, or was not sent."""
    status: int = 0
    """Of the HTTP answer; 0 if there was none."""
    reason: str = ""
    count: int = 1
    """How many requests this line stands for."""


class EntryCounter:
    """Decides which entries have lines of their own. Times are in seconds since 1970."""

    def __init__(self) -> None:
        self._counter: MinuteCounter[AuditEntry] = MinuteCounter()

    def add(self, entry: AuditEntry, kind: str, now_s: float) -> Iterator[AuditEntry]:
        """Yield what is to be written now. `kind` stands for method and path, without names that clients choose."""
        yield from self.due(now_s)
        host = _host_of(entry)
        if entry.identified or entry.outcome == "done":
            counted = replace(entry, what=kind, address=host, detail="")
            is_own = self._counter.add((entry.user, host, kind, entry.outcome), counted, LINES_OF_A_USER)
        else:
            is_own = self._counter.add(host, replace(entry, address=host, detail=""), LINES_OF_A_STRANGER)
        if is_own:
            yield entry

    def due(self, now_s: float) -> Iterator[AuditEntry]:
        """Yield how many requests were counted, once their minute is over."""
        return map(_counted, self._counter.due(now_s))

    def flush(self) -> Iterator[AuditEntry]:
        return map(_counted, self._counter.flush())

    @property
    def counts(self) -> bool:
        """Whether something was counted that is not written."""
        return self._counter.counts


def _counted(found: tuple[Hashable, AuditEntry, int]) -> AuditEntry:
    key, entry, count = found
    return replace(entry, count=count, address=OTHERS if key == OTHERS else entry.address)


def _host_of(entry: AuditEntry) -> str:
    return entry.address.rpartition(":")[0]


class AuditLog:
    """Writes the audit log of the member `label` in a background thread: no caller waits for a disk.

    What is written survives a kill of the process a few milliseconds later, except the counts of the current minute. Raises
    OSError when the folder cannot be made.
    """

    def __init__(self, folder: Path, label: str) -> None:
        self.retention: Callable[[], Retention] = lambda: UNLIMITED
        """What is kept; may be replaced."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._label = folder, label
        self._path = folder / f"{label}{SUFFIX}"
        self._encoder = msgspec.json.Encoder()
        self._counter = EntryCounter()
        self._waiting: deque[tuple[AuditEntry, str]] = deque()
        self._changed = threading.Condition()  # guards _waiting, _lost, _closing
        self._lost = 0
        self._closing = False
        self._failed = False
        self._unwritten = b""
        self._thread = threading.Thread(target=self._write_loop, name=f"audit log {label}", daemon=True)
        self._thread.start()

    def write(self, entry: AuditEntry, kind: str) -> None:
        """Append an entry; see `EntryCounter.add` for its `kind`."""
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                self._lost += 1
                return
            self._waiting.append((entry, kind))
            self._changed.notify()

    def close(self) -> None:
        """Write what waits. Closing twice is harmless."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _write_loop(self) -> None:
        while True:
            with self._changed:
                if not self._waiting and not self._closing:
                    self._changed.wait(self._seconds_to_wait())
                elif self._failed and not self._closing:
                    self._changed.wait_for(lambda: self._closing, RETRY_SECONDS)
                waiting, self._waiting = self._waiting, deque()
                is_last = self._closing
            now_s = time.time()
            lines = [line for entry, kind in waiting for line in self._counter.add(entry, kind, now_s)]
            lines += self._counter.flush() if is_last else self._counter.due(now_s)
            self._write_lines(lines, now_s)
            if is_last:
                return

    def _write_lines(self, lines: Sequence[AuditEntry], now_s: float) -> None:
        self._unwritten += b"".join(self._encoder.encode(line) + b"\n" for line in lines)
        try:
            self._write(now_s)
        except OSError as problem:
            self._fail(problem)
        except Exception as problem:  # noqa: BLE001 - reported as a failure: a thread that ended would lose all that follows
            self._fail(OSError(f"{type(problem).__name__}: {problem}"))

    def _seconds_to_wait(self) -> float | None:
        if self._unwritten:
            return RETRY_SECONDS
        return MINUTE_SECONDS - time.time() % MINUTE_SECONDS if self._counter.counts else None

    def _write(self, now_s: float) -> None:
        if not self._unwritten:
            return
        self._folder.mkdir(parents=True, exist_ok=True)  # an operator may have removed it
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            stat = os.fstat(descriptor)
            if stat.st_size and os.pread(descriptor, 1, stat.st_size - 1) != b"\n":  # a full disk cut off its last line
                self._unwritten = b"\n" + self._unwritten
            self._unwritten = self._unwritten[os.write(descriptor, self._unwritten) :]
        finally:
            os.close(descriptor)
        if self._failed:
            self._failed = False
            _LOG.warning("the audit log is written again; %d entries are lost", self._lost)
        if stat.st_size >= min(ROTATE_BYTES, self.retention().most_bytes // 4 or ROTATE_BYTES) or self._is_old(now_s):
            self._rotate(now_s)

    def _is_old(self, now_s: float) -> bool:
        """Return whether the first entry of the file is older than a file may be."""
        with self._path.open("rb") as lines:
            began = _entry_of(next(lines, b""))
        return began is not None and now_s - datetime.fromisoformat(began.at).timestamp() > ROTATE_SECONDS

    def _rotate(self, now_s: float) -> None:
        self._path.rename(self._folder / f"{self._label}-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}{SUFFIX}")
        retire(_finished_files(self._folder, self._label), self.retention(), now_s)

    def _fail(self, problem: OSError) -> None:
        if not self._failed:
            self._failed = True
            _LOG.error("the audit log cannot be written, and is tried again: %s", problem)
        if len(self._unwritten) > ROTATE_BYTES:
            self._lost += self._unwritten.count(b"\n")
            self._unwritten = b""


def _finished_files(folder: Path, label: str) -> list[Path]:
    named = re.compile(re.escape(label) + FINISHED + re.escape(SUFFIX))
    return sorted(path for path in folder.iterdir() if named.fullmatch(path.name))


def _entry_of(line: bytes) -> AuditEntry | None:
    with suppress(*NOT_DECODABLE):
        return msgspec.json.decode(line, type=AuditEntry)
    return None


class NoAuditLog(ValueError):
    """A path without an audit log. The message names it and gives a hint."""


class AuditLogReader:
    """Reads the audit logs of all members in a journal's folder, or in the folder of audit logs itself.

    Raises `NoAuditLog`.
    """

    def __init__(self, path: Path) -> None:
        self._folder = path / AUDIT_LOG_FOLDER if (path / AUDIT_LOG_FOLDER).is_dir() else path
        self._read_bytes: dict[int, int] = {}
        """By inode, for a file is renamed when it is finished."""
        self.problems = 0
        """Lines that are no entries."""
        if not self._files():
            raise NoAuditLog(f"{path}: holds no audit log; name the folder of a member's journal (quarterdeck.journal)")

    def new_entries(self) -> Iterator[AuditEntry]:
        """Yield the entries that were added since the last call, in order of time."""
        by_member: dict[str, list[Path]] = {}
        for path in self._files():
            by_member.setdefault(re.sub(FINISHED + "$", "", path.stem), []).append(path)
        logs = [self._entries(sorted(paths, key=_age)) for paths in by_member.values()]
        yield from heapq.merge(*logs, key=lambda entry: entry.at)

    def _files(self) -> list[Path]:
        return sorted(path for path in self._folder.glob(f"*{SUFFIX}") if path.is_file())

    def _entries(self, paths: list[Path]) -> Iterator[AuditEntry]:
        for path in paths:
            with suppress(FileNotFoundError), naming(path), path.open("rb") as lines:
                inode = os.fstat(lines.fileno()).st_ino
                lines.seek(self._read_bytes.get(inode, 0))
                for line in lines:
                    if not line.endswith(b"\n"):  # it is being written
                        break
                    self._read_bytes[inode] = self._read_bytes.get(inode, 0) + len(line)
                    entry = _entry_of(line)
                    if entry is None:
                        self.problems += 1
                    else:
                        yield entry


def _age(path: Path) -> tuple[bool, str]:
    return re.search(FINISHED + "$", path.stem) is None, path.name

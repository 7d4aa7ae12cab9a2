"""The stream in one process: looks at a journal again and again until it is stopped.

Spark has no part in that: to plan and run one batch of a Spark stream costs more than to judge the few hundred records that come
between two polls, and a run has to be judged in one place anyway.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from quarterdeck.backend.journal.files import FINDINGS_FILE, RUN_PREFIX, NoJournal
from quarterdeck.backend.journal.recovery import lock_if_free
from quarterdeck.backend.pipeline.spark.requirements import needing_packages
from quarterdeck.backend.pipeline.streaming.journal_follower import (
    CheckpointGarbled,
    FindingsChange,
    FindingsFile,
    JournalFollower,
    StreamCheckpoint,
)

LOOK_MS = 250
FOLD_SECONDS = 30.0
"""How often new files are folded into the tables."""

CHECKPOINTS = "_stream"
"""The directory of a stream's checkpoint, beside the runs; readers of journals ignore it."""


class StreamDied(RuntimeError):
    """The stream ended by itself, or cannot begin. The message says why."""


class Streamed(NamedTuple):
    """The result of a stream. `violations` are those in the file of findings."""

    lines: int
    problems: int
    violations: int
    findings: Path


class StreamPaths(NamedTuple):
    """Where a stream reads and writes."""

    root: Path
    findings: Path
    checkpoint: Path
    run_directory: Path | None
    """The only run that is audited, if it is one."""

    def run_directories(self) -> list[Path]:
        """Return the directories of the runs that there are now."""
        return [self.run_directory] if self.run_directory else sorted(self.root.glob(f"{RUN_PREFIX}*"))


def stream_paths(path: Path, findings: Path | None = None, checkpoint: Path | None = None) -> StreamPaths:
    """Return the paths for a journal, or for one run's directory in it. Raises `NoJournal`."""
    path = path.resolve()
    if not path.is_dir():
        raise NoJournal(f"{path}: no such directory; name a journal, or a {RUN_PREFIX}… directory in one")
    is_run = path.name.startswith(RUN_PREFIX)
    root = path.parent if is_run else path
    return StreamPaths(
        root,
        findings or root / FINDINGS_FILE,
        checkpoint or root / CHECKPOINTS / (path.name if is_run else "all"),
        path if is_run else None,
    )


def stream(
    where: StreamPaths,
    *,
    stop: threading.Event,
    on_change: Callable[[FindingsChange], None],
    on_message: Callable[[str], None],
    once: bool = False,
    look_ms: int = LOOK_MS,
    out_dir: Path | None = None,
) -> Streamed:
    """Audit the journal as it grows until `stop` is set, or with `once` all that there is now.

    `on_change` is called with each change as soon as it is in the file of findings, `on_message` with messages for the user.
    With `out_dir` the journal's tables are kept up to date there.

    Raises `StreamDied`, `StoreRefused`, `PipelineMissing`, OSError.
    """
    locks = where.checkpoint / "lock", where.findings.with_name(f".{where.findings.name}.lock")
    with _only_one(locks[0]), _only_one(locks[1]), ExitStack() as stack:
        mark_new = _keep_tables(stack, where, out_dir) if out_dir is not None else lambda: None
        try:
            checkpoint = StreamCheckpoint(where.checkpoint)
        except CheckpointGarbled as problem:
            raise StreamDied(str(problem)) from problem
        findings = FindingsFile(where.findings)
        follower = JournalFollower(where.run_directory or where.root, checkpoint, findings, on_change, on_message)
        is_last = False
        while not is_last:
            is_last = once and not stop.is_set()
            if follower.look(time.monotonic_ns() // 1_000_000, at_once=is_last):
                mark_new()
            is_last = is_last or stop.wait(look_ms / 1_000)
        return Streamed(follower.lines, follower.problems, findings.violations(), where.findings)


def _keep_tables(stack: ExitStack, where: StreamPaths, out_dir: Path) -> Callable[[], None]:
    """Keep tables up to date until the stack is closed. Return what to call when there are new files."""
    with needing_packages():
        from quarterdeck.backend.pipeline.tables import store as _  # noqa: F401 - what is missing shows before the first file
    tables = _LiveTables(where.run_directories, out_dir)
    stack.callback(tables.close)
    return tables.mark_new


class _LiveTables:
    """Folds new files of the `runs` into the tables at `out_dir` now and then, and a last time at the end.

    It has a thread of its own, so that findings do not wait for tables.
    """

    def __init__(self, runs: Callable[[], Sequence[Path]], out_dir: Path) -> None:
        self._runs, self._out_dir = runs, out_dir
        self._news, self._closing = threading.Event(), threading.Event()
        self._has_folded = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._go_on, name="tables", daemon=True)
        self._thread.start()

    def mark_new(self) -> None:
        """Note that there are new files. Raises what kept the tables from being written, if anything did."""
        self._raise_failure()
        self._news.set()

    def close(self) -> None:
        """Write what is new, and end."""
        self._closing.set()
        self._thread.join()
        self._raise_failure()
        self._fold(is_last=True)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _go_on(self) -> None:
        while not self._closing.wait(FOLD_SECONDS):
            try:
                self._fold(is_last=False)
            except Exception as problem:  # noqa: BLE001 - raised again in the thread that can end the stream
                self._failure = problem
                return

    def _fold(self, *, is_last: bool) -> None:
        from quarterdeck.backend.pipeline.tables.store import update_store

        if self._news.is_set() or (is_last and self._has_folded):
            self._news.clear()
            self._has_folded = True
            update_store(self._runs(), self._out_dir, is_last=is_last)


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Lock out a second stream, which would consume the files and undo the findings of this one. Raises `StreamDied`."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o644)
    try:
        if not lock_if_free(descriptor):
            raise StreamDied(f"{lock}: another stream is running; end it, or name another --checkpoint and --findings")
        yield
    finally:
        os.close(descriptor)

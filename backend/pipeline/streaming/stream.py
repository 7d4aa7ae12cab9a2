"""The stream in one process: looks at a journal again and again until it is stopped.

Spark has no part in that: to plan and run one batch of a Spark stream costs more than to judge the few hundred records that come
between two polls, and a run has to be judged in one place anyway.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from quarterdeck.backend.journal.files import FINDINGS_FILE, RUN_PREFIX, NoJournal
from quarterdeck.backend.pipeline.commit import locked
from quarterdeck.backend.pipeline.growth import GrowingJournals
from quarterdeck.backend.pipeline.streaming.journal_follower import (
    CheckpointGarbled,
    FindingsChange,
    FindingsFile,
    JournalFollower,
    StreamCheckpoint,
)

LOOK_MS = 250
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
) -> Streamed:
    """Audit the journal as it grows until `stop` is set, or with `once` all that there is now.

    `on_change` is called with each change as soon as it is in the file of findings, `on_message` with messages for the user.

    Raises `StreamDied` and OSError, and with `once` `NoJournal` where there is nothing that a stream follows.
    """
    journal = where.run_directory or where.root
    if once and not any(read for runs in GrowingJournals([journal]).offset().values() for read in runs.values()):
        raise NoJournal(
            f"{journal}: no files of runs are in there; `quarterdeck audit` also reads other files, and tables"
        )
    with ExitStack() as stack:
        # A second stream would consume the files and undo the findings of this one.
        for lock in (where.checkpoint / "lock", where.findings.with_name(f".{where.findings.name}.lock")):
            busy = f"{lock}: another stream is running; end it, or name another --checkpoint and --findings"
            lock.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(lock, StreamDied(busy)))
        try:
            checkpoint = StreamCheckpoint(where.checkpoint, where.root)
        except CheckpointGarbled as problem:
            raise StreamDied(str(problem)) from problem
        findings = FindingsFile(where.findings)
        follower = JournalFollower(journal, checkpoint, findings, on_change, on_message)
        is_last = False
        while not is_last:
            is_last = once and not stop.is_set()
            follower.look(time.monotonic_ns() // 1_000_000, at_once=is_last)
            is_last = is_last or stop.wait(look_ms / 1_000)
        return Streamed(follower.lines, follower.problems, findings.violations(), where.findings)

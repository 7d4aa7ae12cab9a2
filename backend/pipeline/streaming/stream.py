"""The stream: finished files of a journal, each read once, given to the live audit, until somebody ends it.

Spark has no part in it. To plan and run one batch of a Spark stream costs more than to judge the few hundred records that come
between two looks, and a run has to be judged in one place anyway. Only the tables of `--out` are made on Spark.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.backend.journal.files import RUN_PREFIX, NoJournal
from quarterdeck.backend.journal.recovery import lock_if_free
from quarterdeck.backend.pipeline.spark.requirements import SparkUnreachable, needing_packages
from quarterdeck.backend.pipeline.streaming.findings_file import FINDINGS_FILE, FindingsChange, FindingsFile
from quarterdeck.backend.pipeline.streaming.live_audit import JournalLine, LiveAudit
from quarterdeck.backend.pipeline.streaming.processed_files import CheckpointGarbled, ProcessedFiles
from quarterdeck.backend.pipeline.streaming.watermark import FINISHED

LOOK_MS = 250
BYTES_AT_ONCE = 32 << 20
"""So much is read before it is judged: then what is on disk already does not have to fit into memory."""

CHECKPOINTS = "_stream"
"""Where a stream keeps its account, beside the runs; readers of journals pass it over."""


class StreamDied(RuntimeError):
    """The stream ended by itself, or cannot begin. The message says why."""


@dataclass(frozen=True)
class Streamed:
    """What a stream came to. `violations` are those in the file of findings."""

    lines: int
    problems: int
    violations: int
    findings: Path


@dataclass(frozen=True)
class StreamPaths:
    """Where a stream reads and writes."""

    root: Path
    findings: Path
    checkpoint: Path
    run_directory: Path | None
    """The only run that is audited, if it is one."""

    def run_directories(self) -> list[Path]:
        """Those of the runs that there are now."""
        return [self.run_directory] if self.run_directory else sorted(self.root.glob(f"{RUN_PREFIX}*"))


def stream_paths(path: Path, findings: Path | None = None, checkpoint: Path | None = None) -> StreamPaths:
    """Of a journal, or of one run's directory in it. Raises `NoJournal`."""
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
    ready: Callable[[], None] = lambda: None,
    once: bool = False,
    look_ms: int = LOOK_MS,
    out_dir: Path | None = None,
    master: str = "",
) -> Streamed:
    """Audit the journal as it grows until `stop` is set, or `once`: all that is there, and then end.

    `on_change` is called with what is found as soon as it is in the file of findings, `on_message` with what people should
    know. With `out_dir` the journal's tables are kept up to date there, by Spark; `ready` is called once that has started, which
    takes over Ctrl-C at that. Raises `StreamDied`, `StoreRefused`, `PipelineMissing`, OSError.
    """
    locks = where.checkpoint / "lock", where.findings.with_name(f".{where.findings.name}.lock")
    with _only_one(locks[0]), _only_one(locks[1]), ExitStack() as stack:
        mark_new = _keep_tables(stack, where, out_dir, master) if out_dir is not None else None
        ready()
        try:
            processed_files = ProcessedFiles(where.checkpoint)
        except CheckpointGarbled as problem:
            raise StreamDied(str(problem)) from problem
        stack.callback(processed_files.close)
        only_run = where.run_directory.name.removeprefix(RUN_PREFIX) if where.run_directory else ""
        audit = LiveAudit(where.root, processed_files, FindingsFile(where.findings), on_change, on_message, only_run)
        finished = _FinishedFiles(where, processed_files)
        while True:
            for files in finished.new():
                audit.take(_lines(files), time.monotonic())
                audit.judge_due(time.monotonic())
                if mark_new is not None:
                    mark_new()
            if once and not stop.is_set():
                audit.finish()
                break
            audit.judge_due(time.monotonic())
            if stop.wait(look_ms / 1_000):
                break
        return Streamed(audit.lines, audit.problems, audit.violations(), where.findings)


def _keep_tables(stack: ExitStack, where: StreamPaths, out_dir: Path, master: str) -> Callable[[], None]:
    """Keep tables up to date until the stack is left; call what this gives when there are new files."""
    with needing_packages():
        from quarterdeck.backend.pipeline.spark.session import spark_session
        from quarterdeck.backend.pipeline.streaming.live_tables import LiveTables
    try:
        tables = LiveTables(stack.enter_context(spark_session(master)), where.run_directories, out_dir)
    except SparkUnreachable as problem:
        raise StreamDied(str(problem)) from problem
    stack.callback(tables.close)

    def mark_new() -> None:
        tables.raise_failure()
        tables.mark_dirty()

    return mark_new


class _FinishedFiles:
    """The finished files that were not read yet."""

    def __init__(self, where: StreamPaths, processed_files: ProcessedFiles) -> None:
        self._where, self._processed = where, processed_files
        self._looked_ns: dict[Path, int] = {}
        """When each run's directory had changed last as it was looked at."""
        self._given: set[Path] = set()
        """Also those that hold no record, of which no account is kept."""

    def new(self) -> Iterator[list[Path]]:
        """Those that there are now, some at a time."""
        some, size_bytes = list[Path](), 0
        for directory in self._where.run_directories():
            changed_ns = directory.stat().st_mtime_ns
            if self._looked_ns.get(directory) == changed_ns:
                continue
            known = self._processed.files(directory.name.removeprefix(RUN_PREFIX))
            unread = (file for file in directory.rglob(FINISHED) if file.name not in known and file not in self._given)
            for file in sorted(unread):
                self._given.add(file)
                some.append(file)
                size_bytes += file.stat().st_size
                if size_bytes >= BYTES_AT_ONCE:
                    yield some
                    some, size_bytes = [], 0
            # What comes within the same tick of the file system's clock changes its time no more.
            if time.time_ns() - changed_ns > LOOK_MS * 1_000_000:
                self._looked_ns[directory] = changed_ns
        if some:
            yield some


def _lines(files: Sequence[Path]) -> Iterator[JournalLine]:
    for file in files:
        with file.open("rb") as lines:
            for raw in lines:
                yield JournalLine(file, raw.removesuffix(b"\n"))


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Two streams with one account would take each other's files, with one file of findings undo what the other found.

    Raises `StreamDied`.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o644)
    try:
        if not lock_if_free(descriptor):
            raise StreamDied(f"{lock}: another stream is running; end it, or name another --checkpoint and --findings")
        yield
    finally:
        os.close(descriptor)

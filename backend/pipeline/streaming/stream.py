"""The stream on Spark: finished files of a journal, each read once, given to the live audit, until somebody ends it.

Spark lists the files, reads them, and knows after a restart which it has given. What it gives twice, because the process died in
between, changes nothing. The checkers of one run can only go from record to record, so they work in this process and keep what
they remember in memory; reading is Spark's.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from quarterdeck.backend.journal.files import RUN_PREFIX, NoJournal
from quarterdeck.backend.journal.recovery import lock_if_free
from quarterdeck.backend.pipeline.spark.session import spark_session
from quarterdeck.backend.pipeline.streaming.findings_file import FINDINGS_FILE, Change, FindingsFile
from quarterdeck.backend.pipeline.streaming.live_audit import Line, LiveAudit
from quarterdeck.backend.pipeline.streaming.live_tables import LiveTables
from quarterdeck.backend.pipeline.streaming.processed_files import ProcessedFiles
from quarterdeck.backend.pipeline.streaming.watermark import FINISHED

TRIGGER_MS = 500
FEWEST_TRIGGER_MS = 100
"""Spark looks for new files without a pause when it is told to look all the time, and takes a fifth of a core doing nothing."""

LOOK_SECONDS = 0.25
BYTES_A_BATCH = 32 << 20
CHECKPOINTS = "_stream"
"""Where a stream keeps its account, beside the runs; readers of journals pass it over."""

FOR_EVER = "36500d"
"""A run's file may come late, with an old date: none is too old."""

_GLOB_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\{}[]*?"})


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
    """Where a stream reads and writes. `pattern` are the directories that Spark reads."""

    root: Path
    pattern: str
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
        f"{str(root).translate(_GLOB_SIGNS)}/{path.name.translate(_GLOB_SIGNS) if is_run else f'{RUN_PREFIX}*'}",
        findings or root / FINDINGS_FILE,
        checkpoint or root / CHECKPOINTS / (path.name if is_run else "all"),
        path if is_run else None,
    )


def stream(
    where: StreamPaths,
    *,
    stop: threading.Event,
    on_change: Callable[[Change], None],
    on_message: Callable[[str], None],
    ready: Callable[[], None] = lambda: None,
    once: bool = False,
    trigger_ms: int = TRIGGER_MS,
    out_dir: Path | None = None,
    master: str = "",
) -> Streamed:
    """Audit the journal as it grows until `stop` is set, or `once`: all that is there, and then end.

    `on_change` is called with what is found as soon as it is in the file of findings, `on_message` with what people should
    know. `ready` is called once Spark has started, which takes over Ctrl-C at that. With `out_dir` the journal's tables are kept
    up to date there. Raises `StreamDied`, `StoreRefused`, `JavaMissing`, OSError.
    """
    locks = where.checkpoint / "lock", where.findings.with_name(f".{where.findings.name}.lock")
    with _only_one(locks[0]), _only_one(locks[1]), spark_session(master) as spark:
        ready()
        processed_files = ProcessedFiles(where.checkpoint)
        try:
            only_run = where.run_directory.name.removeprefix(RUN_PREFIX) if where.run_directory else ""
            audit = LiveAudit(
                where.root, processed_files, FindingsFile(where.findings), on_change, on_message, only_run
            )
            tables = LiveTables(spark, where.run_directories, out_dir) if out_dir is not None else None
            _ActiveQuery(where, audit, tables, stop).run(spark, once, trigger_ms)
            audit.close()
        finally:
            processed_files.close()
        return Streamed(audit.lines, audit.problems, audit.violations(), where.findings)


class _ActiveQuery:
    """One query and what it feeds."""

    def __init__(self, where: StreamPaths, audit: LiveAudit, tables: LiveTables | None, stop: threading.Event) -> None:
        self._where, self._audit, self._tables, self._stop = where, audit, tables, stop
        self._failure: Exception | None = None
        """What went wrong here while Spark waited for us; Spark's own account of it is long."""

    def run(self, spark: SparkSession, once: bool, trigger_ms: int) -> None:
        writer = (
            read_lines(spark, self._where.pattern)
            .writeStream.foreachBatch(self._take)
            .option("checkpointLocation", str(self._where.checkpoint / "spark"))
        )
        writer = (
            writer.trigger(availableNow=True) if once else writer.trigger(processingTime=f"{trigger_ms} milliseconds")
        )
        try:
            query = writer.start()
            try:
                self._watch(query)
            finally:
                query.stop()
            if once and not self._stop.is_set():
                self._audit.finish()
            else:
                self._audit.judge_due(time.monotonic())
            if self._tables is not None:
                self._tables.close()
        except (PySparkException, Py4JError) as problem:
            raise StreamDied(f"Spark ended: {_first_line(problem)}") from problem

    def _watch(self, query: StreamingQuery) -> None:
        """Until the query ends or somebody ends it. A query dies in silence, so it is asked."""
        while query.isActive and not self._stop.wait(LOOK_SECONDS):
            self._audit.judge_due(time.monotonic())
            if self._tables is not None:
                self._tables.raise_failure()
        problem = None if self._stop.is_set() else query.exception()
        if self._failure is not None:
            raise self._failure
        if problem is not None:
            raise StreamDied(f"the stream ended: {_first_line(problem)}") from problem

    def _take(self, batch: DataFrame, _: int) -> None:
        try:
            table = batch.toArrow()
            self._audit.take(_lines(table), time.monotonic())
        except OSError as problem:
            self._failure = problem
            raise
        if self._tables is not None and table.num_rows:
            self._tables.mark_dirty()


def read_lines(spark: SparkSession, pattern: str) -> DataFrame:
    """The lines of finished files as they come: file, block and raw."""
    return (
        spark.readStream.option("recursiveFileLookup", "true")
        .option("pathGlobFilter", FINISHED)
        .option("lineSep", "\n")
        .option("maxFileAge", FOR_EVER)
        .option("maxBytesPerTrigger", BYTES_A_BATCH)
        .text(pattern)
        .select(
            F.col("_metadata.file_path").alias("file"),
            F.col("_metadata.file_block_start").alias("block"),
            F.col("value").cast("binary").alias("raw"),
        )
    )


def _lines(table: pa.Table) -> Iterator[Line]:
    known: dict[str, Path] = {}
    for part in table.to_batches():
        for file, block, raw in zip(*(part.column(name).to_pylist() for name in ("file", "block", "raw")), strict=True):
            path = known.get(file)
            if path is None:
                path = known[file] = Path(unquote(urlsplit(file).path))
            yield Line(path, block, raw)


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


def _first_line(problem: BaseException) -> str:
    return next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)

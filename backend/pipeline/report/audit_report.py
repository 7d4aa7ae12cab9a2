"""The report of an audit that has just been made: its journals once more, on the same Spark, and what it found."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING

from quarterdeck.backend.hazelcast.logs.reader import log_files
from quarterdeck.backend.journal.files import RUN_PREFIX, journal_files
from quarterdeck.backend.pipeline import audit_lines
from quarterdeck.backend.pipeline.audit import AuditResult, Source, source_of
from quarterdeck.backend.pipeline.report.builder import AuditSummary, build_report
from quarterdeck.backend.pipeline.report.limits import Limits
from quarterdeck.backend.pipeline.report.model import Report
from quarterdeck.backend.pipeline.report.row_collection import collect
from quarterdeck.backend.pipeline.spark.session import spark_session
from quarterdeck.backend.pipeline.spark.tuning import size_of, tuned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def report_on(
    paths: Sequence[Path], result: AuditResult, *, source: Source = "auto", limits: Limits | None = None
) -> Report:
    """The report on `paths`, of which `result` is the audit; `source` as the audit was told it.

    Uses the running Spark session, else one of its own. Raises what an audit of these paths does.
    """
    limits = limits or Limits()
    logs = (source_of(paths) if source == "auto" else source) == "logs"
    with tempfile.TemporaryDirectory(prefix="quarterdeck-report-") as staging, spark_session() as spark:
        reading = _reading(spark, paths, Path(staging), logs=logs)
        try:
            with tuned(spark, reading.size_bytes):
                rows = collect(reading.events(), list(dict.fromkeys(one.run for one in result.findings)), limits)
        finally:
            reading.release()
    audited = AuditSummary(
        sources=[str(path) for path in paths],
        counts=result.counts,
        findings=result.findings,
        bad_lines=result.problems,
        judged=result.rules,
        not_judged=result.not_judged,
        incomplete=result.incomplete,
        commands=_commands(reading.names),
    )
    return build_report(rows, audited, limits)


def _reading(spark: SparkSession, paths: Sequence[Path], staging: Path, *, logs: bool) -> audit_lines.InputLines:
    if logs:
        return audit_lines.read_logs(spark, paths, size_of(log_files(paths)))
    files = audit_lines.snapshot([file for path in paths for file in journal_files(path)], staging)
    return audit_lines.read_journals(spark, files, size_of(files))


def _commands(names: Mapping[Path, Path]) -> dict[str, str]:
    """By run, what opens it in the console: the directory of the run, where it has one."""
    places = {file.parent for file in names.values() if file.parent.name.startswith(RUN_PREFIX)}
    return {
        place.name.removeprefix(RUN_PREFIX): join(("quarterdeck", "console", "--replay", str(place)))
        for place in sorted(places)
    }

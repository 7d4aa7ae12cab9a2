"""The audit: journals, or the product's own logs, in; findings out, and tables on the way kept as Parquet when wanted.

Importing this file imports no Spark; calling `audit` does.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from msgspec import Struct

from quarterdeck.backend.hazelcast.logs.reader import log_files, may_be_log
from quarterdeck.backend.journal.files import (
    OPEN_SUFFIX,
    RUN_PREFIX,
    SEALED_SUFFIX,
    NoJournal,
    journal_files,
    run_of_file,
)
from quarterdeck.backend.pipeline.rules.finding import Finding, Witness, by_weight, linked
from quarterdeck.backend.pipeline.rules.names import UnknownRule, holds_for_incomplete_journals, wanted_rules
from quarterdeck.backend.pipeline.spark.requirements import JavaMissing, PipelineMissing, needing_packages
from quarterdeck.backend.pipeline.tables import commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quarterdeck.backend.pipeline.audit_lines import InputLines
    from quarterdeck.backend.pipeline.rules.evidence import Evidence

__all__ = [
    "AuditResult",
    "Finding",
    "JavaMissing",
    "NotJudged",
    "OutputRefused",
    "PipelineMissing",
    "QuarantinedLine",
    "Source",
    "UnknownRule",
    "Witness",
    "audit",
]

Source = Literal["auto", "journal", "logs"]
"""What the paths hold: our journals, or the product's own member logs."""

MOST_FINDINGS = 100_000
TABLES = ("views", "suspicions", "findings")
MAKER = "audit"
FORM = "1"
LOGS_TELL_LITTLE = "members' logs may begin in the middle, and tell nothing of faults, tables and calls"


class QuarantinedLine(Struct, frozen=True):
    """A line that is no record, or contradicts one."""

    file: Path
    line: str
    reason: str


class NotJudged(Struct, frozen=True):
    """Rules about which nothing can be said, and why."""

    rules: tuple[str, ...]
    why: str


class AuditResult(Struct, frozen=True):
    """`findings`: violations first, then by run and time. `problems`: the first of the quarantined lines.

    `counts` has: files, lines, records, runs, lives, duplicates, quarantined (of these contradicting: records, but not the first
    of their identity), views, suspicions, and findings where there are more than are listed. `rules`: those that were judged.
    `incomplete`: by run, what its journal lacks; a finding that needs the whole journal is only a warning there.
    """

    findings: tuple[Finding, ...]
    counts: dict[str, int]
    problems: tuple[QuarantinedLine, ...]
    rules: tuple[str, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    incomplete: dict[str, str] = {}


class OutputRefused(ValueError):
    """The directory for the tables holds something else under their names."""


def audit(
    paths: Sequence[Path],
    out_dir: Path | None = None,
    *,
    rules: Collection[str] = (),
    source: Source = "auto",
    master: str = "",
    remote: str = "",
    bound_us: int | None = None,
    by_tables: bool = False,
    then: Callable[[AuditResult], None] = lambda result: None,
) -> AuditResult:
    """Check what is at `paths`: journals (roots, directories of runs, single files), or logs; events that stand twice count once.

    `rules`: only these. `bound_us`: how long members may take to agree once nothing disturbs them. `by_tables`: judge little as
    much is judged, wherever that can be done by transformations of tables; the verdict is the same. With `out_dir` the tables
    `views`, `suspicions` and `findings` are written there as Parquet, partitioned by run, replacing those of an earlier audit,
    all of them or none. `then` is called with the result while Spark still runs. Raises `NoJournal`, `NoLogs`,
    `UnknownRule`, `OutputRefused`, `PipelineMissing`, `JavaMissing` or `SparkUnreachable` before anything is changed, and
    `OSError` for what cannot be read or written.
    """
    if out_dir is not None:
        _check_output(out_dir)
    names = wanted_rules(rules)
    source = source_of(paths) if source == "auto" else source
    listed = [file for path in paths for file in journal_files(path)] if source == "journal" else []
    with needing_packages():
        from quarterdeck.backend.pipeline import audit_lines
        from quarterdeck.backend.pipeline.spark import session, tuning
    blind: list[str] = []
    if source == "logs":
        blind = sorted(name for name in names if not holds_for_incomplete_journals(name))
        names -= frozenset(blind)
    with tempfile.TemporaryDirectory(prefix="quarterdeck-audit-") as staging:
        files = audit_lines.snapshot(listed, Path(staging))
        size_bytes = tuning.size_of(files or log_files(paths))
        is_small = size_bytes <= tuning.SMALL_BYTES
        profile: Literal["interactive", "throughput"] = "interactive" if is_small else "throughput"
        conf = {} if is_small else audit_lines.MUCH
        with session.spark_session(master, remote=remote, profile=profile, conf=conf) as spark:
            task = _Task(tuple(paths), names, bound_us, by_tables, out_dir)
            result = _read_and_audited(spark, source, files, size_bytes, task)
            unjudged = (NotJudged(tuple(blind), LOGS_TELL_LITTLE),) if blind else ()
            result = msgspec.structs.replace(result, not_judged=unjudged)
            then(result)
    return result


class _Task(NamedTuple):
    """What is asked of an audit."""

    paths: tuple[Path, ...]
    rules: frozenset[str]
    bound_us: int | None
    by_tables: bool
    out_dir: Path | None


def _read_and_audited(
    spark: SparkSession, source: Source, files: Mapping[Path, Path], size_bytes: int, task: _Task
) -> AuditResult:
    from quarterdeck.backend.pipeline import audit_lines
    from quarterdeck.backend.pipeline.spark import tuning

    with tuning.tuned(spark, size_bytes):
        if source == "logs":
            reading = audit_lines.read_logs(spark, task.paths, size_bytes)
        else:
            reading = audit_lines.read_journals(spark, files, size_bytes)
        try:
            return _audited(reading, task)
        finally:
            reading.release()


def _audited(reading: InputLines, task: _Task) -> AuditResult:
    from quarterdeck.backend.pipeline.audit_lines import counted
    from quarterdeck.backend.pipeline.rules import all_rules
    from quarterdeck.backend.pipeline.rules.evidence import OBLIGATION_TIMEOUT_US, Evidence

    contents = counted(reading.lines)
    counts = {"files": len(reading.names), **contents.counts, **reading.counts}
    obligation_timeout_us = OBLIGATION_TIMEOUT_US if task.bound_us is None else task.bound_us
    evidence = Evidence(
        reading.events(), obligation_timeout_us=obligation_timeout_us, bound_us=task.bound_us, one_part=reading.is_small
    )
    try:
        by_tables = task.by_tables or not reading.is_small
        found, incomplete = all_rules.find(evidence, task.rules, contents.kinds, contents.calm_us, by_tables=by_tables)
        links = _Links(reading, task.paths)
        findings = by_weight([links.linked(one) for one in found])
        if task.out_dir is not None:
            _write_tables(_tables(evidence, findings), task.out_dir)
        if len(findings) > MOST_FINDINGS:
            counts["findings"] = len(findings)
            del findings[MOST_FINDINGS:]
    finally:
        evidence.release()
    problems = [QuarantinedLine(*one) for one in reading.problems()] if counts["quarantined"] else []
    return AuditResult(
        tuple(findings), counts, tuple(problems), tuple(sorted(task.rules)), (), {} if reading.logs else incomplete
    )


def source_of(paths: Sequence[Path]) -> Literal["journal", "logs"]:
    """What the first path holds that tells it.

    A directory with a record in it is a journal, whatever else is there. Without one it is a directory of logs if it has any,
    also beside JSON lines of somebody else.
    """
    for path in paths:
        if path.is_file() and not path.name.endswith((SEALED_SUFFIX, OPEN_SUFFIX)) and run_of_file(path) is None:
            return "logs"
        if path.is_dir():
            if _holds_records(path):
                return "journal"
            if any(may_be_log(file) for file in path.rglob("*") if file.is_file()):
                return "logs"
    return "journal"


def _holds_records(directory: Path) -> bool:
    try:
        return any(run_of_file(file) is not None for file in journal_files(directory))
    except NoJournal:
        return False
    except FileNotFoundError:  # what is renamed between listing and looking has just been finished by a living writer
        return True


class _Links:
    """How to see a finding in the console: the directory of its run, or else what was named."""

    def __init__(self, reading: InputLines, paths: Sequence[Path]) -> None:
        self._places: dict[str, Path] = {}
        for place, file in reading.names.items():
            if file.parent.name.startswith(RUN_PREFIX):
                self._places[file.parent.name.removeprefix(RUN_PREFIX)] = file.parent
            elif len(paths) > 1 and (run := run_of_file(place)) is not None:
                self._places.setdefault(run, next(path for path in paths if path == file or path in file.parents))
        self._otherwise = paths[0] if reading.logs is None else None

    def linked(self, finding: Finding) -> Finding:
        """The finding with its link; without one where it is of a log, which the console does not replay."""
        place = self._places.get(finding.run, self._otherwise)
        return finding if place is None else linked(finding, place)


# Tables on disk


def _check_output(out_dir: Path) -> None:
    """Only what an audit wrote may be replaced. Raises `OutputRefused`."""
    try:
        commit.check(out_dir, TABLES, MAKER)
    except commit.StoreRefused as refused:
        raise OutputRefused(str(refused)) from refused


def _tables(evidence: Evidence, findings: Sequence[Finding]) -> dict[str, DataFrame]:
    from quarterdeck.backend.pipeline.schemas import FINDINGS
    from quarterdeck.backend.pipeline.tables.suspicions import suspicions
    from quarterdeck.backend.pipeline.tables.views import views

    # By way of JSON: Spark Connect takes lists for arrays, and no tuples.
    rows = [msgspec.json.decode(msgspec.json.encode(one)) for one in findings]
    spark = evidence.events.sparkSession
    found = spark.createDataFrame(rows, FINDINGS)
    return {"views": views(evidence.events), "suspicions": suspicions(evidence.events), "findings": found}


def _write_tables(tables: Mapping[str, DataFrame], out_dir: Path) -> None:
    """All of them take the place of all that an earlier audit wrote, or none does. Raises `OutputRefused`."""
    try:
        with commit.opened(out_dir, tuple(tables), MAKER) as building:
            for name, table in tables.items():
                table.write.partitionBy("run").parquet(str(building / name))
            runs = {
                run
                for name in tables
                for place in (out_dir, building)
                for run in commit.directories_by_run(place / name)
            }
            order = commit.Order(tuple(sorted(runs)), tuple(tables), commit.Manifest(FORM, {}, MAKER))
            commit.commit(out_dir, building, order)
    except commit.StoreRefused as refused:
        raise OutputRefused(str(refused)) from refused

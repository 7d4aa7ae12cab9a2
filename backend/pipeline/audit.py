"""The audit: journals, or the product's own logs, in; findings out, and tables on the way kept as Parquet when wanted.

Importing this file imports no Spark; calling `audit` does.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from quarterdeck.backend.pipeline.audit_input import AuditInput, Source, resolve_input
from quarterdeck.backend.pipeline.audit_result import AuditResult, NotJudged
from quarterdeck.backend.pipeline.rules.finding import Finding, by_weight, linked
from quarterdeck.backend.pipeline.rules.names import holds_for_incomplete_journals, wanted_rules
from quarterdeck.backend.pipeline.spark.requirements import needing_packages
from quarterdeck.backend.pipeline.tables import commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quarterdeck.backend.pipeline.audit_lines import InputLines
    from quarterdeck.backend.pipeline.rules.evidence import Evidence

MAX_FINDINGS = 100_000
TABLES = ("views", "suspicions", "findings")
WRITER = "audit"
FORMAT = "1"
LOGS_TELL_LITTLE = "members' logs may begin in the middle, and tell nothing of faults, tables and calls"


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
    then: Callable[[AuditResult, InputLines], None] = lambda result, lines: None,
) -> AuditResult:
    """Check what is at `paths`: journals (roots, directories of runs, single files), or logs; events that stand twice count once.

    `rules`: only these. `bound_us`: how long members may take to agree once nothing disturbs them. `by_tables`: judge little as
    much is judged, wherever that can be done by transformations of tables; the verdict is the same. With `out_dir` the tables
    `views`, `suspicions` and `findings` are written there as Parquet, partitioned by run, replacing those of an earlier audit,
    all of them or none. `then` is called with the result and the lines that were judged while Spark still has them. Raises
    `NoJournal`, `NoLogs`, `UnknownRule`, `OutputRefused`, `PipelineMissing`, `JavaMissing` or `SparkUnreachable` before anything
    is changed, and `OSError` for what cannot be read or written.
    """
    if out_dir is not None:
        _check_output(out_dir)
    names = wanted_rules(rules)
    with tempfile.TemporaryDirectory(prefix="quarterdeck-audit-") as staging:
        found = resolve_input(paths, Path(staging), source)
        with needing_packages():
            from quarterdeck.backend.pipeline import audit_lines
            from quarterdeck.backend.pipeline.spark import session, tuning
        is_small = tuning.is_small(found.size_bytes)
        profile: Literal["interactive", "throughput"] = "interactive" if is_small else "throughput"
        conf = {} if is_small else audit_lines.THROUGHPUT_CONF
        with (
            session.spark_session(master, remote=remote, profile=profile, conf=conf) as spark,
            audit_lines.reading(spark, found) as lines,
        ):
            result = _audited(lines, names, out_dir, bound_us, by_tables=by_tables)
            then(result, lines)
    return result


def _audited(
    lines: InputLines, wanted: frozenset[str], out_dir: Path | None, bound_us: int | None, *, by_tables: bool
) -> AuditResult:
    from quarterdeck.backend.pipeline.audit_lines import counted
    from quarterdeck.backend.pipeline.rules import all_rules
    from quarterdeck.backend.pipeline.rules.evidence import OBLIGATION_TIMEOUT_US, Evidence

    rules, unjudged = _judged(wanted, lines.source)
    contents = counted(lines.lines)
    counts = {"files": len(lines.source.files), **contents.counts, **lines.counts}
    timeout_us = OBLIGATION_TIMEOUT_US if bound_us is None else bound_us
    evidence = Evidence(lines.events(), obligation_timeout_us=timeout_us, bound_us=bound_us, one_part=lines.is_small)
    try:
        by_tables = by_tables or not lines.is_small
        found, incomplete = all_rules.find(evidence, rules, contents.kinds, contents.calm_us, by_tables=by_tables)
        findings = by_weight([linked(one, lines.source.replayable_path(one.run)) for one in found])
        if out_dir is not None:
            _write_tables(_tables(evidence, findings), out_dir)
    finally:
        evidence.release()
    if len(findings) > MAX_FINDINGS:
        counts["findings"] = len(findings)
        del findings[MAX_FINDINGS:]
    return AuditResult(
        findings=tuple(findings),
        counts=counts,
        problems=tuple(lines.problems()) if counts["quarantined"] else (),
        rules=tuple(sorted(rules)),
        not_judged=unjudged,
        incomplete={} if lines.source.kind == "logs" else incomplete,
    )


def _judged(rules: frozenset[str], source: AuditInput) -> tuple[frozenset[str], tuple[NotJudged, ...]]:
    """Those of `rules` that can be judged of such an input, and what has to be said of the others."""
    if source.kind == "journal":
        return rules, ()
    judged = frozenset(filter(holds_for_incomplete_journals, rules))
    others = tuple(sorted(rules - judged))
    return judged, (NotJudged(others, LOGS_TELL_LITTLE),) if others else ()


# Tables on disk


def _check_output(out_dir: Path) -> None:
    """Only what an audit wrote may be replaced. Raises `OutputRefused`."""
    try:
        commit.check(out_dir, TABLES, WRITER)
    except commit.StoreRefused as refused:
        raise OutputRefused(str(refused)) from refused


def _tables(evidence: Evidence, findings: Sequence[Finding]) -> dict[str, DataFrame]:
    from quarterdeck.backend.pipeline.rules.registry import FINDINGS
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
        with commit.open_for_build(out_dir, tuple(tables), WRITER) as building:
            for name, table in tables.items():
                table.write.partitionBy("run").parquet(str(building / name))
            runs = {
                run
                for name in tables
                for place in (out_dir, building)
                for run in commit.directories_by_run(place / name)
            }
            order = commit.Order(tuple(sorted(runs)), tuple(tables), commit.Manifest(FORMAT, {}, WRITER))
            commit.commit(out_dir, building, order)
    except commit.StoreRefused as refused:
        raise OutputRefused(str(refused)) from refused

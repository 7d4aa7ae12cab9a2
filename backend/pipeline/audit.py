"""The audit: journals, or the product's own logs, in; findings out, and tables on the way kept as Parquet when wanted.

Each run is judged in one pass by the simulator's own checkers. What is small is judged in this process; what is great, by
the same code in tasks of Spark's. Importing this file imports no Spark.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import structs

from quarterdeck.backend.hazelcast.logs.reader import NoLogs, read_logs
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit_input import SHRUNK, AuditInput, Source, are_addresses, resolve_input
from quarterdeck.backend.pipeline.audit_result import AuditResult, NotJudged, QuarantinedLine
from quarterdeck.backend.pipeline.judging.group_judge import judge_group
from quarterdeck.backend.pipeline.judging.log_judge import judge_log_records
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion, RunVerdict
from quarterdeck.backend.pipeline.judging.set_aside import CONTRADICTS, MAX_QUARANTINED
from quarterdeck.backend.pipeline.judging.whole_judge import WholeVerdict, groups_of, judge_whole, together
from quarterdeck.backend.pipeline.rules.finding import Finding, by_weight, linked
from quarterdeck.backend.pipeline.rules.names import holds_for_incomplete_journals, wanted_rules
from quarterdeck.backend.pipeline.spark.requirements import needing_packages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from quarterdeck.backend.pipeline.audit_lines import InputLines
    from quarterdeck.backend.pipeline.engine_input import EngineInput

MAX_FINDINGS = 100_000
UNDIVIDED_BYTES = 2 << 30
"""On Spark a run of more bytes is divided among several tasks."""

IN_PROCESS_BYTES = 128 << 20
"""Up to here one core has judged a journal before Spark, which has to start, has done so on many."""

TABLES = ("views", "suspicions", "findings")
WRITER = "audit"
FORMAT = "1"
WITNESSES_TELL_LITTLE = (
    "these members keep no journal: who listens to them may begin in the middle, and is not told everything"
)
LOGS_TELL_LITTLE = "members' logs may begin in the middle, and tell nothing of faults, tables and calls"

Then = Callable[[AuditResult, "InputLines"], None]


class OutputRefused(ValueError):
    """The directory for the tables holds something else under their names."""


def audit(
    paths: Sequence[Path | str],
    out_dir: Path | str | None = None,
    *,
    rules: Collection[str] = (),
    source: Source = "auto",
    spark: SparkSession | None = None,
    master: str = "",
    remote: str = "",
    bound_us: int | None = None,
    log_options: LogOptions | None = None,
    undivided_bytes: int = UNDIVIDED_BYTES,
    then: Then | None = None,
) -> AuditResult:
    """Check what is at `paths`: journals (roots, directories of runs, single files), a store of tables that were made of them, or
    logs; or any of these at addresses such as `s3a://…`, which Spark reads. Events that stand twice count once.

    `rules`: only these. `bound_us`: how long members may take to agree once nothing disturbs them. `log_options`: what logs
    do not tell. `undivided_bytes`: Spark divides a greater run of a journal among several tasks. With `out_dir`, which may be an
    address too, the tables `views`, `suspicions` and `findings` are written there as Parquet, partitioned by run, replacing those
    of an earlier audit, all of them or none. `then` is called with the result and the lines that were judged, while Spark has
    them. Spark is started for either of these, for what is great, and where a `master` or a `remote` is named; `spark` is a
    session to be used instead, whatever there is to judge.

    Raises `NoJournal`, `NoLogs`, `UnknownRule`, `OutputRefused`, `StoreRefused`, `PipelineMissing`, `JavaMissing` or
    `SparkUnreachable` before anything is changed, and `OSError` for what cannot be read or written.
    """
    is_far = out_dir is not None and are_addresses([out_dir])
    if out_dir is not None and not is_far:
        _check_output(Path(out_dir))
    wanted = wanted_rules(rules)
    with tempfile.TemporaryDirectory(prefix="quarterdeck-audit-") as staging, ExitStack() as stack:
        wants_tables = out_dir is not None or then is not None
        if spark is not None:
            stack.enter_context(_using(spark))
        found: AuditInput | EngineInput
        if are_addresses(paths):
            spark = spark or stack.enter_context(_session(master, remote, wants_tables=wants_tables))
            from quarterdeck.backend.pipeline.engine_input import resolve_engine_input

            found = resolve_engine_input(spark, list(map(str, paths)), source)
        else:
            found = resolve_input(list(map(Path, paths)), Path(staging), source)
        if spark is not None and out_dir is not None and is_far:
            from quarterdeck.backend.pipeline.tables.store import place_of

            _check_output(place_of(spark, out_dir))
        judged, unjudged = _judged(wanted, found)
        question = AuditQuestion(tuple(sorted(judged)), bound_us)
        if spark is None and (wants_tables or master or remote or found.size_bytes > IN_PROCESS_BYTES):
            is_much = wants_tables and found.size_bytes > IN_PROCESS_BYTES
            spark = stack.enter_context(_session(master, remote, wants_tables=is_much))
        verdict = _verdict(found, question, spark, log_options, undivided_bytes)
        if found.kind == "logs" and not verdict.runs:
            where = ", ".join(map(str, found.paths))
            how_many = verdict.counts["lines"]
            raise NoLogs(
                f"{where}: none of {how_many} lines is understood as what a member of a Hazelcast cluster logs"
            )
        judged, unjudged = _witnessed(verdict, judged, unjudged)
        findings = by_weight(
            [linked(one, found.replayable_path(one.run)) for run in verdict.runs for one in run.findings]
        )
        result = _result(found, verdict, findings, judged, unjudged)
        if spark is not None and wants_tables:
            from quarterdeck.backend.pipeline import audit_lines

            lines = stack.enter_context(audit_lines.reading(spark, found, log_options))
            if out_dir is not None:
                from quarterdeck.backend.pipeline.tables.store import place_of

                _write_tables(_tables(lines.events, findings), place_of(spark, out_dir))
            if then is not None:
                then(result, lines)
    return result


@contextmanager
def _session(master: str, remote: str, *, wants_tables: bool) -> Iterator[SparkSession]:
    """`wants_tables`: tables are made of much, which Java sorts; a verdict asks little of Java."""
    with needing_packages():
        from quarterdeck.backend.pipeline import audit_lines
        from quarterdeck.backend.pipeline.spark import session
    conf = audit_lines.THROUGHPUT_CONF if wants_tables else {}
    profile: Literal["throughput", "interactive"] = "throughput" if wants_tables else "interactive"
    with session.spark_session(master, remote=remote, profile=profile, conf=conf) as spark:
        yield spark


def _using(spark: SparkSession) -> AbstractContextManager[SparkSession]:
    from quarterdeck.backend.pipeline.spark import session

    return session.using(spark)


def _judged(rules: frozenset[str], found: AuditInput | EngineInput) -> tuple[frozenset[str], tuple[NotJudged, ...]]:
    """Those of `rules` that can be judged of such an input, and what has to be said of the others."""
    if found.kind != "logs":
        return rules, ()
    judged = frozenset(filter(holds_for_incomplete_journals, rules))
    others = tuple(sorted(rules - judged))
    return judged, (NotJudged(others, LOGS_TELL_LITTLE),) if others else ()


def _witnessed(
    verdict: WholeVerdict, judged: frozenset[str], unjudged: tuple[NotJudged, ...]
) -> tuple[frozenset[str], tuple[NotJudged, ...]]:
    """The same, where it has turned out that no member of any run keeps a journal itself."""
    others = tuple(sorted(one for one in judged if not holds_for_incomplete_journals(one)))
    if not others or not verdict.runs or not all(run.is_witnessed for run in verdict.runs):
        return judged, unjudged
    return judged.difference(others), (*unjudged, NotJudged(others, WITNESSES_TELL_LITTLE))


def _result(
    found: AuditInput | EngineInput,
    verdict: WholeVerdict,
    findings: Sequence[Finding],
    judged: frozenset[str],
    unjudged: tuple[NotJudged, ...],
) -> AuditResult:
    counts = {"files": len(found.files), **verdict.counts}
    if len(findings) > MAX_FINDINGS:
        counts["findings"] = len(findings)
    return AuditResult(
        findings=tuple(findings[:MAX_FINDINGS]),
        counts=counts,
        problems=verdict.problems,
        rules=tuple(sorted(judged)),
        not_judged=unjudged,
        incomplete={} if found.kind == "logs" else {run.run: _lacks(run) for run in verdict.runs if _lacks(run)},
        observations=tuple(one for story in verdict.stories for one in story.observations),
        migration_rounds=tuple(one for story in verdict.stories for one in story.migrations),
        merge_verdicts=tuple(one for story in verdict.stories for one in story.verdicts),
    )


def _lacks(run: RunVerdict) -> str:
    """What the journal of a run lacks; that its members keep none themselves is told for all runs at once."""
    return "" if run.is_witnessed else run.lacks


# The verdict, here or on Spark


def _verdict(
    found: AuditInput | EngineInput,
    question: AuditQuestion,
    spark: SparkSession | None,
    log_options: LogOptions | None,
    undivided_bytes: int,
) -> WholeVerdict:
    if found.kind == "logs":
        if spark is not None:
            return _of_logs_on_spark(found, question, spark, log_options)
        assert isinstance(found, AuditInput)
        return _of_logs(found, question, log_options)
    if isinstance(found, AuditInput):
        groups, are_far = groups_of(found), False
    else:
        groups, are_far = found.groups(), True
    if spark is None:
        with needing_packages():  # a store is read by pyarrow
            judged = judge_whole(groups, lambda some: ((n, judge_group(one, question)) for n, one in enumerate(some)))
    else:
        from quarterdeck.backend.pipeline.judging.spark_division import judge_groups_on_spark

        most_bytes = undivided_bytes // (SHRUNK if found.kind == "store" else 1)
        judge = partial(judge_groups_on_spark, spark, question, most_bytes, are_addresses=are_far)
        judged = judge_whole(groups, judge)
    if found.kind != "store":
        return judged
    if isinstance(found, AuditInput):
        return _with_quarantine(judged, _quarantined(found.paths[0]))
    assert spark is not None
    return _with_quarantine(judged, _quarantined_far(spark, found.paths[0]))


def _with_quarantine(judged: WholeVerdict, quarantined: Sequence[QuarantinedLine]) -> WholeVerdict:
    """The verdict on the events of a store, with the lines that were put aside as the store was made."""
    count = len(quarantined)
    contradicting = sum(one.reason.startswith(CONTRADICTS) for one in quarantined)
    lines = {"lines": count, "duplicates": 0, "quarantined": count, "contradicting": contradicting}
    counts = {name: judged.counts[name] + number for name, number in lines.items()}
    return together(judged.runs, counts, quarantined)


def _quarantined(store: Path) -> list[QuarantinedLine]:
    import pyarrow.parquet

    parts = [pyarrow.parquet.ParquetFile(part).read() for part in sorted(store.glob("quarantine/*/*.parquet"))]
    return [
        QuarantinedLine(file.as_py(), raw.as_py().decode(errors="replace"), reason.as_py())
        for part in parts
        for file, raw, reason in zip(part["file"], part["raw"].cast(pyarrow.binary()), part["reason"], strict=True)
    ]


def _quarantined_far(spark: SparkSession, address: str) -> list[QuarantinedLine]:
    from quarterdeck.backend.pipeline.tables.store import read_table

    rows = read_table(spark, address, "quarantine").select("file", "raw", "reason")
    return [QuarantinedLine(row.file, row.raw, row.reason) for row in rows.collect()]


def _of_logs(found: AuditInput, question: AuditQuestion, options: LogOptions | None) -> WholeVerdict:
    told = read_logs(found.read, options)
    problems = [QuarantinedLine(str(one.file), one.text, one.reason, one.line) for one in told.quarantine]
    lines = sum(lines for kinds in told.counts.values() for _, lines in kinds.values())
    verdicts = judge_log_records(told.records, question)
    return structs.replace(_of_log_runs(verdicts, problems, lines, len(problems)), stories=told.stories)


def _of_logs_on_spark(
    found: AuditInput | EngineInput, question: AuditQuestion, spark: SparkSession, options: LogOptions | None
) -> WholeVerdict:
    from pyspark.sql import functions as F

    from quarterdeck.backend.pipeline.judging.spark_judge import judge_logs_on_spark
    from quarterdeck.backend.pipeline.logs.log_tables import read_product_logs
    from quarterdeck.backend.pipeline.spark.tuning import tuned

    with tuned(spark, found.size_bytes):
        logs = read_product_logs(spark, found.read, options, are_addresses=not isinstance(found, AuditInput))
        try:
            lines = logs.coverage.agg(F.sum("lines").alias("lines")).collect()[0].lines or 0
            first = logs.quarantine.orderBy("file", "line").limit(MAX_QUARANTINED).collect()
            problems = [QuarantinedLine(row.file, row.raw, row.reason, row.line) for row in first]
            told = judge_logs_on_spark(logs.told, question)
            verdicts = [one.verdict for one in told if one.verdict is not None]
            verdict = _of_log_runs(verdicts, problems, lines, logs.quarantine.count())
            return structs.replace(verdict, stories=tuple(one.story for one in told))
        finally:
            logs.release()


def _of_log_runs(
    runs: Sequence[RunVerdict], problems: Sequence[QuarantinedLine], lines: int, quarantined: int
) -> WholeVerdict:
    counts = {"lines": lines, "duplicates": 0, "quarantined": quarantined, "contradicting": 0}
    return together(runs, counts, problems)


# Tables on disk


def _check_output(out_dir: commit.Place) -> None:
    """Only what an audit wrote may be replaced. Raises `OutputRefused`."""
    try:
        commit.check(out_dir, TABLES, WRITER)
    except commit.StoreRefused as refused:
        raise OutputRefused(str(refused)) from refused


def _tables(events: DataFrame, findings: Sequence[Finding]) -> dict[str, DataFrame]:
    from quarterdeck.backend.pipeline.schemas import columns_of
    from quarterdeck.backend.pipeline.tables.suspicions import suspicions
    from quarterdeck.backend.pipeline.tables.views import views

    # By way of JSON: Spark Connect takes lists for arrays, and no tuples.
    rows = [msgspec.json.decode(msgspec.json.encode(one)) for one in findings]
    found = events.sparkSession.createDataFrame(rows, columns_of(Finding))
    return {"views": views(events), "suspicions": suspicions(events), "findings": found}


def _write_tables(tables: Mapping[str, DataFrame], out_dir: commit.Place) -> None:
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
            order = commit.Order(tuple(sorted(runs)), tuple(tables), commit.TableManifest(FORMAT, {}, WRITER))
            commit.commit(out_dir, building, order)
    except commit.StoreRefused as refused:
        raise OutputRefused(str(refused)) from refused

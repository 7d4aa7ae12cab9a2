"""The audit: journals or members' logs in, findings out; also tables as Parquet, if wanted.

Each run is judged in one pass by the simulator's own checkers: small input in processes of this machine, large input by the same
code in Spark's tasks. Importing this file imports no Spark.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from quarterdeck.backend.hazelcast.logs.reader import LogRecords, NoLogs
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit_input import SHRUNK, AuditInput, Source, are_addresses, resolve_input
from quarterdeck.backend.pipeline.audit_result import AuditResult, NotJudged, QuarantinedLine
from quarterdeck.backend.pipeline.judging.group_judge import judge_group
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion
from quarterdeck.backend.pipeline.judging.tasks import carry_out_here
from quarterdeck.backend.pipeline.judging.whole_judge import WholeVerdict, judge_log_records, judge_whole, whole_verdict
from quarterdeck.backend.pipeline.log_runs import of_log_runs
from quarterdeck.backend.pipeline.rules import (
    Finding,
    by_weight,
    holds_for_incomplete_journals,
    holds_without_beginning,
    linked,
    wanted_rules,
)
from quarterdeck.backend.pipeline.spark.requirements import needing_packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quarterdeck.backend.pipeline.run_reader import RunReader

MAX_FINDINGS = 100_000
UNDIVIDED_BYTES = 2 << 30
"""On Spark, a larger run is divided among several tasks."""

IN_PROCESS_BYTES = 640 << 20
"""Up to this size processes of this machine judge a journal sooner than Spark does, which has to start first."""

LOGS_IN_PROCESS_BYTES = 128 << 20
"""The same for members' logs, which one process reads."""

TABLES = ("views", "suspicions", "findings")
WRITER = "audit"
NOT_IN_WITNESSED_RUNS = (
    "these members keep no journal: a witness from outside may begin in the middle, and does not hear everything"
)
RETIRED_RUNS = "the beginning of these runs was retired, and these rules need all of a run:"
NOT_IN_LOGS = "members' logs may begin in the middle, and do not contain faults, tables and calls"

Then = Callable[[AuditResult, "RunReader"], None]


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
    """Check the journals, logs or tables at `paths` against the rules. Events that occur twice count once.

    `paths` are journals (roots, directories of runs, single files), one store of tables that were made of them, or logs; any of
    these may be at addresses such as `s3a://…`, which Spark reads.

    `rules`: only these. `bound_us`: how long members may take to agree once nothing disturbs them. `log_options`: what the logs
    themselves do not contain. `undivided_bytes`: Spark divides a larger run of a journal among several tasks. With `out_dir`,
    which may be an address too, the tables `views`, `suspicions` and `findings` are written there as Parquet;
    they replace those of an earlier audit, all of them or none. `then` is called with the result and what reads the runs again.
    Spark is started for addresses, for large input, and where a `master` or a `remote` is named; a given session `spark` does all
    the work instead.

    Raises `NoJournal`, `NoLogs`, `UnknownRule`, `OutputRefused`, `StoreRefused`, `PipelineMissing`, `JavaMissing` or
    `SparkUnreachable` before anything is changed, and OSError for what cannot be read or written.
    """
    is_far, is_out_far = are_addresses(paths), out_dir is not None and are_addresses([out_dir])
    if out_dir is not None and not is_out_far:
        _check_output(Path(out_dir))
    wanted = wanted_rules(rules)
    with tempfile.TemporaryDirectory(prefix="quarterdeck-audit-") as staging, ExitStack() as stack:
        if spark is not None:
            from quarterdeck.backend.pipeline.spark import session

            stack.enter_context(session.using(spark))
        if is_far or is_out_far:
            spark = spark or stack.enter_context(_session(master, remote))
        if is_far:
            assert spark is not None
            from quarterdeck.backend.pipeline.far_input import resolve_far_input

            found = resolve_far_input(spark, list(map(str, paths)), source)
        else:
            found = resolve_input(list(map(Path, paths)), Path(staging), source)
        if spark is not None and out_dir is not None and is_out_far:
            from quarterdeck.backend.pipeline.tables.store import place_of

            _check_output(place_of(spark, out_dir))
        judged = frozenset(filter(holds_for_incomplete_journals, wanted)) if found.kind == "logs" else wanted
        question = AuditQuestion(tuple(sorted(judged)), bound_us)
        is_large = found.size_bytes > (LOGS_IN_PROCESS_BYTES if found.kind == "logs" else IN_PROCESS_BYTES)
        if spark is None and (master or remote or is_large):
            spark = stack.enter_context(_session(master, remote))
        verdict = _verdict(found, question, spark, log_options, undivided_bytes)
        if found.kind == "logs" and not verdict.runs:
            where, count = ", ".join(map(str, found.paths)), verdict.counts["lines"]
            raise NoLogs(f"{where}: none of {count} lines is understood as what a member of a Hazelcast cluster logs")
        findings = by_weight(
            [
                linked(finding, found.replayable_path(run.run))
                for run in verdict.runs
                for finding in run.findings
                if run.run not in found.retired or holds_without_beginning(finding)
            ]
        )
        result = _result(found, verdict, findings, wanted, judged)
        if out_dir is not None or then is not None:
            with needing_packages():
                from quarterdeck.backend.pipeline import audit_tables
                from quarterdeck.backend.pipeline.run_reader import RunReader
                from quarterdeck.backend.pipeline.tables.store import place_of
            reader = RunReader(found, spark, log_options)
            if out_dir is not None:
                try:
                    tables = audit_tables.make_tables(reader, findings)
                    audit_tables.write_tables(tables, place_of(spark, out_dir), WRITER)
                except commit.StoreRefused as refused:
                    raise OutputRefused(str(refused)) from refused
            if then is not None:
                then(result, reader)
    return result


@contextmanager
def _session(master: str, remote: str) -> Iterator[SparkSession]:
    with needing_packages():
        from quarterdeck.backend.pipeline.spark import session
    with session.spark_session(master, remote=remote) as spark:
        yield spark


def _check_output(out_dir: commit.Place) -> None:
    """Refuse to replace what no audit wrote. Raises `OutputRefused`."""
    try:
        commit.check(out_dir, TABLES, WRITER)
    except commit.StoreRefused as refused:
        raise OutputRefused(str(refused)) from refused


def _result(
    found: AuditInput,
    verdict: WholeVerdict,
    findings: Sequence[Finding],
    wanted: frozenset[str],
    judged: frozenset[str],
) -> AuditResult:
    not_judged = []
    if wanted > judged:
        not_judged.append(NotJudged(tuple(sorted(wanted - judged)), NOT_IN_LOGS))
    if verdict.runs and all(run.is_witnessed for run in verdict.runs):
        others = frozenset(rule for rule in judged if not holds_for_incomplete_journals(rule))
        judged -= others
        if others:
            not_judged.append(NotJudged(tuple(sorted(others)), NOT_IN_WITNESSED_RUNS))
    if found.retired:
        retired = sorted(rule for rule in wanted if not holds_for_incomplete_journals(rule))
        if retired:
            not_judged.append(NotJudged(tuple(retired), f"{RETIRED_RUNS} {', '.join(found.retired)}"))
    counts = {"files": len(found.files), **verdict.counts}
    if len(findings) > MAX_FINDINGS:
        counts["findings"] = len(findings)
    # That members keep no journal themselves is said once for all runs.
    lacking = dict(found.retired) | {
        run.run: run.lacks
        for run in verdict.runs
        if run.lacks and not run.is_witnessed and run.run not in found.retired
    }
    return AuditResult(
        findings=tuple(findings[:MAX_FINDINGS]),
        counts=counts,
        problems=verdict.problems,
        rules=tuple(sorted(judged)),
        not_judged=tuple(not_judged),
        incomplete={} if found.kind == "logs" else lacking,
        observations=tuple(observation for story in verdict.stories for observation in story.observations),
        migration_rounds=tuple(migration for story in verdict.stories for migration in story.migrations),
        merge_verdicts=tuple(count for story in verdict.stories for count in story.verdicts),
    )


def _verdict(
    found: AuditInput,
    question: AuditQuestion,
    spark: SparkSession | None,
    log_options: LogOptions | None,
    undivided_bytes: int,
) -> WholeVerdict:
    """Judge in this process, or with `spark` on Spark."""
    if found.kind == "logs":
        logs = of_log_runs(found, partial(_judge_logs, question), spark, log_options)
        names = ("lines", "duplicates", "quarantined", "contradicting")
        verdict = whole_verdict(
            [run for one in logs for run in one.runs],
            {name: sum(one.counts[name] for one in logs) for name in names},
            [line for one in logs for line in one.problems],
        )
        return structs.replace(verdict, stories=tuple(story for one in logs for story in one.stories))
    if spark is None:
        with needing_packages():  # a store is read with pyarrow
            work = partial(carry_out_here, work=lambda group, read: judge_group(group, question, read))
            judged = judge_whole(found.groups(), work)
    else:
        from quarterdeck.backend.pipeline.judging.spark_division import judge_groups_on_spark

        most_bytes = undivided_bytes // (SHRUNK if found.kind == "store" else 1)
        judge = partial(judge_groups_on_spark, spark, question, most_bytes, are_far=found.is_far)
        judged = judge_whole(found.groups(), judge)
    if found.kind != "store":
        return judged
    quarantined, contradicting = _quarantined_lines(found, spark)
    counts = {
        "lines": len(quarantined),
        "duplicates": 0,
        "quarantined": len(quarantined),
        "contradicting": contradicting,
    }
    return whole_verdict(
        judged.runs, {name: judged.counts[name] + count for name, count in counts.items()}, quarantined
    )


def _quarantined_lines(found: AuditInput, spark: SparkSession | None) -> tuple[list[QuarantinedLine], int]:
    """Return the lines that were quarantined when the store was made, and how many of them contradict a record."""
    columns = ["file", "raw", "reason", "contradicts"]
    if found.is_far:
        assert spark is not None
        from quarterdeck.backend.pipeline.tables.store import read_table

        rows = read_table(spark, found.paths[0], "quarantine").select(columns).collect()
        return [QuarantinedLine(row.file, row.raw, row.reason) for row in rows], sum(
            row.contradicts is True for row in rows
        )
    import pyarrow.parquet

    parts = sorted((Path(found.paths[0]) / "quarantine").rglob("*.parquet"))
    tables = [pyarrow.parquet.ParquetFile(part).read(columns) for part in parts]
    lines = [
        QuarantinedLine(file.as_py(), raw.as_py().decode(errors="replace"), reason.as_py())
        for table in tables
        for file, raw, reason in zip(table["file"], table["raw"].cast(pyarrow.binary()), table["reason"], strict=True)
    ]
    return lines, sum(
        contradicts is True
        for table in tables
        if "contradicts" in table.column_names  # a store of an earlier form has no such column until it is made anew
        for contradicts in table["contradicts"].to_pylist()
    )


def _judge_logs(question: AuditQuestion, logs: LogRecords) -> WholeVerdict:
    problems = [QuarantinedLine(str(entry.file), entry.text, entry.reason, entry.line) for entry in logs.quarantine]
    lines = sum(lines for kinds in logs.counts.values() for _, lines in kinds.values())
    counts = {"lines": lines, "duplicates": 0, "quarantined": len(problems), "contradicting": 0}
    verdict = whole_verdict(judge_log_records(logs.records, question), counts, problems)
    return structs.replace(verdict, stories=logs.stories)

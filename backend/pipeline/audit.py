"""The audit: journals or members' logs in, findings out; also tables as Parquet, if wanted.

Each run is judged in one pass by the simulator's own checkers: small input in processes of this machine, large input by the same
code in Spark's tasks. Importing this file imports no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.backend.hazelcast.logs.log_files import ARCHIVE, NoLogs, archives_in
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.reader import LogRecords
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.address import place_of
from quarterdeck.backend.pipeline.audit_input import AuditInput, Source, resolve_input
from quarterdeck.backend.pipeline.judging.group_judge import GroupVerdict, judge_group, together
from quarterdeck.backend.pipeline.judging.lines import SetAside
from quarterdeck.backend.pipeline.judging.order import by_cause
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion, RunJudge, RunVerdict
from quarterdeck.backend.pipeline.rules import (
    AuditResult,
    Finding,
    NotJudged,
    by_weight,
    holds_for_incomplete_journals,
    holds_without_beginning,
    linked,
    wanted_rules,
)
from quarterdeck.backend.pipeline.spark.engine import AUTO, Engine, engine_session
from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing, needing_packages
from quarterdeck.backend.pipeline.staging import staging_folder
from quarterdeck.backend.pipeline.tasks import of_log_runs, results_of_whole_runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quarterdeck.backend.pipeline.run_reader import RunReader

MAX_FINDINGS = 100_000
IN_PROCESS_BYTES = 640 << 20
"""Up to this size processes of this machine judge sooner than Spark does, which has to start first."""

FAR_IN_PROCESS_BYTES = 128 << 20
"""The same for files at addresses, which one process reads."""

TABLES = ("views", "suspicions", "findings")
WRITER = "audit"
NOT_IN_WITNESSED_RUNS = (
    "these members keep no journal: a witness from outside may begin in the middle, and does not hear everything"
)
RETIRED_RUNS = "the beginning of these runs was retired, and these rules need all of a run:"
NOT_IN_LOGS = "members' logs may begin in the middle, and do not contain faults, tables and calls"

Then = Callable[[AuditResult, "RunReader"], None]


def audit(
    paths: Sequence[Path | str],
    out_dir: Path | str | None = None,
    *,
    rules: Collection[str] = (),
    source: Source = "auto",
    spark: SparkSession | None = None,
    engine: Engine = AUTO,
    bound_us: int | None = None,
    log_options: LogOptions | None = None,
    then: Then | None = None,
    on_message: Callable[[str], None] = lambda message: None,
) -> AuditResult:
    """Check the journals, logs or tables at `paths` against the rules. Events that occur twice count once.

    `paths` are journals (roots, directories of runs, single files), one store of tables that were made of them, or logs; any of
    these may be at addresses such as `s3a://…`.

    `rules`: only these. `bound_us`: how long members may take to agree once nothing disturbs them. `log_options`: what the logs
    themselves do not contain. With `out_dir`, which may be an address too, the tables `views`, `suspicions` and `findings` are
    written there as Parquet; they replace those of an earlier audit, all of them or none. `then` is called with the result and
    what reads the runs again. Spark is started for large input, if it is here, and where the `engine` names it, which
    `on_message` is called with; a given session `spark` does all the work instead.

    Raises `NoJournal`, `NoLogs`, `UnknownRule`, `StoreRefused`, `PipelineMissing`, `JavaMissing` or
    `SparkUnreachable` before anything is changed, and OSError for what cannot be read or written.
    """
    wanted = wanted_rules(rules)
    with staging_folder() as staging, ExitStack() as stack:
        if spark is not None:
            from quarterdeck.backend.pipeline.spark import session

            stack.enter_context(session.using(spark))
        with needing_packages():  # for addresses
            place = None if out_dir is None else place_of(out_dir, spark)
            if place is not None:
                commit.check(place, TABLES, WRITER)
            found = resolve_input(paths, staging, source, spark)
        question = AuditQuestion(judged_rules(rules, found), bound_us)
        most_bytes = FAR_IN_PROCESS_BYTES if found.is_far else IN_PROCESS_BYTES
        if spark is None and (engine.is_spark or (engine.name == "auto" and found.size_bytes > most_bytes)):
            size = f"{found.size_bytes >> 20} MB are more than {most_bytes >> 20} MB"
            try:
                spark = stack.enter_context(engine_session(engine, "audit"))
                on_message("judged on Spark" + ("" if engine.is_spark else f": {size}"))
            except PipelineMissing as missing:
                if engine.is_spark:
                    raise
                on_message(f"judged here, although {size}: {missing}")
        verdict = _verdict(found, question, spark, log_options)
        if found.kind == "logs" and not verdict.runs:
            raise NoLogs(f"{', '.join(map(str, found.paths))}: no line of these logs tells an event (quiet logs)")
        findings = by_weight(list(reported_findings(verdict, found)))
        result = _result(found, verdict, findings, wanted)
        if place is not None or then is not None:
            with needing_packages():
                from quarterdeck.backend.pipeline.run_reader import RunReader
                from quarterdeck.backend.pipeline.tables.store import make_tables, tables_of_run, write_tables
            reader = RunReader(found, spark, log_options)
            if place is not None:
                write_tables(make_tables(reader.each(tables_of_run).values(), findings), place, WRITER)
            if then is not None:
                then(result, reader)
    return result


def reported_findings(verdict: GroupVerdict, found: AuditInput) -> Iterator[Finding]:
    """Yield the findings that hold although the beginning of their run may be gone, with the commands that show them."""
    for run in verdict.runs:
        for finding in run.findings:
            if run.run not in found.retired or holds_without_beginning(finding):
                yield linked(finding, found.replayable_path(run.run))


def judged_rules(rules: Collection[str], found: AuditInput) -> tuple[str, ...]:
    """Return the rules of these names, or all, that can be judged from the input. Raises `UnknownRule`."""
    wanted = wanted_rules(rules)
    return tuple(sorted(filter(holds_for_incomplete_journals, wanted) if found.kind == "logs" else wanted))


def _result(
    found: AuditInput,
    verdict: GroupVerdict,
    findings: Sequence[Finding],
    wanted: frozenset[str],
) -> AuditResult:
    proven = frozenset(filter(holds_for_incomplete_journals, wanted))
    reasons = [NOT_IN_LOGS] if found.kind == "logs" else []
    if found.kind != "logs" and verdict.runs and all(run.is_witnessed for run in verdict.runs):
        reasons.append(NOT_IN_WITNESSED_RUNS)
    judged = proven if reasons else wanted
    if found.retired:
        reasons.append(f"{RETIRED_RUNS} {', '.join(found.retired)}")
    aside = verdict.aside
    if found.kind == "logs" and not found.is_far:
        for archive in archives_in(map(Path, found.paths)):
            aside.quarantine(f"\0{archive}", 0, b"", ARCHIVE)
    counts = {
        **{"files": len(found.files), "lines": aside.lines, "records": sum(run.records for run in verdict.runs)},
        **{"runs": len(verdict.runs), "incarnations": sum(run.incarnations for run in verdict.runs)},
        **{name: getattr(aside, name) for name in ("duplicates", "quarantined", "contradicting")},
        **{name: sum(getattr(run, name) for run in verdict.runs) for name in ("views", "suspicions")},
    }
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
        problems=tuple(aside.problems),
        rules=tuple(sorted(judged)),
        not_judged=tuple(NotJudged(tuple(sorted(wanted - proven)), why) for why in reasons if wanted > proven),
        incomplete={} if found.kind == "logs" else lacking,
        observations=tuple(observation for story in verdict.stories for observation in story.observations),
        migration_rounds=tuple(migration for story in verdict.stories for migration in story.migrations),
        merge_verdicts=tuple(count for story in verdict.stories for count in story.verdicts),
        accounts=tuple((story.run, story.account) for story in verdict.stories if story.account),
        reading=tuple(note for story in verdict.stories for note in story.reading),
    )


def _verdict(
    found: AuditInput, question: AuditQuestion, spark: SparkSession | None, log_options: LogOptions | None
) -> GroupVerdict:
    if found.kind == "logs":
        return together(of_log_runs(found, partial(_judge_logs, question), spark, log_options))
    judge = partial(judge_group, question=question)
    with needing_packages():  # a store is read with pyarrow
        of_groups = results_of_whole_runs(
            found.groups(), judge, lambda one: [run.run for run in one.runs], spark, "judge each run"
        )
        verdict = together(of_groups)
        if found.kind == "store":
            _add_stored(verdict.aside, found)
    return verdict


def _add_stored(aside: SetAside, found: AuditInput) -> None:
    """Add what was quarantined when the store was made; whether a line contradicts a record, an earlier form does not say."""
    import pyarrow.parquet

    for part in found.stored_files("quarantine"):
        with part.open("rb") as content:
            for row in (
                row for batch in pyarrow.parquet.ParquetFile(content).iter_batches() for row in batch.to_pylist()
            ):
                aside.lines += 1
                aside.contradicting += row.get("contradicts") is True
                raw = row["raw"] if isinstance(row["raw"], bytes) else row["raw"].encode()
                aside.quarantine(f"\0{row['file']}", row.get("line") or 0, raw, row["reason"])


def _judge_logs(question: AuditQuestion, logs: LogRecords) -> GroupVerdict:
    """Judge the runs in logs, whose records are numbered once, and come from members whose clocks may differ."""
    aside = SetAside(sum(lines for kinds in logs.counts.values() for _, lines in kinds.values()))
    for entry in logs.quarantine:
        aside.quarantine(f"\0{entry.file}", entry.line, entry.text.encode(), entry.reason)
    verdicts: list[RunVerdict] = []
    for run, of_run in groupby(logs.records, key=lambda record: record.run):
        ordered, leaps = by_cause((record.at, record.member, record.seq, record, b"") for record in of_run)
        judge = RunJudge(run, question)
        judge.judge_in_order(ordered)
        judge.report_leaps(leaps)
        verdicts.append(judge.verdict())
    return GroupVerdict(tuple(verdicts), aside, logs.stories)

"""Judges everything that an audit was given: groups of files that hold whole runs, or the records of logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.observations.story import LogStory
from quarterdeck.backend.pipeline.audit_input import Group
from quarterdeck.backend.pipeline.audit_result import QuarantinedLine
from quarterdeck.backend.pipeline.judging.group_judge import GroupVerdict
from quarterdeck.backend.pipeline.judging.lines import MAX_QUARANTINED
from quarterdeck.backend.pipeline.judging.order import by_cause
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion, RunJudge, RunVerdict
from quarterdeck.backend.pipeline.judging.tasks import CarryOut, results_of_whole_runs


class WholeVerdict(Struct, frozen=True):
    """The verdict on all runs."""

    runs: tuple[RunVerdict, ...]
    counts: dict[str, int]
    problems: tuple[QuarantinedLine, ...]
    stories: tuple[LogStory, ...] = ()
    """Of members' logs, and of runs that a witness recorded: what is observed in each."""


def judge_whole(groups: Sequence[Group], judge: CarryOut[GroupVerdict]) -> WholeVerdict:
    """Judge `groups`."""
    verdicts = results_of_whole_runs(groups, judge, lambda verdict: [run.run for run in verdict.runs])
    counts = {
        name: sum(getattr(verdict, name) for verdict in verdicts)
        for name in ("lines", "duplicates", "quarantined", "contradicting")
    }
    runs = [run for verdict in verdicts for run in verdict.runs]
    return whole_verdict(runs, counts, [line for verdict in verdicts for line in verdict.problems])


def whole_verdict(
    runs: Sequence[RunVerdict], counts: Mapping[str, int], problems: Sequence[QuarantinedLine]
) -> WholeVerdict:
    """Put the verdicts on all `runs` together. `counts`: of their lines, and of those that were not judged."""
    every = {
        "lines": counts["lines"],
        "records": sum(run.records for run in runs),
        "runs": len(runs),
        "lives": sum(run.incarnations for run in runs),
        **counts,
        "views": sum(run.views for run in runs),
        "suspicions": sum(run.suspicions for run in runs),
    }
    first = sorted(problems, key=lambda line: (line.file, line.number))[:MAX_QUARANTINED]
    ordered = tuple(sorted(runs, key=lambda run: run.run))
    stories = tuple(run.story for run in ordered if run.story is not None)
    return WholeVerdict(ordered, every, tuple(first), stories)


# Logs: their records are numbered once, and come from members whose clocks may differ.


def judge_log_records(records: Iterable[Record], question: AuditQuestion) -> list[RunVerdict]:
    """Judge each run among `records`, where those of one run are adjacent."""
    verdicts = []
    for run, of_run in groupby(records, key=lambda record: record.run):
        ordered, leaps = by_cause((record.at, record.member, record.seq, record, b"") for record in of_run)
        judge = RunJudge(run, question)
        judge.judge_in_order(ordered)
        judge.report_leaps(leaps)
        verdicts.append(judge.verdict())
    return verdicts

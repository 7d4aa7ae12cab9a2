"""Judges what members' logs tell: records that nobody numbered twice, from members whose clocks may differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.observations.story import LogStory
from quarterdeck.backend.pipeline.judging.order import by_cause
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion, RunJudge, RunVerdict


class LogVerdict(Struct, frozen=True):
    """What is to be said of the logs of one run; no verdict where they tell no event."""

    story: LogStory
    verdict: RunVerdict | None


def judge_log_records(records: Iterable[Record], question: AuditQuestion) -> list[RunVerdict]:
    """What is said of each run among `records`; those of one run stand together."""
    return [_judge(run, of_run, question) for run, of_run in groupby(records, key=lambda one: one.run)]


def judge_logs(told: Iterable[Record | LogStory], question: AuditQuestion) -> Iterator[LogVerdict]:
    """What is to be said of each run. `told`: the records of each, and after them its story."""
    records: list[Record] = []
    for one in told:
        if isinstance(one, Record):
            records.append(one)
        else:
            yield LogVerdict(one, _judge(one.run, records, question) if records else None)
            records = []


def _judge(run: str, records: Iterable[Record], question: AuditQuestion) -> RunVerdict:
    ordered, leaps = by_cause((record.at, record.member, record.seq, record, b"") for record in records)
    judge = RunJudge(run, question)
    judge.take_in_order(ordered)
    judge.tell_leaps(leaps)
    return judge.verdict()

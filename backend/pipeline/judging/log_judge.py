"""Judges what members' logs tell: records that nobody numbered twice, from members whose clocks may differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.pipeline.judging.lines import decode_record
from quarterdeck.backend.pipeline.judging.order import by_cause
from quarterdeck.backend.pipeline.judging.run_judge import Question, RunJudge, RunVerdict


def judge_log_lines(rows: Iterable[tuple[str, str]], question: Question) -> Iterator[RunVerdict]:
    """What is said of each run. `rows`: its name and a record as JSON; rows of one run stand together."""
    for run, of_run in groupby(rows, key=itemgetter(0)):
        yield _judge(run, (decode_record(raw) for _, raw in of_run), question)


def judge_log_records(records: Iterable[Record], question: Question) -> list[RunVerdict]:
    """What is said of each run among `records`."""
    by_run: dict[str, list[Record]] = {}
    for record in records:
        by_run.setdefault(record.run, []).append(record)
    return [_judge(run, by_run[run], question) for run in sorted(by_run)]


def _judge(run: str, records: Iterable[Record], question: Question) -> RunVerdict:
    ordered, leaps = by_cause((record.at, record.member, record.seq, record, b"") for record in records)
    judge = RunJudge(run, question)
    judge.take_in_order(ordered)
    judge.tell_leaps(leaps)
    return judge.verdict()

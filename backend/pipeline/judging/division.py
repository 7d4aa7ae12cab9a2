"""Judges one run in many tasks, with the verdict that one judge would give who reads all of it.

There are three steps, between which rows are repartitioned and sorted:

1. The lines of files are read, each file apart.
2. Each incarnation is judged by the rules that need nothing else. Only those of its records go on that others need.
3. Each share is judged: some keys of the rules that divide the work, and in the first also what needs the whole run.

A share sees the kinds of events that introduce incarnations and tables, and what its own keys are about.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import msgspec
from msgspec import Struct, structs

from quarterdeck.backend.core.data.events import CallFinished, CallStarted
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.observations.recorded import OBSERVED
from quarterdeck.backend.invariants import InvariantChecker
from quarterdeck.backend.invariants.invariant import WorkShare, key_of, share_of
from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.causes import BEFORE_ALL, IncarnationOutline, causes_first, names_other
from quarterdeck.backend.pipeline.judging.group_judge import (
    GroupVerdict,
    ReadLines,
    collector_paused,
    records_of,
    verdict_of_group,
)
from quarterdeck.backend.pipeline.judging.lines import Line, SetAside, StrangeRecord, decode_record, strange_record
from quarterdeck.backend.pipeline.judging.order import ClockLeap, Placed, possible_times
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion, RunJudge, RunPart

NAMED, CLOCK, LINE = range(3)
"""The kinds of rows of an incarnation: a record that others name, the clocks of a record; then come the lines."""

OUTLINE, HEAD, JUDGED = range(3)
"""The kinds of rows of a share: what is known of an incarnation; then a record that others wait for, or one to be judged."""

LAST = (1 << 63) - 1

ASIDE = ""
"""Stands in place of a run for lines that are not judged."""


class ReadRow(NamedTuple):
    """A row that was read. Rows with one run and uuid belong together, and are sorted."""

    run: str
    uuid: str
    what: int
    seq: int
    at: int
    place: str
    number: int
    utc: int
    raw: bytes


class SharedRow(NamedTuple):
    """A row for a share. Rows with one run and share belong together, and are sorted but for `what`."""

    run: str
    share: int
    at: int
    place: str
    number: int
    seq: int
    what: int
    raw: bytes


class IncarnationPart(Struct, frozen=True):
    """What is known of an incarnation: for the order of records, and in the first share also its findings."""

    outline: IncarnationOutline
    ends_us: int
    part: RunPart | None = None


class PartSummary(Struct, frozen=True):
    """The result of a part of a run, or of lines that are not judged."""

    aside: SetAside | None = None
    parts: tuple[RunPart, ...] = ()


# The lines


def read_rows(files: Iterable[InputFile], read: ReadLines) -> Iterator[ReadRow]:
    """Read the records in these files. Raises OSError."""
    aside = SetAside()
    for file in files:
        for at, place, number, record, raw in records_of(file, read, aside, _ignore_strange):
            run, uuid, seq, at_us, utc_us = record.run, record.uuid, _kept(record.seq), _kept(at), _kept(record.utc)
            yield ReadRow(run, uuid, CLOCK, seq, at_us, place, number, utc_us, b"")
            yield ReadRow(run, uuid, LINE, seq, at_us, place, number, utc_us, raw)
            if record.because is not None and names_other(record):
                yield ReadRow(run, record.because.uuid, NAMED, _kept(record.because.seq), 0, "", 0, 0, b"")
    yield ReadRow(ASIDE, "", LINE, 0, 0, "", 0, 0, msgspec.json.encode(aside))


def _kept(number: int) -> int:
    """Return the number as a column of 64 bits holds it; larger ones stand in damaged lines."""
    return max(BEFORE_ALL, min(number, LAST))


def _ignore_strange(place: str, number: int, strange: StrangeRecord, problem: str) -> None:
    """Do nothing: a strange record is reported where its incarnation is judged."""


# Incarnations


def judge_incarnations(rows: Iterable[ReadRow], question: AuditQuestion, count: int) -> Iterator[SharedRow]:
    """Judge each incarnation, and pass on to `count` shares what others need of it."""
    routes = _Routes(question, count)
    aside = SetAside()
    for (run, uuid), of_incarnation in groupby(rows, key=itemgetter(0, 1)):
        if run == ASIDE:
            aside.add(msgspec.json.decode(row.raw, type=SetAside) for row in of_incarnation)
        else:
            with collector_paused():
                yield from _judge_incarnation(run, uuid, of_incarnation, question, routes, aside)
    yield SharedRow(ASIDE, 0, 0, "", 0, 0, OUTLINE, msgspec.json.encode(aside))


def _judge_incarnation(
    run: str, uuid: str, rows: Iterator[ReadRow], question: AuditQuestion, routes: _Routes, aside: SetAside
) -> Iterator[SharedRow]:
    named: set[int] = set()
    seqs, ats_us, utcs_us = array("q"), array("q"), array("q")
    row = next(rows)
    while row.what != LINE:
        if row.what == NAMED:
            named.add(row.seq)
        elif not seqs or row.seq != seqs[-1]:  # the first of several of one identity
            seqs.append(row.seq)
            ats_us.append(row.at)
            utcs_us.append(row.utc)
        following = next(rows, None)
        if following is None:  # others name a record of an incarnation of which there is nothing
            return
        row = following
    times_us, leaping = possible_times(ats_us, utcs_us)
    leaps = {leap.place: leap for leap in leaping}
    judge = RunJudge(run, structs.replace(question, rules=routes.of_incarnations))
    outline, placed = IncarnationOutline(uuid), Placed()
    clock_leaps: list[ClockLeap] = []
    first = row
    for place, line in enumerate(_lines(row, rows, judge, aside)):
        if (leap := leaps.get(place)) is not None:
            clock_leaps.append(ClockLeap(line[3], *leap[1:]))
        line = placed.next(line, times_us[place])
        record = line[3]
        outline.add(record)
        judge.judge_in_order((line,))
        is_awaited = record.seq in named or names_other(record) or record.seq == outline.starts[-1]
        yield from routes.rows(line, is_awaited=is_awaited)
    judge.report_leaps(clock_leaps)
    part = judge.part()
    whole = IncarnationPart(outline, part.ends_us)
    for share in range(routes.count):
        raw = msgspec.json.encode(whole if share else structs.replace(whole, part=part))
        yield SharedRow(run, share, BEFORE_ALL, first.place, 0, 0, OUTLINE, raw)


def _lines(row: ReadRow, rows: Iterator[ReadRow], judge: RunJudge, aside: SetAside) -> Iterator[Line]:
    """Yield the lines of one incarnation, each record once: the first one of its identity."""
    following: ReadRow | None = row
    first: ReadRow | None = None
    while following is not None:
        row, following = following, next(rows, None)
        record = _record(row, judge)
        if first is not None and first.seq == row.seq:
            aside.repeat(row.place, row.number, record, row.raw, is_same=first.raw == row.raw)
            continue
        first = row
        yield row.at, row.place, row.number, record, row.raw


def _record(row: ReadRow, judge: RunJudge) -> Record:
    try:
        return decode_record(row.raw)
    except msgspec.MsgspecError as problem:
        strange = strange_record(row.raw, problem)
        judge.report_strange((row.place, row.number), strange.member, strange.seq, str(problem))
        return strange.stand_in()


class _Routes:
    """Decides which records go to which share."""

    def __init__(self, question: AuditQuestion, count: int) -> None:
        self.count = count
        checker = InvariantChecker(question.rules, convergence_us=question.bound_us)
        divided_by = {invariant.name: invariant.divided_by for invariant in checker.invariants}
        self.of_incarnations = tuple(name for name in question.rules if divided_by[name] == "incarnation")
        self.of_shares = tuple(name for name in question.rules if divided_by[name] in ("lineage", "entry"))
        self.of_first = tuple(name for name in question.rules if divided_by[name] != "incarnation")
        kinds: dict[bool, set[type]] = {True: set(), False: set()}
        for invariant in checker.invariants:
            if invariant.divided_by != "incarnation":
                kinds[invariant.name in self.of_shares].update(invariant.rules())
        calls = {CallStarted, CallFinished}
        self._apart = calls & kinds[True] - kinds[False]
        """The kinds that go to the share of their entry alone."""
        self._to_all = (kinds[True] | checker.context) - calls
        self._to_first = kinds[False] | self._to_all | set(OBSERVED)

    def rules(self, share: int) -> tuple[str, ...]:
        """Return the rules by which a share is judged."""
        return self.of_shares if share else self.of_first

    def rows(self, line: Line, *, is_awaited: bool) -> Iterator[SharedRow]:
        """Yield the record for the shares that judge it, and its head for the others where others wait for it."""
        at, place, number, record, raw = line
        kind, seq = type(record.event), _kept(record.seq)
        judging: Sequence[int] = ()
        if kind in self._apart:
            judging = (share_of(key_of(record, "entry"), self.count),)
        elif kind in self._to_all:
            judging = range(self.count)
        elif kind in self._to_first:
            judging = (0,)
        for share in judging:
            yield SharedRow(record.run, share, at, place, number, seq, JUDGED, raw)
        if is_awaited and len(judging) < self.count:
            head = msgspec.json.encode(_head(record))
            for share in range(self.count):
                if share not in judging:
                    yield SharedRow(record.run, share, at, place, number, seq, HEAD, head)


def _head(record: Record) -> Record:
    """Return the record without its event: others wait for it, but it is not judged."""
    strange = StrangeRecord(record.run, record.member, record.uuid, record.seq, record.at, record.utc)
    return structs.replace(strange.stand_in(), because=record.because)


# Shares


def judge_shares(rows: Iterable[SharedRow], question: AuditQuestion, count: int) -> Iterator[PartSummary]:
    """Judge each share, and summarise what was set aside."""
    routes = _Routes(question, count)
    for (run, share), of_share in groupby(rows, key=itemgetter(0, 1)):
        if run == ASIDE:
            for row in of_share:
                yield PartSummary(msgspec.json.decode(row.raw, type=SetAside))
        else:
            asked = structs.replace(question, rules=routes.rules(share))
            with collector_paused():
                yield _judge_share(run, WorkShare(share, count), of_share, asked)


def _judge_share(run: str, share: WorkShare, rows: Iterator[SharedRow], question: AuditQuestion) -> PartSummary:
    incarnations: list[IncarnationPart] = []
    row: SharedRow | None
    for row in rows:
        if row.what != OUTLINE:
            break
        incarnations.append(msgspec.json.decode(row.raw, type=IncarnationPart))
    else:
        row = None
    judge = RunJudge(run, question, share, observes=share.number == 0)
    outlines = {known.outline.uuid: known.outline for known in incarnations}
    if row is not None:
        for line in causes_first(_shared_lines(row, rows), outlines.values()):
            record, raw = line[3:]
            if share.number == 0 and outlines[record.uuid].is_after_gap(record.seq):
                judge.report_gap(record)
            if raw:
                judge.judge(record, line)
    part = judge.part(max((known.ends_us for known in incarnations), default=0))
    counted = [known.part for known in incarnations if known.part is not None]
    # Records are counted with their incarnations; only the whole run knows what is missing first, and who is listed.
    whole = structs.replace(part, records=0, views=0, suspicions=0)
    return PartSummary(parts=(whole, *(structs.replace(part, gap="", listed={}) for part in counted)))


def _shared_lines(row: SharedRow | None, rows: Iterator[SharedRow]) -> Iterator[Line]:
    """Yield the lines of a share; those whose records are not judged are empty."""
    while row is not None:
        record = decode_record(row.raw)
        if record.at != row.at:
            record = structs.replace(record, at=row.at)
        yield row.at, row.place, row.number, record, row.raw if row.what == JUDGED else b""
        row = next(rows, None)


def together(summaries: Iterable[PartSummary]) -> GroupVerdict:
    """Put the summaries of all parts together to the verdicts on the runs."""
    every = list(summaries)
    aside = SetAside()
    aside.add(summary.aside for summary in every if summary.aside is not None)
    parts = sorted((part for summary in every for part in summary.parts), key=lambda part: part.run)
    return verdict_of_group(parts, aside)

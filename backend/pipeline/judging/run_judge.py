"""Judges one run: feeds its records in order, each once, to the checkers, and finds what its journal lacks. Imports no Spark."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from zlib import crc32

from msgspec import Struct

from quarterdeck.backend.core.events import CLUSTER_EVENTS, Record
from quarterdeck.backend.core.membership.events import ListInstalled, MemberMerging, SuspicionRaised
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import MemberWitnessed
from quarterdeck.backend.invariants import InvariantChecker, Violation
from quarterdeck.backend.invariants.invariant_checker import Numbering
from quarterdeck.backend.judgement.losses.ledger import losses_of
from quarterdeck.backend.judgement.observations.story import LogStory, RecordObservers
from quarterdeck.backend.judgement.watcher import recorded_watcher
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.pipeline.judging.lines import Line, file_of
from quarterdeck.backend.pipeline.judging.order import (
    LEAP_US,
    LONGEST_QUIET_US,
    ClockLeap,
    OutOfOrder,
    cause_elsewhere,
    makes_list,
)
from quarterdeck.backend.pipeline.rules import (
    Finding,
    downgraded,
    finding_of,
    holds_for_incomplete_journals,
    severity_of,
)

OBLIGATION_TIMEOUT_US = 60 * SECOND_US
"""How long an obligation may stay open while nothing disturbs the members: what it takes to be sure that a member is gone."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_SILENT_NAMED = 3


class AuditQuestion(Struct, frozen=True):
    """What is asked of every run: which rules are kept, and how long members may take to agree when all is calm."""

    rules: tuple[str, ...]
    bound_us: int | None = None
    """None: `OBLIGATION_TIMEOUT_US` for an obligation to one member, and the documented bound for convergence."""


class RunVerdict(Struct, frozen=True):
    """The verdict on one run."""

    run: str
    findings: tuple[Finding, ...]
    lacks: str
    """What its journal lacks, in words; empty when nothing does."""
    records: int
    incarnations: int
    views: int
    suspicions: int
    is_witnessed: bool = False
    """Its members keep no journal: a witness outside records them, and only what witnesses alone prove is judged."""
    story: LogStory | None = None
    """What is observed in a run that a witness recorded."""


class JudgedIncarnation:
    """How far the judging of one incarnation has come."""

    __slots__ = ("at_us", "checksums", "first_offset_us", "is_of_member", "next_seq", "offset_us", "starts")

    def __init__(self, record: Record) -> None:
        self.is_of_member = type(record.event) not in CLUSTER_EVENTS
        """And not of the cluster, under whose name stands what is done to members."""
        self.next_seq = record.seq
        self.at_us = record.at
        self.first_offset_us = self.offset_us = record.utc - record.at
        """Between the two clocks."""
        self.starts: list[tuple[int, int]] = [(record.seq, 0)]
        """The numbers after gaps, and where their checksums are."""
        self.checksums = array("I")

    def checksum(self, seq: int) -> int | None:
        """Return the checksum of the line with this number, or None where there was none."""
        for start, place in reversed(self.starts):
            if seq >= start:
                place += seq - start
                ends = next((end for first, end in self.starts if first > start), len(self.checksums))
                return self.checksums[place] if place < ends else None
        return None


class RunJudge:
    """Judges the lines of one run in order. Its verdict can be asked for at any time."""

    def __init__(self, run: str, question: AuditQuestion, *, observes: bool = False) -> None:
        """`observes`: say what else is to be seen."""
        self.run = run
        self._observes = observes
        self._observers: RecordObservers | None = None
        """Of a run that a witness records, if it `observes`."""
        self._picture = Picture()
        """The same run, folded."""
        self._question = question
        self._checker = InvariantChecker(question.rules, convergence_us=question.bound_us)
        self._findings: list[Finding] = []
        self._incarnations: dict[str, JudgedIncarnation] = {}
        self._awaited: set[tuple[str, int]] = set()
        """Records that others named as their cause and that have not come."""
        self._made: dict[tuple[str, int], bool] = {}
        """The lists that were installed, and whether their makers have done so."""
        self._members: dict[str, str] = {}
        self._lists: set[tuple[str, int]] = set()
        self._gap = ""
        self._strange: tuple[tuple[str, int], str] | None = None
        self._is_witnessed = False
        self._ends_us = 0
        self._records = self._views = self._suspicions = 0

    def receive(self, line: Line) -> bool:
        """Judge the next line. Return whether it is new, and not the repetition of a record.

        Raises `OutOfOrder`, also for a line that contradicts a record: which one counts does not depend on their times.
        """
        _, _, _, record, raw = line
        uuid, seq, at_us = record.uuid, record.seq, record.at
        offset_us = record.utc - at_us
        incarnation = self._incarnations.get(uuid)
        if incarnation is None:
            incarnation = self._incarnations[uuid] = JudgedIncarnation(record)
            if seq != 1:
                self.report_gap(record)
        elif seq < incarnation.next_seq:
            if incarnation.checksum(seq) != crc32(raw):
                raise OutOfOrder
            return False
        elif not (
            0 <= at_us - incarnation.at_us < LONGEST_QUIET_US
            and -LEAP_US < offset_us - incarnation.offset_us < LEAP_US
            and -LEAP_US < offset_us - incarnation.first_offset_us < LEAP_US
        ):
            raise OutOfOrder  # a clock leaps
        elif seq > incarnation.next_seq:
            self.report_gap(record)
            incarnation.starts.append((seq, len(incarnation.checksums)))
        if record.because is not None and (cause := cause_elsewhere(record)) is not None:
            self._await_cause(*cause)
        if self._awaited and (uuid, seq) in self._awaited:
            raise OutOfOrder
        event = record.event
        kind = type(event)
        if kind is ListInstalled:
            self._check_author(record, event)  # type: ignore[arg-type]
        elif kind is MemberMerging and event.next_uuid != uuid and event.next_uuid in self._incarnations:  # type: ignore[union-attr]
            raise OutOfOrder  # an incarnation that continues it has begun
        incarnation.next_seq, incarnation.at_us, incarnation.offset_us = seq + 1, at_us, offset_us
        incarnation.checksums.append(crc32(raw))
        self.judge(record, line)
        return True

    def judge_in_order(self, lines: Iterable[Line]) -> None:
        """Judge lines that have each record once, in the order of causes."""
        for line in lines:
            record = line[3]
            incarnation = self._incarnations.get(record.uuid)
            if incarnation is None:
                incarnation = self._incarnations[record.uuid] = JudgedIncarnation(record)
                incarnation.next_seq = 1
            if record.seq != incarnation.next_seq:
                self.report_gap(record)
            incarnation.next_seq = record.seq + 1
            self.judge(record, line)

    def report_leaps(self, found: Sequence[ClockLeap]) -> None:
        if Numbering.name in self._question.rules:
            self._findings += (
                finding_of(Violation(Numbering.name, _sentence(leap), (leap.record,)), leap.record, "warning")
                for leap in found
            )

    def report_strange(self, place: tuple[str, int], member: str, seq: int, problem: str) -> None:
        """Note a record that exists but cannot be understood."""
        strange = place, f"event {seq} of {member} is not as this version knows it: {problem}"
        self._strange = strange if self._strange is None else min(self._strange, strange)

    def report_gap(self, record: Record) -> None:
        """Note that the records before this one are missing."""
        if record.seq > 1 and not self._gap:
            self._gap = f"events of {record.member} before its event {record.seq} are missing"

    def verdict(self) -> RunVerdict:
        """Return the verdict if no more records come."""
        bound_us = OBLIGATION_TIMEOUT_US if self._question.bound_us is None else self._question.bound_us
        known = len(self._checker.violations)
        owed = self._checker.conclude(self._ends_us, bound_us).violations[known:]
        lacks = self._lacks()
        findings = (*self._findings, *(finding_of(violation, violation.witnesses[0]) for violation in owed))
        return RunVerdict(
            self.run,
            tuple(
                downgraded(finding, lacks)
                for finding in findings
                if not self._is_witnessed or holds_for_incomplete_journals(finding.rule)
            ),
            lacks,
            self._records,
            sum(incarnation.is_of_member for incarnation in self._incarnations.values()),
            self._views,
            self._suspicions,
            self._is_witnessed,
            self._observers.story(losses=losses_of(self._picture, recorded_watcher(self._picture), self._picture.at))
            if self._observers is not None
            else None,
        )

    def _lacks(self) -> str:
        if self._strange is not None:
            return self._strange[1]
        silent = sorted(address for uuid, address in self._members.items() if uuid not in self._incarnations)
        return self._gap or (
            f"nothing is there of {', '.join(silent[:MOST_SILENT_NAMED])}, on a list" if silent else ""
        )

    def judge(self, record: Record, line: Line) -> None:
        """Judge the next record, whose number the caller has checked, and which stands in this line."""
        self._records += 1
        if record.at > self._ends_us:
            self._ends_us = record.at
        event = record.event
        kind = type(event)
        if kind is ListInstalled:
            self._views += 1
            self._list(event)  # type: ignore[arg-type]
        elif kind is SuspicionRaised:
            self._suspicions += 1
        elif kind is MemberWitnessed and not self._is_witnessed:
            self._is_witnessed = True
            self._observers = RecordObservers(self.run) if self._observes else None
        if self._observers is not None:
            self._observers.add(record, file_of(line), line[2])
            self._picture.apply(record)
        for violation in self._checker.observe(record):
            self._findings.append(finding_of(violation, record, severity_of(violation)))

    def _list(self, event: ListInstalled) -> None:
        if (event.lineage, event.version) not in self._lists:
            self._lists.add((event.lineage, event.version))
            self._members.update((member.uuid, member.address) for member in event.members)

    def _await_cause(self, uuid: str, seq: int) -> None:
        incarnation = self._incarnations.get(uuid)
        if incarnation is None or seq >= incarnation.next_seq:
            self._awaited.add((uuid, seq))

    def _check_author(self, record: Record, event: ListInstalled) -> None:
        """Expect the author of a list to install it first. Raises `OutOfOrder`."""
        key = event.lineage, event.version
        if self._made.get(key, False):
            return
        is_made = makes_list(record, event)
        if is_made and key in self._made:
            raise OutOfOrder
        self._made[key] = is_made


def _sentence(leap: ClockLeap) -> str:
    record = leap.record
    clock = "wall clock" if leap.is_wall_clock else "clock"
    says, beside = (
        (_date if leap.is_wall_clock else _seconds)(leap.says_us),
        (_date if leap.is_wall_clock else _seconds)(leap.beside_us),
    )
    return (
        f"the {clock} of {record.member} leaps: its record {record.seq} says {says}, by those beside it it is {beside}"
    )


def _seconds(time_us: int) -> str:
    return f"{time_us / SECOND_US:.3f} s"


def _date(time_us: int) -> str:
    try:
        return f"{EPOCH + timedelta(microseconds=time_us):%Y-%m-%d %H:%M:%S}"
    except OverflowError:
        return _seconds(time_us)

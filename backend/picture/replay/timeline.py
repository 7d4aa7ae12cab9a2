"""The whole tape as a strip: the density of events, the moments that stand out, and the playhead.

Splits and merges, claims, and the faults that were made stand out: they are landmarks. People name a moment of the tape in
seconds, from where they are, by an event, or by a bookmark.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from math import log
from typing import NamedTuple

from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, MemberWitnessed
from quarterdeck.backend.picture.events.catalogue import ROWS
from quarterdeck.backend.picture.events.event_row import LandmarkLane
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.replay.tape import Playhead, Tape
from quarterdeck.backend.picture.text.fact import Tone
from quarterdeck.backend.picture.text.formatting import Refusal

MOST_LANDMARKS = 2_000
"""How many of the latest are remembered."""

RECORDS_AT_ONCE = 50_000

HANDOVER_US = 1_000_000
"""Two witnessed masters within this time are no split: a list of the next one is heard before the end of the one before."""


NOTED: frozenset[type] = frozenset((
    MemberWitnessed, events.MemberStarted, events.MemberStopped, events.JoinFailed, events.MemberMerging,
    events.ListInstalled, events.MasterChanged, ProcessKilled, ProcessPaused, ProcessResumed, ConnectionChanged,
))  # fmt: skip
"""Events that decide which member leads or is frozen."""


class Landmark(NamedTuple):
    """A moment that stands out. `times`: the number of events of its kind at the same moment."""

    at_us: int
    lane: LandmarkLane
    letter: str
    tone: Tone
    text: str
    times: int = 1


class Landmarks:
    """The landmarks of a tape, found as it grows."""

    def __init__(self) -> None:
        self.marks: deque[Landmark] = deque(maxlen=MOST_LANDMARKS)
        """In order of time."""
        self.taken = 0
        """How many records since the beginning of the run it has followed."""
        self._picture = Picture()
        """Of the records in `NOTED` alone."""
        self._masters: set[str] = set()
        """Labels of the members that lead in their own belief, whether they run or not."""
        self._split_us: int | None = None

    def follow(self, tape: Tape) -> None:
        """Follow new records of the tape; of a large number only a part, and the rest at the next calls."""
        if self.taken < tape.forgotten:
            self._begin_at(tape)
        fresh = tape.since(self.taken, RECORDS_AT_ONCE)
        self.taken += len(fresh)
        for record in fresh:
            kind = type(record.event)
            landmark = ROWS[kind].landmark
            mark = landmark(record.event, record.member) if landmark is not None else None
            if mark is not None and (mark.lane != "observed" or self._is_logged(record.member)):
                self._add(record, *mark)
            if kind in NOTED:
                self._note(record)
        while self.marks and self.marks[0].at_us < tape.start_us:
            self.marks.popleft()

    def _begin_at(self, tape: Tape) -> None:
        """Begin at the start of the tape. Earlier records are not remembered, except which members led."""
        self.taken = tape.forgotten
        self._picture = tape.picture_at(tape.start_us).copy()
        self._masters = {label for label, belief in self._picture.members.items() if belief.is_master}
        self._split_us = tape.start_us if len(self._leading()) > 1 else None

    def _add(self, record: Record, lane: LandmarkLane, letter: str, tone: Tone, text: str) -> None:
        latest = self.marks[-1] if self.marks else None
        if latest is not None and latest[:4] == (record.at, lane, letter, tone):
            self.marks[-1] = latest._replace(times=latest.times + 1)
        else:
            self.marks.append(Landmark(record.at, lane, letter, tone, text))

    def _is_logged(self, label: str) -> bool:
        """Return whether a member is known from its log alone."""
        belief = self._picture.members.get(label)
        return belief is not None and belief.witnessed_by == ("logs",)

    def _leading(self, *, reached: bool = True) -> list[str]:
        """Return the masters that run and are reached; without `reached`, also those out of reach.

        These may lead on, unless their log is over.
        """
        masters = (self._picture.members[label] for label in sorted(self._masters))
        return [
            belief.label
            for belief in masters
            if belief.status == "member" and (belief.reached or not (reached or self._is_logged(belief.label)))
        ]

    def _standing(self, label: str) -> tuple[bool, str, bool] | None:
        """Return the facts that decide whether a member leads."""
        belief = self._picture.members.get(label)
        return None if belief is None else (belief.is_master, belief.status, belief.reached)

    def _note(self, record: Record) -> None:
        """Note which members lead. Two masters that run are a split, until at most one of them may still lead."""
        event = record.event
        befalls = ROWS[type(event)].befalls
        label = record.member if befalls is None else befalls(event)
        before = self._standing(label)
        self._picture.apply(record)
        belief = self._picture.members.get(label)
        if belief is None or isinstance(event, MemberWitnessed):  # its start or its list follows
            return
        if isinstance(event, ConnectionChanged) and not belief.version:  # others list a new incarnation of it
            return
        if self._standing(label) == before and belief.is_master == (label in self._masters):
            return
        (self._masters.add if belief.is_master else self._masters.discard)(belief.label)
        leading = self._leading()
        if self._split_us is None:
            if len(leading) > 1:
                self._split_us = record.at
                self._add(record, "splits", "S", "bad", f"two masters: {', '.join(leading)}")
        elif belief.witnessed_by and record.at - self._split_us < HANDOVER_US and len(leading) < 2:
            self._split_us = None  # the end of one was heard after the list of the next
            if self.marks and self.marks[-1].letter == "S":
                self.marks.pop()
        elif len(self._leading(reached=False)) < 2:
            self._split_us = None
            started = isinstance(event, events.MemberStarted) and not event.merged_from
            if not (started and belief.witnessed_by):  # whether that one merged is not known
                self._add(record, "splits", "M", "good", f"one master: {', '.join(leading)}")


OBSERVED_LEGEND = (
    "S split  M merged  C claim  D done  A abandoned  O observed  m migrations  E a log ends  ! violation  B bookmark"
)
"""The same for members whose faults are observed, not injected."""

LEGEND = (
    "S split  M merged  C claim  D done  A abandoned  K killed  P paused  R resumed  L link bad  H link healed  "
    "! violation  B bookmark"
)
"""The meaning of the letters, for people."""


LANES: tuple[LandmarkLane, ...] = ("bookmarks", "violations", "splits", "claims", "faults")
OBSERVED_LANES: tuple[LandmarkLane, ...] = (*LANES[:-1], "observed")
"""Of a run that is known from members' logs."""

LEVELS = 16
"""Heights of the strip: two lines of eighths."""

LEAST_SPAN_US = 1_000
TICK_COLUMNS = 14
"""Room that a tick of the axis takes at least."""

GRAVITY: tuple[Tone, ...] = ("faint", "plain", "strong", "good", "warning", "bad")
"""Where several marks share a column the gravest is seen."""


class Signal(NamedTuple):
    """A mark in a column of a lane."""

    column: int
    letter: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Timeline:
    """A strip of this number of columns for the time from `from_us` to `to_us`."""

    from_us: int
    to_us: int
    levels: tuple[int, ...]
    """How much happened in each column, from 0 to `LEVELS`, on a logarithmic scale."""
    busiest: int
    """How many events the fullest column stands for."""
    lanes: tuple[tuple[LandmarkLane, tuple[Signal, ...]], ...]
    playhead: int | None
    """Its column; None while it is out of sight."""
    ticks: tuple[tuple[int, str], ...]
    """Columns of round seconds, and their text."""

    @property
    def width(self) -> int:
        return len(self.levels)

    def moment_of(self, column: int) -> int:
        """Return the last moment that a column stands for: all that happened in it is past, and nothing of the next one."""
        if column >= self.width - 1:
            return self.to_us
        next_us = self.from_us - (-(self.to_us - self.from_us) * (column + 1) // self.width)
        return max(self.from_us, next_us - 1)


def window(start_us: int, end_us: int, shown_us: int, zoom: int) -> tuple[int, int]:
    """Return the time in sight: all of it, or one half, quarter and so on around the moment that is shown."""
    span_us = max(LEAST_SPAN_US, (end_us - start_us) >> zoom)
    from_us = max(start_us, min(shown_us - span_us // 2, end_us - span_us))
    return from_us, from_us + span_us


def greatest_zoom(start_us: int, end_us: int) -> int:
    """Return the greatest zoom that shows less than the one before."""
    return max(0, ((end_us - start_us) // LEAST_SPAN_US).bit_length() - 1)


def draw_timeline(
    tape: Tape,
    landmarks: Iterable[Landmark],
    in_sight: tuple[int, int],
    shown_us: int,
    width: int,
    lanes: tuple[LandmarkLane, ...] = LANES,
) -> Timeline:
    """Draw the strip for the time `in_sight`. It costs one look into the tape for each column, and one for each landmark."""
    from_us, to_us = in_sight
    width = max(1, width)
    span_us = max(1, to_us - from_us)
    edges_us = [from_us - (-span_us * column // width) for column in range(width)]
    counts = tape.counts([*edges_us, to_us + 1])
    busiest = max(counts)
    scale = (LEVELS - 1) / log(busiest) if busiest > 1 else 0.0
    levels = tuple(1 + int(log(count) * scale) if count else 0 for count in counts)

    def column_of(at_us: int) -> int:
        return min(width - 1, (at_us - from_us) * width // span_us)

    signals: dict[LandmarkLane, dict[int, Signal]] = {lane: {} for lane in lanes}
    for mark in landmarks:
        if mark.lane in signals and from_us <= mark.at_us <= to_us:
            column, lane = column_of(mark.at_us), signals[mark.lane]
            before = lane.get(column)
            if before is not None and mark.lane == "splits" and before.letter != mark.letter:
                # The end of a short split, or the next one right after it, stands beside what is over.
                column = min(column + 1, width - 1)
                before = lane.get(column)
            if before is None or GRAVITY.index(mark.tone) >= GRAVITY.index(before.tone):
                lane[column] = Signal(column, mark.letter, mark.tone)
    drawn = tuple((lane, tuple(by_column.values())) for lane, by_column in signals.items())
    playhead = column_of(shown_us) if from_us <= shown_us <= to_us else None
    ticks = tuple((column_of(at_us), text) for at_us, text in _ticks(from_us, to_us, width))
    return Timeline(from_us, to_us, levels, busiest, drawn, playhead, ticks)


def _ticks(from_us: int, to_us: int, width: int) -> Sequence[tuple[int, str]]:
    wanted_us = max(1, (to_us - from_us) * TICK_COLUMNS // width)
    power_us = 10 ** (len(str(wanted_us)) - 1)
    step_us = next(factor * power_us for factor in (1, 2, 5, 10) if factor * power_us >= wanted_us)
    first = -(-from_us // step_us)
    return [(number * step_us, seconds_text(number * step_us)) for number in range(first, to_us // step_us + 1)]


def seconds_text(at_us: int) -> str:
    """Return a moment in seconds, with as many decimals as it has."""
    whole, rest = divmod(at_us, SECOND_US)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".") + " s"


SECONDS = re.compile(r"(?:(?P<minutes>\d+):)?(?P<seconds>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|)")
UNIT_US = {"": SECOND_US, "s": SECOND_US, "ms": 1_000, "m": 60_000_000}
EVENT = re.compile(r"(?P<member>.+)#(?P<seq>\d+)")

ISO_8601 = re.compile(r"\d{4}-?\d\d-?\d\d[T ]\d.*")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

USAGE = (
    "write seconds (12.5, 1:30), a time in ISO 8601 (2026-11-28T17:05:34Z), +2 or -500ms from here, "
    "MEMBER#NUMBER of an event, a bookmark, start or end"
)


class EventName(NamedTuple):
    """An event: the label or the uuid of its member, and its number in that incarnation."""

    member: str
    seq: int


class BadMoment(Refusal):
    """A text that names no moment. The message has a hint."""


def moment_of(text: str, tape: Tape, playhead: Playhead) -> int:
    """Return the moment that `text` names, in microseconds on the run's clock; it may lie outside of the run.

    Raises:
        BadMoment: The text names none.
    """
    text = text.strip()
    named = tape.moment_of(text)
    if named is not None:
        return named
    if text in ("start", "end"):
        return tape.start_us if text == "start" else playhead.now_us
    event = named_event(text)
    if event is not None:
        for record in reversed(tape.last(len(tape))):
            if record.seq == event.seq and event.member in (record.member, record.uuid):
                return record.at
        raise BadMoment(f"no event {event.member}#{event.seq} is remembered; {USAGE}")
    if (utc_us := utc_of(text)) is not None:
        return utc_us - next((record.utc - record.at for record in tape.last(1)), 0)
    if text[:1] in ("+", "-"):
        return playhead.shown_us + (seconds_of(text[1:]) if text[0] == "+" else -seconds_of(text[1:]))
    return seconds_of(text)


def seconds_of(text: str) -> int:
    """Return the microseconds of a time such as 12.5, 500ms or 1:30.

    Raises:
        BadMoment: The text is no time.
    """
    timed = SECONDS.fullmatch(text.strip())
    if timed is None:
        raise BadMoment(f"{text!r} names no moment; {USAGE}")
    return round(float(timed["seconds"]) * UNIT_US[timed["unit"]]) + int(timed["minutes"] or 0) * 60_000_000


def utc_of(text: str, zone: tzinfo | None = None) -> int | None:
    """Return the microseconds since 1970 of a time in ISO 8601; None when `text` is no such time.

    A time that names no offset is in `zone`, by default UTC.

    Raises:
        BadMoment: There is no such time.
    """
    if not ISO_8601.fullmatch(text.strip()):
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as problem:
        raise BadMoment(f"{text!r} names no moment: {problem}; {USAGE}") from problem
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone or UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


def named_event(text: str) -> EventName | None:
    """Return the event that a text such as `n1#17` names; None when it is no such text."""
    event = EVENT.fullmatch(text.strip())
    return EventName(event["member"], int(event["seq"])) if event is not None else None

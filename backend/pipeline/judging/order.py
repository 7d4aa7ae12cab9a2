"""Orders the records of a run for judging: within an incarnation by number, between incarnations by cause.

A clock is only a hint. The time of a record is believed as far as it fits its neighbours of the same incarnation: a clock that
leaps does not move a record, and is reported. Two incarnations are ordered by these times, unless one record names the other as
its cause, installs a list of which the other is the author, or continues the other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush, merge
from itertools import islice, pairwise
from typing import NamedTuple

from msgspec import structs

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled, MemberMerging
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.pipeline.judging.lines import Line

WINDOW = 2_000
"""A writer receives records from several members, so lines may be this far out of the order of their times."""

LEAP_US = 3_600 * SECOND_US
"""Two clocks of one process do not drift apart this far from one record to the next, unless one of them leaps."""

LONGEST_QUIET_US = 365 * 24 * LEAP_US
"""No member is silent for this long within one incarnation, whatever both its clocks say."""


class OutOfOrder(Exception):
    """Raised for a record that does not come in the order of times: the whole run has to be put in order."""


class ClockLeap(NamedTuple):
    """A record whose time is impossible. `beside_us` is when it happened, judging by its neighbours."""

    record: Record
    says_us: int
    beside_us: int
    is_wall_clock: bool


def by_time(chains: Sequence[Iterable[Line]]) -> Iterator[Line]:
    """Merge the lines of all writers by time. Raises `OutOfOrder` where a writer's lines are not nearly sorted."""
    sorted_chains = [_nearly_sorted(chain) for chain in chains]
    return sorted_chains[0] if len(sorted_chains) == 1 else merge(*sorted_chains)


def _nearly_sorted(lines: Iterable[Line]) -> Iterator[Line]:
    waiting = iter(lines)
    held: list[Line] = []
    last: tuple[int, str, int] | None = None
    while True:
        held += islice(waiting, 2 * WINDOW - len(held))
        held.sort()
        if last is not None and held and held[0][:3] < last:
            raise OutOfOrder
        if len(held) < 2 * WINDOW:
            break
        last = held[WINDOW - 1][:3]
        yield from held[:WINDOW]
        del held[:WINDOW]
    yield from held


def by_cause(lines: Iterable[Line]) -> tuple[list[Line], list[ClockLeap]]:
    """Put the lines of one run, each record once, in the order of causes. Return also the clock leaps.

    A record whose time is impossible gets the time that its neighbours suggest.
    """
    incarnations: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        incarnations[line[3].uuid].append(line)
    clock_leaps: list[ClockLeap] = []
    timed: list[Line] = []
    order = _Order()
    for _, own in sorted(incarnations.items()):
        own.sort(key=lambda line: line[3].seq)
        times, leaps = possible_times([line[3] for line in own])
        clock_leaps += leaps
        place = BEFORE_ALL, "", 0
        for (at_us, file, number, record, raw), time_us in zip(own, times, strict=True):
            order.expect(record)
            if time_us != at_us:
                record = structs.replace(record, at=time_us)
            place = max(place, (time_us, file, number))  # none comes before its predecessor
            timed.append((*place, record, raw))
    timed.sort(key=lambda line: (*line[:3], line[3].seq))
    return list(order.order(timed)), clock_leaps


# Times


def possible_times(records: Sequence[Record]) -> tuple[Sequence[int], list[ClockLeap]]:
    """Return when the records of one incarnation happened, which never goes back, and the leaps of its clocks.

    The records are in the order of their numbers.
    """
    times_us = [record.at for record in records]
    believed = _longest_rise(times_us)
    is_believed = bytearray(len(times_us))
    for place in believed:
        is_believed[place] = True
    first = times_us[believed[0]] if believed else 0
    if len(believed) > 1 and times_us[believed[1]] - first > LONGEST_QUIET_US:  # the first of all is from another age
        is_believed[believed[0]] = False
        first = times_us[believed[1]]
    now_us, ahead_us, before_us = first, 0, None
    offsets_us: list[int] = []
    found: list[ClockLeap] = []
    possible: list[int] = []
    for place, record in enumerate(records):
        time_us, utc_us = record.at, record.utc
        if not is_believed[place]:
            found.append(ClockLeap(record, time_us, now_us, False))
        else:
            gone_us = time_us - ahead_us - now_us
            possible_us = gone_us if before_us is None else _possible(gone_us, utc_us - before_us)
            ahead_us += gone_us - possible_us
            now_us += possible_us
            offset_us = utc_us - now_us
            is_other_offset = not any(-LEAP_US < offset_us - known_us < LEAP_US for known_us in offsets_us)
            if possible_us != gone_us:
                found.append(ClockLeap(record, time_us, now_us, False))
            elif is_other_offset and before_us is not None:
                found.append(ClockLeap(record, utc_us, now_us + offsets_us[-1], True))
            if is_other_offset:
                offsets_us.append(offset_us)
            before_us = utc_us
        possible.append(now_us)
    return possible, found


def _possible(gone_us: int, utc_gone_us: int) -> int:
    """Return how long after the previous record this one can be, given the advance of its clock and of the wall clock."""
    if gone_us >= LONGEST_QUIET_US:
        return utc_gone_us if 0 <= utc_gone_us < LONGEST_QUIET_US else 0
    return utc_gone_us if 0 <= utc_gone_us <= gone_us - LEAP_US else gone_us


def _longest_rise(times: Sequence[int]) -> list[int]:
    """Return the places of a longest subsequence that never falls: the times of a clock that are believed."""
    if all(one <= other for one, other in pairwise(times)):
        return list(range(len(times)))
    ends: list[int] = []  # by length, the least time with which a rise of that length ends
    places: list[int] = []
    before: list[int] = []
    for place, time in enumerate(times):
        length = bisect_right(ends, time)
        before.append(places[length - 1] if length else -1)
        ends[length : length + 1], places[length : length + 1] = [time], [place]
    rise, place = [], places[-1]
    while place >= 0:
        rise.append(place)
        place = before[place]
    return rise[::-1]


# Causes

Cause = tuple[str, int]
"""The uuid and number of a record, or a marked lineage and the version of a list, for its installation by its author."""


BEFORE_ALL = -(1 << 63)


def makes_list(record: Record, event: ListInstalled) -> bool:
    """Return whether the member that installs the list is its author."""
    author, uuid = event.author, record.uuid
    return any(member.uuid == uuid and member.address == author for member in event.members)


def names_other(record: Record) -> bool:
    """Return whether the record names a cause other than an earlier record of its own incarnation."""
    cause = record.because
    return cause is not None and (cause.uuid != record.uuid or cause.seq > record.seq)


class _Order:
    """The records that are there, those of them that have arrived, and those that wait."""

    def __init__(self) -> None:
        self._there: set[tuple[str, int]] = set()
        """By incarnation and number."""
        self._made: set[Cause] = set()
        """The lists that their authors install."""
        self._predecessors: dict[str, Cause] = {}
        """By continuing incarnation, the record of the one before that names it."""
        self._arrived: dict[str, int] = {}
        """By incarnation, the number of its last record that has arrived."""
        self._installed: set[Cause] = set()
        """The lists that their authors have installed."""
        self._waiting_lines: dict[str, deque[Line]] = {}
        """By incarnation, the records that have to wait: the first for a cause, the others for the first."""
        self._waits_for: dict[str, Cause] = {}
        self._waiters: dict[Cause, list[str]] = defaultdict(list)
        self._ready: list[tuple[int, str, int, str]] = []
        """The incarnations that wait no longer, by the places of their first records."""

    def expect(self, record: Record) -> None:
        """Note a record that will arrive."""
        self._there.add((record.uuid, record.seq))
        event = record.event
        if isinstance(event, ListInstalled) and makes_list(record, event):
            self._made.add(_made(event))
        elif isinstance(event, MemberMerging) and event.next_uuid != record.uuid:
            self._predecessors[event.next_uuid] = record.uuid, record.seq

    def order(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield each of these lines, which are sorted by place, when nothing is missing that has to come first."""
        for line in lines:
            uuid = line[3].uuid
            if (held := self._waiting_lines.get(uuid)) is not None:
                held.append(line)
            elif (missing := self._missing(line)) is not None:
                self._waiting_lines[uuid] = deque((line,))
                self._wait(uuid, missing)
            else:
                yield line
                self._arrive(line)
                if self._ready:
                    yield from self._released()
        while self._waiting_lines:  # a cycle of causes, as in no correct journal: then times decide
            uuid = min(self._waiting_lines, key=lambda uuid: self._waiting_lines[uuid][0][:3])
            self._waiters[self._waits_for[uuid]].remove(uuid)
            self._release(uuid)
            yield from self._released()

    def _released(self) -> Iterator[Line]:
        while self._ready:
            uuid = heappop(self._ready)[3]
            held = self._waiting_lines[uuid]
            line = held.popleft()
            yield line
            if not held:
                del self._waiting_lines[uuid]
            self._arrive(line)
            if held:
                self._recheck(uuid)

    def _arrive(self, line: Line) -> None:
        record = line[3]
        self._arrived[record.uuid] = record.seq
        for uuid in self._waiters.pop((record.uuid, record.seq), ()):
            self._recheck(uuid)
        event = record.event
        if type(event) is ListInstalled and self._awaits_author(made := _made(event)) and makes_list(record, event):
            self._installed.add(made)
            for uuid in self._waiters.pop(made, ()):
                self._recheck(uuid)

    def _awaits_author(self, made: Cause) -> bool:
        return made in self._made and made not in self._installed

    def _recheck(self, uuid: str) -> None:
        missing = self._missing(self._waiting_lines[uuid][0])
        if missing is None:
            self._release(uuid)
        else:
            self._wait(uuid, missing)

    def _wait(self, uuid: str, cause: Cause) -> None:
        self._waits_for[uuid] = cause
        self._waiters[cause].append(uuid)

    def _release(self, uuid: str) -> None:
        heappush(self._ready, (*self._waiting_lines[uuid][0][:3], uuid))

    def _missing(self, line: Line) -> Cause | None:
        """Return what has to come before the line and has not arrived."""
        record = line[3]
        uuid = record.uuid
        if (
            uuid not in self._arrived
            and (ended := self._predecessors.get(uuid)) is not None
            and self._is_missing(*ended)
        ):
            return ended
        if record.because is not None and names_other(record):
            cause = record.because.uuid, record.because.seq
            if self._is_missing(*cause):
                return cause
        event = record.event
        if type(event) is ListInstalled and self._awaits_author(made := _made(event)) and not makes_list(record, event):
            return made
        return None

    def _is_missing(self, uuid: str, seq: int) -> bool:
        return (uuid, seq) in self._there and seq > self._arrived.get(uuid, BEFORE_ALL)


def _made(event: ListInstalled) -> Cause:
    return f"\0{event.lineage}", event.version

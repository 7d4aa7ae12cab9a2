"""Orders the records of a run for judging: within an incarnation by number, between incarnations by cause.

A clock is only a hint. The time of a record is believed as far as it fits its neighbours of the same incarnation: a clock that
leaps does not move a record, and is reported. Two incarnations are ordered by these times, unless one record names the other as
its cause, installs a list of which the other is the author, or continues the other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
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
    for _, own in sorted(incarnations.items()):
        own.sort(key=lambda line: line[3].seq)
        times, leaps = possible_times([line[3] for line in own])
        clock_leaps += leaps
        place = BEFORE_ALL, "", 0
        for (at_us, file, number, record, raw), time_us in zip(own, times, strict=True):
            if time_us != at_us:
                record = structs.replace(record, at=time_us)
            place = max(place, (time_us, file, number))  # none comes before its predecessor
            timed.append((*place, record, raw))
    timed.sort(key=lambda line: (*line[:3], line[3].seq))
    return list(_ordered(timed)), clock_leaps


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

Fact = tuple[str, int]
"""What a record can wait for: another one, by uuid and number; or a list of its author's, by marked lineage and version."""


BEFORE_ALL = -(1 << 63)


def makes_list(record: Record, event: ListInstalled) -> bool:
    """Return whether the member that installs the list is its author."""
    author, uuid = event.author, record.uuid
    return any(member.uuid == uuid and member.address == author for member in event.members)


def cause_elsewhere(record: Record) -> Fact | None:
    """Return what the record names as its cause, unless that is an earlier record of its own incarnation."""
    cause = record.because
    return None if cause is None or (cause.uuid == record.uuid and cause.seq <= record.seq) else (cause.uuid, cause.seq)


def _ordered(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield lines, which are sorted by place, each when nothing is missing that has to come first, the first place first.

    Where causes wait for each other, as in no correct journal, times decide.
    """
    waiting = _awaited(lines)
    missing = [0] * len(lines)
    for places in waiting.values():
        for place in places:
            missing[place] += 1
    following = [-1] * len(lines)
    last: dict[str, int] = {}
    for place, line in enumerate(lines):
        uuid = line[3].uuid
        if uuid in last:
            following[last[uuid]] = place
            missing[place] += 1
        last[uuid] = place
    ready = [place for place, count in enumerate(missing) if not count]
    is_done = bytearray(len(lines))
    left = iter(range(len(lines)))
    while (place := heappop(ready) if ready else next(left, -1)) >= 0:
        if is_done[place]:
            continue
        is_done[place] = True
        yield lines[place]
        released = [following[place]] if following[place] >= 0 else []
        for fact in _facts(lines[place][3]):
            released += waiting.pop(fact, ())
        for waiter in released:
            missing[waiter] -= 1
            if not missing[waiter]:
                heappush(ready, waiter)


def _awaited(lines: Sequence[Line]) -> dict[Fact, list[int]]:
    """Return the places of the lines that wait for facts which these lines contain."""
    there = {fact for line in lines for fact in _facts(line[3])}
    predecessors: dict[str, Fact] = {}
    for line in lines:
        event = line[3].event
        if type(event) is MemberMerging and event.next_uuid != line[3].uuid:
            predecessors[event.next_uuid] = line[3].uuid, line[3].seq
    waiting: dict[Fact, list[int]] = defaultdict(list)
    for place, line in enumerate(lines):
        record, event = line[3], line[3].event
        needed = {cause_elsewhere(record), predecessors.pop(record.uuid, None)}
        if type(event) is ListInstalled and not makes_list(record, event):
            needed.add(_made(event))
        for fact in needed:
            if fact is not None and fact in there:
                waiting[fact].append(place)
    return waiting


def _facts(record: Record) -> tuple[Fact, ...]:
    event, itself = record.event, (record.uuid, record.seq)
    return (itself, _made(event)) if type(event) is ListInstalled and makes_list(record, event) else (itself,)


def _made(event: ListInstalled) -> Fact:
    return f"\0{event.lineage}", event.version

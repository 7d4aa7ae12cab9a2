"""Orders the records of a run for judging: within an incarnation by number, between incarnations by cause.

A clock is only a hint. The time of a record is believed as far as it fits its neighbours of the same incarnation: a clock that
leaps does not move a record, and is reported. Two incarnations are ordered by these times, unless one record names the other as
its cause, or installs a list of which the other is the author.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import pairwise
from typing import NamedTuple

from msgspec import structs

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.pipeline.judging.causes import BEFORE_ALL, IncarnationOutline, causes_first
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


def leaps(at_us: int, utc_us: int) -> bool:
    """Return whether a clock leaps, given how far both advance from one record of an incarnation to the next."""
    return not -1 < at_us < LONGEST_QUIET_US or not -LEAP_US < utc_us - at_us < LEAP_US


def by_time(chains: Sequence[Iterable[Line]]) -> Iterator[Line]:
    """Merge the lines of all writers by time. Raises `OutOfOrder` where a writer's lines are not nearly sorted."""
    sorted_chains = [_nearly_sorted(chain) for chain in chains]
    return sorted_chains[0] if len(sorted_chains) == 1 else merge(*sorted_chains)


def _nearly_sorted(lines: Iterable[Line]) -> Iterator[Line]:
    held: list[Line] = []
    last: tuple[int, str, int] | None = None
    for line in lines:
        held.append(line)
        if len(held) >= 2 * WINDOW:
            held.sort()
            if last is not None and held[0][:3] < last:
                raise OutOfOrder
            last = held[WINDOW - 1][:3]
            yield from held[:WINDOW]
            del held[:WINDOW]
    held.sort()
    if last is not None and held and held[0][:3] < last:
        raise OutOfOrder
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
    outlines = []
    for uuid, own in incarnations.items():
        own.sort(key=lambda line: line[3].seq)
        times, leaping = possible_times([line[0] for line in own], [line[3].utc for line in own])
        clock_leaps += (ClockLeap(own[leap.place][3], *leap[1:]) for leap in leaping)
        outline = IncarnationOutline(uuid)
        last = Placed()
        for line, time in zip(own, times, strict=True):
            outline.add(line[3])
            timed.append(last.next(line, time))
        outlines.append(outline)
    timed.sort(key=lambda line: (*line[:3], line[3].seq))
    return list(causes_first(timed, outlines)), clock_leaps


class Placed:
    """Places the lines of one incarnation, one after the other, among those of others: none comes before its predecessor."""

    def __init__(self) -> None:
        self._last: tuple[int, str, int] = (BEFORE_ALL, "", 0)

    def next(self, line: Line, time_us: int) -> Line:
        """Return the line, which happened at `time_us`, with its place."""
        at_us, place, number, record, raw = line
        if time_us != at_us:
            record = structs.replace(record, at=time_us)
        self._last = max(self._last, (time_us, place, number))
        return *self._last, record, raw


# Times


class Leap(NamedTuple):
    """A leap of a clock at a place in an incarnation."""

    place: int
    says_us: int
    beside_us: int
    is_wall_clock: bool


def possible_times(times_us: Sequence[int], utcs_us: Sequence[int]) -> tuple[Sequence[int], list[Leap]]:
    """Return when the records of one incarnation happened, which never goes back, and the leaps of its clocks.

    `times_us` and `utcs_us` are the times in the records, by their numbers.
    """
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
    found: list[Leap] = []
    possible: list[int] = []
    for place, (time_us, utc_us) in enumerate(zip(times_us, utcs_us, strict=True)):
        if not is_believed[place]:
            found.append(Leap(place, time_us, now_us, False))
        else:
            gone_us = time_us - ahead_us - now_us
            possible_us = gone_us if before_us is None else _possible(gone_us, utc_us - before_us)
            ahead_us += gone_us - possible_us
            now_us += possible_us
            offset_us = utc_us - now_us
            is_other_offset = not any(-LEAP_US < offset_us - known_us < LEAP_US for known_us in offsets_us)
            if possible_us != gone_us:
                found.append(Leap(place, time_us, now_us, False))
            elif is_other_offset and before_us is not None:
                found.append(Leap(place, utc_us, now_us + offsets_us[-1], True))
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

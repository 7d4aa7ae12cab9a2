"""The order in which the records of a run are judged: within a life by their numbers, among lives by what they heard.

A clock is only a hint. What a record says of the time is believed as far as it fits its neighbours of the same life: a clock that
leaps does not move a record, and is told. Two lives are ordered by these times, unless one record names the other as its cause,
or installs a list that the other has made.
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
from quarterdeck.backend.pipeline.judging.causes import BEFORE_ALL, LifeOutline, causes_first
from quarterdeck.backend.pipeline.judging.lines import Line

WINDOW = 2_000
"""A writer takes records from several members, which may be as many lines apart from the order of their times."""

LEAP_US = 3_600 * SECOND_US
"""Two clocks of one process do not come apart so far from one record to the next, unless one of them leaps."""

LONGEST_QUIET_US = 365 * 24 * LEAP_US
"""Nobody is silent for so long within one life, whatever both its clocks say."""


class OutOfOrder(Exception):
    """A record that the order of times did not bring in its turn: the whole run has to be put in order."""


class ClockLeap(NamedTuple):
    """A record whose time cannot be. `beside_us` is when it happened, as its neighbours tell."""

    record: Record
    says_us: int
    beside_us: int
    is_wall_clock: bool


def leaps(at_us: int, utc_us: int) -> bool:
    """Whether one of the clocks leaps where they go on by so much from one record of a life to the next."""
    return not -1 < at_us < LONGEST_QUIET_US or not -LEAP_US < utc_us - at_us < LEAP_US


def by_time(chains: Sequence[Iterable[Line]]) -> Iterator[Line]:
    """The lines of all writers by time, where each writer's lines are nearly so. Raises `OutOfOrder` where they are not."""
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
    """The lines of one run, each record once, in whatever order they stand; and the clocks that leap.

    A record whose time cannot be stands there with the time that its neighbours tell.
    """
    lives: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        lives[line[3].uuid].append(line)
    found: list[ClockLeap] = []
    timed: list[Line] = []
    outlines = []
    for uuid, life in lives.items():
        life.sort(key=_number)
        times, leaping = possible_times([line[0] for line in life], [line[3].utc for line in life])
        found += (ClockLeap(life[leap.place][3], *leap[1:]) for leap in leaping)
        outline = LifeOutline(uuid)
        last = Placed()
        for line, time in zip(life, times, strict=True):
            outline.take(line[3])
            timed.append(last.next(line, time))
        outlines.append(outline)
    timed.sort(key=place_of)
    return list(causes_first(timed, outlines)), found


class Placed:
    """Places the lines of one life, one after the other, among those of others: none stands before the one before it."""

    def __init__(self) -> None:
        self._last: tuple[int, str, int] = (BEFORE_ALL, "", 0)

    def next(self, line: Line, time_us: int) -> Line:
        """The line, which happened at `time_us`, with its place."""
        at_us, place, number, record, raw = line
        if time_us != at_us:
            record = structs.replace(record, at=time_us)
        self._last = max(self._last, (time_us, place, number))
        return *self._last, record, raw


def place_of(line: Line) -> tuple[int, str, int, int]:
    """By what lines are sorted that have their places."""
    return *line[:3], line[3].seq


def _number(line: Line) -> int:
    return line[3].seq


# Times


class Leap(NamedTuple):
    """A clock that leaps at a place in a life."""

    place: int
    says_us: int
    beside_us: int
    is_wall_clock: bool


def possible_times(times_us: Sequence[int], utcs_us: Sequence[int]) -> tuple[Sequence[int], list[Leap]]:
    """When the records of one life happened, which never goes back. `times_us`, `utcs_us`: what they say, by their numbers."""
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
    """How long it can have been since the record before, where one clock tells this and the wall clock that."""
    if gone_us >= LONGEST_QUIET_US:
        return utc_gone_us if 0 <= utc_gone_us < LONGEST_QUIET_US else 0
    return utc_gone_us if 0 <= utc_gone_us <= gone_us - LEAP_US else gone_us


def _longest_rise(times: Sequence[int]) -> list[int]:
    """The places of a longest subsequence that never falls: what is believed of a clock."""
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

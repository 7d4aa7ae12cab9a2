"""The order in which the records of a run are judged: within a life by their numbers, among lives by what they heard.

A clock is only a hint. What a record says of the time is believed as far as it fits its neighbours of the same life: a clock that
leaps does not move a record, and is told. Two lives are ordered by these times, unless one record names the other as its cause,
or installs a list that the other has made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import pairwise
from typing import NamedTuple

from msgspec import structs

from quarterdeck.backend.core.events import ListInstalled, MemberMerging, Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.pipeline.judging.lines import Line

WINDOW = 2_000
"""A writer takes records from several members, which may be as many lines apart from the order of their times."""

LEAP_US = 3_600 * SECOND_US
"""Two clocks of one process do not come apart so far from one record to the next, unless one of them leaps."""

LONGEST_QUIET_US = 365 * 24 * LEAP_US
"""Nobody is silent for so long within one life, whatever both its clocks say."""


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
    """The lines of all writers by time, where each writer's lines are nearly so."""
    sorted_chains = [_nearly_sorted(chain) for chain in chains]
    return sorted_chains[0] if len(sorted_chains) == 1 else merge(*sorted_chains)


def _nearly_sorted(lines: Iterable[Line]) -> Iterator[Line]:
    held: list[Line] = []
    for line in lines:
        held.append(line)
        if len(held) >= 2 * WINDOW:
            held.sort()
            yield from held[:WINDOW]
            del held[:WINDOW]
    held.sort()
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
    for life in lives.values():
        life.sort(key=_number)
        timed += _with_possible_times(life, found)
    timed.sort(key=_place)
    return list(_causes_first(timed)), found


def _number(line: Line) -> int:
    return line[3].seq


def _place(line: Line) -> tuple[int, str, int]:
    return line[:3]


# Times


def _with_possible_times(life: Sequence[Line], found: list[ClockLeap]) -> Iterator[Line]:
    """The lines of one life, in the order of their numbers, whose times never go back."""
    believed = _longest_rise([line[0] for line in life])
    is_believed = [False] * len(life)
    for place in believed:
        is_believed[place] = True
    first = life[believed[0]][0] if believed else 0
    if len(believed) > 1 and life[believed[1]][0] - first > LONGEST_QUIET_US:  # the first of all is from another age
        is_believed[believed[0]] = False
        first = life[believed[1]][0]
    now_us, ahead_us, before = first, 0, None
    offsets_us: list[int] = []
    for place, line in enumerate(life):
        record = line[3]
        if not is_believed[place]:
            found.append(ClockLeap(record, line[0], now_us, False))
        else:
            gone_us = line[0] - ahead_us - now_us
            possible_us = gone_us if before is None else _possible(gone_us, record.utc - before.utc)
            ahead_us += gone_us - possible_us
            now_us += possible_us
            offset_us = record.utc - now_us
            is_other_offset = not any(-LEAP_US < offset_us - known_us < LEAP_US for known_us in offsets_us)
            if possible_us != gone_us:
                found.append(ClockLeap(record, line[0], now_us, False))
            elif is_other_offset and before is not None:
                found.append(ClockLeap(record, record.utc, now_us + offsets_us[-1], True))
            if is_other_offset:
                offsets_us.append(offset_us)
            before = record
        if now_us != line[0]:
            record = structs.replace(record, at=now_us)
        yield now_us, line[1], line[2], record, line[4]


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


# Causes


def _causes_first(lines: Sequence[Line]) -> Iterator[Line]:
    """`lines`, which are in order of time, but no record before one that has to come first."""
    waits_for = _Causes(lines)
    waiting: dict[Hashable, list[Line]] = defaultdict(list)
    done: set[Hashable] = set()
    ready: list[Line] = []
    for start in (*lines, None):
        if start is not None:
            ready.append(start)
        while ready or (start is None and waiting):
            if not ready:  # what is left waits for itself, as in no true journal: then times decide
                cause = min(waiting, key=lambda one: _place(waiting[one][0]))
                done.add(cause)
                ready = waiting.pop(cause)[::-1]
            line = ready.pop()
            missing = next((cause for cause in waits_for.causes(line) if cause not in done), None)
            if missing is not None:
                waiting[missing].append(line)
                continue
            yield line
            for name in waits_for.names(line):
                done.add(name)
                ready += waiting.pop(name, [])[::-1]


class _Causes:
    """What has to come before what, among these lines."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._before: dict[tuple[str, int], tuple[str, int]] = {}
        self._made: set[Hashable] = set()
        last: dict[str, tuple[str, int]] = {}
        numbers: dict[str, list[int]] = defaultdict(list)
        self._last_of_ended: dict[str, tuple[str, int]] = {}
        for line in lines:
            record = line[3]
            numbers[record.uuid].append(record.seq)
            if isinstance(record.event, ListInstalled) and _makes_list(record, record.event):
                self._made.add((record.event.lineage, record.event.version, ""))
            elif isinstance(record.event, MemberMerging) and record.event.next_uuid != record.uuid:
                self._last_of_ended[record.event.next_uuid] = record.uuid, record.seq
        for uuid, seqs in numbers.items():
            seqs.sort()
            for before, seq in pairwise(seqs):
                self._before[uuid, seq] = uuid, before
            last[uuid] = uuid, seqs[0]
        self._first = set(last.values())
        self._there = set(self._first) | set(self._before)

    def names(self, line: Line) -> Iterator[Hashable]:
        """By which names others wait for the record."""
        record = line[3]
        yield record.uuid, record.seq
        if isinstance(record.event, ListInstalled) and _makes_list(record, record.event):
            yield record.event.lineage, record.event.version, ""

    def causes(self, line: Line) -> Iterator[Hashable]:
        """By their names, the records that have to come first."""
        record = line[3]
        own = record.uuid, record.seq
        before = self._before.get(own)
        if before is not None:
            yield before
        elif (ended := self._last_of_ended.get(record.uuid)) is not None:
            yield ended
        if record.because is not None:
            cause = record.because.uuid, record.because.seq
            if cause in self._there and cause != own:
                yield cause
        if isinstance(record.event, ListInstalled) and not _makes_list(record, record.event):
            made = record.event.lineage, record.event.version, ""
            if made in self._made:
                yield made


def _makes_list(record: Record, event: ListInstalled) -> bool:
    """Whether the member that installs the list is its author."""
    return any(member.uuid == record.uuid and member.address == event.author for member in event.members)

"""Members whose clocks are in different zones that their logs do not name: lists that several of them log show by how much.

All members install a version of a master's list within moments. Where the logs of two members have it hours apart, their
clocks differ by these hours, and all zones differ from each other by quarters of an hour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from statistics import median

from msgspec import Struct

from quarterdeck.backend.core.properties import SECOND_US

QUARTER_US = 900 * SECOND_US
TOLERANCE_US = 90 * SECOND_US
"""By how much clocks of one zone may differ, and a list may come late."""
APART_US = 1800 * SECOND_US
"""Logs of one run that have nothing in common lie no further apart than this."""


class ClockReading(Struct):
    """What one member's logs show of its clock."""

    zoned: bool = False
    first_us: int | None = None
    last_us: int | None = None
    lists: dict[str, tuple[int, str, int]] = {}
    """By the name of a list: when it was logged first, the file and the line."""


class AlignedClock(Struct, frozen=True):
    """A member whose clock was read in another zone than it was written in.

    `ahead_us` is None for one that may have been.
    """

    run: str
    member: str
    ahead_us: int | None
    """By how much its times were ahead of those of the others, before they were corrected."""
    lists: int
    file: str
    line: int
    first_us: int
    last_us: int


def align_clocks(run: str, readings: Mapping[str, ClockReading]) -> list[AlignedClock]:
    """Return the members whose clocks are ahead of most clocks of the run, or of those whose zone is known."""
    ahead = _relative(readings)
    zoned = [member for member in ahead if readings[member].zoned]
    common = ahead[zoned[0]] if zoned else Counter(ahead.values()).most_common(1)[0][0] if ahead else 0
    aligned = [
        _aligned(run, member, readings, us - common)
        for member, us in ahead.items()
        if us != common and not readings[member].zoned
    ]
    shifts = {clock.member: clock.ahead_us or 0 for clock in aligned}
    spans = [
        (reading.first_us - shifts.get(member, 0), (reading.last_us or reading.first_us) - shifts.get(member, 0))
        for member, reading in readings.items()
        if member in ahead and reading.first_us is not None
    ]
    for member, reading in readings.items():
        if member in ahead or reading.zoned or reading.first_us is None or not spans:
            continue
        begins, ends = min(span[0] for span in spans), max(span[1] for span in spans)
        if reading.first_us > ends + APART_US or (reading.last_us or reading.first_us) < begins - APART_US:
            aligned.append(_aligned(run, member, readings, None))
    return aligned


def _relative(readings: Mapping[str, ClockReading]) -> dict[str, int]:
    """Return by how much each member's clock is ahead of the first one's, for members that have lists in common."""
    ahead: dict[str, int] = {}
    members = sorted(
        (name for name in readings if readings[name].lists), key=lambda name: (not readings[name].zoned, name)
    )
    if not members:
        return ahead
    ahead[members[0]] = 0
    found = [members[0]]
    for known in found:
        for member in members:
            if member in ahead:
                continue
            quarters = _difference(readings[known], readings[member])
            if quarters is not None:
                ahead[member] = ahead[known] + quarters
                found.append(member)
    return ahead


def _difference(reading: ClockReading, other: ClockReading) -> int | None:
    """Return how far the other clock is ahead, in quarters of an hour (as microseconds); None without common lists."""
    common = reading.lists.keys() & other.lists.keys()
    if not common:
        return None
    apart_us = round(median(other.lists[name][0] - reading.lists[name][0] for name in common))
    quarters = round(apart_us / QUARTER_US) * QUARTER_US
    return quarters if abs(apart_us - quarters) <= TOLERANCE_US else 0


def _aligned(run: str, member: str, readings: Mapping[str, ClockReading], ahead_us: int | None) -> AlignedClock:
    reading = readings[member]
    _, file, line = min(reading.lists.values(), default=(0, "", 0))
    first = reading.first_us or 0
    return AlignedClock(run, member, ahead_us, len(reading.lists), file, line, first, reading.last_us or first)

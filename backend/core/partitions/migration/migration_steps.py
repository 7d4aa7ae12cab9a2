"""One step of a partition's row towards its target: the five kinds of migrations, with numbers for members.

See Avoid Data Loss on Migration, 3.1.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["MOVE", "COPY", "SHIFT UP", "SHIFT DOWN", "CLEAR"]

Numbers = tuple[int, ...]
"""A row whose members are numbers above 0; 0 is nobody."""


class NumberedStep(NamedTuple):
    """The source leaves an index, or moves to another one; the destination comes to one. 0 is nobody, -1 no index."""

    kind: Kind
    source: int
    source_current: int
    source_new: int
    destination: int
    destination_current: int
    destination_new: int


def clear(row: Numbers, index: int) -> NumberedStep:
    """Whoever is at `index` drops its replica."""
    return NumberedStep("CLEAR", row[index], index, -1, 0, -1, -1)


def bring(row: Numbers, member: int, index: int, hole: int = -1) -> NumberedStep:
    """`member` comes to `index`, from a colder index if it is in the row. Whoever is there leaves, or moves down to `hole`."""
    source = row[index]
    source_current = index if source else -1
    if member in row:
        return NumberedStep("SHIFT UP", source, source_current, hole, member, row.index(member), index)
    if not source:
        return NumberedStep("COPY", 0, -1, -1, member, -1, index)
    return NumberedStep("MOVE" if hole < 0 else "SHIFT DOWN", source, source_current, hole, member, -1, index)


def applied(row: Numbers, step: NumberedStep) -> Numbers:
    """Return the row after the step."""
    after = list(row)
    for index in (step.source_current, step.destination_current):
        if index >= 0:
            after[index] = 0
    if step.source_new >= 0:
        after[step.source_new] = step.source
    if step.destination_new >= 0:
        after[step.destination_new] = step.destination
    return tuple(after)


def replicas(row: Numbers) -> int:
    """How many places of the row are filled."""
    return len(row) - row.count(0)


def lowers(before: Numbers, after: Numbers, target: Numbers) -> bool:
    """Whether a replica is lost that both the row before and the target count on."""
    return replicas(after) < min(replicas(before), replicas(target))


# Cyclic migrations


def without_cycles(current: Numbers, target: Numbers) -> Numbers:
    """Return the target in which every place of a cycle keeps its present holder."""
    fixed = list(target)
    for start in range(len(current)):
        for place in _cycle_through(start, current, target):
            fixed[place] = current[place]
    return tuple(fixed)


def _cycle_through(start: int, current: Numbers, target: Numbers) -> list[int]:
    """Return the places that holders pass on to each other in a cycle, from `start` on; nothing if there is none through it."""
    places: list[int] = []
    place = start
    while True:
        holder = current[place]
        if holder == target[place] or holder == 0 or holder not in target:
            return []
        places.append(place)
        place = target.index(holder)
        if place == start:
            return places

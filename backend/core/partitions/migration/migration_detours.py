"""Detours: any legal steps at all, where none that go straight to the target keep the replicas.

See Avoid Data Loss on Migration, 3.2.

Only a target with a hole in front of a replica can need one, and no arrangement makes such a target; a person who asks what would
happen may. A detour copies what is soon dropped again, so it is taken for no other reason.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from quarterdeck.backend.core.partitions.migration.migration_steps import (
    NumberedStep,
    Numbers,
    applied,
    bring,
    clear,
    lowers,
)

ROWS_LOOKED_AT = 4000
"""The search ends after so many rows: all there are of 4 replicas and 8 members, about a second for 7 replicas."""


def detour(current: Numbers, target: Numbers) -> tuple[NumberedStep, ...] | None:
    """Return the fewest legal steps from `current` to `target` that keep the replicas, or None if none were found."""
    members = sorted({*current, *target} - {0})
    came_by: dict[Numbers, tuple[Numbers, NumberedStep] | None] = {current: None}
    ahead = deque([current])
    for _ in range(ROWS_LOOKED_AT):
        if not ahead:
            return None
        row = ahead.popleft()
        for step in legal_steps(row, members):
            after = applied(row, step)
            if after in came_by or lowers(row, after, target):
                continue
            came_by[after] = (row, step)
            if after == target:
                return _way_to(after, came_by)
            ahead.append(after)
    return None


def legal_steps(row: Numbers, members: list[int]) -> Iterator[NumberedStep]:
    """Every step of one of the five kinds that `row` allows: up to a hotter index, in from outside, and down only into a hole."""
    holes = [index for index, member in enumerate(row) if not member]
    for index, present in enumerate(row):
        if present:
            yield clear(row, index)
        for member in members:
            if member in row[: index + 1]:
                continue
            yield bring(row, member, index)
            if present:
                yield from (bring(row, member, index, hole) for hole in holes if hole > index)


def _way_to(row: Numbers, came_by: dict[Numbers, tuple[Numbers, NumberedStep] | None]) -> tuple[NumberedStep, ...]:
    steps: list[NumberedStep] = []
    while (last := came_by[row]) is not None:
        row, step = last
        steps.append(step)
    return tuple(reversed(steps))

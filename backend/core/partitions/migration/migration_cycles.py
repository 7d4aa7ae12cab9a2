"""Cyclic migrations: replicas that would have to pass each other on, round in a circle (Avoid Data Loss on Migration, 3.2.1).

No order of steps does that without giving a replica up first, so they are cancelled: their holders stay where they are. What is
cancelled is not tried again by itself; the table stays as unbalanced as it was.
"""

from __future__ import annotations

from quarterdeck.backend.core.partitions.migration.migration_steps import Numbers


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

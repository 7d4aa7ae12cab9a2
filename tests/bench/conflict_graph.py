"""How long a master thinks about a partial disconnection: processor time by shape and size of the conflicts, as one line of JSON.

Run it as ``python tests/bench/conflict_graph.py``. `kept` and `exact` tell what came of it. Goals: 30 ms for clean
racks and flaky members among up to 1,000, 5 ms for 1 % of the links between up to 200, 500 ms for anything up to 500.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import random
import time
from collections.abc import Iterator

from quarterdeck.backend.core.membership.partial_disconnection.conflict_graph import (
    CliqueCandidate,
    resolve_conflicts,
    visits_within,
)

WORK_BUDGET = visits_within(300_000)
"""What a search may cost that is given 0.3 s."""

ROUNDS = 3
"""The shortest of so many is told: what else the machine does only ever adds."""
RACK = 20

Pairs = list[tuple[int, int]]


def racks(members: int, pairs: int, links_up: float = 0.0) -> Pairs:
    """Conflicts between the members of so many pairs of racks; a part of the links may be up all the same."""
    draw = random.Random(1)
    cut = draw.sample(list(itertools.combinations(range(members // RACK), 2)), pairs)
    return [
        (one * RACK + left, other * RACK + right)
        for one, other in cut
        for left, right in itertools.product(range(RACK), repeat=2)
        if draw.random() >= links_up
    ]


def flaky(members: int, count: int, links_down: float) -> Pairs:
    """So many members that are in conflict with a part of the others."""
    draw = random.Random(1)
    chosen = sorted(draw.sample(range(members), count))
    return [
        (name, other)
        for name in chosen
        for other in range(members)
        if (other > name or other not in chosen) and other != name and draw.random() < links_down
    ]


def scattered(members: int, links_down: float) -> Pairs:
    draw = random.Random(1)
    return [pair for pair in itertools.combinations(range(members), 2) if draw.random() < links_down]


def shapes() -> Iterator[tuple[str, int, Pairs]]:
    for members in (200, 500, 1000):
        yield "one pair of racks", members, racks(members, 1)
        yield "as many pairs as racks", members, racks(members, members // RACK)
        yield "as many pairs as racks, 5 % of the links up", members, racks(members, members // RACK, 0.05)
        yield "3 flaky members, 30 %", members, flaky(members, 3, 0.3)
        yield "10 flaky members, 30 %", members, flaky(members, 10, 0.3)
    for members in (50, 100, 200):
        yield "scattered, 1%", members, scattered(members, 0.01)
    for members, links_down in itertools.product((200, 500, 1000), (0.02, 0.05, 0.1, 0.5)):
        yield f"scattered, {links_down:.0%}", members, scattered(members, links_down)
    yield "scattered, 99%", 500, scattered(500, 0.99)
    yield "all against all", 500, scattered(500, 1.0)


def measure(shape: str, members: int, pairs: Pairs) -> dict[str, object]:
    candidates = [CliqueCandidate("master"), *(CliqueCandidate(f"m{place}") for place in range(members))]
    conflicts = [(f"m{one}", f"m{other}") for one, other in pairs]
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        resolution = resolve_conflicts(candidates, conflicts, work_budget=WORK_BUDGET)
        taken.append(time.process_time() - began)
    return {
        "shape": shape,
        "members": members,
        "conflicts": len(pairs),
        "kept": len(resolution.keep) - 1,
        "exact": resolution.exact,
        "work": resolution.work,
        "cpu_ms": round(1000 * min(taken), 1),
    }


if __name__ == "__main__":
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    measured = [measure(*shape) for shape in shapes()]
    print(json.dumps({"bench": "conflict_graph", "machine": machine, "work_budget": WORK_BUDGET, "shapes": measured}))

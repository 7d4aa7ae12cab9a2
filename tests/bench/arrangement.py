"""How long a master thinks about who holds what, and how much it moves, as one line of JSON.

Run it as ``python tests/bench/arrangement.py``. Goals: 60 ms for 50,021 partitions with 3 replicas after a join or a
crash, about 25 ms for the first arrangement; moves / lower bound 1.01 on average and 1.08 at worst with 3 replicas, 1.03
and 1.10 with 7.
"""

from __future__ import annotations

import json
import os
import platform
import random
import time
from collections.abc import Callable

from quarterdeck.backend.core.partitions.arrangement.arrangement import Arrangement, arrange

ROUNDS = 5
"""The shortest of so many is told: what else the machine does only ever adds."""

Members = list[tuple[str, str]]


def numbered(count: int, first: int = 0) -> Members:
    return [(f"m{number}", f"m{number}") for number in range(first, first + count)]


def measured(work: Callable[[], Arrangement]) -> tuple[Arrangement, dict[str, object]]:
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        found = work()
        taken.append(time.process_time() - began)
    told = {"moves": found.moves, "lower_bound": found.lower_bound, "spread": found.imbalance}
    return found, {**told, "cpu_ms": round(1000 * min(taken), 1)}


def single_events(partitions: int, count: int, replicas: int) -> dict[str, object]:
    members = numbered(count)
    first, initial = measured(lambda: arrange(None, members, partitions, replicas - 1))
    _, join = measured(lambda: arrange(first.table, numbered(count + 1), partitions, replicas - 1))
    _, crash = measured(lambda: arrange(first.table, members[1:], partitions, replicas - 1))
    size = {"partitions": partitions, "members": count, "replicas": replicas}
    return {**size, "initial_cpu_ms": initial["cpu_ms"], "join": join, "crash": crash}


def churn(partitions: int, count: int, replicas: int, events: int) -> dict[str, object]:
    """Joins and crashes of one or two members, half and half."""
    draw = random.Random(1)
    members, born = numbered(count), count
    table = arrange(None, members, partitions, replicas - 1).table
    moves = bounds = spread = lost = 0
    ratios = []
    for _ in range(events):
        if (len(members) <= count and draw.random() < 0.7) or len(members) < count - 1:
            members = [*members, *numbered(1, born)]
            born += 1
        else:
            gone = draw.sample(members, draw.choice((1, 1, 2)))
            members = [member for member in members if member not in gone]
        found = arrange(table, members, partitions, replicas - 1)
        table = found.table
        moves, bounds, lost = moves + found.moves, bounds + found.lower_bound, lost + len(found.lost)
        spread = max(spread, found.imbalance)
        if found.lower_bound:
            ratios.append(found.moves / found.lower_bound)
    size = {"partitions": partitions, "members": count, "replicas": replicas, "events": events}
    ratio = {
        "overall": round(moves / bounds, 4),
        "mean": round(sum(ratios) / len(ratios), 4),
        "worst": round(max(ratios), 4),
    }
    return {**size, "moves": moves, "lower_bound": bounds, "moves_to_bound": ratio, "spread": spread, "lost": lost}


if __name__ == "__main__":
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    events = [
        single_events(partitions, count, replicas)
        for replicas in (3, 7)
        for partitions in (271, 5003, 50021)
        for count in (10, 50, 200)
    ]
    sequences = [
        churn(*size)
        for size in (
            (271, 5, 3, 100), (271, 10, 3, 200), (5003, 50, 3, 60), (50021, 50, 3, 12), (5003, 200, 3, 40),
            (271, 10, 7, 200), (5003, 10, 7, 30), (5003, 50, 7, 30),
        )
    ]  # fmt: skip
    print(json.dumps({"bench": "arrangement", "machine": machine, "events": events, "churn": sequences}))

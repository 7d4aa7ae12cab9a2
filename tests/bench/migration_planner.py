"""How long a master takes to plan the migrations of every partition: processor time by what happened, as one line of JSON.

Run it as ``python tests/bench/migration_planner.py``. Every row of the table is planned, changed or not, first with no pattern
known and then again. `steps` and `patterns` tell what there was to plan. Goal: 100 ms for 50,021 partitions of 3 replicas.
"""

from __future__ import annotations

import json
import os
import platform
import random
import time

from quarterdeck.backend.core.partitions.migration.migration_planner import _planned, plan_migrations
from quarterdeck.backend.core.partitions.table.partition_table import Row

PARTITIONS = 50_021
MEMBERS = 50
ROUNDS = 3
"""The shortest of so many is told: what else the machine does only ever adds."""

Rows = list[tuple[Row, Row]]


def table(draw: random.Random) -> list[list[str]]:
    """Each partition with 3 of the members."""
    members = [f"10.0.0.{number}:5701" for number in range(MEMBERS)]
    return [draw.sample(members, 3) for _ in range(PARTITIONS)]


def join(draw: random.Random) -> Rows:
    """A member comes and takes its share: one replica of every seventeenth partition."""
    rows: Rows = []
    for current in table(draw):
        target = list(current)
        if draw.random() < 3 / (MEMBERS + 1):
            target[draw.randrange(3)] = "10.0.0.99:5701"
        rows.append((tuple(current), tuple(target)))
    return rows


def crash(draw: random.Random) -> Rows:
    """A member was lost: backups moved up where it was the owner, and others have to fill what is empty."""
    rows: Rows = []
    for current in table(draw):
        present = [None if member == "10.0.0.0:5701" else member for member in current]
        stay = [member for member in present if member]
        target = stay + [f"10.0.0.{MEMBERS + draw.randrange(MEMBERS)}:5701" for _ in range(3 - len(stay))]
        if present[0] is None:
            present[0], present[1] = present[1], None
        rows.append((tuple(present), tuple(target)))
    return rows


def everything(draw: random.Random) -> Rows:
    """No partition stays as it is: the worst that can be asked for."""
    rows: Rows = []
    for current in table(draw):
        target = list(current)
        target[draw.randrange(3)] = f"10.0.0.{MEMBERS + draw.randrange(MEMBERS)}:5701"
        rows.append((tuple(current), tuple(target)))
    return rows


def measure(name: str, rows: Rows) -> dict[str, object]:
    first, again = [], []
    steps = 0
    for _ in range(ROUNDS):
        _planned.cache_clear()
        for taken in (first, again):
            began = time.process_time()
            plans = [plan_migrations(current, target) for current, target in rows]
            taken.append(time.process_time() - began)
            steps = sum(len(plan.steps) for plan in plans)
    return {
        "what": name,
        "partitions": len(rows),
        "steps": steps,
        "patterns": _planned.cache_info().currsize,
        "cpu_ms": round(1000 * min(first), 1),
        "cpu_ms_again": round(1000 * min(again), 1),
    }


if __name__ == "__main__":
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    measured = [measure(make.__name__, make(random.Random(1))) for make in (join, crash, everything)]
    print(json.dumps({"bench": "migration_planner", "machine": machine, "plans": measured}))

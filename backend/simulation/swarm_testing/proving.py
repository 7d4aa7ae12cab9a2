"""Steps that go beyond a scenario, so that something can be judged: data is written, and a member that holds some of it goes.

Whatever was acknowledged must still be there. As many members may go at once as there are backups; one does here.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import Any

from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.simulation.virtual_time.world import World

MOST_PROOFS = 4
"""A run that has proven nothing by then ends as unknown."""

RATE = 20
WRITING = "1s"
SETTLING = "500ms"
"""How long answers may take."""


def proving_steps(
    world: World, scenario: Scenario, holding: Collection[str], seed: int, number: int
) -> list[dict[str, Any]]:
    """Return the steps of the next proof, as a scenario file has them; none when no member's going would prove anything.

    `holding`: the members that hold data.
    """
    draws = Random(f"{seed}/proof {number}")
    up = [label for label in world.labels if world.machine(label) is not None]
    down = [label for label in world.labels if label not in up]
    holders = [label for label in up if label not in scenario.lite]
    settings = scenario.timing()
    least = max(2, settings.minimum_cluster_size)
    changes: list[dict[str, Any]] = []
    if len(holders) > 1 and len(up) > least:
        goes = draws.choice([label for label in holders if label in holding] or holders)
        changes = [{"stop": [goes]}, *([{"kill": [goes]}] * 2 if settings.backups else [])]
    if missing := [label for label in down if label not in scenario.lite]:
        changes.append({"start": [draws.choice(missing)]})
    if not changes and len(holders) > 1:
        goes = next((label for label in holders if label in holding), holders[0])
        changes = [{"restart": [goes]}] if settings.backups else [{"stop": [goes]}]
    if not changes:
        return []
    # The keys of one map may all miss the few partitions that move: the last proof tries others.
    load = {
        "at": up,
        "map": "proof" if number < MOST_PROOFS - 1 else "last-proof",
        "keys": 30,
        "rate": RATE,
        "for": WRITING,
        "reads": 0,
    }
    return [
        {"do": {"load": load}},
        {"do": {"wait": WRITING}},
        {"do": {"wait": SETTLING}},
        {"do": draws.choice(changes)},
    ]

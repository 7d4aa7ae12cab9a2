"""Situations of operators that the mixes of the swarm seldom or never have, drawn from a seed as scenarios.

Clusters of one and two members, a replaced host, restarts, two kills in a row, a heal in steps, cluster states around planned
work, a cut in the middle of a merge, and steps of clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from random import Random
from typing import Any

from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.format.writing import scenario_of_tree
from quarterdeck.backend.simulation.swarm_testing.drawing import FEWEST, draw_scenario, drawn_properties

SITUATION_PROBABILITY = 0.5
"""How often a run is a situation, where small clusters are allowed."""
SPARE = "spare"
"""A member at another address, which starts late or never."""

Step = dict[str, Any]
Situation = Callable[[Random, Sequence[str]], Iterator[Step]]


def judged_scenario(seed: int, sizes: tuple[int, int]) -> Scenario:
    """Draw the run of `seed`: as the swarm does, or a situation where clusters of fewer members than the swarm's are allowed."""
    draws = Random(f"{seed}/situation")
    if sizes[0] >= FEWEST or (sizes[1] >= FEWEST and draws.random() >= SITUATION_PROBABILITY):
        return draw_scenario(seed, (max(sizes[0], FEWEST), max(sizes[1], FEWEST))).scenario
    labels = [f"n{number}" for number in range(1, draws.randint(sizes[0], min(sizes[1], 5)) + 1)]
    name = draws.choice([name for name, (least, _) in SITUATIONS.items() if least <= len(labels)])
    tree: Step = {
        "title": f"Situation {seed}: {name}",
        "members": [*labels, SPARE],
        "late": [SPARE],
        "settings": drawn_properties(draws),
        "steps": [
            _do(load={"at": labels, "map": "m", "keys": 20, "rate": 5, "for": "30m", "reads": 0.3}),
            _wait(draws, 3, 10),
            *SITUATIONS[name][1](draws, labels),
            _wait(draws, 5, 20),
            _do(heal={}),
            _wait(draws, 5, 20),
        ],
    }
    tree["settings"].pop("quarterdeck.minimum.cluster.size", None)
    if name == "clock steps":
        by = f"{draws.choice((1, 5, 20))}s"
        tree["clocks"] = {draws.choice(labels): {"jumps": [{"at": f"{draws.randint(5, 20)}s", "by": by}]}}
    return scenario_of_tree(tree)


def _restart(draws: Random, labels: Sequence[str]) -> Iterator[Step]:
    """Yield a restart at the same address, by force or gracefully."""
    label = draws.choice(labels)
    if draws.random() < 0.5:
        yield _do(restart=[label])
        return
    yield _do(stop=[label]) if draws.random() < 0.5 else _do(kill=[label])
    yield _wait(draws, 0.2, 15)
    yield _do(start=[label])


def _replaced_host(draws: Random, labels: Sequence[str]) -> Iterator[Step]:
    """Yield the end of a member, and the start of another one at another address."""
    steps = [_do(kill=[draws.choice(labels)]), _wait(draws, 0.2, 12), _do(start=[SPARE])]
    yield from steps if draws.random() < 0.7 else reversed(steps)


def _two_kills(draws: Random, labels: Sequence[str]) -> Iterator[Step]:
    """Yield two kills in a row, and mostly the return of those members."""
    gone = draws.sample(list(labels), 2)
    yield _do(kill=gone[:1])
    yield _wait(draws, 0.05, 12)
    yield _do(kill=gone[1:])
    if draws.random() < 0.7:
        yield _wait(draws, 1, 12)
        yield _do(start=gone)


def _staggered_heal(draws: Random, labels: Sequence[str]) -> Iterator[Step]:
    """Yield a split into three sides that heals one link of sides after the other."""
    shuffled = draws.sample(list(labels), len(labels))
    sides = [shuffled[:1], shuffled[1:2], shuffled[2:]]
    yield _do(partition={"groups": sides})
    yield _wait(draws, 8, 30)
    for one, other in draws.sample(list(combinations(sides, 2)), 3):
        yield _do(heal={"from": one, "to": other})
        yield _wait(draws, 1, 15)


def _planned_work(draws: Random, labels: Sequence[str]) -> Iterator[Step]:
    """Yield a cluster state, the end and return of a member under it, and the state before."""
    label, master = draws.choice(labels), labels[0]
    yield _do(**{"change-state": {master: draws.choice(("FROZEN", "PASSIVE", "NO_MIGRATION"))}})
    yield _wait(draws, 0.5, 5)
    yield _do(kill=[label]) if draws.random() < 0.5 else _do(stop=[label])
    yield _wait(draws, 1, 15)
    yield _do(start=[label])
    yield _wait(draws, 2, 10)
    yield _do(**{"change-state": {draws.choice(labels): "ACTIVE"}})


def _merge_given_up(draws: Random, labels: Sequence[str]) -> Iterator[Step]:
    """Yield a split whose heal is followed by another cut while the sides merge."""
    cut = draws.randint(1, len(labels) - 1)
    sides = {"groups": [list(labels[:cut]), list(labels[cut:])]}
    yield _do(partition=sides)
    yield _wait(draws, 8, 25)
    yield _do(heal={})
    yield _wait(draws, 0.2, 8)
    yield _do(partition=sides)
    yield _wait(draws, 3, 15)


def _calm(draws: Random, _labels: Sequence[str]) -> Iterator[Step]:
    """Yield nothing that goes wrong besides steps of clocks."""
    yield _wait(draws, 10, 30)


SITUATIONS: dict[str, tuple[int, Situation]] = {
    "restart": (1, _restart),
    "clock steps": (1, _calm),
    "replaced host": (2, _replaced_host),
    "planned work": (2, _planned_work),
    "merge given up": (2, _merge_given_up),
    "two kills": (3, _two_kills),
    "staggered heal": (3, _staggered_heal),
}
"""By name, the fewest members and the steps."""


def _do(**action: object) -> Step:
    return {"do": action}


def _wait(draws: Random, fewest_seconds: float, most_seconds: float) -> Step:
    return _do(wait=f"{int(1_000 * draws.uniform(fewest_seconds, most_seconds))}ms")

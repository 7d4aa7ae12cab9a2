"""Swarm runs: from one number a whole scenario, with its members, its settings and a mix of faults of its own.

Runs that all have every fault find less than runs in which some kinds are missing, so each run draws which kinds it has.
What is drawn is a scenario like any other: it can be printed, read back, simulated under its seed, and played live.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from quarterdeck.backend.core.properties import MILLISECOND_US, PropertyValue, Settings
from quarterdeck.backend.simulation.scenarios.scenario import Scenario
from quarterdeck.backend.simulation.scenarios.values import duration_text
from quarterdeck.backend.simulation.scenarios.writing import scenario_of_tree
from quarterdeck.backend.simulation.swarm_testing.convergence import convergence_bound_us
from quarterdeck.backend.simulation.swarm_testing.fault_kinds import FAULTS, FaultContext, PlannedFault

FEWEST, MOST = 3, 20
"""Members of a run, unless told otherwise."""

KIND_PROBABILITIES = (0.1, 0.4, 0.6)
"""One of these is how probable each kind of fault is in a run: runs with few faults, with some, and with many."""

LATENCY_PROBABILITY = 0.4
SHORT_JOIN_LIST_PROBABILITY = 0.15
CHOICE_PROBABILITY = 0.4
"""How probable it is that a property is not as in the training preset."""

TIMEOUTS_LONG = (4, 14)
SHORTEST_US, LONGEST_US = 15_000_000, 90_000_000
"""How long the faults last: so many times the heartbeat timeout, between these two."""

LATENCY_FAULT = "latency"
"""The name of the one fault that no action brings about: messages take their time in another way."""

INTERVALS_SECONDS = (0.5, 1, 2)
TIMEOUT_INTERVALS = (3, 4, 5, 8)
PROPERTY_CHOICES: dict[str, tuple[PropertyValue, ...]] = {
    "hazelcast.heartbeat.failuredetector.type": ("phi-accrual",),
    "hazelcast.member.list.publish.interval.seconds": (2, 30),
    "hazelcast.mastership.claim.timeout.seconds": (3, 20),
    "hazelcast.master.confirmation.interval.seconds": (1, 4),
    "hazelcast.max.join.seconds": (20, 300),
    "hazelcast.max.join.merge.target.seconds": (2, 10),
    "hazelcast.stale.join.prevention.duration.seconds": (0, 10),
    "hazelcast.merge.first.run.delay.seconds": (1, 15),
    "hazelcast.merge.next.run.delay.seconds": (1, 10),
    "hazelcast.partial.member.disconnection.resolution.heartbeat.count": (0, 5),
    "quarterdeck.heartbeat.topology": ("ring",),
    "quarterdeck.heartbeat.ring.successors": (1, 2),
    "quarterdeck.minimum.cluster.size": (2, 3),
    "quarterdeck.link.probe.max.backoff.seconds": (1, 15),
    "quarterdeck.cluster.state.lease.seconds": (2, 15),
}


@dataclass(frozen=True)
class DrawnScenario:
    """A scenario drawn from a seed, and the names of the kinds of faults that it has."""

    seed: int
    scenario: Scenario
    faults: tuple[str, ...]


def draw_scenario(seed: int, sizes: tuple[int, int] = (FEWEST, MOST)) -> DrawnScenario:
    """The run of `seed` with as many members as lie between the two `sizes`. Equal arguments give equal drawings."""
    size = members_drawn(seed, sizes)
    labels = tuple(f"n{number}" for number in range(1, size + 1))
    properties = _properties(_stream(seed, "settings"))
    settings = Settings.of(properties, preset="training")
    lasting = _stream(seed, "length").uniform(*TIMEOUTS_LONG) * settings.max_no_heartbeat_us
    length_us = int(min(max(lasting, SHORTEST_US), LONGEST_US))

    context = FaultContext(Random(), labels, settings, length_us)
    planned = _planned(seed, context)
    possible_actions = _possible(planned, labels, context.late)
    tree: dict[str, Any] = {
        "title": f"Swarm run {seed}",
        "members": list(labels),
        "settings": properties,
        "late": sorted(context.late, key=labels.index),
        "clocks": {label: context.clocks[label] for label in labels if label in context.clocks},
        "latency": _latency(_stream(seed, LATENCY_FAULT), settings),
        "join-lists": _join_lists(_stream(seed, "join lists"), labels),
        "steps": [
            *_steps(possible_actions.taken, length_us),
            *_ending(_stream(seed, "ending"), possible_actions, labels, convergence_bound_us(settings, size)),
        ],
    }
    of_clocks = [
        name
        for name, part in (("clock drift", "rate"), ("clock jump", "jumps"))
        if any(part in one for one in context.clocks.values())
    ]
    warped = [LATENCY_FAULT] if tree["latency"] else []
    faults = (*dict.fromkeys(name for _, name, _ in possible_actions.taken), *of_clocks, *warped)
    tree["summary"] = f"Faults: {', '.join(faults) or 'none'}."
    tree = {name: tree[name] for name in ("title", "summary", *tree) if tree[name]}
    return DrawnScenario(seed, scenario_of_tree(tree), faults)


def members_drawn(seed: int, sizes: tuple[int, int]) -> int:
    """How many members the run of `seed` has. Small clusters are more likely: quick to run, and most goes wrong in them too."""
    fewest, most = sizes
    return fewest + int((most - fewest + 1) * _stream(seed, "size").random() ** 2)


def _stream(seed: int, purpose: str) -> Random:
    """Draws for one purpose only, so that a change of one part of a run leaves its other parts as they are."""
    return Random(f"{seed}/swarm/{purpose}")


def _properties(draws: Random) -> dict[str, PropertyValue]:
    interval = draws.choice(INTERVALS_SECONDS)
    properties: dict[str, PropertyValue] = {
        "hazelcast.heartbeat.interval.seconds": interval,
        "hazelcast.max.no.heartbeat.seconds": interval * draws.choice(TIMEOUT_INTERVALS),
    }
    for name, choices in PROPERTY_CHOICES.items():
        if draws.random() < CHOICE_PROBABILITY:
            properties[name] = draws.choice(choices)
    return properties


def _latency(draws: Random, settings: Settings) -> dict[str, str]:
    """Messages that are slow and overtake one another, but not so slow that heartbeats of the living seem missing."""
    if draws.random() >= LATENCY_PROBABILITY:
        return {}
    slack_us = settings.max_no_heartbeat_us - settings.heartbeat_interval_us
    most_us = max(5 * MILLISECOND_US, int(slack_us * 0.5 * draws.random()))
    least_us = draws.choice((200, 2_000))
    typical_us = int(most_us * draws.choice((0.01, 0.05, 0.2)))
    return {
        "model": draws.choice(("uniform", "exponential", "heavy-tail")),
        "least": duration_text(least_us),
        "typical": duration_text(typical_us),
        "most": duration_text(most_us),
    }


def _join_lists(draws: Random, labels: tuple[str, ...]) -> dict[str, list[str]]:
    """Usually everybody lists everybody; sometimes some members list only the first two."""
    if draws.random() >= SHORT_JOIN_LIST_PROBABILITY:
        return {}
    return {label: list(labels[:2]) for label in labels[2:] if draws.random() < 0.5}


def _planned(seed: int, context: FaultContext) -> list[tuple[int, str, dict[str, Any]]]:
    """All that the faults of this run plan, in order of time."""
    mix = _stream(seed, "mix")
    probability = mix.choice(KIND_PROBABILITIES)
    plans: list[tuple[int, str, dict[str, Any]]] = []
    for name, plan in FAULTS.items():
        if mix.random() < probability:
            context.draws = _stream(seed, f"fault {name}")
            plans += _within(plan(context), name, context.length_us)
    return sorted(plans, key=lambda one: one[0])


def _within(plan: Iterable[PlannedFault], name: str, length_us: int) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The actions of one plan on whole milliseconds; those beyond the end happen at the end."""
    for at_us, action in plan:
        yield min(at_us, length_us) // MILLISECOND_US * MILLISECOND_US, name, action


# Which of the planned actions make sense


@dataclass
class _PossibleActions:
    """The planned actions that make sense, and which members are down and paused after them."""

    taken: list[tuple[int, str, dict[str, Any]]]
    down: set[str]
    paused: set[str]


def _possible(
    plans: list[tuple[int, str, dict[str, Any]]], labels: tuple[str, ...], late: set[str]
) -> _PossibleActions:
    """Go through the plans in order of time and keep what can be done; one member always runs on."""
    possible_actions = _PossibleActions([], set(late), set())
    for at_us, name, action in plans:
        ((word, what),) = action.items()
        kept: dict[str, Any] | None = action
        if word in ("start", "stop", "kill", "pause", "resume", "restart"):
            whom = [label for label in what if _do(possible_actions, word, label, len(labels))]
            kept = {word: whom} if whom else None
        elif word in ("search", "operate", "change-state", "set-join-list"):
            kept = (
                action if all(label not in possible_actions.down | possible_actions.paused for label in what) else None
            )
        if kept:
            possible_actions.taken.append((at_us, name, kept))
    return possible_actions


def _do(possible_actions: _PossibleActions, word: str, label: str, size: int) -> bool:
    """Whether `word` can be done to the member; if so, it is done."""
    down, paused = possible_actions.down, possible_actions.paused
    last_one = size - len(down | paused) <= 1 and label not in down | paused
    match word:
        case "start":
            possible = label in down
            down.discard(label)
        case "restart":
            possible = not last_one
            if possible:
                down.discard(label)
                paused.discard(label)
        case "resume":
            possible = label in paused
            paused.discard(label)
        case "pause":
            possible = label not in down | paused and not last_one
            if possible:
                paused.add(label)
        case _:
            possible = label not in down and not last_one and not (word == "stop" and label in paused)
            if possible:
                down.add(label)
                paused.discard(label)
    return possible


# Steps


def _steps(taken: list[tuple[int, str, dict[str, Any]]], length_us: int) -> Iterator[dict[str, Any]]:
    now_us = 0
    for at_us, _, action in taken:
        if at_us > now_us:
            yield _wait(at_us - now_us)
            now_us = at_us
        yield {"do": action}
    if length_us // MILLISECOND_US * MILLISECOND_US > now_us:
        yield _wait(length_us // MILLISECOND_US * MILLISECOND_US - now_us)


def _ending(
    draws: Random, possible_actions: _PossibleActions, labels: tuple[str, ...], bound_us: int
) -> Iterator[dict[str, Any]]:
    """All faults are healed, at least two members run, and they must become one cluster in time."""
    yield {"do": {"heal": {}}}
    if possible_actions.paused:
        yield {"do": {"resume": [label for label in labels if label in possible_actions.paused]}}
    missing = 2 - (len(labels) - len(possible_actions.down))
    everybody = draws.random() < 0.5
    down = [label for label in labels if label in possible_actions.down]
    started = down if everybody else down[: max(0, missing)]
    if started:
        yield {"do": {"start": started}}
    yield {"expect": {"within": duration_text(bound_us), "one-cluster": True}}


def _wait(duration_us: int) -> dict[str, Any]:
    return {"do": {"wait": duration_text(duration_us)}}

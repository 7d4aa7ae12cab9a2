"""A time in which faults of several kinds overlap: which are drawn, which of what they plan makes sense, and the steps for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from quarterdeck.backend.core.properties import MILLISECOND_US
from quarterdeck.backend.scenarios.format.values import duration_text
from quarterdeck.backend.simulation.swarm_testing.fault_kinds import FAULTS, FaultContext

KIND_PROBABILITIES = (0.1, 0.25, 0.5)
"""One of these is how probable each kind of fault is: times with few faults, with some, and with many."""

TIMEOUTS_LONG = (3, 10)
SHORTEST_US, LONGEST_US = 10_000_000, 45_000_000
"""How long the faults last: so many times the heartbeat timeout, between these two."""

StepTree = dict[str, Any]
"""A step as a scenario file has it."""


@dataclass
class Standing:
    """Who is down and who is frozen, as far as that can be known before a run."""

    labels: tuple[str, ...]
    down: set[str]
    paused: set[str] = field(default_factory=set)

    @property
    def up(self) -> list[str]:
        return [label for label in self.labels if label not in self.down]

    def try_to(self, word: str, label: str) -> bool:
        """Whether `word` can be done to the member; if so, it is done. One member always runs on."""
        down, paused = self.down, self.paused
        last_one = len(self.labels) - len(down | paused) <= 1 and label not in down | paused
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


def drawn_length_us(draws: Random, timeout_us: int) -> int:
    """How long the faults last, in whole milliseconds."""
    lasting = int(min(max(draws.uniform(*TIMEOUTS_LONG) * timeout_us, SHORTEST_US), LONGEST_US))
    return lasting // MILLISECOND_US * MILLISECOND_US


def fault_steps(
    context: FaultContext,
    standing: Standing,
    stream: Callable[[str], Random],
    faults: list[str],
    look: Callable[[], Iterator[StepTree]],
) -> Iterator[StepTree]:
    """Yield the steps of all faults, and then those that mend what they left behind; add their names to `faults`.

    `stream` has draws for each purpose, so that a change of one kind of fault leaves the others as they are. With `look` the
    keys are read before anything is mended: what the sides of a division have written is seldom there after a merge.
    """
    planned = _planned(context, stream)
    standing.down |= context.late or set()
    now_us = 0
    kept_steps: list[dict[str, Any]] = []
    for at_us, name, action in planned:
        kept = _possible(standing, action)
        if kept is None:
            continue
        if at_us > now_us:
            yield wait(at_us - now_us)
            now_us = at_us
        faults.append(name)
        kept_steps.append(kept)
        yield {"do": kept}
    if context.length_us > now_us:
        yield wait(context.length_us - now_us)
    yield from look()
    yield from _mended(standing, kept_steps, stream("mending"))


def wait(duration_us: int) -> StepTree:
    """Return a step that waits."""
    return {"do": {"wait": duration_text(duration_us)}}


def _planned(context: FaultContext, stream: Callable[[str], Random]) -> list[tuple[int, str, dict[str, Any]]]:
    mix = stream("mix")
    probability = mix.choice(KIND_PROBABILITIES)
    plans: list[tuple[int, str, dict[str, Any]]] = []
    for name, plan in FAULTS.items():
        if mix.random() < probability:
            context.draws = stream(f"fault {name}")
            plans += (  # on whole milliseconds; what lies beyond the end happens at the end
                (min(at_us, context.length_us) // MILLISECOND_US * MILLISECOND_US, name, action)
                for at_us, action in plan(context)
            )
    return sorted(plans, key=lambda one: one[0])


def _possible(standing: Standing, action: dict[str, Any]) -> dict[str, Any] | None:
    """Return what of a planned action can be done as things stand; None when nothing can."""
    ((word, what),) = action.items()
    if word in ("start", "stop", "kill", "pause", "resume", "restart"):
        whom = [label for label in what if standing.try_to(word, label)]
        return {word: whom} if whom else None
    if word in ("search", "operate", "promote", "demote", "suspect", "set", "change-state", "set-join-list"):
        return action if all(label not in standing.down | standing.paused for label in what) else None
    return action


def _mended(standing: Standing, done: list[dict[str, Any]], draws: Random) -> Iterator[StepTree]:
    """Links are healed, frozen members go on, and what operators changed is set back; some who are down come back."""
    labels = standing.labels
    yield {"do": {"heal": {}}}
    if standing.paused:
        yield {"do": {"resume": [label for label in labels if label in standing.paused]}}
        standing.paused.clear()
    doomed = [label for step in done for label in step.get("kill-at", {}) if label not in standing.down]
    back = [label for label in dict.fromkeys(doomed) if draws.random() < 0.5]
    if back:
        yield {"do": {"restart": back}}
    down = [label for label in labels if label in standing.down]
    started = [label for label in down if draws.random() < 0.7] or down[: max(0, 2 - len(standing.up))]
    if started:
        yield {"do": {"start": started}}
        standing.down.difference_update(started)
    edited = {label: list(labels) for step in done for label in step.get("set-join-list", {})}
    edited = {label: entries for label, entries in edited.items() if label not in standing.down}
    if edited:
        yield {"do": {"set-join-list": edited}}
    if any("change-state" in step for step in done):
        for label in standing.up[:2]:
            yield {"do": {"change-state": {label: "ACTIVE"}}}

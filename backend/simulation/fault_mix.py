"""The kinds of faults that a swarm run may have: each plans what happens when, with random draws of its own.

Every kind is a generator of planned actions, written as a scenario file has them. A plan need not make sense: what cannot
be done as things then stand (a crash of a member that is down) is left out by whoever puts the plans together. Most
faults come in episodes and undo just what they did, so that faults of several kinds overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from random import Random
from typing import Any

from quarterdeck.backend.core.messages import MESSAGE_KINDS
from quarterdeck.backend.core.properties import MILLISECOND_US, Settings
from quarterdeck.backend.simulation.scenario_values import duration_text

LASTING_PROBABILITY = 0.2
"""How probable it is that an episode lasts until the end."""

Labels = Sequence[str]
Planned = tuple[int, dict[str, Any]]
"""When, in microseconds from the beginning of the faults, and an action as a scenario file has it."""


@dataclass
class Plot:
    """What a kind of fault has to work with. `late` and `clocks` belong to the scenario and are filled by some kinds."""

    draws: Random
    labels: tuple[str, ...]
    settings: Settings
    length_us: int
    """How long the faults last."""
    late: set[str] = field(default_factory=set)
    clocks: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def timeout_us(self) -> int:
        return self.settings.max_no_heartbeat_us

    def instant_us(self) -> int:
        return int(self.draws.random() * self.length_us)

    def episodes(self, most: int = 3, longest: float = 4.0) -> Iterator[tuple[int, int]]:
        """Beginnings and ends of one to `most` episodes: short ones are as likely as long ones, and some do not end."""
        for _ in range(self.draws.randint(1, most)):
            begins_us = self.instant_us()
            timeouts = 0.1 * (longest / 0.1) ** self.draws.random()
            lasts = self.draws.random() < LASTING_PROBABILITY
            yield begins_us, self.length_us if lasts else begins_us + int(timeouts * self.timeout_us)

    def one(self) -> str:
        """A member; every third time one of the two oldest, because that is where mastership is."""
        return self.draws.choice(self.labels[:2] if self.draws.random() < 1 / 3 else self.labels)

    def some(self, most: int | None = None) -> list[str]:
        """One or more members, in their order, never all."""
        count = self.draws.randint(1, max(1, min(most or len(self.labels), len(self.labels) - 1)))
        return self._in_order(self.draws.sample(self.labels, count))

    def split(self, parts: int) -> list[list[str]]:
        """All members in `parts` groups, each of one at least."""
        shuffled = self.draws.sample(self.labels, len(self.labels))
        cuts = sorted(self.draws.sample(range(1, len(shuffled)), parts - 1))
        borders = [0, *cuts, len(shuffled)]
        return [self._in_order(shuffled[low:high]) for low, high in pairwise(borders)]

    def ends(self) -> dict[str, Any]:
        """The ends of some links: one to one, one to all others, or some to all."""
        if self.draws.random() < 1 / 3:
            return {"from": list(self.labels), "to": list(self.labels)}
        sources = [self.one()] if self.draws.random() < 0.5 else self.some()
        targets = [one for one in self.labels if one not in sources]
        return {"from": sources, "to": targets if self.draws.random() < 0.5 else [self.draws.choice(targets)]}

    def mode(self) -> str:
        return self.draws.choice(("blackhole", "blackhole", "reset"))

    def _in_order(self, labels: Labels) -> list[str]:
        return sorted(labels, key=self.labels.index)


# Links that are worse than they should be


def _loss(plot: Plot) -> Iterator[Planned]:
    yield from _worse_links(plot, "lose", "probability", lambda: round(0.01 + 0.3 * plot.draws.random() ** 2, 3), 0)


def _duplication(plot: Plot) -> Iterator[Planned]:
    yield from _worse_links(plot, "duplicate", "probability", lambda: round(0.5 * plot.draws.random(), 3), 0)


def _delay(plot: Plot) -> Iterator[Planned]:
    def amount() -> str:
        return _milliseconds(plot.draws.random() ** 3 * 1.2 * plot.timeout_us)

    yield from _worse_links(plot, "delay", "by", amount, "0s")


def _worse_links(plot: Plot, action: str, field: str, amount: Callable[[], object], none: object) -> Iterator[Planned]:
    for begins_us, ends_us in plot.episodes():
        links = plot.ends() | {"one-way": plot.draws.random() < 0.4}
        yield begins_us, {action: links | {field: amount()}}
        yield ends_us, {action: links | {field: none}}


def _slow_member(plot: Plot) -> Iterator[Planned]:
    for begins_us, ends_us in plot.episodes():
        slow = plot.one()
        links = {"from": [slow], "to": [one for one in plot.labels if one != slow]}
        yield begins_us, {"delay": links | {"by": _milliseconds((0.02 + 0.5 * plot.draws.random()) * plot.timeout_us)}}
        yield ends_us, {"delay": links | {"by": "0s"}}


def _drop_kinds(plot: Plot) -> Iterator[Planned]:
    """Filters for one or a few kinds of messages: the rare ones are lost as often as heartbeats."""
    for begins_us, ends_us in plot.episodes(longest=6.0):
        links = plot.ends()
        kinds = plot.draws.sample(list(MESSAGE_KINDS), plot.draws.randint(1, 3))
        yield begins_us, {"drop-messages": links | {"kinds": kinds}}
        yield ends_us, {"drop-messages": links | {"kinds": []}}


# Links that are cut


def _one_way_cut(plot: Plot) -> Iterator[Planned]:
    for begins_us, ends_us in plot.episodes():
        sources, targets = plot.split(2)
        if plot.draws.random() < 0.6:
            sources, targets = sources[:1], targets[:1]
        yield begins_us, {"cut": {"from": sources, "to": targets, "one-way": True, "mode": plot.mode()}}
        yield ends_us, _healed(sources, targets)


def _halves(plot: Plot) -> Iterator[Planned]:
    yield from _partitions(plot, lambda: plot.split(2))


def _shards(plot: Plot) -> Iterator[Planned]:
    yield from _partitions(plot, lambda: plot.split(plot.draws.randint(2, min(4, len(plot.labels)))))


def _isolate_one(plot: Plot) -> Iterator[Planned]:
    def groups() -> list[list[str]]:
        alone = plot.one()
        return [[alone], [one for one in plot.labels if one != alone]]

    yield from _partitions(plot, groups)


def _bridge(plot: Plot) -> Iterator[Planned]:
    """Two groups that cannot hear each other, and one member that hears both."""

    def groups() -> list[list[str]]:
        bridge = plot.one()
        rest = [one for one in plot.draws.sample(plot.labels, len(plot.labels)) if one != bridge]
        return [rest[: len(rest) // 2], rest[len(rest) // 2 :]]

    yield from _partitions(plot, groups)


def _partitions(plot: Plot, groups: Callable[[], list[list[str]]]) -> Iterator[Planned]:
    for begins_us, ends_us in plot.episodes():
        split = groups()
        yield begins_us, {"partition": {"groups": split, "mode": plot.mode()}}
        for one, other in combinations(split, 2):
            yield ends_us, _healed(one, other)


def _majorities_ring(plot: Plot) -> Iterator[Planned]:
    """Everybody hears a majority, and no two of them the same: each is cut from the members opposite on a ring."""
    for begins_us, ends_us in plot.episodes(most=2):
        ring = plot.draws.sample(plot.labels, len(plot.labels))
        reach = max(1, -(-len(ring) // 4))
        for place, label in enumerate(ring):
            opposite = [
                other
                for far, other in enumerate(ring)
                if far > place and min(far - place, len(ring) - far + place) > reach
            ]
            if opposite:
                yield begins_us, {"cut": {"from": [label], "to": opposite}}
                yield ends_us, _healed([label], opposite)


def _rack_pairs(plot: Plot) -> Iterator[Planned]:
    """Members stand in racks, and two of the racks cannot hear each other."""
    for begins_us, ends_us in plot.episodes(most=2):
        racks = plot.split(plot.draws.randint(3, max(3, min(5, len(plot.labels)))))
        one, other = plot.draws.sample(racks, 2)
        yield begins_us, {"cut": {"from": one, "to": other, "mode": plot.mode()}}
        yield ends_us, _healed(one, other)


def _random_pairs(plot: Plot) -> Iterator[Planned]:
    for begins_us, ends_us in plot.episodes(most=2):
        pairs = list(combinations(plot.labels, 2))
        for one, other in plot.draws.sample(pairs, plot.draws.randint(1, max(1, len(pairs) // 4))):
            yield begins_us, {"cut": {"from": [one], "to": [other], "mode": plot.mode()}}
            yield ends_us, _healed([one], [other])


def _flapping(plot: Plot) -> Iterator[Planned]:
    """Links that come and go about as fast as silence is noticed."""
    sources, targets = plot.split(2)
    if plot.draws.random() < 0.5:
        sources, targets = sources[:1], targets[:1]
    one_way = plot.draws.random() < 0.3
    at_us = plot.instant_us()
    for _ in range(plot.draws.randint(3, 6)):
        yield at_us, {"cut": {"from": sources, "to": targets, "one-way": one_way}}
        at_us += int((0.3 + plot.draws.random()) * plot.timeout_us)
        yield at_us, _healed(sources, targets)
        at_us += int((0.1 + plot.draws.random()) * plot.timeout_us)


def _swizzle(plot: Plot) -> Iterator[Planned]:
    """Members fall silent one after another and are heard again in another order."""
    for begins_us, ends_us in plot.episodes(most=2):
        silenced = plot.draws.sample(plot.labels, plot.draws.randint(1, len(plot.labels) - 1))
        for count, label in enumerate(silenced):
            others = [one for one in plot.labels if one != label]
            yield begins_us + count * plot.settings.heartbeat_interval_us, {"cut": {"from": [label], "to": others}}
        released_us = ends_us + len(silenced) * plot.settings.heartbeat_interval_us
        for count, label in enumerate(plot.draws.sample(silenced, len(silenced))):
            others = [one for one in plot.labels if one != label]
            yield released_us + count * plot.settings.heartbeat_interval_us, _healed([label], others)


# Members that stop, and come again


def _pause(plot: Plot) -> Iterator[Planned]:
    for begins_us, ends_us in plot.episodes(longest=3.0):
        frozen = [plot.one()] if plot.draws.random() < 0.7 else plot.some()
        yield begins_us, {"pause": frozen}
        yield ends_us, {"resume": frozen}


def _crash(plot: Plot) -> Iterator[Planned]:
    for begins_us, ends_us in plot.episodes():
        crashed = [plot.one()] if plot.draws.random() < 0.7 else plot.some(3)
        yield begins_us, {"kill": crashed}
        if plot.draws.random() < 0.7:
            yield ends_us, {"start": crashed}


POINTS = (
    *("claim-started", "claim-finished", "list-installed", "member-removed", "member-admitted", "join-requested"),
    *("disconnection-resolved", "merge-verdict", "merge-started", "cluster-state-changed", "member-merging"),
)
"""Steps of the protocols at which a crash is worth a look."""


def _crash_at_point(plot: Plot) -> Iterator[Planned]:
    """A member dies in the middle of a protocol, and mostly comes back."""
    for begins_us, ends_us in plot.episodes(most=2):
        label = plot.one()
        yield begins_us, {"kill-at": {label: plot.draws.choice(POINTS)}}
        if plot.draws.random() < 0.7:
            yield ends_us + plot.timeout_us, {"start": [label]}


def _restart(plot: Plot) -> Iterator[Planned]:
    """A new life at the same address, at once or one member after another."""
    for begins_us, _ in plot.episodes():
        rolling = plot.draws.random() < 0.2
        for count, label in enumerate(plot.labels if rolling else [plot.one()]):
            yield begins_us + count * plot.timeout_us // 2, {"restart": [label]}


def _graceful_stop(plot: Plot) -> Iterator[Planned]:
    for begins_us, ends_us in plot.episodes(most=2):
        leaving = [plot.one()] if plot.draws.random() < 0.7 else plot.some(3)
        yield begins_us, {"stop": leaving}
        if plot.draws.random() < 0.7:
            yield ends_us, {"start": leaving}


def _join_storm(plot: Plot) -> Iterator[Planned]:
    """Some members start late, all at once."""
    late = [label for label in plot.some() if label != plot.labels[0]]
    if late:
        plot.late.update(late)
        yield plot.instant_us(), {"start": late}


# Clocks


def _clock_drift(plot: Plot) -> Iterator[Planned]:
    for label in plot.some():
        plot.clocks.setdefault(label, {})["rate"] = round(0.95 + 0.1 * plot.draws.random(), 4)
    yield from ()


def _clock_jump(plot: Plot) -> Iterator[Planned]:
    for label in plot.some(3):
        at = _milliseconds(plot.instant_us())
        by = _milliseconds((0.1 + 2 * plot.draws.random()) * plot.timeout_us)
        plot.clocks.setdefault(label, {})["jumps"] = [{"at": at, "by": by}]
    yield from ()


# What operators do


def _state_change(plot: Plot) -> Iterator[Planned]:
    for begins_us, ends_us in plot.episodes():
        state = plot.draws.choice(("FROZEN", "PASSIVE", "NO_MIGRATION"))
        yield begins_us, {"change-state": {plot.one(): state}}
        if plot.draws.random() < 0.7:
            yield ends_us, {"change-state": {plot.one(): "ACTIVE"}}


def _join_list_edit(plot: Plot) -> Iterator[Planned]:
    """Shuffled lists, shorter ones, and now and then one with an address at which nobody is."""
    for begins_us, _ in plot.episodes():
        entries = plot.draws.sample(plot.labels, plot.draws.randint(1, len(plot.labels)))
        if plot.draws.random() < 0.3:
            entries.append("127.0.0.1:9")
        yield begins_us, {"set-join-list": {plot.one(): entries}}


def _search(plot: Plot) -> Iterator[Planned]:
    for begins_us, _ in plot.episodes():
        yield begins_us, {"search": [plot.one()]}


def _operate(plot: Plot) -> Iterator[Planned]:
    for begins_us, _ in plot.episodes():
        yield begins_us, {"operate": [plot.one()]}


FAULTS: dict[str, Callable[[Plot], Iterator[Planned]]] = {
    "loss": _loss,
    "duplication": _duplication,
    "delay": _delay,
    "slow member": _slow_member,
    "drop kinds": _drop_kinds,
    "one-way cut": _one_way_cut,
    "halves": _halves,
    "shards": _shards,
    "isolate one": _isolate_one,
    "bridge": _bridge,
    "majorities ring": _majorities_ring,
    "rack pairs": _rack_pairs,
    "random pairs": _random_pairs,
    "flapping": _flapping,
    "swizzle": _swizzle,
    "pause": _pause,
    "crash": _crash,
    "crash at a point": _crash_at_point,
    "restart": _restart,
    "graceful stop": _graceful_stop,
    "join storm": _join_storm,
    "clock drift": _clock_drift,
    "clock jump": _clock_jump,
    "state change": _state_change,
    "join list edit": _join_list_edit,
    "search": _search,
    "operate": _operate,
}
"""Every kind of fault by its name."""


def _healed(one: Labels, other: Labels) -> dict[str, Any]:
    return {"heal": {"from": list(one), "to": list(other)}}


def _milliseconds(duration_us: float) -> str:
    return duration_text(int(duration_us) // MILLISECOND_US * MILLISECOND_US)

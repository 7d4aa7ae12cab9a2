"""The kinds of faults that a swarm run may have: each plans what happens when, with random draws of its own.

Every kind is a generator of planned actions, written as a scenario file has them. A plan need not make sense: what cannot
be done as things then stand (a crash of a member that is down) is left out where the plans are put together. Most
faults come in episodes and undo just what they did, so that faults of several kinds overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from random import Random
from typing import Any

from quarterdeck.backend.core.messages import MESSAGE_KINDS
from quarterdeck.backend.core.properties import MILLISECOND_US, PropertyValue, Settings
from quarterdeck.backend.scenarios.format.values import duration_text

LASTING_PROBABILITY = 0.2
"""How probable it is that an episode lasts until the end."""

Labels = Sequence[str]
PlannedFault = tuple[int, dict[str, Any]]
"""When, in microseconds from the beginning of the faults, and an action as a scenario file has it."""


@dataclass
class FaultContext:
    """What a kind of fault has to work with. `late` and `clocks` belong to the scenario and are filled by some kinds."""

    draws: Random
    labels: tuple[str, ...]
    settings: Settings
    length_us: int
    """How long the faults last."""
    late: set[str] | None = None
    """Who starts only when its time has come; None when all have been started once."""
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
        """Draw a member; every third time one of the two oldest, because that is where mastership is."""
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
        """Draw the ends of some links: one to one, one to all others, or some to all."""
        if self.draws.random() < 1 / 3:
            return {"from": list(self.labels), "to": list(self.labels)}
        sources = [self.one()] if self.draws.random() < 0.5 else self.some()
        targets = [label for label in self.labels if label not in sources]
        return {"from": sources, "to": targets if self.draws.random() < 0.5 else [self.draws.choice(targets)]}

    def mode(self) -> str:
        """How a link is cut: two times out of three without a trace."""
        return self.draws.choice(("blackhole", "blackhole", "reset"))

    def _in_order(self, labels: Labels) -> list[str]:
        return sorted(labels, key=self.labels.index)


# Links that lose, delay, duplicate or drop messages


def _worse_links(
    action: str, field: str, none: object, amount: Callable[[FaultContext], object]
) -> Callable[[FaultContext], Iterator[PlannedFault]]:
    def plan(context: FaultContext) -> Iterator[PlannedFault]:
        for begins_us, ends_us in context.episodes():
            links = context.ends() | {"one-way": context.draws.random() < 0.4}
            yield begins_us, {action: links | {field: amount(context)}}
            yield ends_us, {action: links | {field: none}}

    return plan


def _slow_member(context: FaultContext) -> Iterator[PlannedFault]:
    for begins_us, ends_us in context.episodes():
        slow = context.one()
        links = {"from": [slow], "to": [label for label in context.labels if label != slow]}
        by = _milliseconds((0.02 + 0.5 * context.draws.random()) * context.timeout_us)
        yield begins_us, {"delay": links | {"by": by}}
        yield ends_us, {"delay": links | {"by": "0s"}}


def _drop_kinds(context: FaultContext) -> Iterator[PlannedFault]:
    """Plan filters for one or a few kinds of messages: the rare ones are lost as often as heartbeats."""
    for begins_us, ends_us in context.episodes(longest=6.0):
        links = context.ends()
        kinds = context.draws.sample(list(MESSAGE_KINDS), context.draws.randint(1, 3))
        yield begins_us, {"drop-messages": links | {"kinds": kinds}}
        yield ends_us, {"drop-messages": links | {"kinds": []}}


def _missed_lists(context: FaultContext) -> Iterator[PlannedFault]:
    """Plan that one member hears of no changes of the list, though all else arrives."""
    for begins_us, ends_us in context.episodes(most=2, longest=8.0):
        link = {"from": list(context.labels), "to": [context.one()]}
        yield begins_us, {"drop-messages": link | {"kinds": ["members-update"]}}
        yield ends_us, {"drop-messages": link | {"kinds": []}}


def _held_messages(context: FaultContext) -> Iterator[PlannedFault]:
    """Messages of a few kinds arrive long after they were sent, perhaps at a later incarnation, or from one that is gone."""
    for begins_us, ends_us in context.episodes(most=2, longest=6.0):
        links = context.ends()
        kinds = context.draws.sample(list(MESSAGE_KINDS), context.draws.randint(1, 4))
        yield begins_us, {"hold": links | {"kinds": kinds}}
        yield ends_us, {"replay": links}


# Links that are cut


def _one_way_cut(context: FaultContext) -> Iterator[PlannedFault]:
    for begins_us, ends_us in context.episodes():
        sources, targets = context.split(2)
        if context.draws.random() < 0.6:
            sources, targets = sources[:1], targets[:1]
        yield begins_us, {"cut": {"from": sources, "to": targets, "one-way": True, "mode": context.mode()}}
        yield ends_us, _healed(sources, targets)


def _partitions(groups: Callable[[FaultContext], list[list[str]]]) -> Callable[[FaultContext], Iterator[PlannedFault]]:
    def plan(context: FaultContext) -> Iterator[PlannedFault]:
        for begins_us, ends_us in context.episodes():
            split = groups(context)
            yield begins_us, {"partition": {"groups": split, "mode": context.mode()}}
            for one, other in combinations(split, 2):
                yield ends_us, _healed(one, other)

    return plan


def _isolated(context: FaultContext) -> list[list[str]]:
    alone = context.one()
    return [[alone], [label for label in context.labels if label != alone]]


def _bridged(context: FaultContext) -> list[list[str]]:
    """Two groups without links between them, and one member with links to both."""
    bridge = context.one()
    rest = [other for other in context.draws.sample(context.labels, len(context.labels)) if other != bridge]
    return [rest[: len(rest) // 2], rest[len(rest) // 2 :]]


def _majorities_ring(context: FaultContext) -> Iterator[PlannedFault]:
    """All members have links to a majority, and no two of them the same: each is cut from the members opposite on a ring."""
    for begins_us, ends_us in context.episodes(most=2):
        ring = context.draws.sample(context.labels, len(context.labels))
        reach = max(1, -(-len(ring) // 4))
        for place, label in enumerate(ring):
            distances = ((other, far) for far, other in enumerate(ring[place:]))
            opposite = [other for other, far in distances if min(far, len(ring) - far) > reach]
            if opposite:
                yield begins_us, {"cut": {"from": [label], "to": opposite}}
                yield ends_us, _healed([label], opposite)


def _rack_pairs(context: FaultContext) -> Iterator[PlannedFault]:
    """Members stand in racks, and two of the racks cannot hear each other."""
    for begins_us, ends_us in context.episodes(most=2):
        racks = context.split(context.draws.randint(3, max(3, min(5, len(context.labels)))))
        one, other = context.draws.sample(racks, 2)
        yield begins_us, {"cut": {"from": one, "to": other, "mode": context.mode()}}
        yield ends_us, _healed(one, other)


def _random_pairs(context: FaultContext) -> Iterator[PlannedFault]:
    for begins_us, ends_us in context.episodes(most=2):
        pairs = list(combinations(context.labels, 2))
        for one, other in context.draws.sample(pairs, context.draws.randint(1, max(1, len(pairs) // 4))):
            yield begins_us, {"cut": {"from": [one], "to": [other], "mode": context.mode()}}
            yield ends_us, _healed([one], [other])


def _flapping(context: FaultContext) -> Iterator[PlannedFault]:
    """Links that come and go about as fast as silence is noticed."""
    sources, targets = context.split(2)
    if context.draws.random() < 0.5:
        sources, targets = sources[:1], targets[:1]
    one_way = context.draws.random() < 0.3
    at_us = context.instant_us()
    for _ in range(context.draws.randint(3, 6)):
        yield at_us, {"cut": {"from": sources, "to": targets, "one-way": one_way}}
        at_us += int((0.3 + context.draws.random()) * context.timeout_us)
        yield at_us, _healed(sources, targets)
        at_us += int((0.1 + context.draws.random()) * context.timeout_us)


def _swizzle(context: FaultContext) -> Iterator[PlannedFault]:
    """Members fall silent one after another and are heard again in another order."""
    for begins_us, ends_us in context.episodes(most=2):
        silenced = context.draws.sample(context.labels, context.draws.randint(1, len(context.labels) - 1))
        for count, label in enumerate(silenced):
            others = [other for other in context.labels if other != label]
            yield begins_us + count * context.settings.heartbeat_interval_us, {"cut": {"from": [label], "to": others}}
        released_us = ends_us + len(silenced) * context.settings.heartbeat_interval_us
        for count, label in enumerate(context.draws.sample(silenced, len(silenced))):
            others = [other for other in context.labels if other != label]
            yield released_us + count * context.settings.heartbeat_interval_us, _healed([label], others)


# Members that stop, crash, pause and start again


def _pause(context: FaultContext) -> Iterator[PlannedFault]:
    for begins_us, ends_us in context.episodes(longest=3.0):
        frozen = [context.one()] if context.draws.random() < 0.7 else context.some()
        yield begins_us, {"pause": frozen}
        yield ends_us, {"resume": frozen}


def _gone_for_a_while(action: str, most: int) -> Callable[[FaultContext], Iterator[PlannedFault]]:
    def plan(context: FaultContext) -> Iterator[PlannedFault]:
        for begins_us, ends_us in context.episodes(most):
            gone = [context.one()] if context.draws.random() < 0.7 else context.some(3)
            yield begins_us, {action: gone}
            if context.draws.random() < 0.7:
                yield ends_us, {"start": gone}

    return plan


POINTS = (
    *("claim-started", "claim-finished", "list-installed", "member-removed", "member-admitted", "join-requested"),
    *("disconnection-resolved", "merge-verdict", "merge-started", "cluster-state-changed", "member-merging"),
)
"""Steps of the protocols at which a crash is worth a look."""


def _crash_at_point(context: FaultContext) -> Iterator[PlannedFault]:
    """Plan that a member dies in the middle of a protocol, and mostly comes back."""
    for begins_us, ends_us in context.episodes(most=2):
        label = context.one()
        yield begins_us, {"kill-at": {label: context.draws.choice(POINTS)}}
        if context.draws.random() < 0.7:
            yield ends_us + context.timeout_us, {"start": [label]}


def _restart(context: FaultContext) -> Iterator[PlannedFault]:
    """Plan a new incarnation at the same address, at once or one member after another."""
    for begins_us, _ in context.episodes():
        rolling = context.draws.random() < 0.2
        for count, label in enumerate(context.labels if rolling else [context.one()]):
            yield begins_us + count * context.timeout_us // 2, {"restart": [label]}


def _join_storm(context: FaultContext) -> Iterator[PlannedFault]:
    """Plan that some members start late, all at once."""
    late = [label for label in context.some() if label != context.labels[0]]
    if late:
        if context.late is not None:
            context.late.update(late)
        yield context.instant_us(), {"start": late}


# Clocks


def _clock_drift(context: FaultContext) -> Iterator[PlannedFault]:
    for label in context.some():
        context.clocks.setdefault(label, {})["rate"] = round(0.95 + 0.1 * context.draws.random(), 4)
    yield from ()


def _clock_jump(context: FaultContext) -> Iterator[PlannedFault]:
    for label in context.some(3):
        at = _milliseconds(context.instant_us())
        by = _milliseconds((0.1 + 2 * context.draws.random()) * context.timeout_us)
        context.clocks.setdefault(label, {})["jumps"] = [{"at": at, "by": by}]
    yield from ()


# Commands of operators

RUNTIME_CHOICES: dict[str, tuple[PropertyValue, ...]] = {
    "hazelcast.heartbeat.interval.seconds": (0.3, 0.5),
    "hazelcast.member.list.publish.interval.seconds": (1, 5),
    "hazelcast.merge.next.run.delay.seconds": (0.5, 1),
    "hazelcast.partition.max.parallel.migrations": (1, 3),
    "hazelcast.partition.max.parallel.replications": (1, 3),
    "hazelcast.partition.table.send.interval": (0.5, 1),
    "hazelcast.partition.backup.sync.interval": (0.5, 1),
    "quarterdeck.transfer.chunk.bytes": (1, 50, 5_000),
    "quarterdeck.transfer.window.chunks": (1, 8),
    "quarterdeck.map.limits": ("m max-size=3 eviction-policy=LRU", "m max-size=5", "m max-bytes=100", ""),
    "quarterdeck.member.max.entries": (60,),
}
"""What a running member may be set to."""


def _state_change(context: FaultContext) -> Iterator[PlannedFault]:
    for begins_us, ends_us in context.episodes():
        state = context.draws.choice(("FROZEN", "PASSIVE", "NO_MIGRATION"))
        yield begins_us, {"change-state": {context.one(): state}}
        if context.draws.random() < 0.7:
            yield ends_us, {"change-state": {context.one(): "ACTIVE"}}


def _ordered_suspicion(context: FaultContext) -> Iterator[PlannedFault]:
    for begins_us, _ in context.episodes(most=2):
        one, other = context.draws.sample(context.labels, 2)
        yield begins_us, {"suspect": {one: other}}


def _settings_change(context: FaultContext) -> Iterator[PlannedFault]:
    """Plan other settings for one member, none with which it needs longer to recover."""
    for begins_us, _ in context.episodes():
        name = context.draws.choice(tuple(RUNTIME_CHOICES))
        yield begins_us, {"set": {context.one(): {name: context.draws.choice(RUNTIME_CHOICES[name])}}}


def _lite_change(context: FaultContext) -> Iterator[PlannedFault]:
    """Plan demotions and promotions, mostly one after the other: what is so already is refused."""
    for begins_us, ends_us in context.episodes():
        first, second = context.draws.sample(("demote", "promote"), 2)
        label = context.one()
        yield begins_us, {first: [label]}
        if context.draws.random() < 0.7:
            yield ends_us, {second: [label]}


def _join_list_edit(context: FaultContext) -> Iterator[PlannedFault]:
    """Shuffled lists, shorter ones, and now and then one with an address at which no member is."""
    for begins_us, _ in context.episodes():
        entries = context.draws.sample(context.labels, context.draws.randint(1, len(context.labels)))
        if context.draws.random() < 0.3:
            entries.append("127.0.0.1:9")
        yield begins_us, {"set-join-list": {context.one(): entries}}


def _each_time(action: str) -> Callable[[FaultContext], Iterator[PlannedFault]]:
    return lambda context: ((begins_us, {action: [context.one()]}) for begins_us, _ in context.episodes())


FAULTS: dict[str, Callable[[FaultContext], Iterator[PlannedFault]]] = {
    "loss": _worse_links("lose", "probability", 0, lambda context: round(0.01 + 0.3 * context.draws.random() ** 2, 3)),
    "duplication": _worse_links("duplicate", "probability", 0, lambda context: round(0.5 * context.draws.random(), 3)),
    "delay": _worse_links(
        "delay", "by", "0s", lambda context: _milliseconds(context.draws.random() ** 3 * 1.2 * context.timeout_us)
    ),
    "slow member": _slow_member,
    "drop kinds": _drop_kinds,
    "one-way cut": _one_way_cut,
    "halves": _partitions(lambda context: context.split(2)),
    "shards": _partitions(lambda context: context.split(context.draws.randint(2, min(4, len(context.labels))))),
    "isolate one": _partitions(_isolated),
    "bridge": _partitions(_bridged),
    "majorities ring": _majorities_ring,
    "rack pairs": _rack_pairs,
    "random pairs": _random_pairs,
    "flapping": _flapping,
    "swizzle": _swizzle,
    "pause": _pause,
    "crash": _gone_for_a_while("kill", most=3),
    "crash at a point": _crash_at_point,
    "restart": _restart,
    "graceful stop": _gone_for_a_while("stop", most=2),
    "join storm": _join_storm,
    "clock drift": _clock_drift,
    "clock jump": _clock_jump,
    "state change": _state_change,
    "join list edit": _join_list_edit,
    "search": _each_time("search"),
    "operate": _each_time("operate"),
    "held messages": _held_messages,
    "lite change": _lite_change,
    "missed lists": _missed_lists,
    "ordered suspicion": _ordered_suspicion,
    "settings change": _settings_change,
}
"""Every kind of fault by its name."""


def _healed(one: Labels, other: Labels) -> dict[str, Any]:
    return {"heal": {"from": list(one), "to": list(other)}}


def _milliseconds(duration_us: float) -> str:
    return duration_text(int(duration_us) // MILLISECOND_US * MILLISECOND_US)

"""The future of a cluster: the core's own members run forward, from a snapshot of them, until nothing changes any more.

Of a cluster of which only the picture is known, a recorded one or one that gives no snapshots, a picture shows lists, links,
settings and who runs, and not what members know besides. So it is founded in simulated time by the core itself, member by member
in the order of its list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.commands import (
    Command,
    CommandRefused,
    KillMember,
    Operate,
    Partition,
    PauseMember,
    StartMember,
)
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.core.properties import SECOND_US, BadProperty, Settings
from quarterdeck.backend.judgement.what_if.prediction import (
    PLAIN_ASSUMPTION,
    FaultPrediction,
    PredictedCluster,
    PredictedStep,
)
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.simulation.virtual_time.forked_world import forked_world, snapshot_of
from quarterdeck.backend.simulation.virtual_time.world import World

LOOK_US = 10_000
LONGEST_JOIN_US = 60 * SECOND_US


class NotFounded(Exception):
    """The clusters did not come about. The message says who did not join."""


@dataclass(frozen=True, slots=True)
class Foundation:
    """The clusters that a picture shows: enough to found others like them."""

    clusters: tuple[tuple[str, ...], ...]
    """The members of each by label, in the order of its list."""
    addresses: Mapping[str, str]
    settings: Mapping[str, Settings]
    lite: frozenset[str]
    zones: Mapping[str, str]
    paused: frozenset[str]
    gone: frozenset[str]
    """Members that are on a list and run no more."""
    links: tuple[LinkChanged, ...]
    assumed: tuple[str, ...]


def foundation_of(picture: Picture) -> Foundation:
    """Return the present clusters of `picture`.

    A member on several lists belongs to the cluster that it follows.
    """
    clusters: list[tuple[str, ...]] = []
    lite, zones, placed = set(), {}, set()
    addresses = {label: str(belief.address) for label, belief in picture.members.items()}
    masters = picture.masters()
    for master in masters:
        members = []
        for member in picture.members[master].members:
            label = picture.label_of(member.address)
            belief = picture.members.get(label)
            follows = belief.master if belief is not None and belief.running else None
            elsewhere = follows != picture.members[master].address and follows in {
                picture.members[label].address for label in masters
            }
            if label in placed or elsewhere:
                continue
            placed.add(label)
            members.append(label)
            addresses.setdefault(label, str(member.address))
            if member.lite:
                lite.add(label)
            if member.zone:
                zones[label] = member.zone
        clusters.append(tuple(members))
    status = {label: belief.status for label, belief in picture.members.items()}
    settings, is_known = _settings(picture)
    looking = [label for label, now in status.items() if now == "joining"]
    return Foundation(
        tuple(clusters),
        {label: address for label, address in addresses.items() if label in placed},
        settings,
        frozenset(lite),
        zones,
        frozenset(label for label in placed if status.get(label) == "paused"),
        frozenset(label for label in placed if status.get(label) in ("stopped", "killed")),
        tuple(link for link in picture.links.values() if link.source in placed and link.target in placed),
        tuple(_assumptions(is_known=is_known, looking=looking)),
    )


def _settings(picture: Picture) -> tuple[dict[str, Settings], bool]:
    found, is_known = {}, True
    for label, belief in picture.members.items():
        try:
            found[label] = Settings.of(dict(belief.settings or {}))
        except BadProperty:  # of a version with other properties
            found[label], is_known = Settings(), False
        is_known = is_known and belief.settings is not None
    return found, is_known


def _assumptions(*, is_known: bool, looking: list[str]) -> Iterator[str]:
    yield "no member reported its state: clusters with the same lists, founded anew, stand for them, and silences begin now"
    yield "everybody knows where all others are, and what is lost goes by the present table"
    if not is_known:
        yield "the documented settings, where members reported no others"
    if looking:
        yield f"{', '.join(looking)} are left out, who look for a cluster"


def founded(foundation: Foundation) -> ClusterSnapshot:
    """Clusters like these, as they are when they have just come to rest. Raises `NotFounded`."""
    labels = tuple(label for cluster in foundation.clusters for label in cluster)
    if not labels:
        raise NotFounded("no member leads a cluster")
    known = [foundation.settings[label] for label in labels if label in foundation.settings]
    common = max(known, key=known.count) if known else Settings()
    world = World(
        labels,
        seed=1,
        settings=common,
        settings_of={label: one for label, one in foundation.settings.items() if label in labels and one != common},
        addresses={label: foundation.addresses[label] for label in labels},
        lite=foundation.lite,
        zones=foundation.zones,
    )
    if len(foundation.clusters) > 1:
        world.execute(Partition(foundation.clusters))
    for cluster in foundation.clusters:
        for label in cluster:
            world.execute(StartMember(label))
            _wait_for_join(world, label)
    world.run_until(world.now_us + common.heartbeat_interval_us + SECOND_US)
    for label in labels:
        if label in foundation.paused:
            world.execute(PauseMember(label))
        elif label in foundation.gone:
            world.execute(KillMember(label))
    return msgspec.structs.replace(snapshot_of(world), links=foundation.links)


def _wait_for_join(world: World, label: str) -> None:
    until_us = world.now_us + LONGEST_JOIN_US
    while world.now_us < until_us:
        world.run_until(world.now_us + LOOK_US)
        machine = world.machine(label)
        if machine is not None and machine.joined:
            return
    raise NotFounded(f"{label} did not join")


CHANGES = (
    *(events.ListInstalled, events.MasterChanged, events.MemberRemoved, events.MemberHeldBack),
    *(events.SuspicionRaised, events.SuspicionCleared, events.ClaimStarted),
    *(events.DisconnectionReported, events.DisconnectionResolved, events.MergeStarted, events.MemberMerging),
)
"""As long as one of these happens, a cluster has not come to rest."""

SLICE_EVENTS = 300
"""The number of events after which the prediction asks whether it is still wanted; some milliseconds."""

SEVERAL_ORDERS_UP_TO = 10
"""The number of members up to which several orders of their messages are tried; more would take too long."""

ORDERS = 3

SEARCHES = 5
"""How many searches for other clusters may come to nothing before one leads to a merge: others are tried before, and back-offs
pass."""

LONGEST_RESTS = 4
"""A cluster that has not come to rest after this many times the length of a rest is shown as it is then."""


class Superseded(Exception):
    """The prediction is not wanted any more."""


def predictions(
    snapshot: ClusterSnapshot, commands: Sequence[Command], *, is_wanted: Callable[[], bool] = lambda: True
) -> Iterator[FaultPrediction]:
    """Yield what comes of `commands`, again and again: soon what comes first, in the end the outcome.

    The last one is the outcome, tried in several orders of the messages where the members are few.

    Raises:
        CommandRefused: The cluster refuses a command.
        Superseded: `is_wanted` has said no.
    """
    orders = ORDERS if len(snapshot.members) <= SEVERAL_ORDERS_UP_TO else 1
    first: FaultPrediction | None = None
    agreeing = 0
    for order in range(1, orders + 1):
        future = _Future(snapshot, commands, order, is_wanted)
        for found in future.follow():
            if order == 1:
                first = found
                yield found
        assert first is not None
        agreeing += found.outcome == first.outcome
        yield replace(first, orders=order, agreeing=agreeing)


class _Future:
    """One copy of the cluster, in which the commands are given and time goes on."""

    def __init__(
        self, snapshot: ClusterSnapshot, commands: Sequence[Command], seed: int, is_wanted: Callable[[], bool]
    ) -> None:
        self._records: list[Record] = []
        self._begin_us = self._changed_us = snapshot.at_us
        self._snapshot = snapshot
        self._is_wanted = is_wanted
        self._world = forked_world(snapshot, seed=seed, run="prediction", on_record=self._take)
        self._labels = {node.address: label for label, node in self._world.nodes.items()}
        self._led_before = frozenset(label for label, _ in _masters(self._world))
        self._lost: dict[str, set[int]] = {}
        world = self._world
        found = [machine.inspect().settings for label in world.labels if (machine := world.machine(label)) is not None]
        self._settings = tuple(dict.fromkeys(found)) or (Settings(),)
        for command in commands:
            self._world.execute(command)

    def follow(self) -> Iterator[FaultPrediction]:
        """Run forward until nothing changes any more; yield the outcome so far whenever something has changed."""
        world, seen = self._world, 0
        rest_us = max(map(rest_length_us, self._settings))
        longest_us = self._begin_us + LONGEST_RESTS * rest_us
        while world.now_us < (until_us := min(self._changed_us + rest_us, longest_us)):
            if not self._is_wanted():
                raise Superseded
            world.run_until(until_us, world.events + SLICE_EVENTS)
            if len(self._records) != seen:
                seen = len(self._records)
                yield self._prediction(settled=False)
        yield self._prediction(settled=world.now_us >= self._changed_us + rest_us)

    def _take(self, record: Record) -> None:
        if isinstance(record.event, CHANGES):
            self._changed_us = record.at
            self._records.append(record)
        elif isinstance(record.event, PartitionLost) and record.event.lost_backups >= ALL_LOST:
            self._lost.setdefault(record.member, set()).add(record.event.partition)

    def _prediction(self, *, settled: bool) -> FaultPrediction:
        world = self._world
        clusters = tuple(self._cluster(label, state) for label, state in _masters(world))
        listed = {label for cluster in clusters for label in cluster.members}
        silences = (f"{silent.configuration.label} is silent: {silent.why}" for silent in self._snapshot.untold)
        return FaultPrediction(
            clusters,
            tuple(label for label, _ in _running(world) if label not in listed),
            tuple(self._suspicions()),
            tuple(_steps(self._records, self._begin_us, self._labels)),
            world.now_us - self._begin_us,
            settled,
            orders=1,
            agreeing=1,
            assumed=(PLAIN_ASSUMPTION, *silences),
        )

    def _cluster(self, label: str, state: MemberState) -> PredictedCluster:
        table = state.partitions.table
        refuses = ""
        try:
            self._world.execute(Operate(label))
        except CommandRefused as refusal:
            refuses = str(refusal)
        return PredictedCluster(
            tuple(self._labels.get(address, address) for address in state.view),
            label in self._led_before,
            None if table is None else len(table),
            len(self._lost.get(label, ())),
            refuses,
        )

    def _suspicions(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        for label, state in _running(self._world):
            if state.suspicions:
                suspects = (held.address for held in state.suspicions.values())
                yield label, tuple(self._labels.get(address, address) for address in suspects)


def rest_length_us(settings: Settings) -> int:
    """If nothing changes for so long, nothing is under way that was begun by something before."""
    return max(
        2 * settings.max_no_heartbeat_us,
        settings.max_no_master_confirmation_us + settings.heartbeat_interval_us,
        settings.merge_first_run_delay_us + settings.max_no_heartbeat_us,
        SEARCHES * settings.merge_next_run_delay_us + settings.max_no_heartbeat_us,
    )


def _running(world: World) -> Iterator[tuple[str, MemberState]]:
    for label, node in world.nodes.items():
        if node.machine is not None and not node.paused:
            yield label, node.machine.inspect()


def _masters(world: World) -> Iterator[tuple[str, MemberState]]:
    return ((label, state) for label, state in _running(world) if state.is_master)


def _steps(records: Sequence[Record], begin_us: int, labels: Mapping[Address, str]) -> list[PredictedStep]:
    """Return the decisive ones among `records`. Members that one removes for one cause within a second go in one step."""
    steps: list[PredictedStep] = []
    latest_by: dict[str, int] = {}
    for record in records:
        match record.event:
            case events.MemberRemoved(address=address, cause=cause):
                whom = (labels.get(address, address),)
                step = PredictedStep(record.at - begin_us, record.member, "removes", whom, cause)
                place = latest_by.get(record.member)
                if place is not None and _is_one_step(before := steps[place], step):
                    steps[place] = replace(before, others=(*before.others, *step.others))
                    continue
            case events.ClaimStarted(suspected=suspected):
                others = tuple(labels.get(address, address) for address in suspected)
                step = PredictedStep(record.at - begin_us, record.member, "claims", others)
            case events.MergeStarted(target=target):
                step = PredictedStep(record.at - begin_us, record.member, "merges", (labels.get(target, target),))
            case _:
                continue
        latest_by[record.member] = len(steps)
        steps.append(step)
    return steps


def _is_one_step(before: PredictedStep, step: PredictedStep) -> bool:
    soon = step.after_us - before.after_us <= SECOND_US
    return soon and (before.kind, before.cause) == (step.kind, step.cause)

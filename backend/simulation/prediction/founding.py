"""Clusters founded anew to stand for some of which only the picture is known: recorded ones, and those that give no snapshots.

A picture shows lists, links, settings and who runs; what members know besides, it does not show. So each cluster is founded in
simulated time by the core itself, member by member in the order of its list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.commands.commands import KillMember, Partition, PauseMember, StartMember
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.properties import SECOND_US, BadProperty, Settings
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.simulation.virtual_time.forked_world import snapshot_of
from quarterdeck.backend.simulation.virtual_time.world import World

LOOK_US = 10_000
LONGEST_JOIN_US = 60 * SECOND_US


class NotFounded(Exception):
    """The clusters did not come about. The message says who did not join."""


@dataclass(frozen=True, slots=True)
class Foundation:
    """What a picture shows of the clusters that are there: enough to found others like them."""

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
    """Return what `picture` shows now, as a value of its own.

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
        raise NotFounded("nobody leads a cluster")
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

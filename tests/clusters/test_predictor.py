"""Predictions that nobody waits for: of live clusters, against what then happens to them; given up when another is wanted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from random import Random

import pytest

from quarterdeck.backend.clusters.local import LocalCluster
from quarterdeck.backend.clusters.predictor import Predictor
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    Command,
    CommandRefused,
    KillMember,
    Partition,
)
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.judgement.what_if.blast_radius import preset
from quarterdeck.backend.judgement.what_if.prediction import FaultPrediction
from quarterdeck.backend.picture.fold.picture import Picture
from tests.ports import take_ports
from tests.thoroughness import long_after

PORT = take_ports(20)
WAIT_SECONDS = 20
LABELS = ("A", "B", "C", "D", "E")
SETTLED_SECONDS = 30


class Watched:
    """A live cluster, and the picture of it."""

    def __init__(self) -> None:
        self.cluster = LocalCluster(LABELS, settings=Settings.of(preset="training"), base_port=PORT)
        self.cluster.started.result(WAIT_SECONDS)
        self.picture = Picture()
        self.records: list[Record] = []

    def take(self) -> None:
        for record in self.cluster.drain():
            self.records.append(record)
            self.picture.apply(record)

    def lists(self) -> dict[str, set[str]]:
        members = self.picture.members
        return {
            label: {self.picture.label_of(member.address) for member in members[label].members}
            for label in self.picture.masters()
        }


def lists(found: FaultPrediction | None) -> dict[str, set[str]]:
    assert found is not None
    return {master: set(members) for master, members in found.lists.items()}


def fault(chance: Random) -> Sequence[Command]:
    kind = chance.choice(("halves", "isolate", "bridge", "kill"))
    if kind == "kill":
        return [KillMember(chance.choice(LABELS))]
    member = chance.choice(LABELS) if kind != "halves" else ""
    return preset(kind, LABELS, member=member).commands  # type: ignore[arg-type]


@pytest.mark.parametrize("situation", long_after(1, range(12)))
def test_a_live_cluster_comes_to_what_was_predicted(situation: int) -> None:
    chance = Random(f"live situation {situation}")
    watched = Watched()
    try:
        if chance.random() < 0.7:
            watched.cluster.execute(ArrangePartitions("A")).result(WAIT_SECONDS)
        time.sleep(chance.uniform(2, 5))
        watched.take()
        commands, predictor = fault(chance), Predictor()
        predictor.ask(watched.cluster, watched.picture, commands, live=True)
        begun = len(watched.records)
        for command in commands:
            watched.cluster.execute(command).result(WAIT_SECONDS)
        predictor.join()
        found = predictor.prediction
        assert found is not None and found.settled and not any("founded" in sentence for sentence in found.assumed)
        until = time.monotonic() + SETTLED_SECONDS
        while watched.lists() != lists(found) and time.monotonic() < until:
            time.sleep(0.2)
            watched.take()
        time.sleep(1)
        watched.take()
        assert watched.lists() == lists(found)
        lost = {
            (record.member, record.event.partition)
            for record in watched.records[begun:]
            if isinstance(record.event, PartitionLost) and record.event.lost_backups >= ALL_LOST
        }
        for cluster in found.clusters:
            assert abs(cluster.lost - sum(member == cluster.members[0] for member, _ in lost)) <= 5
    finally:
        watched.cluster.close()


class Reticent:
    """Tells nobody what its members know."""

    name, source, writable, labels = "dev", "remote", False, LABELS

    def snapshot(self) -> Future[ClusterSnapshot]:
        told: Future[ClusterSnapshot] = Future()
        told.set_exception(CommandRefused("it is watched read-only"))
        return told


def test_where_members_tell_nothing_clusters_like_theirs_are_founded_and_that_is_said() -> None:
    watched = Watched()
    try:
        for _ in range(100):
            watched.take()
            if watched.lists() == {"A": set(LABELS)}:
                break
            time.sleep(0.05)
    finally:
        watched.cluster.close()
    predictor, halves = Predictor(), Partition((LABELS[:3], LABELS[3:]))
    predictor.ask(Reticent(), watched.picture, [halves], live=True)  # type: ignore[arg-type]
    predictor.join()
    found = predictor.prediction
    assert lists(found) == {"A": set("ABC"), "D": set("DE")}
    assert found is not None and "it is watched read-only" in found.assumed
    assert any("founded anew" in sentence for sentence in found.assumed)


def test_only_the_latest_plan_is_predicted() -> None:
    watched = Watched()
    try:
        time.sleep(1)
        watched.take()
        predictor = Predictor()
        for label in LABELS:
            predictor.ask(watched.cluster, watched.picture, [KillMember(label)], live=True)
        predictor.join()
        assert lists(predictor.prediction) == {"A": set("ABCD")}
        predictor.ask(watched.cluster, watched.picture, [KillMember("nobody")], live=True)
        predictor.join()
        assert predictor.prediction is None and "nobody" in predictor.problem
        predictor.drop()
        assert predictor.problem == ""
    finally:
        watched.cluster.close()

"""Simulated copies: they go on from a snapshot, repeat under a seed, can be forked, and outlive what cannot be."""

from __future__ import annotations

import msgspec
import pytest

from quarterdeck.backend.clusters.predictor import Predictor
from quarterdeck.backend.clusters.simulated.copied_cluster import CopiedCluster, read_copy, write_copy
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot, SilentMember
from quarterdeck.backend.core.commands import KillMember
from quarterdeck.backend.core.events import ProcessKilled, Record
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.simulation.virtual_time.forked_world import snapshot_of
from tests.clusters.simulated.test_simulated_cluster import Steady
from tests.core.member_state import state_of
from tests.picture.simulated_picture import SimulatedPicture


@pytest.fixture(scope="module")
def snapshot() -> ClusterSnapshot:
    cluster = SimulatedPicture(3)
    cluster.arrange()
    return snapshot_of(cluster.world)


def run(cluster: CopiedCluster, clock: Steady, seconds: int) -> list[Record]:
    records = []
    for _ in range(seconds * 10):
        clock.now_us += SECOND_US // 10
        records += cluster.drain()
    return records


def killed_first(snapshot: ClusterSnapshot, seed: int) -> str:
    clock = Steady()
    cluster = CopiedCluster(snapshot, seed=seed, clock_us=clock)
    try:
        assert cluster.source == "copy" and cluster.now_us() == snapshot.at_us
        done = cluster.execute(KillMember("A"))
        records = run(cluster, clock, 8)
        assert done.done() and any(isinstance(record.event, ProcessKilled) for record in records)
        assert records[0].at == snapshot.at_us
        return cluster.fingerprint()
    finally:
        cluster.close()


def test_one_seed_and_the_same_commands_are_one_run(snapshot: ClusterSnapshot) -> None:
    assert killed_first(snapshot, 1) == killed_first(snapshot, 1) != killed_first(snapshot, 2)


def test_a_copy_can_be_forked_at_any_moment_of_it(snapshot: ClusterSnapshot) -> None:
    clock = Steady()
    cluster = CopiedCluster(snapshot, clock_us=clock)
    run(cluster, clock, 3)
    with pytest.raises(ValueError, match="not a moment"):
        cluster.fork(0)
    fork = cluster.fork(snapshot.at_us + SECOND_US, KillMember("B"))
    assert fork.source == "copy" and fork.writable
    for _ in range(30):
        clock.now_us += SECOND_US // 10
        fork.drain()
    assert [(command.at_us, command.command) for command in fork.commands] == [
        (snapshot.at_us + SECOND_US, KillMember("B"))
    ]
    fork.close()
    cluster.close()


def test_it_says_of_what_it_is_a_copy_and_who_told_nothing(snapshot: ClusterSnapshot) -> None:
    *told, silent = snapshot.members
    partly = msgspec.structs.replace(
        snapshot, members=tuple(told), untold=(SilentMember(silent.configuration, "it is paused"),)
    )
    cluster = CopiedCluster(partly)
    notes = "\n".join(cluster.notes())
    assert "a copy of dev as it was at" in notes and "C reported nothing (it is paused): it is silent" in notes
    assert "assumed: messages take" in notes
    cluster.close()


def test_a_copy_on_disk_is_the_same(snapshot: ClusterSnapshot, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("copy")
    write_copy(folder, snapshot)
    assert read_copy(folder) == snapshot


def test_a_state_that_cannot_be_ends_the_copy_and_nothing_else(snapshot: ClusterSnapshot) -> None:
    first, *others = snapshot.members
    machine = MemberMachine.restored(first.state, first.configuration)
    state_of(machine).timers.set("no such timer", snapshot.at_us + 1)
    impossible = msgspec.structs.replace(
        snapshot, members=(msgspec.structs.replace(first, state=machine.snapshot()), *others)
    )
    clock = Steady()
    cluster = CopiedCluster(impossible, clock_us=clock)
    assert run(cluster, clock, 2) == [] and "the copy ends here" in cluster.notes()[0]
    cluster.close()
    cluster, predictor = CopiedCluster(impossible), Predictor()
    predictor.ask(cluster, SimulatedPicture(3).picture, [], live=True)
    predictor.join()
    assert "could not be run forward" in predictor.problem
    cluster.close()

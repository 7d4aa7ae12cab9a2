"""Worlds that begin in the middle: what they take over, what they assume, and that one seed is one run."""

from __future__ import annotations

import msgspec
import pytest

from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot, SilentMember
from quarterdeck.backend.core.commands import (
    CallMap,
    CommandRefused,
    CutLink,
    DelayLink,
    Heal,
    HoldMessages,
    KillMember,
    Partition,
    PauseMember,
    ReplayMessages,
    ResumeMember,
    StartMember,
)
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled, MemberRemoved
from quarterdeck.backend.core.operations import Get, Put
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.scenarios.format.clocks import Clock
from quarterdeck.backend.simulation.virtual_time.forked_world import forked_world, snapshot_of
from quarterdeck.backend.simulation.virtual_time.world import World

TRAINING = Settings.of(preset="training")
LABELS = ("athens", "byzantium", "cyrene", "delphi", "euphesus")


def formed(labels: tuple[str, ...] = LABELS, clocks: dict[str, Clock] | None = None) -> World:
    """A world whose members are one cluster."""
    world = World(labels, seed=1, settings=TRAINING, clocks=clocks)
    for label in labels:
        world.execute(StartMember(label))
        world.run_until(world.now_us + SECOND_US)
    world.run_until(world.now_us + 3 * SECOND_US)
    return world


def lists(world: World) -> dict[str, tuple[str, ...]]:
    """The list of each member that runs, by labels."""
    label_of = {node.address: node.label for node in world.nodes.values()}
    return {
        label: tuple(label_of[address] for address in machine.inspect().view or ())
        for label in world.labels
        if (machine := world.machine(label)) is not None
    }


def test_a_calm_cluster_goes_on_calmly_in_a_copy() -> None:
    world = formed()
    snapshot = snapshot_of(world)
    records: list[Record] = []
    copy = forked_world(snapshot, seed=3, run="copy", on_record=records.append)
    assert copy.now_us == world.now_us and lists(copy) == lists(world)
    copy.run_until(copy.now_us + 60 * SECOND_US)
    assert lists(copy) == lists(world)
    assert not [record for record in records if isinstance(record.event, ListInstalled)]
    assert {record.run for record in records} <= {"copy"}
    assert all(record.at >= snapshot.at_us for record in records)


def test_the_copy_and_its_origin_do_not_touch_each_other() -> None:
    world = formed()
    before = world.fingerprint()
    copy = forked_world(snapshot_of(world), seed=3, run="copy")
    copy.execute(KillMember("athens"))
    copy.run_until(copy.now_us + 10 * SECOND_US)
    assert lists(copy)["byzantium"] == LABELS[1:]
    assert world.fingerprint() == before and lists(world)["byzantium"] == LABELS


def test_one_snapshot_and_one_seed_are_one_run() -> None:
    snapshot = snapshot_of(formed())

    def run(seed: int) -> str:
        copy = forked_world(snapshot, seed=seed, run="copy")
        copy.execute(Partition((LABELS[:3], LABELS[3:])))
        copy.run_until(copy.now_us + 20 * SECOND_US)
        copy.execute(Heal())
        copy.run_until(copy.now_us + 20 * SECOND_US)
        assert set(lists(copy).values()) == {lists(copy)["athens"]}
        return copy.fingerprint()

    assert run(1) == run(1) != run(2)


@pytest.mark.parametrize("wait_us", range(0, 12 * SECOND_US, SECOND_US // 2))
def test_a_copy_taken_in_the_middle_of_a_split_ends_as_its_origin_does(wait_us: int) -> None:
    world = formed()
    world.execute(Partition((LABELS[:3], LABELS[3:])))
    world.run_until(world.now_us + wait_us)
    copy = forked_world(snapshot_of(world), seed=9, run="copy")
    for each in (world, copy):
        each.run_until(each.now_us + 20 * SECOND_US)
    assert lists(copy) == lists(world)
    assert lists(copy)["athens"] == LABELS[:3] and lists(copy)["delphi"] == LABELS[3:]


def test_a_member_that_told_nothing_is_silent_until_it_is_killed() -> None:
    snapshot = snapshot_of(formed())
    *told, untold = snapshot.members
    snapshot = msgspec.structs.replace(
        snapshot, members=tuple(told), untold=(SilentMember(untold.configuration, "it is paused"),)
    )
    records: list[Record] = []
    copy = forked_world(snapshot, seed=1, run="copy", on_record=records.append)
    with pytest.raises(CommandRefused, match="was not reported"):
        copy.execute(ResumeMember("euphesus"))
    with pytest.raises(CommandRefused, match="paused"):
        copy.execute(CallMap("euphesus", Get("m", "k")))
    copy.run_until(copy.now_us + 3 * SECOND_US)
    assert lists(copy)["athens"] == LABELS, "nobody listening would be refused at once; silence takes the timeout"
    copy.run_until(copy.now_us + 5 * SECOND_US)
    assert lists(copy)["athens"] == LABELS[:4]
    assert [record.event.cause for record in records if isinstance(record.event, MemberRemoved)][:1] == ["no-heartbeat"]
    copy.execute(KillMember("euphesus"))
    copy.execute(StartMember("euphesus"))
    copy.run_until(copy.now_us + 10 * SECOND_US)
    assert sorted(lists(copy)["euphesus"]) == sorted(LABELS)


def test_links_pauses_and_messages_on_their_way_are_taken_over() -> None:
    world = formed()
    world.execute(DelayLink(("athens",), ("byzantium",), 900_000))
    world.execute(CutLink(("cyrene",), ("delphi",)))
    world.execute(HoldMessages(("delphi",), ("euphesus",), ("heartbeat",)))
    world.execute(PauseMember("euphesus"))
    world.run_until(world.now_us + SECOND_US)
    snapshot = snapshot_of(world)
    assert snapshot.in_flight and {member.configuration.label for member in snapshot.members if member.paused} == {
        "euphesus"
    }
    copy = forked_world(snapshot, seed=1, run="copy")
    assert copy.network.links.conditions == world.network.links.conditions
    assert snapshot_of(copy) == snapshot_after_one_more_run(snapshot)
    with pytest.raises(CommandRefused):
        copy.execute(PauseMember("euphesus"))
    copy.execute(ResumeMember("euphesus"))
    copy.execute(ReplayMessages(("delphi",), ("euphesus",)))
    copy.run_until(copy.now_us + SECOND_US)
    assert lists(copy)["athens"] == LABELS


def snapshot_after_one_more_run(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    return snapshot_of(forked_world(snapshot, seed=1, run="copy"))


def test_members_whose_clocks_differ_keep_the_difference() -> None:
    world = formed(clocks={"byzantium": Clock(ahead_us=7 * SECOND_US), "delphi": Clock(ahead_us=-SECOND_US // 2)})
    snapshot = snapshot_of(world)
    clocks = {member.configuration.label: member.clock_us - snapshot.at_us for member in snapshot.members}
    assert clocks["byzantium"] == 7 * SECOND_US and clocks["delphi"] == -SECOND_US // 2
    copy = forked_world(snapshot, seed=1, run="copy")
    copy.run_until(copy.now_us + 30 * SECOND_US)
    assert set(lists(copy).values()) == {LABELS}


def test_data_is_taken_over() -> None:
    world = formed()
    world.execute(CallMap("athens", Put("m", "k", b"v")))
    world.run_until(world.now_us + 5 * SECOND_US)
    answers = {}
    copy = forked_world(snapshot_of(world), seed=1, run="copy", on_answer=answers.__setitem__)
    number = copy.call("delphi", Get("m", "k"))
    copy.run_until(copy.now_us + SECOND_US)
    assert answers[number].value == b"v"

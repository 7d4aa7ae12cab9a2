"""Faults and commands of the world beyond cut links: duplicates, filters, clocks, slow networks, operators' orders."""

from __future__ import annotations

import pytest
from msgspec import Struct

from quarterdeck.backend.core.commands import (
    ChangeState,
    Command,
    CommandRefused,
    CutLink,
    DropMessages,
    DuplicateOnLink,
    KillMember,
    Operate,
    SearchClusters,
    SetJoinList,
    StartMember,
)
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import (
    ClusterStateChanged,
    JoinListChanged,
    MemberRemoved,
    ObserverPaused,
    SuspicionRaised,
)
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.scenarios.format.clocks import Clock, Latency
from quarterdeck.backend.simulation.virtual_time.world import World

TRAINING = Settings.of(preset="training")


class Told:
    """A formed world that keeps its records."""

    def __init__(
        self,
        size: int = 3,
        *,
        settings: Settings = TRAINING,
        latency: Latency | None = None,
        clocks: dict[str, Clock] | None = None,
    ) -> None:
        self.records: list[Record] = []
        labels = [f"n{number}" for number in range(1, size + 1)]
        self.world = World(
            labels,
            seed=4,
            settings=settings,
            on_record=self.records.append,
            latency=latency or Latency(),
            clocks=clocks,
        )
        for label in labels:
            self.world.execute(StartMember(label))
            self.pass_seconds(2)
        assert all(node.machine is not None and node.machine.joined for node in self.world.nodes.values())

    def do(self, *commands: Command) -> None:
        for command in commands:
            self.world.execute(command)

    def pass_seconds(self, seconds: float) -> None:
        self.world.run_until(self.world.now_us + round(seconds * SECOND_US))

    def of(self, kind: type[Struct]) -> list[Record]:
        return [record for record in self.records if isinstance(record.event, kind)]


def test_duplicated_messages_arrive_twice() -> None:
    plain, doubled = Told(), Told()
    everybody = doubled.world.labels
    doubled.do(DuplicateOnLink(everybody, everybody, 1.0))
    before = plain.world.events
    for each in (plain, doubled):
        each.pass_seconds(100)
    sent, arrived = plain.world.events - before, doubled.world.events - before
    assert 1.6 * sent < arrived <= 2 * sent  # ticks are events too, and happen once
    assert not doubled.of(SuspicionRaised)


def test_messages_of_a_dropped_kind_do_not_arrive_and_others_do() -> None:
    told = Told()
    told.do(DropMessages(("n3",), ("n1",), ("heartbeat",)))
    told.pass_seconds(8)
    assert [record.event.address for record in told.of(MemberRemoved)] == [told.world.nodes["n3"].address]  # type: ignore[union-attr]
    other = Told()
    other.do(DropMessages(("n3",), ("n1",), ("who-is-master", "formation-bid")))
    other.pass_seconds(8)
    assert not other.of(MemberRemoved)
    other.do(DropMessages(("n3",), ("n1",), ()))
    assert not other.world.network.links.conditions


def test_members_whose_clocks_differ_by_a_tenth_stay_together_and_records_bear_the_time_of_the_run() -> None:
    told = Told(clocks={"n1": Clock(1.05), "n2": Clock(0.95)})
    told.pass_seconds(300)
    assert not told.of(SuspicionRaised) and not told.of(MemberRemoved)
    assert [record.at for record in told.records] == sorted(record.at for record in told.records)
    assert all(record.utc == record.at <= told.world.now_us for record in told.records)


def test_a_clock_of_double_speed_gives_up_in_half_the_time() -> None:
    removals: dict[float, int] = {}
    for rate in (1.0, 2.0):
        told = Told(clocks={"n1": Clock(rate)})
        since = told.world.now_us
        told.do(CutLink(("n3",), ("n1", "n2")))
        told.pass_seconds(10)
        (removal,) = told.of(MemberRemoved)
        removals[rate] = removal.at - since
    assert TRAINING.max_no_heartbeat_us / 2 - SECOND_US <= removals[2.0] <= TRAINING.max_no_heartbeat_us / 2 + SECOND_US
    assert removals[2.0] < removals[1.0]


def test_a_clock_that_jumps_accuses_nobody() -> None:
    told = Told(clocks={"n1": Clock(1.0, {20 * SECOND_US: TRAINING.max_no_heartbeat_us + SECOND_US})})
    told.pass_seconds(60)
    assert told.of(ObserverPaused)
    assert not told.of(MemberRemoved)


def test_slow_networks_are_slow_and_repeat_themselves() -> None:
    tail = Latency("heavy-tail", 1_000, 20_000, 900_000)
    first, again, plain = Told(latency=tail), Told(latency=tail), Told()
    for each in (first, again, plain):
        each.pass_seconds(30)
    assert first.world.fingerprint() == again.world.fingerprint() != plain.world.fingerprint()
    first.world.set_latency(Latency())
    first.pass_seconds(30)
    assert not first.of(MemberRemoved)


def test_a_join_list_edited_through_one_member_reaches_all_and_may_name_strangers() -> None:
    told = Told()
    told.do(SetJoinList("n2", ("n1", "n3", "10.1.2.3:5701")))
    told.pass_seconds(5)
    n1, n3 = (told.world.nodes[label].address for label in ("n1", "n3"))
    changed = told.of(JoinListChanged)
    assert {record.member for record in changed} == {"n1", "n2", "n3"}
    assert {record.event.addresses for record in changed} == {(n1, n3, "10.1.2.3:5701")}  # type: ignore[union-attr]
    told.do(KillMember("n3"), StartMember("n3"))
    told.pass_seconds(20)
    assert told.world.nodes["n3"].machine is not None


def test_a_state_asked_of_a_slave_holds_everywhere() -> None:
    told = Told()
    told.do(ChangeState("n3", "FROZEN"))
    told.pass_seconds(3)
    assert {record.member: record.event.state for record in told.of(ClusterStateChanged)} == {  # type: ignore[union-attr]
        "n1": "FROZEN",
        "n2": "FROZEN",
        "n3": "FROZEN",
    }


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (SetJoinList("n1", ("nowhere at all:0",)), "entry"),
        (SetJoinList("n9", ("n1",)), "unknown label"),
        (DropMessages(("n1",), ("n2",), ("heartbeet",)), "no kind of message"),
        (DuplicateOnLink(("n1",), ("n2",), 1.5), "not a probability"),
        (SearchClusters("n2"), "n1|5701"),
    ],
)
def test_orders_that_cannot_be_obeyed_are_refused(command: Command, why: str) -> None:
    told = Told()
    before = told.world.fingerprint()
    with pytest.raises(CommandRefused, match=why):
        told.do(command)
    assert told.world.fingerprint() == before


def test_operations_are_refused_while_too_few_members_are_seen() -> None:
    told = Told(settings=Settings.of({"quarterdeck.minimum.cluster.size": 3}, preset="training"))
    told.do(Operate("n1"))
    told.do(KillMember("n3"))
    told.pass_seconds(10)
    with pytest.raises(CommandRefused):
        told.do(Operate("n1"))

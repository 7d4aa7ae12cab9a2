"""Connection loss as evidence (Hazelcast: explicit suspicion; chapter `connection_loss`)."""

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.events import MemberRemoved, SuspicionRaised
from quarterdeck.backend.core.membership.messages import Heartbeat, JoinRequest, LinkProbe, LinkProbeReply
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster, address_of, training_settings


def three() -> SteppedCluster:
    return SteppedCluster().settled("ABC")


def fault_and_wait(world: SteppedCluster, observer: str, other: str, times: int) -> None:
    """So many faults, each more than the monitor's interval after the one before."""
    for _ in range(times):
        world.unreachable(observer, other)
        world.pass_seconds(0.11, observer)


def test_more_than_the_allowed_faults_in_a_row_make_a_slave_suspect() -> None:
    world = three()
    fault_and_wait(world, "B", "C", 3)
    assert world.suspects_of("B") == ""
    world.unreachable("B", "C")
    assert world.suspects_of("B") == "C"
    assert "no connection" in world.seen("B", SuspicionRaised)[0].reason


def test_and_make_a_master_remove() -> None:
    world = three()
    fault_and_wait(world, "A", "C", 3)
    assert world.list_of("A") == (3, "ABC")
    world.unreachable("A", "C")
    assert world.list_of("A") == (4, "AB")
    assert "no connection" in world.seen("A", MemberRemoved)[0].reason


def test_faults_within_the_interval_count_once() -> None:
    world = three()
    for _ in range(50):
        world.unreachable("B", "C")
    assert state_of(world.machines["B"]).peers[address_of("C")].faults == 1
    assert world.suspects_of("B") == ""


def test_after_the_interval_the_link_is_tried_again() -> None:
    world = three()
    world.unreachable("B", "C")
    assert not world.messages(LinkProbe)
    world.pass_seconds(0.11, "B")
    assert len(world.messages(LinkProbe, to="C")) == 1


def test_an_answer_voids_the_faults() -> None:
    world = three()
    fault_and_wait(world, "B", "C", 3)
    world.deliver_all()
    fault_and_wait(world, "B", "C", 3)
    assert world.suspects_of("B") == ""


def test_a_heartbeat_voids_the_faults() -> None:
    world = three()
    fault_and_wait(world, "B", "C", 3)
    b, c = world.machines["B"], world.machines["C"]
    world.receive("B", "C", Heartbeat(c.uuid, b.uuid, address_of("A"), 3))
    fault_and_wait(world, "B", "C", 3)
    assert world.suspects_of("B") == ""


def test_the_answer_of_another_life_voids_nothing() -> None:
    world = three()
    fault_and_wait(world, "B", "C", 3)
    world.receive("B", "C", LinkProbeReply("another life", world.machines["B"].uuid, True))
    world.unreachable("B", "C")
    assert world.suspects_of("B") == "C"


def test_a_suspect_is_counted_no_more() -> None:
    world = three()
    world.suspect("B", "C")
    fault_and_wait(world, "B", "C", 10)
    assert len(world.seen("B", SuspicionRaised)) == 1
    assert state_of(world.machines["B"]).peers[address_of("C")].faults == 0


def test_no_faults_allowed_means_the_first_one_suspects() -> None:
    world = SteppedCluster(training_settings(connection_max_faults=0)).settled("ABC")
    world.unreachable("B", "C")
    assert world.suspects_of("B") == "C"


def test_a_joiner_suspects_nobody() -> None:
    world = SteppedCluster().starting(C="AB")
    world.unreachable("C", "A")
    assert not world.seen("C", SuspicionRaised)
    assert not world.machines["C"].timers.is_set("connection:" + address_of("A"))


def test_strangers_are_not_counted() -> None:
    world = three()
    world.unreachable("A", "X")
    assert not world.machines["A"].timers.is_set("connection:" + Address(address_of("X")))


def test_a_new_life_at_the_address_begins_without_faults() -> None:
    world = three()
    fault_and_wait(world, "A", "C", 3)
    world.born("C", "A")
    world.receive("A", "C", JoinRequest(world.machines["C"].uuid, False))
    world.deliver(LinkProbe, to="C")
    world.deliver(LinkProbeReply, to="A")
    assert world.list_of("A") == (5, "ABC")
    world.unreachable("A", "C")
    assert world.list_of("A") == (5, "ABC")
    world.pass_seconds(0.11, "A")
    assert [probe.to_uuid for probe in world.messages(LinkProbe, to="C")][-1] == world.machines["C"].uuid


def test_a_killed_process_is_off_the_list_long_before_the_heartbeat_timeout() -> None:
    """Measured on the real thing: 0.35 s (Hazelcast: complaints)."""
    world = three()
    world.live(1.05, dead="C")
    for _ in range(4):
        for observer in "AB":
            world.unreachable(observer, "C")
        world.live(0.1, dead="C")
    assert world.list_of("A") == world.list_of("B") == (4, "AB")


def test_a_killed_master_is_succeeded_as_fast() -> None:
    world = three()
    world.live(1.05, dead="A")
    for _ in range(4):
        for observer in "BC":
            world.unreachable(observer, "A")
        world.live(0.1, dead="A")
    world.live(1.1, dead="A")
    assert world.list_of("B") == world.list_of("C") == (4, "BC")


def test_a_heartbeat_that_was_still_on_its_way_does_not_end_the_tries() -> None:
    world = three()
    state = state_of(world.machines["C"])
    beat = Heartbeat(state.uuid, world.machines["B"].uuid, address_of("A"), 3)
    world.unreachable("B", "C")
    world.receive("B", "C", beat)
    world.sent.clear()
    world.pass_seconds(0.11, "B")
    assert world.messages(LinkProbe, to="C")


def test_all_close_their_connections_with_a_member_that_was_removed() -> None:
    """As the product's `connectionsToTerminatedMember_shouldBeClosed`, and Figure 3 of the document."""
    world = three()
    removed = world.machines["C"].uuid
    world.suspect("A", "C")
    world.deliver_all(dead="C")
    assert world.list_of("B") == (4, "AB")
    assert world.disconnected == [("A", "C", removed), ("B", "C", removed)]


def test_the_connection_with_a_new_incarnation_at_an_old_address_stays() -> None:
    world = three()
    before = world.machines["C"].uuid
    world.born("C", "A")
    world.start("C")
    world.live(3)
    assert world.list_of("A")[1] == "ABC"
    assert {uuid for _, _, uuid in world.disconnected} == {before}


def test_a_member_that_left_the_list_by_a_claim_is_disconnected() -> None:
    world = three()
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.deliver_all(dead="A")
    assert world.list_of("C") == (4, "BC")
    assert sorted(pair[:2] for pair in world.disconnected) == [("B", "A"), ("C", "A")]

"""Master confirmation (Cluster Service Consistency Improvements, Terminology and Explicit Suspicion; Hazelcast: master
confirmation; Decisions: Master confirmation)."""

import pytest

from quarterdeck.backend.core.inputs import TICK
from quarterdeck.backend.core.membership.events import MemberRemoved, ObserverPaused
from quarterdeck.backend.core.membership.failure_detection import heartbeats, master_confirmation
from quarterdeck.backend.core.membership.messages import ExplicitSuspicion, MasterConfirmation, MembersUpdate
from quarterdeck.backend.core.membership.views.identity import ListMetadata
from quarterdeck.backend.core.properties import SECOND_US
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster, address_of


def three() -> SteppedCluster:
    return SteppedCluster().settled("ABC")


def confirmation(world: SteppedCluster, sender: str, receiver: str) -> MasterConfirmation:
    return MasterConfirmation(world.inspect(sender).metadata(), world.machines[receiver].uuid)


def test_a_slave_confirms_to_its_master_only_and_at_the_interval() -> None:
    world = three()
    world.pass_seconds(2, "B")
    (sent,) = [(receiver, message) for _, receiver, message in world.sent if isinstance(message, MasterConfirmation)]
    assert sent == ("A", confirmation(world, "B", "A"))
    world.drop(MasterConfirmation)
    world.deliver_all()
    world.pass_seconds(1.9, "B")
    assert not world.messages(MasterConfirmation, to="A")
    world.pass_seconds(0.1, "B")
    assert len(world.messages(MasterConfirmation, to="A")) == 1


def test_a_master_confirms_to_nobody() -> None:
    world = three()
    world.pass_seconds(5, "A")
    assert not world.messages(MasterConfirmation)


def test_a_suspected_master_gets_no_confirmation() -> None:
    world = three()
    world.suspect("C", "A")
    world.pass_seconds(2.5, "C")
    assert not world.messages(MasterConfirmation)


def test_a_slave_whose_heartbeats_come_but_whose_confirmations_do_not_is_removed_after_the_timeout() -> None:
    world = three()
    world.loses = lambda sender, _, message: sender == "C" and isinstance(message, MasterConfirmation)
    world.live(9.5)
    assert world.list_of("A") == (3, "ABC")
    world.live(0.7)
    assert world.list_of("A") == world.list_of("B") == (4, "AB")
    (removed,) = world.seen("A", MemberRemoved)
    assert "confirmation" in removed.reason


def test_the_confirmation_of_a_stranger_is_answered_by_explicit_suspicion() -> None:
    world = three()
    world.with_lists(A=(4, "AB"))
    world.receive("A", "C", confirmation(world, "C", "A"))
    assert world.messages(ExplicitSuspicion, to="C") == [ExplicitSuspicion(world.inspect("C").metadata())]


def test_the_confirmation_of_an_earlier_life_of_a_member_is_a_strangers() -> None:
    world = three()
    about = ListMetadata(address_of("C"), "an earlier life", address_of("A"), 3)
    world.receive("A", "C", MasterConfirmation(about, world.machines["A"].uuid))
    assert world.messages(ExplicitSuspicion, to="C") == [ExplicitSuspicion(about)]


def test_a_member_that_is_confirmed_without_being_master_asks_to_be_suspected() -> None:
    world = three()
    world.receive("B", "C", confirmation(world, "C", "B"))
    assert world.messages(ExplicitSuspicion, to="C")


def test_a_confirmation_for_an_earlier_life_of_the_master_counts_for_nothing() -> None:
    world = three()
    world.receive("A", "C", MasterConfirmation(world.inspect("C").metadata(), "an earlier life"))
    assert not world.sent


def test_a_lagging_confirmation_makes_the_master_send_the_list_again() -> None:
    world = three()
    world.with_lists(A=(5, "ABC"))
    world.receive("A", "C", confirmation(world, "C", "A"))
    assert [update.members.version for update in world.messages(MembersUpdate, to="C")] == [5]


def test_nobody_is_removed_for_want_of_confirmation_and_nobody_confirms_while_a_claim_runs() -> None:
    world = three()
    world.suspect("B", "A")
    assert world.inspect("B").claim
    world.sent.clear()
    world.now = 20 * SECOND_US
    master_confirmation.on_confirmation_timer(state_of(world.machines["B"]), world.now)
    assert not world.messages(MasterConfirmation)
    assert not world.seen("B", MemberRemoved)


def test_a_strangers_confirmation_during_a_claim_is_not_answered() -> None:
    world = three()
    world.suspect("B", "A")
    world.sent.clear()
    stranger = ListMetadata(address_of("D"), "uuid-d", address_of("B"), 3)
    world.receive("B", "D", MasterConfirmation(stranger, world.machines["B"].uuid))
    assert not world.messages(ExplicitSuspicion)


def test_a_new_master_counts_from_its_claim_on() -> None:
    world = three()
    world.live(9)
    for peer in state_of(world.machines["B"]).peers.values():
        peer.confirmed_us = 0
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.deliver_all(dead="A")
    world.live(2.5, dead="A")
    assert world.list_of("B") == world.list_of("C") == (4, "BC")


def test_a_pause_of_the_master_itself_is_forgiven() -> None:
    world = three()
    world.live(3)
    world.now += 20 * SECOND_US
    world.tell("A", TICK)
    assert world.seen("A", ObserverPaused)
    assert world.list_of("A") == (3, "ABC")


@pytest.mark.parametrize("paused_after", [3.5, 4.5, 5.9])
def test_a_pause_of_the_master_is_forgiven_whichever_timer_is_due_first(paused_after: float) -> None:
    """The confirmation timer must not accuse anybody before the heartbeat timer has noticed the pause."""
    world = three()
    world.live(paused_after)
    state = state_of(world.machines["A"])
    state.timers.set(master_confirmation.CONFIRMATION, world.now + 10_000)
    assert state.timers.is_set(heartbeats.HEARTBEAT)
    world.now += 20 * SECOND_US
    world.tell("A", TICK)
    assert not world.seen("A", MemberRemoved)
    assert world.list_of("A") == (3, "ABC")


def test_a_pause_is_forgiven_with_the_usual_timers_too() -> None:
    """Nothing is set by hand: the pause begins at 3.5 s, and at 4 s both timers are due."""
    world = three()
    world.live(3.5)
    world.now += 20 * SECOND_US
    world.tell("A", TICK)
    assert world.list_of("A") == (3, "ABC")


def test_a_quiet_cluster_confirms_for_ever_and_removes_nobody() -> None:
    world = three()
    world.live(25)
    assert {world.list_of(name) for name in "ABC"} == {(3, "ABC")}


def test_a_newcomer_that_has_not_been_heard_of_yet_is_not_timed() -> None:
    world = three()
    state = state_of(world.machines["A"])
    world.now += 600 * SECOND_US
    state.last_round_us = world.now  # it has not stood still
    newcomer, other = state.peers[address_of("B")], state.peers[address_of("C")]
    newcomer.detector.last_heard_us = world.now + SECOND_US
    other.confirmed_us = world.now
    master_confirmation.on_confirmation_timer(state, world.now)
    world.conclude("A")
    assert newcomer.confirmed_us == world.now and world.list_of("A") == (3, "ABC")

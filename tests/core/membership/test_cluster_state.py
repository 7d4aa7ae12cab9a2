"""Changing the state of the cluster in two phases (Hazelcast: member list and split brain and partitions)."""

import pytest

from quarterdeck.backend.core.cluster_profile import ClusterStanding, ClusterState
from quarterdeck.backend.core.membership.events import ClusterStateChanged, ClusterStateRefused, MemberAdmitted
from quarterdeck.backend.core.membership.messages import (
    JoinRefused,
    JoinRequest,
    MembersUpdate,
    StateDecision,
    StateDecisionAck,
    StateLock,
    StateLockAnswer,
    StateRequest,
)
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster, address_of


def three() -> SteppedCluster:
    return SteppedCluster().settled("ABC")


def standing(world: SteppedCluster, name: str) -> ClusterStanding:
    return world.inspect(name).standing


def states(world: SteppedCluster, names: str = "ABC") -> list[str]:
    return [standing(world, name).state for name in names]


def frozen(state: ClusterState = "FROZEN") -> SteppedCluster:
    world = three()
    world.change_state("A", state)
    world.deliver_all()
    world.pass_seconds(0.01)
    return world


# Two phases


@pytest.mark.parametrize("wanted", ["FROZEN", "PASSIVE", "NO_MIGRATION"])
def test_a_change_reaches_everybody(wanted: ClusterState) -> None:
    world = frozen(wanted)
    assert states(world) == [wanted] * 3
    assert all([event.state for event in world.seen(name, ClusterStateChanged)] == [wanted] for name in "ABC")
    assert state_of(world.machines["A"]).state_change is None


def test_nobody_changes_before_all_hold_still() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    assert len(world.messages(StateLock)) == 2
    world.deliver(StateLock)
    first = world.sent.pop(0)
    world.receive(first[1], first[0], first[2])
    assert states(world) == ["ACTIVE"] * 3
    world.deliver(StateLockAnswer)
    assert states(world) == ["FROZEN", "ACTIVE", "ACTIVE"]
    world.deliver(StateDecision)
    assert states(world) == ["FROZEN"] * 3


def test_a_lock_that_comes_again_after_its_decision_locks_nothing() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    lock = world.messages(StateLock, to="B")[0]
    world.deliver_all()
    world.receive("B", "A", lock)
    assert state_of(world.machines["B"]).followed_change.locked is None and not world.messages(StateLockAnswer)


def test_a_slave_passes_the_wish_on_to_its_master() -> None:
    world = three()
    world.change_state("C", "PASSIVE")
    assert [request.wanted for request in world.messages(StateRequest, to="A")] == ["PASSIVE"]
    world.deliver_all()
    assert states(world) == ["PASSIVE"] * 3


def test_a_wish_from_a_stranger_is_ignored() -> None:
    world = three()
    world.receive("A", "X", StateRequest("PASSIVE", world.token_of("B")))
    world.deliver_all()
    assert states(world) == ["ACTIVE"] * 3


def test_without_a_master_in_sight_the_wish_is_refused() -> None:
    world = three()
    world.suspect("C", "A")
    world.change_state("C", "PASSIVE")
    assert "no master" in world.seen("C", ClusterStateRefused)[0].reason
    joiner = SteppedCluster()
    joiner.born("A", "B")
    joiner.start("A")
    joiner.change_state("A", "PASSIVE")
    assert joiner.seen("A", ClusterStateRefused)


def test_the_state_that_holds_already_is_refused() -> None:
    world = three()
    world.change_state("A", "ACTIVE")
    assert "ACTIVE already" in world.seen("A", ClusterStateRefused)[0].reason


def test_a_second_change_waits_for_the_first() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    world.change_state("A", "PASSIVE")
    assert "being changed to FROZEN" in world.seen("A", ClusterStateRefused)[0].reason
    world.deliver_all()
    assert states(world) == ["FROZEN"] * 3


def test_one_refusal_ends_it_for_all() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    (lock,) = world.messages(StateLock, to="C")
    world.drop(StateLock, to="C")
    world.receive("A", "C", StateLockAnswer(lock.token, "it stands at another list version"))
    assert "another list version" in world.seen("A", ClusterStateRefused)[0].reason
    world.deliver_all()
    assert states(world) == ["ACTIVE"] * 3
    assert all(state_of(world.machines[name]).followed_change.locked is None for name in "BC")


def test_a_lagging_slave_refuses() -> None:
    world = three()
    world.with_lists(A=(5, "ABC"), B=(5, "ABC"))
    world.change_state("A", "FROZEN")
    world.deliver_all()
    assert "version 3, not 5" in world.seen("A", ClusterStateRefused)[0].reason


def test_a_silent_slave_lets_the_lease_run_out_at_the_master() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    world.loses = lambda sender, receiver, message: isinstance(message, StateLock) and receiver == "C"
    world.live(5.9)
    assert not world.seen("A", ClusterStateRefused)
    world.live(0.2)
    assert address_of("C") in world.seen("A", ClusterStateRefused)[0].reason
    assert states(world) == ["ACTIVE"] * 3


def test_a_slave_waits_for_nobody_longer_than_the_lease() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    world.deliver(StateLock, to="C")
    locked = state_of(world.machines["C"]).followed_change.locked
    assert locked is not None and locked.until_us == 6_000_000
    world.now = 6_000_000
    token = world.token_of("A")
    world.receive("C", "A", StateLock(token, "PASSIVE", 3, 6_000_000))
    assert world.messages(StateLockAnswer, to="A")[-1] == StateLockAnswer(token, "")


@pytest.mark.parametrize("kind", [StateLock, StateLockAnswer, StateDecision, StateDecisionAck])
def test_one_lost_message_costs_a_second_only(kind: type) -> None:
    world = three()
    lost = world.lose_first(kind)
    world.change_state("A", "FROZEN")
    world.live(1.5)
    assert lost and states(world) == ["FROZEN"] * 3
    assert state_of(world.machines["A"]).state_change is None


def test_a_member_that_leaves_meanwhile_holds_nothing_up() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    world.deliver(StateLock, to="B")
    world.deliver(StateLockAnswer)
    world.suspect("A", "C")
    assert standing(world, "A").state == "FROZEN"
    world.deliver_all(dead="C")
    assert states(world, "AB") == ["FROZEN"] * 2


def test_who_missed_the_decision_learns_it_with_the_next_list() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    world.loses = lambda sender, receiver, message: isinstance(message, StateDecision) and receiver == "C"
    world.live(7)
    assert states(world) == ["FROZEN", "FROZEN", "ACTIVE"]
    world.live(4)
    assert states(world) == ["FROZEN"] * 3


def test_a_later_state_is_not_overwritten_by_an_older_list_or_decision() -> None:
    world = three()
    members = world.inspect("A").members
    assert members is not None
    world.change_state("A", "FROZEN")
    world.deliver_all()
    world.receive("C", "A", MembersUpdate(members, False, ClusterStanding()))
    world.receive("C", "A", StateDecision("late", ClusterStanding("ACTIVE", 0)))
    assert standing(world, "C") == ClusterStanding("FROZEN", 1)


def test_a_decision_from_somebody_else_than_the_master_is_ignored() -> None:
    world = three()
    world.receive("C", "B", StateDecision(world.token_of("B"), ClusterStanding("PASSIVE", 9)))
    assert states(world) == ["ACTIVE"] * 3


def test_a_lock_that_comes_again_after_its_decision_does_not_block_the_next_change() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    (lock,) = world.messages(StateLock, to="C")
    world.deliver_all()
    world.receive("C", "A", lock)
    world.sent.clear()
    world.change_state("A", "ACTIVE")
    world.deliver_all()
    assert states(world) == ["ACTIVE"] * 3


def test_a_lost_abort_does_not_block_the_next_change() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    (lock,) = world.messages(StateLock, to="B")
    world.deliver(StateLock, to="C")
    world.drop(StateLock, to="B")
    world.receive("A", "B", StateLockAnswer(lock.token, "no"))
    world.drop(StateDecision)
    world.sent.clear()
    world.change_state("A", "FROZEN")
    world.deliver_all()
    assert states(world) == ["FROZEN"] * 3


# Joins


@pytest.mark.parametrize("state", ["FROZEN", "PASSIVE"])
def test_newcomers_are_refused_with_the_reason(state: ClusterState) -> None:
    world = frozen(state)
    world.receive("A", "D", JoinRequest("uuid-d", False))
    assert world.messages(JoinRefused, to="D") == [JoinRefused(f"the cluster is {state} and takes no newcomers")]
    assert world.list_of("A") == (3, "ABC")


def test_newcomers_are_let_in_without_migrations() -> None:
    world = frozen("NO_MIGRATION")
    world.receive("A", "D", JoinRequest("uuid-d", False))
    assert world.list_of("A") == (4, "ABCD")


def test_a_newcomer_waits_while_a_change_is_decided() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    world.receive("A", "D", JoinRequest("uuid-d", False))
    assert world.list_of("A") == (3, "ABC") and not world.messages(JoinRefused)


def test_a_join_that_has_just_begun_and_a_change_do_not_disturb_one_another() -> None:
    world = three()
    world.born("D", "A")
    world.start("D")
    for _ in range(3):
        sender, receiver, message = world.sent.pop(0)
        world.receive(receiver, sender, message)
    assert world.list_of("A") == (4, "ABCD") and not world.seen("A", MemberAdmitted)
    world.change_state("A", "FROZEN")
    world.live(3)
    assert states(world, "ABCD") == ["FROZEN"] * 4
    assert world.list_of("D") == (4, "ABCD")


def test_a_missing_member_may_come_back() -> None:
    world = frozen()
    world.suspect("A", "C")
    world.deliver_all(dead="C")
    assert world.list_of("B") == (4, "AB")
    world.born("C", "A")
    world.start("C")
    world.deliver_all()
    assert world.list_of("A") == world.list_of("C") == (5, "ABC")
    assert states(world) == ["FROZEN"] * 3


def test_a_missing_member_may_come_back_to_a_new_master_too() -> None:
    world = SteppedCluster().settled("ABCD")
    world.change_state("A", "FROZEN")
    world.deliver_all()
    world.suspect("A", "D")
    world.deliver_all(dead="D")
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.deliver_all(dead="AD")
    for name in "DA":
        world.born(name, "B")
        world.start(name)
        world.deliver_all()
    assert world.list_of("B")[1] == "BCDA"


def test_the_missing_are_forgotten_when_joins_are_allowed_again() -> None:
    world = frozen()
    world.suspect("A", "C")
    world.deliver_all(dead="C")
    assert state_of(world.machines["A"]).missing
    world.change_state("A", "ACTIVE")
    world.deliver_all()
    assert not state_of(world.machines["A"]).missing and not state_of(world.machines["B"]).missing


def test_a_joiner_that_is_refused_joins_when_the_state_allows_it() -> None:
    world = frozen()
    world.born("D", "A")
    world.start("D")
    world.live(20)
    assert not world.machines["D"].joined
    world.change_state("A", "ACTIVE")
    world.live(7)
    assert world.list_of("A") == world.list_of("D") == (4, "ABCD")


# Mastership claims


def test_a_claim_keeps_the_state() -> None:
    world = frozen("PASSIVE")
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.deliver_all(dead="A")
    assert world.list_of("B") == world.list_of("C") == (4, "BC")
    assert states(world, "BC") == ["PASSIVE"] * 2


def test_a_claim_in_the_middle_of_a_change_voids_it() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    world.deliver(StateLock)
    world.sent.clear()
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.deliver_all(dead="A")
    world.live(7, dead="A")
    assert states(world, "BC") == ["ACTIVE"] * 2
    world.change_state("B", "FROZEN")
    world.deliver_all(dead="A")
    assert states(world, "BC") == ["FROZEN"] * 2


def test_after_a_claim_all_members_agree_even_if_only_one_had_heard_of_the_decision() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    world.deliver(StateLock)
    world.deliver(StateLockAnswer)
    world.deliver(StateDecision, to="C")
    world.sent.clear()
    assert states(world) == ["FROZEN", "ACTIVE", "FROZEN"]
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.deliver_all(dead="A")
    assert len(set(states(world, "BC"))) == 1


def test_a_claim_keeps_a_decision_that_only_a_follower_has_heard_of() -> None:
    world = three()
    world.change_state("A", "FROZEN")
    world.deliver(StateLock)
    world.deliver(StateLockAnswer)
    world.deliver(StateDecision, to="C")
    world.sent.clear()
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.deliver_all(dead="A")
    assert states(world, "BC") == ["FROZEN"] * 2


# What a slave passes on


def test_a_lost_request_is_passed_on_again() -> None:
    world = SteppedCluster().settled("ABC")
    world.loses = lambda sender, receiver, message: isinstance(message, StateRequest)
    world.change_state("C", "FROZEN")
    world.live(2.5)
    world.loses = lambda *_: False
    world.live(1.5)
    assert {world.inspect(name).standing.state for name in "ABC"} == {"FROZEN"}
    assert not world.seen("C", ClusterStateRefused)


def test_the_operator_at_a_slave_hears_that_the_master_refuses() -> None:
    world = SteppedCluster().settled("ABC")
    world.change_state("C", "ACTIVE")
    world.live(1)
    (refused,) = world.seen("C", ClusterStateRefused)
    assert "already" in refused.reason


def test_the_operator_at_a_slave_hears_that_nobody_answers() -> None:
    world = SteppedCluster().settled("ABC")
    world.loses = lambda sender, receiver, message: isinstance(message, StateRequest)
    world.change_state("C", "FROZEN")
    world.live(8)
    (refused,) = world.seen("C", ClusterStateRefused)
    assert "in time" in refused.reason

"""The mastership claim (Cluster Service Consistency Improvements, Mastership Claim Process)."""

import pytest

from quarterdeck.backend.core.inputs import TICK
from quarterdeck.backend.core.membership import cluster_state
from quarterdeck.backend.core.membership.events import ClaimAnswered, ClaimFinished, ClaimStarted
from quarterdeck.backend.core.membership.messages import (
    ClaimAccepted,
    ClaimRefused,
    Heartbeat,
    JoinRequest,
    Leave,
    MastershipClaim,
    MembersUpdate,
    StateLock,
    WhoIsMaster,
)
from quarterdeck.backend.core.properties import SECOND_US
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster, address_of, names_of, training_settings


def example_of_seed_000() -> SteppedCluster:
    """A has crashed; B missed two lists and suspects C; D missed one; F does not respond."""
    world = SteppedCluster()
    world.with_lists(A=(6, "ABCDEF"), B=(4, "ABCD"), C=(6, "ABCDEF"), D=(5, "ABCDE"), E=(6, "ABCDEF"), F=(6, "ABCDEF"))
    world.suspect("B", "C")
    for name in "CDEF":
        world.suspect(name, "A")
    world.sent.clear()
    return world


def test_the_example_of_seed_000_ends_in_v7_B_D_E() -> None:
    world = example_of_seed_000()
    world.suspect("B", "A")
    assert world.messages(MastershipClaim, to="D") and not world.messages(MastershipClaim, to="C")
    world.deliver_all(dead="ACF")
    assert world.inspect("B").claim
    for _ in range(18):
        world.pass_seconds(0.5, "B", "D", "E")
        world.deliver_all(dead="ACF")
    assert world.list_of("B") == world.list_of("D") == world.list_of("E") == (7, "BDE")
    (finished,) = world.seen("B", ClaimFinished)
    assert names_of(finished.left_out) == "F"


def test_a_lost_request_costs_nobody_its_place() -> None:
    world = SteppedCluster().with_lists(**dict.fromkeys("ABCD", (4, "ABCD")))
    for name in "CD":
        world.suspect(name, "A")
    world.suspect("B", "A")
    world.sent.clear()
    world.pass_seconds(1.1, "B")
    world.deliver_all(dead="A")
    assert world.list_of("B") == world.list_of("C") == world.list_of("D") == (5, "BCD")


def test_a_lost_answer_costs_nobody_its_place() -> None:
    world = SteppedCluster().with_lists(**dict.fromkeys("ABC", (3, "ABC")))
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.receive("C", "B", world.messages(MastershipClaim, to="C")[0])
    world.sent.clear()
    world.pass_seconds(1.1, "B")
    world.deliver_all(dead="A")
    assert world.list_of("B") == world.list_of("C") == (4, "BC")


def test_who_still_trusts_an_older_member_makes_the_claimant_ask_again() -> None:
    world = SteppedCluster().with_lists(**dict.fromkeys("ABC", (3, "ABC")))
    world.suspect("B", "A")
    world.deliver_all(dead="A")
    assert world.master_of("C") == "A"
    assert [event.answer for event in world.seen("B", ClaimAnswered)] == ["retry"]
    world.suspect("C", "A")
    world.pass_seconds(1.1, "B")
    world.deliver_all(dead="A")
    assert world.list_of("B") == world.list_of("C") == (4, "BC")


def test_a_younger_member_does_not_claim_while_an_older_one_is_trusted() -> None:
    world = SteppedCluster().with_lists(**dict.fromkeys("ABC", (3, "ABC")))
    world.suspect("C", "A")
    assert not world.seen("C", ClaimStarted)
    world.suspect("C", "B")
    assert world.list_of("C") == (4, "C")


def test_an_old_master_that_returns_corrupts_no_list() -> None:
    world = SteppedCluster().with_lists(**dict.fromkeys("ABC", (3, "ABC")))
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.deliver_all(dead="A")
    successor = world.list_of("B")
    old = state_of(world.machines["A"])
    assert old.members is not None
    for name in "BC":
        world.receive(name, "A", MembersUpdate(old.members.without({address_of("C" if name == "B" else "B")}), False))
        world.receive(name, "A", Heartbeat(old.uuid, world.machines[name].uuid, address_of("A"), old.members.version))
    world.deliver_all()
    assert world.list_of("B") == world.list_of("C") == successor == (4, "BC")
    assert world.list_of("A")[1] == "A"


def test_the_second_of_two_claimants_is_refused() -> None:
    world = SteppedCluster().with_lists(**dict.fromkeys("ABCD", (4, "ABCD")))
    world.suspect("D", "AB")
    world.suspect("C", "AB")
    world.receive("D", "C", world.messages(MastershipClaim, to="D")[0])
    world.sent.clear()
    world.receive("D", "B", MastershipClaim(world.machines["B"].uuid, world.machines["D"].uuid))
    (refusal,) = world.messages(ClaimRefused, to="B")
    assert not refusal.retry
    assert world.master_of("D") == "C"


def test_a_new_lineage_begins_with_each_claim() -> None:
    world = SteppedCluster().with_lists(**dict.fromkeys("ABC", (3, "ABC")))
    world.suspect("C", "AB")
    world.suspect("B", "AC")
    lineages = {world.inspect(name).members.lineage for name in "ABC"}  # type: ignore[union-attr]
    assert len(lineages) == 3


def test_a_pause_of_the_claimant_costs_nobody_its_place() -> None:
    world = SteppedCluster().settled("ABC")
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.now += 20_000_000
    world.tell("B", TICK)
    world.deliver_all(dead="A")
    world.live(2, dead="A")
    assert world.list_of("B") == world.list_of("C") == (4, "BC")


def test_the_heartbeat_of_an_older_member_does_not_stop_a_claim() -> None:
    world = SteppedCluster().settled("ABC")
    world.suspect("B", "A")
    a, b = world.machines["A"], world.machines["B"]
    world.receive("B", "A", Heartbeat(a.uuid, b.uuid, address_of("A"), 3))
    assert world.suspects_of("B") == "A" and world.inspect("B").claim


def test_a_claimant_that_dies_before_it_publishes_is_succeeded_by_its_follower() -> None:
    world = SteppedCluster().settled("ABC")
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.deliver(MastershipClaim, to="C")
    assert world.master_of("C") == "B"
    world.live(8, dead="AB")
    assert world.list_of("C") == (4, "C")


def test_answers_that_come_twice_or_after_the_end_change_nothing() -> None:
    world = SteppedCluster().settled("ABC")
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.deliver(MastershipClaim, to="C")
    (answer,) = world.messages(ClaimAccepted, to="B")
    world.deliver(ClaimAccepted)
    world.receive("B", "C", answer)
    world.receive("B", "C", ClaimRefused(False, "late", answer.token, answer.asked_uuid))
    world.deliver_all(dead="A")
    assert world.list_of("B") == world.list_of("C") == (4, "BC")
    assert len(world.seen("B", ClaimFinished)) == 1


def test_a_member_that_says_goodbye_during_the_claim_holds_nothing_up() -> None:
    world = SteppedCluster().settled("ABCD")
    world.suspect("D", "A")
    world.suspect("B", "A")
    world.receive("B", "C", Leave(world.machines["C"].uuid))
    world.sent = [delivery for delivery in world.sent if "C" not in delivery[:2]]
    world.deliver_all(dead="AC")
    assert world.list_of("B") == world.list_of("D") == (5, "BD")


def test_a_follower_that_says_goodbye_before_the_end_is_not_on_the_list() -> None:
    world = SteppedCluster().settled("ABCD")
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.deliver(MastershipClaim, to="C")
    world.deliver(ClaimAccepted)
    world.receive("B", "C", Leave(world.machines["C"].uuid))
    assert world.inspect("B").claim
    world.suspect("D", "A")
    world.live(1, dead="AC")
    assert world.list_of("B") == world.list_of("D") == (5, "BD")


def test_who_sends_heartbeats_and_no_answer_is_given_up_when_the_time_is_over() -> None:
    world = SteppedCluster(training_settings(mastership_claim_timeout_us=3 * SECOND_US)).settled("ABCD")
    world.suspect("C", "A")
    world.suspect("D", "A")
    world.loses = lambda sender, receiver, message: isinstance(message, MastershipClaim) and receiver == "D"
    world.suspect("B", "A")
    world.live(2.9, dead="A")
    assert world.inspect("B").claim
    world.live(0.2, dead="A")
    assert world.list_of("B") == world.list_of("C") == (5, "BC")


def test_a_claimant_that_is_asked_for_the_master_keeps_silent() -> None:
    world = SteppedCluster().settled("ABC")
    world.suspect("B", "A")
    world.sent.clear()
    world.receive("B", "X", WhoIsMaster("uuid-x"))
    world.receive("B", "X", JoinRequest("uuid-x", False))
    assert not world.sent


def test_the_same_refusal_is_told_once() -> None:
    world = SteppedCluster().settled("ABC")
    world.suspect("B", "A")
    for _ in range(5):
        world.pass_seconds(1, "B")
        world.drop(Heartbeat)
        world.deliver_all(dead="A")
    assert len(world.seen("B", ClaimAnswered)) == 1


def claimed_with_two_lives_of_c() -> tuple[SteppedCluster, list[MastershipClaim]]:
    """B claims and asks C; D's answer tells that another incarnation of C has joined since. B's questions to C."""
    world = SteppedCluster().settled("ABCD")
    early = world.machines["C"]
    late = world.born("C", "A")
    world.with_lists(D=(6, "ABDC"))
    world.machines["C"] = early
    world.suspect("D", "A")
    world.suspect("B", "A")
    (to_early,) = world.messages(MastershipClaim, to="C")
    world.drop(MastershipClaim, to="C")
    world.deliver(MastershipClaim, to="D")
    world.deliver(ClaimAccepted)
    (to_late,) = world.messages(MastershipClaim, to="C")
    assert (to_early.to_uuid, to_late.to_uuid) == (early.uuid, late.uuid)
    world.sent.clear()
    return world, [to_early, to_late]


def test_an_acceptance_by_an_earlier_incarnation_does_not_count() -> None:
    """It accepted and died; nobody knows whether the one that is there now follows the claimant."""
    world, (to_early, _) = claimed_with_two_lives_of_c()
    world.suspect("C", "A")
    world.receive("C", "B", to_early)
    world.deliver(ClaimAccepted)
    assert world.inspect("B").claim
    world.live(9, dead="AC")
    assert world.list_of("B") == (7, "BD")


def test_nor_does_its_refusal() -> None:
    world, (to_early, to_late) = claimed_with_two_lives_of_c()
    world.receive("B", "C", ClaimRefused(False, "late", to_early.token, to_early.to_uuid))
    assert world.inspect("B").claim
    world.receive("B", "C", ClaimRefused(False, "it will not", to_late.token, to_late.to_uuid))
    world.live(1, dead="AC")
    assert world.list_of("B") == (7, "BD")


def test_an_acceptance_of_an_earlier_claim_does_not_count() -> None:
    """The claimant has been restarted, and claims again."""
    world = SteppedCluster().settled("ABC")
    world.suspect("B", "A")
    (asked,) = world.messages(MastershipClaim, to="C")
    members = world.inspect("C").members
    assert members is not None
    accepted = ClaimAccepted(members, world.inspect("C").standing, "the claim of an earlier life", asked.to_uuid)
    world.receive("B", "C", accepted)
    assert world.inspect("B").claim


@pytest.mark.parametrize("trusted", ["A", "B", "AB"])
def test_a_follower_accepts_only_when_it_suspects_all_who_are_older(trusted: str) -> None:
    """Document 000: "D accepts the mastership claim of C only if it also suspects A and B"."""
    world = SteppedCluster().settled("ABCD")
    world.suspect("D", "".join(sorted(set("AB") - set(trusted))))
    world.suspect("C", "AB")
    world.deliver(MastershipClaim, to="D")
    (answer,) = world.messages(ClaimRefused, to="C")
    assert answer.retry and world.master_of("D") != "C"
    assert not world.messages(ClaimAccepted)


def test_a_silent_member_that_the_claim_learnt_of_is_given_up_as_soon_as_any_other() -> None:
    world = SteppedCluster(training_settings(mastership_claim_timeout_us=60 * SECOND_US)).settled("ABCD")
    world.with_lists(C=(5, "ABCDE"))
    for name in "CD":
        world.suspect(name, "A")
    world.suspect("B", "A")
    world.deliver_all(dead="AE")
    assert world.inspect("B").claim, "E, which C knows, may live"
    world.live(world.settings.max_no_heartbeat_us / SECOND_US + 1, dead="AE")
    assert world.list_of("B") == world.list_of("C") == world.list_of("D") == (6, "BCD")
    (finished,) = world.seen("B", ClaimFinished)
    assert names_of(finished.left_out) == "E"


def test_a_claim_of_another_incarnation_than_the_listed_one_is_refused_for_good() -> None:
    world = SteppedCluster().with_lists(**dict.fromkeys("ABC", (3, "ABC")))
    world.suspect("C", "A")
    world.receive("C", "B", MastershipClaim("another incarnation", world.machines["C"].uuid))
    (refusal,) = world.messages(ClaimRefused, to="B")
    assert not refusal.retry and "not on the list" in refusal.reason
    assert world.master_of("C") == "A"


def test_a_claim_of_a_stranger_is_refused_by_who_suspects_every_other_member() -> None:
    world = SteppedCluster().with_lists(**dict.fromkeys("ABC", (3, "ABC")))
    world.suspect("B", "A")
    world.sent.clear()
    world.receive("C", "X", MastershipClaim("uuid-x", world.machines["C"].uuid))
    assert [refusal.retry for refusal in world.messages(ClaimRefused, to="X")] == [False]


def test_a_claimant_that_held_still_for_a_change_of_the_old_master_does_so_no_more_when_it_leads() -> None:
    world = SteppedCluster().settled("ABC")
    world.change_state("A", "FROZEN")
    world.deliver(StateLock, to="B")
    assert cluster_state.is_changing(world.inspect("B"), world.now)
    for name in "BC":
        world.suspect(name, "A")
    world.deliver_all(dead="A")
    assert world.list_of("B")[1] == "BC"
    assert not cluster_state.is_changing(world.inspect("B"), world.now)


def test_a_member_that_suspects_the_old_master_a_little_later_accepts_the_claim_at_once() -> None:
    world = SteppedCluster().settled("ABC")
    world.suspect("B", "A")
    world.deliver_all(dead="A")
    assert world.inspect("B").claim and world.master_of("C") == "A"
    world.now += 5_000  # less than the claimant waits before it asks again
    world.suspect("C", "A")
    world.deliver_all(dead="A")
    assert world.list_of("B") == world.list_of("C") == (4, "BC")


def test_a_claim_that_was_put_off_is_forgotten_when_it_is_refused_for_good() -> None:
    world = SteppedCluster().settled("ABC")
    world.suspect("B", "A")
    world.deliver_all(dead="A")
    world.receive("C", "B", MastershipClaim(world.machines["B"].uuid, "an earlier life", "t"))
    world.suspect("C", "A")
    assert not world.messages(ClaimAccepted)

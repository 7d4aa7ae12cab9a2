"""Merging while members leave, crash, come late or are refused (Split-brain Recovery Improvements; Hazelcast: start of a merge
and merge on each member)."""

import pytest

from quarterdeck.backend.core.cluster_profile import ClusterStanding
from quarterdeck.backend.core.membership.events import ListInstalled, MemberMerging, MergeAbandoned
from quarterdeck.backend.core.membership.messages import (
    JoinRefused,
    JoinRequest,
    MergeClusters,
    MergeClustersAck,
    MergeOffer,
    MergeReply,
    StateLock,
    WhoIsMaster,
)
from quarterdeck.backend.core.membership.split_brain import cluster_search
from tests.core.member_state import state_of
from tests.core.membership.split_brain.merging_clusters import (
    SLOW_TO_FREEZE,
    begin,
    phase,
    states,
    two,
    united,
    until,
)
from tests.core.stepped_cluster import SteppedCluster, address_of, training_settings

# Members that leave meanwhile


@pytest.mark.parametrize("when", ["proving", "freezing", "offering", "ordering"])
def test_a_member_that_leaves_meanwhile_holds_nothing_up(when: str) -> None:
    world = two()
    begin(world)
    until(world, when)
    world.sent = [delivery for delivery in world.sent if "G" not in delivery[:2]]
    world.suspect("E", "G")
    world.deliver_all(dead="G")
    world.live(5, dead="G")
    assert united(world, "ABCDEF")


def test_a_member_that_never_answers_when_told_is_left_to_itself_and_comes_later() -> None:
    world = two()
    world.loses = lambda sender, receiver, message: receiver == "G" and isinstance(message, MergeClusters)
    begin(world)
    world.deliver_all()
    world.live(25)
    assert united(world, "ABCDEFG")


# The losing master crashes


@pytest.mark.parametrize("when", ["proving", "freezing", "offering", "ordering"])
def test_when_the_losing_master_crashes_the_others_go_on_thawed_and_merge(when: str) -> None:
    world = two()
    for name in "FG":
        state_of(world.machines[name]).join_list = (address_of("A"),)
    begin(world)
    until(world, when)
    world.sent = [delivery for delivery in world.sent if "E" not in delivery[:2]]
    world.live(11, dead="E")
    assert states(world, "FG") == {"ACTIVE"}
    world.live(20, dead="E")
    assert united(world, "ABCDFG")


def test_a_crash_when_only_some_were_told() -> None:
    world = two()
    state_of(world.machines["G"]).join_list = (address_of("A"),)
    begin(world)
    until(world, "ordering")
    world.deliver(MergeClusters, to="F")
    world.sent = [delivery for delivery in world.sent if "E" not in delivery[:2]]
    world.live(30, dead="E")
    assert united(world, "ABCDFG")


def test_a_claimant_thaws_what_was_frozen_for_the_merge_and_tells_all() -> None:
    world = two()
    begin(world)
    until(world, "ordering")
    assert states(world, "EFG") == {"FROZEN"}
    world.sent.clear()
    world.suspect("G", "E")
    world.suspect("F", "E")
    world.deliver_all(dead="E")
    assert states(world, "FG") == {"ACTIVE"}
    assert world.inspect("F").standing == world.inspect("G").standing


# Orders that come late


def test_an_order_for_an_old_life_is_acknowledged_and_ignored() -> None:
    world = two()
    begin(world)
    until(world, "ordering")
    (order,) = world.messages(MergeClusters, to="F")
    world.deliver(MergeClusters, to="F")
    life = world.machines["F"].uuid
    world.sent.clear()
    world.receive("F", "E", order)
    assert world.machines["F"].uuid == life
    assert world.messages(MergeClustersAck, to="E")
    world.live(3)
    assert len(world.seen("F", MemberMerging)) == 1


def test_an_order_from_somebody_else_than_the_master_is_not_obeyed() -> None:
    world = two()
    world.receive("F", "G", MergeClusters(world.token_of("G"), world.machines["F"].uuid, address_of("A")))
    assert not world.seen("F", MemberMerging)


def test_an_order_to_an_earlier_incarnation_is_not_obeyed() -> None:
    world = two()
    world.receive("F", "E", MergeClusters(world.token_of("E"), "an earlier life of F", address_of("A")))
    assert not world.seen("F", MemberMerging)


def test_nor_is_one_of_an_earlier_incarnation_of_the_master() -> None:
    world = two()
    world.receive("F", "E", MergeClusters("an-earlier-li/3", world.machines["F"].uuid, address_of("A")))
    assert not world.seen("F", MemberMerging)


def test_a_lost_acknowledgement_does_not_make_a_member_merge_twice() -> None:
    world = two()
    world.loses = lambda sender, receiver, message: isinstance(message, MergeClustersAck)
    begin(world)
    world.deliver_all()
    world.live(15)
    assert united(world, "ABCDEFG")
    assert all(len(world.seen(name, MemberMerging)) == 1 for name in "EFG")


# Joins, states and other clusters meanwhile


def test_newcomers_wait_while_their_cluster_merges() -> None:
    world = two()
    begin(world)
    until(world, "offering")
    world.receive("E", "X", JoinRequest("uuid-x", False))
    assert not [delivery for delivery in world.sent if delivery[1] == "X"]
    assert world.list_of("E") == (3, "EFG")


def test_no_merge_begins_while_somebody_is_just_joining() -> None:
    world = two()
    world.receive("E", "X", JoinRequest("uuid-x", False))
    begin(world)
    assert phase(world) is None


def test_an_operator_cannot_change_the_state_of_a_merging_cluster() -> None:
    from quarterdeck.backend.core.membership.events import ClusterStateRefused

    world = two()
    begin(world)
    until(world, "offering")
    world.change_state("E", "PASSIVE")
    assert "merging" in world.seen("E", ClusterStateRefused)[0].reason


def test_a_third_cluster_that_offers_meanwhile_is_refused_and_comes_later() -> None:
    world = two()
    world.born("X", "E")
    world.settled("X")
    begin(world)
    until(world, "offering")
    shown = cluster_search.profile(state_of(world.machines["X"]))
    world.receive("E", "X", MergeOffer("token-x", shown, world.list_of("E")[0]))
    (reply,) = world.messages(MergeReply, to="X")
    assert "itself merging" in reply.refusal
    world.live(20)
    assert united(world, "ABCDEFGX")


def test_a_chain_of_merges_ends_in_one_cluster() -> None:
    """X into E, and E into A, at the same time."""
    world = two()
    world.born("X", "E")
    world.born("Y")
    world.settled("XY")
    begin(world)
    begin(world, winner="E", loser="X")
    for name in "X":
        assert phase(world, name) is not None
    world.live(40)
    assert united(world, "ABCDEFGXY")


def test_two_losers_at_once() -> None:
    world = two()
    world.born("X", "A")
    world.born("Y")
    world.settled("XY")
    begin(world)
    begin(world, loser="X")
    world.live(15)
    assert united(world, "ABCDEFGXY")


def test_a_winner_whose_state_is_just_being_changed_does_not_agree() -> None:
    world = two()
    begin(world)
    until(world, "offering")
    world.change_state("A", "FROZEN")
    world.deliver(MergeOffer, to="A")
    (reply,) = world.messages(MergeReply, to="E")
    assert reply.refusal


# When the winner does not let them in after all


def lost_on_the_way(refused: bool) -> SteppedCluster:
    """E, F and G have left their cluster; A does not let them in."""
    world = two()
    begin(world)
    until(world, "ordering")
    if refused:
        for name in "ABCD":
            state_of(world.machines[name]).standing = ClusterStanding("FROZEN", 1)
        world.deliver_all()
        assert not world.messages(JoinRefused)
    else:
        world.deliver_all(dead="ABCD")
    return world


def test_losers_whose_target_is_silent_look_around_like_any_joiner() -> None:
    world = lost_on_the_way(refused=False)
    for _ in range(80):
        world.pass_seconds(0.1, *"EFG")
        if world.messages(WhoIsMaster):
            break
        world.deliver_all(dead="ABCD")
    assert world.messages(WhoIsMaster)


def test_losers_whose_target_is_gone_do_not_end_as_clusters_of_one() -> None:
    world = lost_on_the_way(refused=False)
    formed = 0
    for _ in range(300):
        world.live(0.1, dead="ABCD")
        formed = sum(1 for name in "EFG" for event in world.seen(name, ListInstalled) if event.cause == "formed")
    assert formed == 1
    assert united(world, "EFG")


def test_losers_that_are_refused_look_around_before_they_form_a_cluster() -> None:
    world = lost_on_the_way(refused=True)
    world.live(3)
    assert not any(event.cause == "formed" for name in "EFG" for event in world.seen(name, ListInstalled))
    world.live(5)
    assert not any(event.cause == "formed" for name in "EFG" for event in world.seen(name, ListInstalled))


def test_losers_whose_target_died_come_together_in_the_end() -> None:
    world = lost_on_the_way(refused=False)
    world.live(60, dead="ABCD")
    assert united(world, "EFG")


# A freeze that takes longer than its phase


def test_a_freeze_that_comes_too_late_does_not_freeze_the_cluster() -> None:
    world = two(settings=SLOW_TO_FREEZE)
    begin(world)
    until(world, "freezing")
    world.loses = lambda sender, receiver, message: receiver == "G" and isinstance(message, StateLock)
    world.live(10.5)
    assert world.seen("E", MergeAbandoned)
    world.loses = lambda *_: False
    world.live(3)
    assert states(world, "EFG") == {"ACTIVE"}


def test_a_freeze_that_takes_too_long_is_named_as_the_reason() -> None:
    world = two(settings=SLOW_TO_FREEZE)
    begin(world)
    until(world, "freezing")
    world.loses = lambda sender, receiver, message: receiver == "G" and isinstance(message, StateLock)
    world.live(10.5)
    assert "other cluster" not in world.seen("E", MergeAbandoned)[0].reason


def test_a_ring_survives_the_departure_of_its_master_at_a_heartbeat() -> None:
    """The last member not reported falls silent: the removal ends the merge within the heartbeat timer's rule."""
    world = two(settings=training_settings(heartbeat_topology="ring", disconnection_heartbeats=0))
    begin(world)
    until(world, "ordering")
    world.loses = lambda sender, receiver, message: "G" in (sender, receiver)
    world.live(3.9, dead="G")
    world.cut_links("E", "ABCD")
    world.live(8, dead="G")
    assert world.seen("E", MemberMerging)

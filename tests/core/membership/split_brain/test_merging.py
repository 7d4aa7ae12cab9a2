"""The merge of a losing cluster into the winner's (seed 002; seed 003; behaviour 6.6 and 6.7)."""

import pytest

from quarterdeck.backend.core.cluster_profile import ClusterStanding
from quarterdeck.backend.core.effects import Happened, Reconnect, Transmit
from quarterdeck.backend.core.events import (
    ClusterStateChanged,
    ListInstalled,
    MemberMerging,
    MemberStarted,
    MergeAbandoned,
    MergeStarted,
    NotMerging,
)
from quarterdeck.backend.core.inputs import Receive
from quarterdeck.backend.core.membership.split_brain import cluster_search
from quarterdeck.backend.core.messages import (
    FinalizeJoin,
    JoinRefused,
    JoinRequest,
    LinkProbe,
    LinksReport,
    MergeClusters,
    MergeClustersAck,
    MergeOffer,
    MergeReply,
    Message,
    ProveLinks,
    SplitBrainAnswer,
    StateDecision,
    StateLock,
    StateLockAnswer,
    WhoIsMaster,
)
from quarterdeck.backend.core.properties import Settings
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SETTINGS, SteppedCluster, address_of, training_settings

WITHOUT_PROOF = training_settings(disconnection_heartbeats=0)

MINUTE_US = 60_000_000

SLOW_TO_FREEZE = training_settings(
    state_lease_us=MINUTE_US,
    merge_next_run_delay_us=2 * MINUTE_US,
    max_no_heartbeat_us=MINUTE_US,
    max_no_master_confirmation_us=MINUTE_US,
)
"""A lease longer than a phase of the merge, as in production."""


def two(
    winner: str = "ABCD", loser: str = "EFG", settings: Settings = SETTINGS, version: int | None = None
) -> SteppedCluster:
    """Two clusters; the losing master knows the winning one."""
    world = SteppedCluster(settings)
    for name in winner + loser:
        world.born(name, winner[0] if name == loser[0] else "")
    world.settled(winner)
    world.settled(loser, version=version)
    return world


def begin(world: SteppedCluster, winner: str = "A", loser: str = "E") -> None:
    """The losing master learns of the winner and begins."""
    world.receive(loser, winner, SplitBrainAnswer(cluster_search.profile(state_of(world.machines[winner]))))


def phase(world: SteppedCluster, name: str = "E") -> str | None:
    merge = state_of(world.machines[name]).merge
    return merge.phase if merge else None


def until(world: SteppedCluster, wanted: str, name: str = "E") -> None:
    """Deliver one message at a time until the merge is in the phase `wanted`, whose messages wait then."""
    for _ in range(500):
        if phase(world, name) == wanted:
            return
        assert world.sent, f"nothing waits in phase {phase(world, name)}"
        sender, receiver, message = world.sent.pop(0)
        world.receive(receiver, sender, message)
    raise AssertionError(phase(world, name))


def united(world: SteppedCluster, names: str) -> bool:
    machines = [world.machines[name] for name in names]
    lists = {world.list_of(name) for name, machine in zip(names, machines, strict=True) if machine.joined}
    return all(machine.joined for machine in machines) and len(lists) == 1 and set(lists.pop()[1]) == set(names)


def states(world: SteppedCluster, names: str) -> set[str]:
    return {world.inspect(name).standing.state for name in names}


# The whole of it


def test_all_members_end_in_one_cluster_under_the_winners_master() -> None:
    world = two()
    begin(world)
    world.deliver_all()
    world.live(2)
    assert united(world, "ABCDEFG")
    assert {world.master_of(name) for name in "ABCDEFG"} == {"A"}
    assert states(world, "ABCDEFG") == {"ACTIVE"}


def test_a_lone_master_merges_too() -> None:
    world = two(loser="E")
    begin(world)
    world.deliver_all()
    world.live(1)
    assert united(world, "ABCDE")


def test_the_phases_come_in_order_and_the_master_goes_last() -> None:
    world = two()
    begin(world)
    assert phase(world) == "proving"
    until(world, "freezing")
    assert not world.messages(MergeOffer)
    until(world, "offering")
    assert states(world, "E") == {"FROZEN"}
    assert len(world.messages(MergeOffer, to="A")) == 1
    until(world, "telling")
    assert len(world.messages(MergeClusters)) == 2
    while phase(world) is not None:
        sender, receiver, message = world.sent.pop(0)
        world.receive(receiver, sender, message)
    assert all(world.seen(name, MemberMerging) for name in "EFG")


def test_without_partial_disconnections_to_resolve_no_links_are_proven() -> None:
    world = two(settings=WITHOUT_PROOF)
    begin(world)
    assert phase(world) == "freezing"
    assert not world.messages(ProveLinks)
    world.deliver_all()
    world.live(2)
    assert united(world, "ABCDEFG")


# The new life


def test_each_goes_on_under_a_new_uuid_with_records_from_one_on() -> None:
    world = two()
    old = {name: world.machines[name].uuid for name in "EFG"}
    begin(world)
    world.deliver_all()
    world.live(2)
    for name in "EFG":
        new = world.machines[name].uuid
        assert new != old[name]
        for uuid, first in ((old[name], 2), (new, 1)):  # the first record of the old incarnation was not kept
            numbers = [record.seq for record in world.records[name] if record.uuid == uuid]
            assert numbers == list(range(first, len(numbers) + first))
        last_of_old = [record.event for record in world.records[name] if record.uuid == old[name]][-1]
        first_of_new = next(record.event for record in world.records[name] if record.uuid == new)
        assert last_of_old == MemberMerging(address_of("A"), new)
        assert isinstance(first_of_new, MemberStarted) and first_of_new.merged_from == old[name]


def test_connections_are_closed_between_the_lives() -> None:
    """What the old incarnation still says goes out before, what the new one says after."""
    world = two()
    begin(world)
    until(world, "telling")
    machine = world.machines["F"]
    (order,) = world.messages(MergeClusters, to="F")
    effects = machine.step(world.now, Receive(address_of("E"), order))
    cut = [place for place, effect in enumerate(effects) if isinstance(effect, Reconnect)]
    assert len(cut) == 1
    before, after = effects[: cut[0]], effects[cut[0] :]
    assert any(
        isinstance(effect, Transmit) and isinstance(effect.deliveries[0][1], MergeClustersAck) for effect in before
    )
    assert any(isinstance(effect, Happened) and isinstance(effect.record.event, MemberStarted) for effect in after)
    assert any(isinstance(effect, Transmit) and isinstance(effect.deliveries[0][1], JoinRequest) for effect in after)


def test_the_new_life_knows_nothing_of_the_old_cluster_but_the_join_list_and_addresses() -> None:
    world = two()
    world.suspect("F", "G")
    world.edit_join_list("F", "XYZ")
    world.deliver_all()
    begin(world)
    until(world, "telling")
    world.deliver(MergeClusters, to="F")
    state = state_of(world.machines["F"])
    assert state.members is None and not state.suspicions and not state.peers and state.standing == ClusterStanding()
    assert state.join_list == tuple(map(address_of, "XYZ"))
    assert state.remembered[address_of("E")] == world.now
    assert [name for name in ("heartbeat", "confirmation", "publish", "search") if state.timers.is_set(name)] == []


def test_the_version_of_nobody_goes_back() -> None:
    world = two(version=40)
    begin(world)
    world.deliver_all()
    world.live(2)
    for name in "ABCDEFG":
        versions = [event.version for event in world.seen(name, ListInstalled)]
        assert versions == sorted(set(versions)), name
    assert world.list_of("E")[0] > 40


def test_the_version_of_nobody_goes_back_when_losers_leave_after_the_offer() -> None:
    world = two(winner="ABCDJKL", loser="EFGHI", version=20)
    begin(world)
    until(world, "telling")
    world.drop(MergeClusters)
    world.suspect("E", "GHI")
    world.deliver_all(dead="GHI")
    world.live(3, dead="GHI")
    versions = [event.version for event in world.seen("F", ListInstalled)]
    assert world.machines["F"].joined and world.master_of("F") == "A"
    assert versions == sorted(set(versions))


# Each phase: refusal, silence, loss


def test_proving_a_missing_link_waits_without_freezing() -> None:
    world = two()
    world.cut_links("F", "C")
    begin(world)
    world.deliver_all()
    world.live(1.2)
    assert phase(world) is None
    assert "does not reach" in world.seen("E", NotMerging)[-1].reason
    assert not world.seen("E", MergeStarted) and not world.seen("E", MergeAbandoned)
    assert not world.seen("E", ClusterStateChanged)


def test_proving_is_tried_again_with_a_growing_delay_and_succeeds_after_the_heal() -> None:
    world = two()
    world.cut_links("F", "C")
    world.live(20)
    assert not world.seen("E", MergeStarted)
    world.cut.clear()
    world.live(7)
    assert united(world, "ABCDEFG")


@pytest.mark.parametrize("kind", [ProveLinks, LinksReport])
def test_proving_survives_one_lost_message(kind: type) -> None:
    world = two()
    lost: list[Message] = []

    def first_of_its_kind(sender: str, receiver: str, message: Message) -> bool:
        if isinstance(message, kind) and not lost:
            lost.append(message)
            return True
        return False

    world.loses = first_of_its_kind
    begin(world)
    world.deliver_all()
    world.live(5)
    assert lost and united(world, "ABCDEFG")


@pytest.mark.parametrize(
    "kind", [LinkProbe, StateLock, StateLockAnswer, StateDecision, MergeOffer, MergeReply, MergeClusters, MergeClustersAck,
             JoinRequest, FinalizeJoin]
)  # fmt: skip
def test_one_lost_message_of_any_other_kind_costs_a_moment_only(kind: type) -> None:
    world = two()
    lost: list[Message] = []

    def first_of_its_kind(sender: str, receiver: str, message: Message) -> bool:
        if isinstance(message, kind) and not lost:
            lost.append(message)
            return True
        return False

    world.loses = first_of_its_kind
    begin(world)
    world.deliver_all()
    world.live(5)
    assert lost and united(world, "ABCDEFG")
    assert states(world, "ABCDEFG") == {"ACTIVE"}


def test_a_lost_reply_does_not_abandon_the_merge() -> None:
    world = two(version=9)
    begin(world)
    until(world, "offering")
    world.deliver(MergeOffer)
    assert world.drop(MergeReply) == 1
    world.live(3)
    assert not world.seen("E", MergeAbandoned)
    assert united(world, "ABCDEFG")


def test_the_second_of_two_losers_is_not_refused_because_the_first_was_accepted() -> None:
    world = two(version=9)
    world.born("X", "A")
    world.settled("X")
    begin(world)
    begin(world, loser="X")
    until(world, "offering", "X")
    world.drop(MergeReply)
    (offer,) = world.messages(MergeOffer, to="A")
    world.drop(MergeOffer)
    until(world, "offering")
    world.deliver(MergeOffer)
    world.receive("A", "X", offer)
    assert [reply.refusal for reply in world.messages(MergeReply)] == ["", ""]


def test_a_winner_whom_somebody_has_joined_since_the_links_were_proven_refuses() -> None:
    """The links to the newcomer are not proven; the loser tries again."""
    world = two()
    begin(world)
    until(world, "offering")
    (offer,) = world.messages(MergeOffer, to="A")
    world.receive("A", "X", JoinRequest("uuid-x", False))
    world.receive("A", "E", offer)
    (reply,) = world.messages(MergeReply, to="E")
    assert "joined" in reply.refusal


def test_every_message_twice_changes_nothing() -> None:
    world = two()
    begin(world)
    for _ in range(3000):
        if not world.sent:
            world.pass_seconds(0.1)
        if world.now > 3_000_000:
            break
        if world.sent:
            sender, receiver, message = world.sent.pop(0)
            world.receive(receiver, sender, message)
            world.receive(receiver, sender, message)
    world.sent.clear()
    world.live(3)
    assert united(world, "ABCDEFG")
    assert all(len(world.seen(name, MemberMerging)) == 1 for name in "EFG")


def test_a_member_that_refuses_to_freeze_ends_the_merge_and_thaws() -> None:
    world = two()
    begin(world)
    until(world, "freezing")
    state_of(world.machines["F"]).members = world.inspect("F").members.joined_by(  # type: ignore[union-attr]
        address_of("X"), "uuid-x", False
    )
    world.deliver_all()
    assert phase(world) is None
    assert "could not be frozen" in world.seen("E", MergeAbandoned)[0].reason
    assert states(world, "EG") == {"ACTIVE"}


def test_a_silent_winner_is_given_up_and_the_cluster_lives_on() -> None:
    world = two()
    begin(world)
    until(world, "offering")
    world.cut_links("ABCD", "EFG")
    world.live(9.5)
    assert states(world, "EFG") == {"FROZEN"}
    world.live(2)
    assert world.seen("E", MergeAbandoned)
    assert states(world, "EFG") == {"ACTIVE"}
    assert {world.list_of(name)[1] for name in "EFG"} == {"EFG"}
    world.cut.clear()
    world.live(10)
    assert united(world, "ABCDEFG")


def test_a_winner_that_refuses_is_given_up_and_the_cluster_thaws() -> None:
    world = two()
    begin(world)
    until(world, "offering")
    world.drop(MergeOffer)
    world.change_state("A", "FROZEN")
    world.deliver_all()
    world.live(1.1)
    assert "FROZEN" in world.seen("E", MergeAbandoned)[0].reason
    assert states(world, "EFG") == {"ACTIVE"}
    assert {world.list_of(name)[1] for name in "EFG"} == {"EFG"}


def test_a_reply_to_another_offer_counts_for_nothing() -> None:
    world = two()
    begin(world)
    until(world, "offering")
    world.receive("E", "A", MergeReply("another token", ""))
    assert phase(world) == "offering"


# Members that leave meanwhile


@pytest.mark.parametrize("when", ["proving", "freezing", "offering", "telling"])
def test_a_member_that_leaves_meanwhile_holds_nothing_up(when: str) -> None:
    world = two()
    begin(world)
    until(world, when)
    world.sent = [one for one in world.sent if "G" not in one[:2]]
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


@pytest.mark.parametrize("when", ["proving", "freezing", "offering", "telling"])
def test_when_the_losing_master_crashes_the_others_go_on_thawed_and_merge(when: str) -> None:
    world = two()
    for name in "FG":
        state_of(world.machines[name]).join_list = (address_of("A"),)
    begin(world)
    until(world, when)
    world.sent = [one for one in world.sent if "E" not in one[:2]]
    world.live(11, dead="E")
    assert states(world, "FG") == {"ACTIVE"}
    world.live(20, dead="E")
    assert united(world, "ABCDFG")


def test_a_crash_when_only_some_were_told() -> None:
    world = two()
    state_of(world.machines["G"]).join_list = (address_of("A"),)
    begin(world)
    until(world, "telling")
    world.deliver(MergeClusters, to="F")
    world.sent = [one for one in world.sent if "E" not in one[:2]]
    world.live(30, dead="E")
    assert united(world, "ABCDFG")


def test_a_claimant_thaws_what_was_frozen_for_the_merge_and_tells_all() -> None:
    world = two()
    begin(world)
    until(world, "telling")
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
    until(world, "telling")
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
    world.receive("F", "G", MergeClusters("token", world.machines["F"].uuid, address_of("A")))
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
    assert not [one for one in world.sent if one[1] == "X"]
    assert world.list_of("E") == (3, "EFG")


def test_no_merge_begins_while_somebody_is_just_joining() -> None:
    world = two()
    world.receive("E", "X", JoinRequest("uuid-x", False))
    begin(world)
    assert phase(world) is None


def test_an_operator_cannot_change_the_state_of_a_merging_cluster() -> None:
    from quarterdeck.backend.core.events import ClusterStateRefused

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
    until(world, "telling")
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
    for _ in range(180):
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
    """The last member not told falls silent: the removal ends the merge within the heartbeat timer's rule."""
    world = two(settings=training_settings(heartbeat_topology="ring", disconnection_heartbeats=0))
    begin(world)
    until(world, "telling")
    world.loses = lambda sender, receiver, message: "G" in (sender, receiver)
    world.live(3.9, dead="G")
    world.cut_links("E", "ABCD")
    world.live(8, dead="G")
    assert world.seen("E", MemberMerging)

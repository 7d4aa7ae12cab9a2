"""The merge of a losing cluster into the winner's (Split-brain Recovery Improvements; Emergent Leader; Hazelcast: start of a
merge and merge on each member)."""

import pytest
from msgspec import structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterStanding, ProfiledMember
from quarterdeck.backend.core.effects import Disconnect, Happened, Transmit
from quarterdeck.backend.core.inputs import Receive
from quarterdeck.backend.core.membership.events import (
    ClusterStateChanged,
    ListInstalled,
    MemberMerging,
    MemberStarted,
    MergeAbandoned,
    MergeStarted,
    NotMerging,
)
from quarterdeck.backend.core.membership.messages import (
    FinalizeJoin,
    JoinRequest,
    LinkProbe,
    LinksReport,
    MergeClusters,
    MergeClustersAck,
    MergeOffer,
    MergeReply,
    ProveLinks,
    SplitBrainAnswer,
    SplitBrainProbe,
    StateDecision,
    StateLock,
    StateLockAnswer,
)
from quarterdeck.backend.core.membership.split_brain import cluster_search
from tests.core.member_state import state_of
from tests.core.membership.split_brain.merging_clusters import (
    WITHOUT_PROOF,
    begin,
    phase,
    states,
    two,
    united,
    until,
)
from tests.core.stepped_cluster import SteppedCluster, address_of

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
    assert phase(world) == "confirming"
    until(world, "proving")
    until(world, "freezing")
    assert not world.messages(MergeOffer)
    until(world, "offering")
    assert states(world, "E") == {"FROZEN"}
    assert len(world.messages(MergeOffer, to="A")) == 1
    until(world, "ordering")
    assert len(world.messages(MergeClusters)) == 2
    while phase(world) is not None:
        sender, receiver, message = world.sent.pop(0)
        world.receive(receiver, sender, message)
    assert all(world.seen(name, MemberMerging) for name in "EFG")


def test_without_partial_disconnections_to_resolve_no_links_are_proven() -> None:
    world = two(settings=WITHOUT_PROOF)
    begin(world)
    until(world, "freezing")
    assert not world.messages(ProveLinks)
    world.deliver_all()
    world.live(2)
    assert united(world, "ABCDEFG")


def test_a_master_that_only_claims_to_lead_many_members_is_not_merged_into() -> None:
    """Its list agrees with its counts, yet no other member on it names it: the cluster is neither frozen nor dissolved."""
    world = two()
    winner = cluster_search.profile(state_of(world.machines["A"]))
    invented = tuple(ProfiledMember(Address(f"10.9.9.{number}:5701"), f"uuid-{number}", False) for number in range(9))
    shown = structs.replace(winner, members=(winner.members[0], *invented), data_member_count=10)
    world.loses = lambda sender, receiver, message: isinstance(message, SplitBrainProbe)
    world.receive("E", "A", SplitBrainAnswer(shown))
    assert phase(world) == "confirming"
    world.live(15)
    assert not world.seen("E", MergeStarted) and not world.seen("E", ClusterStateChanged)
    assert any("did not confirm" in event.reason for event in world.seen("E", NotMerging))


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
        assert last_of_old == MemberMerging(address_of("A"), new, brings_entries=False)
        assert isinstance(first_of_new, MemberStarted) and first_of_new.merged_from == old[name]


def test_connections_are_closed_between_the_lives() -> None:
    """What the old incarnation still says goes out before, what the new one says after."""
    world = two()
    begin(world)
    until(world, "ordering")
    machine = world.machines["F"]
    (order,) = world.messages(MergeClusters, to="F")
    effects = machine.step(world.now, Receive(address_of("E"), order))
    cut = [place for place, effect in enumerate(effects) if isinstance(effect, Disconnect)]
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
    until(world, "ordering")
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
    until(world, "ordering")
    world.drop(MergeClusters)
    world.suspect("E", "GHI")
    world.deliver_all(dead="GHI")
    world.live(3, dead="GHI")
    versions = [event.version for event in world.seen("F", ListInstalled)]
    assert world.machines["F"].joined and world.master_of("F") == "A"
    assert versions == sorted(set(versions))


# Each phase: refusal, silence, loss


def test_a_cluster_that_dissolves_removes_nobody_any_more() -> None:
    world = two()
    begin(world)
    until(world, "ordering")
    before = world.list_of("E")
    world.suspect("E", "F")
    assert world.list_of("E") == before


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
    assert united(merged_without_the_first(kind), "ABCDEFG")


@pytest.mark.parametrize(
    "kind", [LinkProbe, StateLock, StateLockAnswer, StateDecision, MergeOffer, MergeReply, MergeClusters, MergeClustersAck,
             JoinRequest, FinalizeJoin]
)  # fmt: skip
def test_one_lost_message_of_any_other_kind_costs_a_moment_only(kind: type) -> None:
    world = merged_without_the_first(kind)
    assert united(world, "ABCDEFG")
    assert states(world, "ABCDEFG") == {"ACTIVE"}


def merged_without_the_first(kind: type) -> SteppedCluster:
    """Two clusters some time after they began to merge; the first message of this kind was lost."""
    world = two()
    lost = world.lose_first(kind)
    begin(world)
    world.deliver_all()
    world.live(5)
    assert lost
    return world


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

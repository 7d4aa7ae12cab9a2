"""Late messages of incarnations that are dead (chapter `present_incarnation`), also of those that never got on any list."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.membership.events import ClaimStarted, MemberRemoved
from quarterdeck.backend.core.membership.messages import (
    FinalizeJoin,
    FormationBid,
    FormationVote,
    JoinRefused,
    JoinRequest,
    LinkProbe,
    LinkProbeReply,
    MasterIs,
    MembersUpdate,
    SplitBrainAnswer,
    StateRequest,
    WhoIsMaster,
)
from quarterdeck.backend.core.membership.split_brain import cluster_search
from quarterdeck.backend.core.messages import Message
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster, address_of, training_settings

DEAD = "an incarnation that never joined"


def cluster(names: str = "ABCD") -> SteppedCluster:
    return SteppedCluster().settled(names)


def untouched(world: SteppedCluster, uuid: str) -> bool:
    """Whether D is on everybody's list as the incarnation `uuid`, as if nothing had come, and A leads everybody."""
    holding = [world.inspect(name).members for name in world.machines]
    return all(
        member_list is not None and member_list.holds(address_of("D"), uuid) and member_list.version == 4
        for member_list in holding
    )


@pytest.mark.parametrize("late", [JoinRequest(DEAD, False), WhoIsMaster(DEAD), FormationBid(DEAD)])
@pytest.mark.parametrize("receiver", "ABC")
def test_a_late_message_of_a_dead_incarnation_changes_nothing(late: Message, receiver: str) -> None:
    world = cluster()
    for _ in range(3):
        world.receive(receiver, "D", late)
        world.live(1)
    assert untouched(world, world.machines["D"].uuid)
    assert not any(world.suspects_of(name) for name in "ABCD")


@pytest.mark.parametrize("late", [JoinRequest(DEAD, False), WhoIsMaster(DEAD), FormationBid(DEAD)])
def test_of_the_masters_address_it_starts_no_claim(late: Message) -> None:
    world = cluster()
    for name in "BCD":
        world.receive(name, "A", late)
    world.live(3)
    assert untouched(world, world.machines["D"].uuid)
    assert not any(world.seen(name, ClaimStarted) for name in "ABCD")


def test_a_restarted_member_is_let_in_at_once_when_it_has_shown_that_it_lives() -> None:
    world = cluster()
    world.born("D", "A")
    world.start("D")
    world.deliver_all()
    assert [world.list_of(name) for name in "ABCD"] == [(6, "ABCD")] * 4
    assert [removed.cause for removed in world.seen("A", MemberRemoved)] == ["new-incarnation"]


@pytest.mark.parametrize("is_alive", [False, True])
def test_of_an_address_that_has_just_left_only_who_lives_is_let_in(is_alive: bool) -> None:
    world = cluster("ABC")
    world.suspect("A", "C")
    world.deliver_all(dead="C")
    asking = world.born("C", "A").uuid if is_alive else DEAD
    world.receive("A", "C", JoinRequest(asking, False))
    assert world.list_of("A") == (4, "AB")
    world.deliver_all(dead="" if is_alive else "C")
    assert world.list_of("A")[1] == ("ABC" if is_alive else "AB")


def late_reply(world: SteppedCluster) -> LinkProbeReply:
    """Return the reply of an incarnation of D, to the probe that its request to join begins, before it has arrived."""
    dead = world.born("D", "A").uuid
    world.receive("A", "D", JoinRequest(dead, False))
    world.deliver(LinkProbe, to="D")
    (reply,) = world.messages(LinkProbeReply, to="A")
    world.sent.clear()
    return reply


def test_a_late_reply_does_not_remove_the_incarnation_that_has_joined_since() -> None:
    """It was given before the present incarnation came to be."""
    world = SteppedCluster().settled("ABCD")
    reply = late_reply(world)
    world.suspect("A", "D")
    world.deliver_all(dead="D")
    world.now += training_settings().stale_join_prevention_us  # so that it is let in without being asked
    world.born("D", "A")
    world.start("D")
    world.deliver_all()
    version, names = world.list_of("A")
    assert names == "ABCD"
    world.receive("A", "D", reply)
    world.live(2)
    assert world.list_of("A") == (version, names)
    assert state_of(world.machines["A"]).peers[address_of("D")].uuid == world.machines["D"].uuid


def test_of_two_that_ask_only_the_one_that_was_asked_last_can_prove_it() -> None:
    world = cluster()
    reply = late_reply(world)
    world.born("D", "A")
    world.start("D")
    world.deliver(WhoIsMaster)
    world.receive("A", "D", reply)
    assert not world.seen("A", MemberRemoved)
    world.deliver_all()
    assert state_of(world.machines["A"]).peers[address_of("D")].uuid == world.machines["D"].uuid


def test_whoever_is_asked_again_is_asked_the_same_so_that_a_slow_reply_counts() -> None:
    world = cluster()
    world.born("D", "A")
    for _ in range(4):
        world.receive("A", "D", JoinRequest(world.machines["D"].uuid, False))
    assert len({probe.token for probe in world.messages(LinkProbe, to="D")}) == 1
    assert len(state_of(world.machines["A"]).incarnation_checks) == 1


def test_a_late_request_does_not_take_the_place_of_one_that_waits_to_be_let_in() -> None:
    world = SteppedCluster().settled("ABC")
    world.receive("A", "E", JoinRequest("uuid-e", False))
    world.born("D", "A")
    world.receive("A", "D", JoinRequest(world.machines["D"].uuid, False))
    world.receive("A", "D", JoinRequest(DEAD, False))
    world.deliver_all(dead="E")
    assert [(member.address, member.uuid) for member in world.inspect("A").members.members[-1:]] == [  # type: ignore[union-attr]
        (address_of("D"), world.machines["D"].uuid)
    ]


def test_checks_of_addresses_that_matter_no_more_are_forgotten() -> None:
    world = cluster()
    for name in "BCD":
        world.receive("A", name, JoinRequest(f"dead-{name}", False))
    world.suspect("A", "CD")
    world.now += training_settings().stale_join_prevention_us
    world.receive("A", "B", JoinRequest("dead-B", False))
    assert list(state_of(world.machines["A"]).incarnation_checks) == [address_of("B")]


def test_a_master_that_dissolves_its_cluster_does_not_ask_for_ever() -> None:
    world = SteppedCluster(training_settings(disconnection_heartbeats=0)).settled("ABC")
    world.settled("EFG")
    world.receive("E", "A", SplitBrainAnswer(cluster_search.profile(state_of(world.machines["A"]))))
    while (merge := state_of(world.machines["E"]).merge) is not None and merge.phase != "ordering":
        sender, receiver, message = world.sent.pop(0)
        world.receive(receiver, sender, message)
    world.sent.clear()
    world.born("F", "E")
    world.receive("E", "F", JoinRequest(world.machines["F"].uuid, False))
    world.cut_links("E", "G")
    world.deliver_all(most=200)


# Answers to those who are dead, and to questions of before


def test_a_vote_for_an_earlier_bid_counts_nowhere() -> None:
    world = SteppedCluster().starting(A="AB")
    world.receive("A", "B", MasterIs(None, world.search_token_of("A")))
    (bid,) = world.messages(FormationBid, to="B")
    world.receive("A", "B", FormationVote(False, bid.token, bid.number))
    world.receive("A", "B", MasterIs(None, world.search_token_of("A")))
    assert world.messages(FormationBid, to="B")[-1].number == bid.number + 1
    world.receive("A", "B", FormationVote(True, bid.token, bid.number))
    world.receive("A", "B", FormationVote(True, "the search of an earlier life", bid.number + 1))
    assert not world.machines["A"].joined
    world.receive("A", "B", FormationVote(True, bid.token, bid.number + 1))
    assert world.list_of("A") == (1, "A")


def test_answers_to_an_earlier_incarnation_are_known_as_such() -> None:
    world = SteppedCluster().starting(X="AB")
    world.receive("X", "B", MasterIs(address_of("A"), "the search of an earlier life"))
    assert world.master_of("X") is None and not world.messages(JoinRequest)
    world.name_master("X", "B", "A")
    world.receive("X", "A", JoinRefused("no", "the search of an earlier life"))
    assert world.master_of("X") == "A"


def test_a_late_request_for_another_state_is_not_carried_out_for_a_dead_member() -> None:
    world = cluster("ABC")
    world.receive("A", "C", StateRequest("FROZEN", f"{DEAD[:13]}/7"))
    world.deliver_all()
    assert world.inspect("A").standing.state == "ACTIVE"
    assert not world.messages(FinalizeJoin) and not world.messages(MembersUpdate)

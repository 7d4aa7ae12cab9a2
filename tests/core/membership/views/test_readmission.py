"""Readmission after a partial disconnection (Decisions: Readmission)."""

import pytest

from quarterdeck.backend.core.membership.events import JoinDelayed, ListInstalled, MemberAdmitted, MemberHeldBack
from quarterdeck.backend.core.membership.messages import (
    FinalizeJoin,
    JoinHeld,
    JoinRequest,
    LinkProbe,
    LinkProbeReply,
    MembersUpdate,
    MembersUpdateAck,
)
from quarterdeck.backend.core.membership.views import publishing, readmission
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.properties import SECOND_US
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster, address_of, name_of, names_of


def held(joiner: str = "D", members: str = "ABC") -> SteppedCluster:
    """A cluster whose master has removed `joiner` for its broken links; a new life of it asks to join."""
    world = SteppedCluster().settled(members)
    readmission.hold_back(state_of(world.machines[members[0]]), world.now, address_of(joiner))
    world.born(joiner, members[0] + joiner)
    world.start(joiner)
    return world


def test_the_master_names_the_links_to_be_proven() -> None:
    world = held()
    world.receive("A", "D", JoinRequest("uuid-d", False))
    (answer,) = world.messages(JoinHeld, to="D")
    assert answer.missing == tuple((address_of(name), world.machines[name].uuid) for name in "ABC")
    assert names_of(world.seen("A", MemberHeldBack)[0].missing) == "ABC"
    assert world.list_of("A") == (3, "ABC")


def test_the_joiner_probes_them_and_is_let_in_when_all_are_proven() -> None:
    world = held()
    world.deliver_all()
    assert world.list_of("A") == world.list_of("D") == (4, "ABCD")
    assert names_of(world.seen("D", JoinDelayed)[0].missing) == "ABC"


def test_the_list_is_unchanged_while_a_link_is_down() -> None:
    world = held()
    world.cut_links("D", "C")
    world.live(20)
    assert {world.list_of(name) for name in "ABC"} == {(3, "ABC")}
    assert not world.machines["D"].joined
    assert not world.seen("A", ListInstalled)


@pytest.mark.parametrize("direction", ["CD", "DC"])
def test_a_link_that_works_one_way_is_not_proven(direction: str) -> None:
    world = held()
    world.cut_links(direction[0], direction[1], one_way=True)
    world.live(10)
    assert not world.machines["D"].joined


def test_it_is_let_in_soon_after_the_heal() -> None:
    world = held()
    world.cut_links("D", "C")
    world.live(20)
    world.cut.clear()
    world.live(4.5)
    assert world.list_of("A") == world.list_of("D") == (4, "ABCD")


def test_probes_back_off_and_the_waits_are_told() -> None:
    world = held()
    world.cut_links("D", "C")
    world.live(20)
    assert [event.wait // SECOND_US for event in world.seen("D", JoinDelayed)][:4] == [1, 2, 4, 4]
    assert len(world.seen("D", JoinDelayed)) <= 8
    assert len(world.seen("A", MemberHeldBack)) <= 8


def test_proofs_are_fresh_each_time() -> None:
    """B's link was proven in the first round; in the next it counts only if it is proven again."""
    world = held()
    world.cut_links("D", "C")
    world.live(2)
    world.cut_links("D", "B")
    world.cut -= {("D", "C"), ("C", "D")}
    world.live(10)
    assert not world.machines["D"].joined
    assert world.list_of("A") == (3, "ABC")


def test_a_proof_of_an_earlier_life_of_a_member_is_none() -> None:
    world = held()
    a, b, c = (world.machines[name].uuid for name in "ABC")
    world.receive("A", "D", JoinRequest("uuid-d", False, ("an earlier life of C", a, b)))
    (answer,) = world.messages(JoinHeld)
    assert answer.missing == ((address_of("C"), c),)


def test_a_newcomer_that_came_meanwhile_has_to_be_reached_too() -> None:
    world = held()
    world.receive("A", "D", JoinRequest(world.machines["D"].uuid, False))
    world.deliver(JoinHeld, to="D") if world.master_of("D") == "A" else world.name_master("D", "A", "A")
    world.sent.clear()
    world.settled("ABCE", version=4)
    world.deliver_all()
    world.live(6)
    assert world.list_of("A")[1] == "ABCED"
    assert {name_of(address) for event in world.seen("A", MemberHeldBack) for address in event.missing} >= set("BCE")


def test_once_admitted_it_is_held_back_no_more() -> None:
    world = held()
    world.deliver_all()
    assert not state_of(world.machines["A"]).held_back
    world.suspect("A", "D")
    world.born("D", "A")
    world.receive("A", "D", JoinRequest(world.machines["D"].uuid, False))
    assert not world.messages(JoinHeld)


@pytest.mark.parametrize("first", "DE")
def test_two_who_do_not_reach_each_other_are_not_let_in_together(first: str) -> None:
    """D has been held back, E has not; both wait until the admission of F is done."""
    world = held()
    master = world.machines["A"]
    world.born("E", "A")
    world.born("F", "A")
    world.receive("A", "F", JoinRequest(world.machines["F"].uuid, False))
    proven = tuple(world.machines[name].uuid for name in "ABCF")
    for name in (first, "ED"["DE".index(first)]):
        world.receive("A", name, JoinRequest(world.machines[name].uuid, False, proven if name == "D" else ()))
    for name in "BC":
        world.receive("A", name, MembersUpdateAck(4))
    assert world.list_of("A") == (5, "ABCFE")
    assert state_of(master).held_back.keys() == {address_of("D")}
    assert [names_of(event.missing) for event in world.seen("A", MemberHeldBack)] == ["E"]
    world.receive("A", "D", JoinRequest(world.machines["D"].uuid, False, (*proven, world.machines["E"].uuid)))
    for name in "BCF":
        world.receive("A", name, MembersUpdateAck(5))
    assert world.list_of("A") == (6, "ABCFED")


def test_others_join_meanwhile() -> None:
    world = held()
    world.cut_links("D", "C")
    world.live(3)
    world.born("E", "A")
    world.start("E")
    world.live(2)
    assert world.list_of("A") == (4, "ABCE")


def test_a_new_master_goes_on_holding_back_whom_the_old_one_did() -> None:
    world = held()
    publishing.publish(state_of(world.machines["A"]))
    world.conclude("A")
    world.deliver_all(dead="D")
    world.suspect("C", "A")
    world.suspect("B", "A")
    world.sent = [delivery for delivery in world.sent if delivery[0] != "D"]
    world.deliver_all(dead="A")
    assert world.list_of("B")[1] == "BC"
    world.receive("B", "D", JoinRequest("uuid-d", False))
    (answer,) = world.messages(JoinHeld)
    assert {name_of(address) for address, _ in answer.missing} == {"B", "C"}


def test_a_late_reply_of_a_link_that_nobody_asked_for_proves_nothing() -> None:
    world = held()
    world.deliver_all(dead="BC")
    state = state_of(world.machines["D"])
    assert state.search is not None and state.search.held is not None
    world.receive("D", "C", LinkProbeReply("another life", state.uuid, False))
    assert state.search.held.proven == {world.machines["A"].uuid}


def test_a_held_joiner_never_gives_up_and_never_forms_a_cluster_of_its_own() -> None:
    world = held()
    world.cut_links("D", "C")
    world.live(130)
    assert "D" not in world.halted and not world.machines["D"].joined


def test_a_master_that_is_gone_is_forgotten_by_a_held_joiner() -> None:
    world = held()
    world.cut_links("D", "C")
    world.live(3)
    world.live(40, dead="ABC")
    assert world.list_of("D") == (1, "D")


def test_a_lost_answer_to_a_proven_request_is_asked_for_again_soon() -> None:
    world = held()
    world.cut_links("D", "C")
    world.live(20)  # the back-off has grown to four seconds
    world.cut.clear()
    world.loses = lambda sender, receiver, message: isinstance(message, FinalizeJoin)
    while not world.seen("A", MemberAdmitted):
        world.live(0.1)
    world.loses = lambda *_: False
    world.live(1.5)
    assert world.machines["D"].joined


def test_probes_of_a_held_joiner_go_to_the_missing_only_once_a_round() -> None:
    world = held()
    probes: list[str] = []

    def lost_and_counted(sender: str, receiver: str, message: object) -> bool:
        if sender == "D" and isinstance(message, LinkProbe):
            probes.append(receiver)
            return True
        return False

    world.loses = lost_and_counted
    world.live(20)
    assert 5 <= probes.count("C") <= 8


def test_an_old_list_does_not_say_who_is_held_back() -> None:
    world = SteppedCluster().settled("ABC")
    follower = state_of(world.machines["B"])
    assert follower.members is not None
    overtaken = MembersUpdate(MemberList(2, follower.members.members, follower.members.lineage), False)
    world.receive("B", "A", MembersUpdate(follower.members, False, held_back=(address_of("D"),)))
    world.receive("B", "A", overtaken)
    assert follower.held_back.keys() == {address_of("D")}
    world.receive("B", "A", MembersUpdate(follower.members, False))
    assert not follower.held_back

"""Messages of an incarnation that is gone, and messages meant for one: the next life at that address has no part in them."""

from quarterdeck.backend.core.membership.events import ListRejected
from quarterdeck.backend.core.membership.messages import (
    ExplicitSuspicion,
    FinalizeJoin,
    Heartbeat,
    HeartbeatComplaint,
    Leave,
    MasterConfirmation,
    MasterIs,
    MembersUpdate,
)
from quarterdeck.backend.core.membership.views.identity import ListMetadata, Member
from quarterdeck.backend.core.membership.views.member_list import MemberList
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster, address_of

EARLIER = "an earlier life"


def three() -> SteppedCluster:
    return SteppedCluster().settled("ABC")


def list_with(world: SteppedCluster, version: int, **lives: str) -> MemberList:
    """A list of members by name, some of them under other uuids than they have; all others as they are."""
    members = tuple(
        Member(address_of(name), lives.get(name, world.machines[name].uuid), place)
        for place, name in enumerate("ABC", start=1)
    )
    return MemberList(version, members, "lineage A")


def test_a_heartbeat_for_an_earlier_life_is_no_sign_of_life_and_its_sender_is_told() -> None:
    world = three()
    heard = state_of(world.machines["A"]).peers[address_of("C")].detector.last_heard_us
    world.now += 1_000
    world.receive("A", "C", Heartbeat(world.machines["C"].uuid, EARLIER, address_of("A"), 3))
    assert state_of(world.machines["A"]).peers[address_of("C")].detector.last_heard_us == heard
    assert world.messages(ExplicitSuspicion, to="C")


def test_the_goodbye_of_an_earlier_life_removes_nobody() -> None:
    world = three()
    world.receive("A", "C", Leave(EARLIER))
    assert world.list_of("A") == (3, "ABC")


def test_a_complaint_about_an_earlier_life_separates_it() -> None:
    world = three()
    stray = ListMetadata(address_of("C"), EARLIER, address_of("A"), 3)
    world.receive("A", "B", HeartbeatComplaint(world.inspect("B").metadata(), stray))
    assert world.messages(ExplicitSuspicion, to="C") == [ExplicitSuspicion(stray)]


def test_a_confirmation_for_an_earlier_life_of_the_master_does_not_count() -> None:
    world = three()
    confirmed = state_of(world.machines["A"]).peers[address_of("C")].confirmed_us
    world.now += 1_000
    world.receive("A", "C", MasterConfirmation(world.inspect("C").metadata(), EARLIER))
    assert state_of(world.machines["A"]).peers[address_of("C")].confirmed_us == confirmed


def test_a_list_of_another_life_at_the_masters_address_is_rejected() -> None:
    world = three()
    world.receive("B", "A", MembersUpdate(list_with(world, 9, A="the next life"), False))
    assert world.list_of("B") == (3, "ABC")
    assert [event.cause for event in world.seen("B", ListRejected)] == ["not-its-master"]


def test_a_list_with_another_life_at_an_address_ends_what_was_known_of_the_life_before() -> None:
    """The list in which neither was is lost on the way."""
    world = three()
    world.suspect("B", "C")
    world.receive("B", "A", MembersUpdate(list_with(world, 5, C="the next life"), False))
    peer = state_of(world.machines["B"]).peers[address_of("C")]
    assert (peer.uuid, world.suspects_of("B")) == ("the next life", "")


def test_an_answer_to_the_join_request_of_an_earlier_life_lets_nobody_in() -> None:
    world = three()
    world.born("D", "A")
    world.start("D")
    world.receive("D", "A", MasterIs(address_of("A"), world.search_token_of("D")))
    assert world.master_of("D") == "A"
    members = list_with(world, 3).joined_by(address_of("D"), EARLIER, False)
    world.receive("D", "A", FinalizeJoin(EARLIER, members))
    assert not world.machines["D"].joined


def test_a_joiner_answers_a_heartbeat_that_is_meant_for_its_earlier_life() -> None:
    world = three()
    world.born("D", "A")
    world.start("D")
    world.sent.clear()
    world.receive("D", "A", Heartbeat(world.machines["A"].uuid, EARLIER, address_of("A"), 3))
    (asked,) = world.messages(ExplicitSuspicion, to="A")
    assert asked.about == ListMetadata(address_of("A"), world.machines["A"].uuid, address_of("A"), 3)

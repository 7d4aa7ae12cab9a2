"""Joining, from both sides (chapters `joining` and `admission`)."""

from backend.core.events import JoinFailed, ListInstalled, MemberAdmitted
from backend.core.membership.member_list import first_list
from backend.core.messages import FinalizeJoin, FormationVote, JoinRequest, MasterIs, MembersUpdate, WhoIsMaster
from tests.core.ensemble import SETTINGS, Ensemble, address_of


def test_a_member_with_nobody_to_ask_forms_a_cluster_at_once() -> None:
    world = Ensemble()
    world.born("A", "A")
    world.start("A")
    assert world.list_of("A") == (1, "A") and world.master_of("A") == "A"


def test_a_member_that_reaches_nobody_forms_a_cluster() -> None:
    world = Ensemble()
    world.born("A", "ABC")
    world.start("A")
    world.unreachable("A", "B")
    assert not world.machines["A"].joined
    world.unreachable("A", "C")
    assert world.list_of("A") == (1, "A")


def test_an_address_that_never_answers_holds_nobody_up_for_ever() -> None:
    """Issue 17115: a listed process accepts connections and stays silent."""
    world = Ensemble()
    world.born("A", "AB")
    world.start("A")
    world.pass_seconds(4.5)
    assert not world.machines["A"].joined
    world.pass_seconds(1)
    assert world.list_of("A") == (1, "A")


def test_joining_through_a_slave_leads_to_the_master() -> None:
    world = Ensemble()
    world.with_lists(A=(2, "AB"), B=(2, "AB"))
    world.born("C", "B")
    world.start("C")
    world.deliver_all()
    assert world.list_of("A") == world.list_of("B") == world.list_of("C") == (3, "ABC")
    assert world.master_of("C") == "A"


def test_the_lowest_address_forms_the_cluster_when_nobody_is_master_yet() -> None:
    world = Ensemble()
    for name in "CAB":
        world.born(name, "ABC")
    for name in "CAB":
        world.start(name)
    for _ in range(8):
        world.deliver_all()
        world.pass_seconds(1)
    world.deliver_all()
    assert {world.list_of(name)[0] for name in "ABC"} == {3}
    assert {world.master_of(name) for name in "ABC"} == {"A"}


def test_a_vote_is_given_to_one_bidder_only() -> None:
    from backend.core.messages import FormationBid

    world = Ensemble()
    world.born("C", "ABC")
    world.start("C")
    world.sent.clear()
    world.receive("C", "A", FormationBid("uuid-a"))
    world.receive("C", "B", FormationBid("uuid-b"))
    assert world.sent == [("C", "A", FormationVote(True)), ("C", "B", FormationVote(False))]


def test_the_answer_waits_for_the_acknowledgements_of_the_others() -> None:
    world = Ensemble()
    world.with_lists(A=(3, "ABC"), B=(3, "ABC"), C=(3, "ABC"))
    world.receive("A", "D", JoinRequest("uuid-d", False))
    assert not world.messages(FinalizeJoin)
    assert len(world.messages(MembersUpdate)) == 2
    world.deliver_all(dead="D")
    (admitted,) = world.seen("A", MemberAdmitted)
    assert (admitted.acknowledged, admitted.expected) == (2, 2)  # type: ignore[attr-defined]


def test_the_answer_is_given_after_two_seconds_all_the_same() -> None:
    world = Ensemble()
    world.with_lists(A=(3, "ABC"), B=(3, "ABC"), C=(3, "ABC"))
    world.receive("A", "D", JoinRequest("uuid-d", False))
    world.sent = [one for one in world.sent if one[1] != "C"]
    world.deliver_all()
    assert not world.seen("A", MemberAdmitted)
    world.pass_seconds(2.1, "A")
    assert world.messages(FinalizeJoin, to="D")
    (admitted,) = world.seen("A", MemberAdmitted)
    assert (admitted.acknowledged, admitted.expected) == (1, 2)  # type: ignore[attr-defined]


def test_a_lost_answer_is_repeated_without_a_new_version() -> None:
    world = Ensemble()
    world.with_lists(A=(1, "A"))
    for _ in range(2):
        world.receive("A", "B", JoinRequest("uuid-b", False))
    assert len(world.messages(FinalizeJoin, to="B")) == 2
    assert world.list_of("A") == (2, "AB")


def test_a_new_life_at_an_old_address_replaces_the_old_one() -> None:
    world = Ensemble()
    world.with_lists(A=(3, "ABC"), B=(3, "ABC"), C=(3, "ABC"))
    world.born("B", "A")
    world.start("B")
    world.deliver_all()
    assert world.list_of("A") == world.list_of("B") == world.list_of("C") == (5, "ACB")


def test_a_restarted_master_is_taken_for_dead_and_joins_its_successor() -> None:
    world = Ensemble()
    world.with_lists(A=(3, "ABC"), B=(3, "ABC"), C=(3, "ABC"))
    world.born("A", "ABC")
    world.start("A")
    for _ in range(3):
        world.deliver_all()
        world.pass_seconds(1)
    world.deliver_all()
    assert world.list_of("A") == world.list_of("B") == world.list_of("C")
    assert world.list_of("A")[1] == "BCA"


def test_a_finalized_join_from_somebody_else_changes_nothing() -> None:
    world = Ensemble()
    machine = world.born("C", "AB")
    world.start("C")
    world.receive("C", "A", MasterIs(address_of("A")))
    stranger = first_list(address_of("B"), "uuid-b", False).joined_by(machine.address, machine.uuid, False)
    world.receive("C", "B", FinalizeJoin(machine.uuid, stranger))
    assert not machine.joined


def test_a_master_that_does_not_answer_is_given_up_and_the_search_goes_on() -> None:
    world = Ensemble()
    world.born("C", "AB")
    world.start("C")
    world.receive("C", "B", MasterIs(address_of("A")))
    world.sent.clear()
    world.pass_seconds(6)
    assert len(world.messages(JoinRequest)) == 4
    assert world.messages(WhoIsMaster)


def test_giving_up_names_every_address_and_why() -> None:
    world = Ensemble()
    world.born("C", "ABC")
    world.start("C")
    for _ in range(70):
        world.receive("C", "A", MasterIs(address_of("B"))) if "C" not in world.halted else None
        world.pass_seconds(1)
    assert world.halted["C"].failed
    (failed,) = world.seen("C", JoinFailed)
    assert set(failed.reasons) == {address_of("A"), address_of("B")}  # type: ignore[attr-defined]
    assert "join requests" in failed.reasons[address_of("B")]  # type: ignore[attr-defined]
    assert not world.seen("C", ListInstalled)
    assert SETTINGS.max_join_us == 60_000_000

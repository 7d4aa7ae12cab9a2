"""Joining, from both sides (chapters `joining` and `admission`)."""

from quarterdeck.backend.core.membership.events import (
    JoinFailed,
    JoinRequested,
    ListInstalled,
    MemberAdmitted,
    MemberRemoved,
    MemberStopped,
)
from quarterdeck.backend.core.membership.messages import (
    FinalizeJoin,
    FormationVote,
    JoinRefused,
    JoinRequest,
    MasterIs,
    MembersUpdate,
    MembersUpdateAck,
    SplitBrainAnswer,
    WhoIsMaster,
)
from quarterdeck.backend.core.membership.split_brain import cluster_search
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.membership.views.member_list import MemberList, first_list
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SETTINGS, SteppedCluster, address_of, training_settings


def test_a_member_with_nobody_to_ask_forms_a_cluster_at_once() -> None:
    world = SteppedCluster().starting(A="A")
    assert world.list_of("A") == (1, "A") and world.master_of("A") == "A"


def test_a_member_that_reaches_nobody_forms_a_cluster() -> None:
    world = SteppedCluster().starting(A="ABC")
    world.unreachable("A", "B")
    assert not world.machines["A"].joined
    world.unreachable("A", "C")
    assert world.list_of("A") == (1, "A")


def test_an_address_that_never_answers_holds_nobody_up_for_ever() -> None:
    """Issue 17115: a listed process accepts connections and stays silent."""
    world = SteppedCluster().starting(A="AB")
    world.pass_seconds(8.5)  # a question and its answer may take a heartbeat timeout each
    assert not world.machines["A"].joined
    world.pass_seconds(1)
    assert world.list_of("A") == (1, "A")


def test_joining_through_a_slave_leads_to_the_master() -> None:
    world = SteppedCluster().with_lists(A=(2, "AB"), B=(2, "AB")).starting(C="B")
    world.deliver_all()
    assert world.list_of("A") == world.list_of("B") == world.list_of("C") == (3, "ABC")
    assert world.master_of("C") == "A"


def test_the_lowest_address_forms_the_cluster_when_nobody_is_master_yet() -> None:
    world = SteppedCluster()
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
    from quarterdeck.backend.core.membership.messages import FormationBid

    world = SteppedCluster().starting(C="ABC")
    world.sent.clear()
    world.receive("C", "A", FormationBid("uuid-a"))
    world.receive("C", "B", FormationBid("uuid-b"))
    assert world.sent == [("C", "A", FormationVote(True)), ("C", "B", FormationVote(False))]


def test_a_bidder_waits_for_the_votes_of_all_whom_it_has_asked() -> None:
    world = SteppedCluster().starting(A="ABC")
    token = world.search_token_of("A")
    for name in "BC":
        world.receive("A", name, MasterIs(None, token))
    world.receive("A", "B", FormationVote(True, token, 1))
    assert not world.machines["A"].joined
    world.receive("A", "C", FormationVote(True, token, 1))
    assert world.list_of("A") == (1, "A")


def test_the_answer_waits_for_the_acknowledgements_of_the_others() -> None:
    world = SteppedCluster().with_lists(A=(3, "ABC"), B=(3, "ABC"), C=(3, "ABC"))
    world.receive("A", "D", JoinRequest("uuid-d", False))
    assert not world.messages(FinalizeJoin)
    assert len(world.messages(MembersUpdate)) == 2
    world.deliver_all(dead="D")
    (admitted,) = world.seen("A", MemberAdmitted)
    assert (admitted.acknowledged, admitted.expected) == (2, 2)


def test_the_answer_is_given_after_two_seconds_all_the_same() -> None:
    world = SteppedCluster().with_lists(A=(3, "ABC"), B=(3, "ABC"), C=(3, "ABC"))
    world.receive("A", "D", JoinRequest("uuid-d", False))
    world.sent = [delivery for delivery in world.sent if delivery[1] != "C"]
    world.deliver_all()
    assert not world.seen("A", MemberAdmitted)
    world.pass_seconds(2.1, "A")
    assert world.messages(FinalizeJoin, to="D")
    (admitted,) = world.seen("A", MemberAdmitted)
    assert (admitted.acknowledged, admitted.expected) == (1, 2)


def test_a_lost_answer_is_repeated_without_a_new_version() -> None:
    world = SteppedCluster().with_lists(A=(1, "A"))
    for _ in range(2):
        world.receive("A", "B", JoinRequest("uuid-b", False))
    assert len(world.messages(FinalizeJoin, to="B")) == 2
    assert world.list_of("A") == (2, "AB")


def test_a_new_life_at_an_old_address_replaces_the_old_one() -> None:
    world = SteppedCluster().with_lists(A=(3, "ABC"), B=(3, "ABC"), C=(3, "ABC")).starting(B="A")
    world.deliver_all()
    assert world.list_of("A") == world.list_of("B") == world.list_of("C") == (5, "ACB")


def test_a_restarted_master_is_taken_for_dead_and_joins_its_successor() -> None:
    world = SteppedCluster().with_lists(A=(3, "ABC"), B=(3, "ABC"), C=(3, "ABC")).starting(A="ABC")
    for _ in range(3):
        world.deliver_all()
        world.pass_seconds(1)
    world.deliver_all()
    assert world.list_of("A") == world.list_of("B") == world.list_of("C")
    assert world.list_of("A")[1] == "BCA"


def test_a_finalized_join_from_somebody_else_changes_nothing() -> None:
    world = SteppedCluster()
    machine = world.born("C", "AB")
    world.start("C")
    world.name_master("C", "A", "A")
    stranger = first_list(address_of("B"), "uuid-b", False).joined_by(machine.address, machine.uuid, False)
    world.receive("C", "B", FinalizeJoin(machine.uuid, stranger))
    assert not machine.joined


def test_a_master_that_does_not_answer_is_given_up_and_the_search_goes_on() -> None:
    world = SteppedCluster().starting(C="AB")
    world.name_master("C", "B", "A")
    world.sent.clear()
    world.pass_seconds(6)
    assert len(world.messages(JoinRequest)) == 4
    assert world.messages(WhoIsMaster)


def test_giving_up_names_every_address_and_why() -> None:
    world = SteppedCluster().starting(C="ABC")
    for _ in range(70):
        world.name_master("C", "A", "B") if "C" not in world.halted else None
        world.pass_seconds(1)
    assert world.halted["C"].failed
    (failed,) = world.seen("C", JoinFailed)
    assert set(failed.reasons) == {address_of("A"), address_of("B")}
    assert "join requests" in failed.reasons[address_of("B")]
    assert not world.seen("C", ListInstalled)
    assert SETTINGS.max_join_us == 60_000_000


# Giving up


def never_let_in(join_list: str, seconds: float = 65, master: str = "A") -> SteppedCluster:
    """A joiner X; B names a master that never answers."""
    world = SteppedCluster()
    world.born("X", join_list)
    world.start("X")
    for _ in range(round(seconds * 2)):
        if "X" in world.halted:
            break
        world.name_master("X", "B", master)
        world.pass_seconds(0.5)
        world.sent.clear()
    return world


def test_giving_up_takes_max_join_seconds_in_five_attempts() -> None:
    """Emergent Leader: maxJoinAttempts = 5."""
    world = never_let_in("AB")
    assert SETTINGS.max_join_us <= world.now <= SETTINGS.max_join_us + 1_500_000
    attempts = [event.attempt for event in world.seen("X", JoinRequested)]
    assert attempts == sorted(attempts) and set(attempts) == {1, 2, 3, 4, 5}
    (stopped,) = world.seen("X", MemberStopped)
    assert "5 attempts within 60 s" in stopped.reason and world.halted["X"].reason == stopped.reason


def test_max_join_seconds_can_be_set() -> None:
    world = SteppedCluster(training_settings(max_join_us=10_000_000)).starting(X="A")
    for _ in range(30):
        if "X" not in world.halted:
            world.receive(
                "X", "A", JoinRefused("the cluster is FROZEN and takes no newcomers", world.search_token_of("X"))
            )
            world.name_master("X", "A", "A")
            world.pass_seconds(0.5)
    assert world.halted["X"].failed
    assert "FROZEN" in world.seen("X", JoinFailed)[0].reasons[address_of("A")]


def test_giving_up_names_a_master_that_stands_in_no_join_list() -> None:
    world = never_let_in("B")
    (failed,) = world.seen("X", JoinFailed)
    assert "join requests" in failed.reasons[address_of("A")]


def test_giving_up_does_not_say_no_answer_of_somebody_who_answered() -> None:
    world = never_let_in("AB")
    (failed,) = world.seen("X", JoinFailed)
    assert failed.reasons[address_of("B")] != "no answer"


# Stale requests


def restarted() -> tuple[SteppedCluster, str]:
    """C has left, and has come back as another life. The uuid of the incarnation that left."""
    world = SteppedCluster().settled("ABC")
    old = world.machines["C"].uuid
    world.suspect("A", "C")
    world.deliver_all(dead="C")
    world.born("C", "A")
    world.start("C")
    world.deliver_all()
    assert world.list_of("A") == (5, "ABC")
    return world, old


def test_an_echo_of_a_life_that_has_just_left_is_not_let_in() -> None:
    world = SteppedCluster().settled("ABC")
    old = world.machines["C"].uuid
    world.suspect("A", "C")
    world.deliver_all(dead="C")
    world.receive("A", "C", JoinRequest(old, False))
    assert world.list_of("A") == (4, "AB") and not world.sent


def test_after_stale_join_prevention_the_same_life_may_come_back() -> None:
    world = SteppedCluster().settled("ABC")
    old = world.machines["C"].uuid
    world.suspect("A", "C")
    world.deliver_all(dead="C")
    world.now += SETTINGS.stale_join_prevention_us
    world.receive("A", "C", JoinRequest(old, False))
    assert world.list_of("A") == (5, "ABC")


def test_a_late_join_request_of_an_earlier_life_does_not_remove_the_present_one() -> None:
    world, old = restarted()
    world.receive("A", "C", JoinRequest(old, False))
    assert not world.messages(MembersUpdate)
    assert world.list_of("A") == (5, "ABC")


def test_nor_does_a_late_question_for_the_master() -> None:
    world, old = restarted()
    world.receive("A", "C", WhoIsMaster(old))
    assert world.list_of("A") == (5, "ABC")


def test_nor_does_a_late_question_make_a_slave_suspect_its_master() -> None:
    """A's present incarnation leads; B gets a question that an earlier life of A asked."""
    world = SteppedCluster().settled("BA")
    old = world.machines["A"].uuid
    world.suspect("B", "A")
    world.born("A", "B")
    world.start("A")
    world.deliver_all()
    world.suspect("B", "")
    world.with_lists(A=(6, "AB"), B=(6, "AB"))
    world.receive("B", "A", WhoIsMaster(old))
    assert world.suspects_of("B") == "" and world.master_of("B") == "A"


def test_a_request_of_a_uuid_that_stands_on_the_list_under_another_address_is_ignored() -> None:
    world = SteppedCluster().settled("AB")
    world.receive("A", "X", JoinRequest(world.machines["B"].uuid, False))
    assert world.list_of("A") == (2, "AB") and not world.sent


def test_a_request_to_a_slave_is_sent_on_to_the_master() -> None:
    world = SteppedCluster().settled("AB")
    world.receive("B", "X", JoinRequest("uuid-x", False))
    assert world.sent == [("B", "X", MasterIs(address_of("A")))]


# Several at once


def test_joiners_of_one_moment_come_in_together() -> None:
    world = SteppedCluster().settled("ABC")
    for name in "DEFG":
        world.receive("A", name, JoinRequest(f"uuid-{name}", False))
    assert world.list_of("A") == (4, "ABCD")
    for name in "BC":
        world.receive("A", name, MembersUpdateAck(4))
    assert world.list_of("A") == (7, "ABCDEFG")
    members = world.inspect("A").members
    assert members is not None
    assert [member.join_version for member in members.members[3:]] == [4, 5, 6, 7]


def test_a_joiner_that_waited_and_is_no_longer_allowed_is_not_let_in() -> None:
    world = SteppedCluster().settled("ABC")
    world.receive("A", "D", JoinRequest("uuid-d", False))
    world.receive("A", "E", JoinRequest("uuid-e", False))
    world.change_state("A", "FROZEN")
    world.sent = [delivery for delivery in world.sent if not isinstance(delivery[2], MembersUpdate)]
    for name in "BC":
        world.receive("A", name, MembersUpdateAck(4))
    assert world.list_of("A") == (4, "ABCD")


def test_a_joiner_that_leaves_before_it_is_answered_is_not_answered() -> None:
    world = SteppedCluster().settled("ABC")
    world.receive("A", "D", JoinRequest("uuid-d", False))
    world.suspect("A", "D")
    world.sent.clear()
    for name in "BC":
        world.receive("A", name, MembersUpdateAck(5))
    assert not world.messages(FinalizeJoin)
    assert not world.seen("A", MemberAdmitted)


def test_acknowledgements_that_come_twice_count_once() -> None:
    world = SteppedCluster().settled("ABC")
    world.receive("A", "D", JoinRequest("uuid-d", False))
    world.receive("A", "B", MembersUpdateAck(4))
    world.receive("A", "B", MembersUpdateAck(4))
    world.receive("A", "C", MembersUpdateAck(3))
    assert not world.messages(FinalizeJoin)
    world.receive("A", "C", MembersUpdateAck(4))
    assert len(world.messages(FinalizeJoin, to="D")) == 1


# What overtakes


def listing(version: int, *members: tuple[str, str]) -> MemberList:
    return MemberList(
        version,
        tuple(Member(address_of(name), uuid, place) for place, (name, uuid) in enumerate(members, 1)),
        "lineage",
    )


def test_a_list_that_overtakes_the_answer_to_the_join_request_is_not_lost() -> None:
    world = SteppedCluster()
    joiner = world.born("X", "A")
    world.start("X")
    world.name_master("X", "A", "A")
    world.receive("X", "A", MembersUpdate(listing(3, ("A", "a"), ("X", joiner.uuid), ("Y", "y")), False))
    assert not joiner.joined
    world.receive("X", "A", FinalizeJoin(joiner.uuid, listing(2, ("A", "a"), ("X", joiner.uuid))))
    assert world.list_of("X") == (3, "AXY")


def test_a_list_of_a_master_that_was_given_up_is_not_taken_for_the_next_masters() -> None:
    world = SteppedCluster()
    joiner = world.born("X", "AB")
    world.start("X")
    world.name_master("X", "A", "A")
    world.receive("X", "A", MembersUpdate(listing(9, ("A", "a"), ("C", "c"), ("X", joiner.uuid)), False))
    world.unreachable("X", "A")
    world.name_master("X", "B", "B")
    world.receive("X", "B", FinalizeJoin(joiner.uuid, listing(2, ("B", "b"), ("X", joiner.uuid))))
    assert world.master_of("X") == "B"
    assert world.list_of("X") == (2, "BX")


def test_a_list_from_somebody_else_before_the_answer_is_ignored() -> None:
    world = SteppedCluster()
    joiner = world.born("X", "AB")
    world.start("X")
    world.name_master("X", "A", "A")
    world.receive("X", "B", MembersUpdate(listing(9, ("B", "b"), ("X", joiner.uuid)), False))
    world.receive("X", "A", FinalizeJoin(joiner.uuid, listing(2, ("A", "a"), ("X", joiner.uuid))))
    assert world.list_of("X") == (2, "AX")


# Together with merges


def test_a_new_life_of_the_last_member_to_be_told_ends_the_merge_and_crashes_nobody() -> None:
    world = SteppedCluster(training_settings(disconnection_heartbeats=0)).settled("ABC")
    world.settled("EF")
    world.receive("E", "A", SplitBrainAnswer(cluster_search.profile(state_of(world.machines["A"]))))
    for _ in range(50):
        merge = state_of(world.machines["E"]).merge
        assert merge is not None
        if merge.phase == "ordering":
            break
        sender, receiver, message = world.sent.pop(0)
        world.receive(receiver, sender, message)
    world.sent.clear()
    world.born("F", "E")
    world.receive("E", "F", JoinRequest(world.machines["F"].uuid, False))
    assert not world.seen("E", MemberRemoved), "who dissolves the cluster removes nobody any more"
    world.live(8)
    assert set(world.list_of("A")[1]) >= set("ABCE")

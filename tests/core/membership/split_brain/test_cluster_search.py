"""Looking for other clusters (Split-brain Recovery Improvements; Emergent Leader, Recovering from split brain; Hazelcast: split
brain)."""

import pytest

from quarterdeck.backend.core.causes import Reason
from quarterdeck.backend.core.cluster_profile import ClusterStanding
from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.core.membership.events import (
    ClusterStateChanged,
    ExplicitSuspicionSent,
    MemberMerging,
    MemberRemoved,
    MergeStarted,
    MergeVerdict,
    NotMerging,
)
from quarterdeck.backend.core.membership.messages import (
    ExplicitSuspicion,
    JoinRequest,
    MasterIs,
    MergeClusters,
    SplitBrainAnswer,
    SplitBrainProbe,
)
from quarterdeck.backend.core.membership.split_brain import cluster_search
from quarterdeck.backend.core.membership.undertakings import LeftMember
from quarterdeck.backend.core.properties import Settings
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SETTINGS, SteppedCluster, address_of, training_settings


def two(
    winner: str = "ABC",
    loser: str = "DE",
    *,
    winner_knows: str = "",
    loser_knows: str = "",
    settings: Settings = SETTINGS,
) -> SteppedCluster:
    """Two clusters; every member of each has the join list given for its cluster."""
    world = SteppedCluster(settings)
    for name in winner:
        world.born(name, winner_knows)
    for name in loser:
        world.born(name, loser_knows)
    world.settled(winner)
    world.settled(loser)
    return world


def united(world: SteppedCluster, names: str) -> bool:
    lists = {world.list_of(name) for name in names if world.machines[name].joined}
    return len(lists) == 1 and set(lists.pop()[1]) == set(names) and all(world.machines[n].joined for n in names)


def probe(world: SteppedCluster, name: str) -> SplitBrainProbe:
    return SplitBrainProbe(cluster_search.profile(state_of(world.machines[name])))


# Who searches, and where


def test_only_masters_search() -> None:
    world = two(loser_knows="A", winner_knows="D")
    world.machines["E"].timers.set(cluster_search.SEARCH, 0)
    world.pass_seconds(0.1, "E")
    assert not world.messages(SplitBrainProbe)
    with pytest.raises(CommandRefused, match="no master"):
        world.search("E")


def test_the_first_search_and_the_next_ones_come_at_their_intervals() -> None:
    world = two(loser_knows="X")
    times = []
    for _ in range(120):
        world.pass_seconds(0.1)
        times += [world.now // 1000] * len(world.messages(SplitBrainProbe, to="X"))
        world.deliver_all()
    assert times == [5000, 8000, 11000]


def test_the_candidates_are_the_join_list_and_what_is_remembered_without_members_and_without_itself() -> None:
    world = two(loser_knows="DEXA")
    state_of(world.machines["D"]).remembered[address_of("Y")] = 0
    world.search("D")
    assert sorted(receiver for _, receiver, message in world.sent if isinstance(message, SplitBrainProbe)) == list(
        "AXY"
    )


def test_a_master_that_is_merging_does_not_search() -> None:
    world = two(loser_knows="A")
    world.search("D")
    world.deliver(SplitBrainProbe)
    world.deliver(SplitBrainAnswer)
    assert world.inspect("D").merge
    world.sent.clear()
    world.search("D")
    assert not world.sent


def test_a_frozen_cluster_does_not_search_and_says_so() -> None:
    world = two(loser_knows="A")
    world.change_state("D", "FROZEN")
    world.deliver_all()
    world.search("D")
    assert not world.messages(SplitBrainProbe)
    assert "FROZEN" in world.seen("D", NotMerging)[-1].reason


@pytest.mark.parametrize("came_back", [(), ("E",)])
def test_a_master_that_misses_no_member_looks_for_none_and_says_nothing(came_back: tuple[str, ...]) -> None:
    world = two()
    state_of(world.machines["D"]).left |= {f"{name}-before": LeftMember(address_of(name), 0) for name in came_back}
    for _ in range(5):
        world.search("D")
    assert not world.seen("D", NotMerging)


def test_a_master_that_lost_somebody_and_knows_nobody_says_so_once() -> None:
    world = two()
    state_of(world.machines["D"]).left["of-one-who-is-gone"] = LeftMember(address_of("Z"), 0)
    for _ in range(5):
        world.search("D")
    assert [event.reason for event in world.seen("D", NotMerging)] == [
        "every address that it knows is a member already; edit the join list to name others"
    ]


def test_a_master_whom_nobody_answers_says_so_once() -> None:
    world = two(loser_knows="X")
    for _ in range(5):
        world.search("D")
    assert [event.reason for event in world.seen("D", NotMerging)] == [f"nobody answers at {address_of('X')}"]


def test_a_first_question_does_not_make_the_silence_of_others_an_answer() -> None:
    world = two(loser_knows="X")
    for _ in range(2):
        world.search("D")
    state_of(world.machines["D"]).remembered[address_of("Y")] = 0
    world.search("D")
    assert [event.reason for event in world.seen("D", NotMerging)] == [f"nobody answers at {address_of('X')}"]


def test_that_nobody_answers_is_over_with_the_first_answer() -> None:
    world = two(loser_knows="A")
    for _ in range(2):
        world.search("D")
        world.sent.clear()
    world.search("D")
    world.deliver(SplitBrainProbe)
    assert [event.reason for event in world.seen("D", NotMerging)] == [f"nobody answers at {address_of('A')}"]
    world.deliver(SplitBrainAnswer)
    assert [event.reason for event in world.seen("D", NotMerging)] == [f"nobody answers at {address_of('A')}", ""]


def test_reasons_are_told_again_when_they_change() -> None:
    world = two(loser_knows="X")
    for _ in range(3):
        world.search("D")
    state_of(world.machines["D"]).standing = ClusterStanding("PASSIVE", 1)
    world.search("D")
    world.search("D")
    assert len(world.seen("D", NotMerging)) == 2


def test_reasons_about_two_clusters_are_not_told_again_at_every_search() -> None:
    world = SteppedCluster()
    world.born("A", "DG")
    world.settled("ABC")
    world.born("D", cluster_name="other")
    world.born("G", cluster_name="third")
    world.settled("D")
    world.settled("G")
    for _ in range(10):
        world.search("A")
        world.deliver_all()
    assert len(world.seen("A", NotMerging)) <= 4


# Answers


def test_a_master_answers_with_its_own_cluster() -> None:
    world = two()
    world.receive("A", "D", probe(world, "D"))
    (answer,) = world.messages(SplitBrainAnswer, to="D")
    assert answer.profile.members[0].address == address_of("A")
    assert world.seen("A", MergeVerdict)[0].decision == "remote-merges"


def test_a_member_that_is_no_master_names_its_master() -> None:
    world = two()
    world.receive("B", "D", probe(world, "D"))
    assert world.messages(MasterIs, to="D") == [MasterIs(address_of("A"))]
    assert not world.messages(SplitBrainAnswer)


def test_unless_helpful_answers_are_off() -> None:
    """The classic protocol ignored it (issue 17489)."""
    world = two(settings=training_settings(helpful_answers=False))
    world.receive("B", "D", probe(world, "D"))
    assert not world.sent


def test_who_has_not_joined_or_is_claiming_says_nothing() -> None:
    world = two()
    world.born("X", "Y")
    world.receive("X", "D", probe(world, "D"))
    assert not world.sent
    world.suspect("B", "A")
    world.sent.clear()
    world.receive("B", "D", probe(world, "D"))
    assert not world.sent


def test_a_named_master_is_asked_at_once_and_remembered() -> None:
    world = two()
    world.receive("D", "B", MasterIs(address_of("A")))
    assert len(world.messages(SplitBrainProbe, to="A")) == 1
    assert address_of("A") in world.inspect("D").remembered


def test_a_named_master_of_its_own_cluster_is_not_asked() -> None:
    world = two()
    for named in "DE":
        world.receive("D", "B", MasterIs(address_of(named)))
    assert not world.sent


# Who knows whom


@pytest.mark.parametrize(
    ("winner_knows", "loser_knows"),
    [("", "A"), ("", "B"), ("", "C"), ("D", ""), ("E", ""), ("ABCDE", "ABCDE"), ("XD", "XY")],
    ids=["loser-winner", "loser-slave", "loser-slave-2", "winner-loser", "winner-slave", "all", "among-dead-addresses"],
)
def test_one_way_knowledge_is_enough_whoever_has_it(winner_knows: str, loser_knows: str) -> None:
    """Issues 17489, 17490, 18661 and 20331: any one address known to any one of the two masters heals the split."""
    world = two(winner_knows=winner_knows, loser_knows=loser_knows)
    world.live(12)
    assert united(world, "ABCDE")
    assert world.master_of("D") == "A"


def test_a_loser_asks_back_at_once() -> None:
    """It need not wait for its own next search."""
    world = two()
    world.receive("D", "A", probe(world, "A"))
    assert world.messages(SplitBrainProbe, to="A") == [probe(world, "D")]


@pytest.mark.parametrize("names", ["AB", "BA"])
@pytest.mark.parametrize("knower", [0, 1])
def test_two_members_heal_whatever_the_order_of_their_addresses(names: str, knower: int) -> None:
    """Issue 20331."""
    world = SteppedCluster()
    for name in names:
        world.born(name, names[1 - knower] if name == names[knower] else "")
        world.settled(name)
    world.live(12)
    assert united(world, "AB")
    assert world.master_of("A") == world.master_of("B") == "A"


def test_without_helpful_answers_a_winner_that_knows_the_loser_does_not_heal_it() -> None:
    """Issue 17490 as it was; kept to be shown."""
    world = two(winner_knows="D", settings=training_settings(helpful_answers=False, address_retention_us=0))
    world.live(15)
    assert world.list_of("A")[1] == "ABC" and world.list_of("D")[1] == "DE"


def test_without_helpful_answers_the_contact_is_still_remembered() -> None:
    world = two(winner_knows="D", settings=training_settings(helpful_answers=False))
    world.live(15)
    assert united(world, "ABCDE")


def test_two_clusters_equal_in_everything_are_told_apart_by_their_addresses() -> None:
    world = two("CD", "AB", winner_knows="A", loser_knows="C")
    world.live(12)
    assert united(world, "ABCD")
    assert world.master_of("C") == "A"


def test_both_ask_at_the_same_moment() -> None:
    world = two(winner_knows="D", loser_knows="A")
    world.search("A")
    world.search("D")
    world.deliver_all()
    world.live(4)
    assert united(world, "ABCDE")
    assert len(world.seen("D", MergeStarted)) == 1


def test_probes_and_answers_that_come_twice_or_late_do_no_harm() -> None:
    world = two(winner_knows="D", loser_knows="A")
    late = [("A", "D", probe(world, "D")), ("D", "A", probe(world, "A"))]
    answer = SplitBrainAnswer(cluster_search.profile(state_of(world.machines["A"])))
    world.live(12)
    assert united(world, "ABCDE")
    version = world.list_of("A")
    for receiver, sender, message in late * 2:
        world.receive(receiver, sender, message)
    world.receive("D", "A", answer)
    world.live(3)
    assert world.list_of("A") == version


# Lists that overlap


def test_a_probe_from_a_member_of_my_list_removes_it() -> None:
    """It leads a cluster of its own, so it has split off unnoticed (Hazelcast: merge validation)."""
    world = SteppedCluster().settled("ABC")
    world.with_lists(C=(5, "C"))
    world.receive("A", "C", probe(world, "C"))
    assert world.list_of("A") == (4, "AB")
    assert world.seen("A", MemberRemoved)
    assert not world.messages(SplitBrainAnswer)


def test_a_probe_of_an_earlier_life_of_a_member_removes_nobody() -> None:
    world = SteppedCluster().settled("ABC")
    world.with_lists(C=(5, "C"))
    stale = probe(world, "C")
    world.born("C")
    world.settled("ABC", version=6)
    world.receive("A", "C", stale)
    assert world.list_of("A") == (6, "ABC")


def test_a_master_that_takes_me_for_its_member_is_asked_to_suspect_me() -> None:
    world = SteppedCluster().settled("ABC")
    world.with_lists(C=(5, "C"))
    world.receive("C", "A", SplitBrainAnswer(cluster_search.profile(state_of(world.machines["A"]))))
    (request,) = world.messages(ExplicitSuspicion, to="A")
    assert request.about == world.inspect("A").metadata()
    assert world.seen("C", ExplicitSuspicionSent)
    world.deliver_all()
    assert world.list_of("A") == (4, "AB")


def test_a_common_member_forbids_the_merge_until_failure_detection_has_spoken() -> None:
    world = SteppedCluster()
    for name in "AD":
        world.born(name, "AD")
    for name in "BCE":
        world.born(name)
    world.with_lists(A=(4, "ABCE"), B=(4, "ABCE"), C=(4, "ABCE"))
    world.settled("DE", version=2)
    world.machines["A"].timers.set(cluster_search.SEARCH, 1_000_000)
    world.search("D")
    world.deliver_all()
    verdict = world.seen("D", MergeVerdict)[-1]
    assert (verdict.decision, verdict.rule) == ("cannot-merge", "members-intersect")
    world.live(25)
    assert united(world, "ABCDE")


# The verdict


def test_a_verdict_is_told_again_only_when_it_has_changed() -> None:
    world = two(loser_knows="A")
    world.born("D", "A", cluster_name="other")
    world.settled("D")
    for _ in range(5):
        world.search("D")
        world.deliver_all()
    assert len(world.seen("D", MergeVerdict)) == 1
    assert len(world.seen("A", MergeVerdict)) == 1


def test_clusters_of_different_names_never_merge() -> None:
    world = SteppedCluster()
    world.born("A", "D")
    world.settled("ABC")
    world.born("D", "A", cluster_name="other")
    world.settled("D")
    world.live(15)
    assert world.list_of("D")[1] == "D"
    assert not world.messages(MergeClusters)


def test_an_operator_may_let_a_master_search_now() -> None:
    world = two(loser_knows="A")
    world.search("D")
    world.deliver_all()
    world.live(2)
    assert united(world, "ABCDE")
    assert world.seen("D", MemberMerging)


def test_healing_a_split_of_five_from_the_cut_on() -> None:
    """Emergent Leader: athens, delphi, euphesus against byzantium and cyrene."""
    world = SteppedCluster()
    for name in "ABCDE":
        world.born(name, "ABCDE")
    world.settled("ABCDE")
    world.live(1)
    world.cut_links("ADE", "BC")
    world.live(8)
    assert world.list_of("A") == (7, "ADE") and world.list_of("B")[1] == "BC"
    world.cut.clear()
    world.live(8)
    assert united(world, "ABCDE")
    assert world.master_of("B") == "A"


def test_a_loser_that_cannot_reach_the_winner_does_not_freeze_at_its_probes() -> None:
    world = two(winner_knows="D", settings=training_settings(disconnection_heartbeats=0))
    world.cut_links("DE", "ABC", one_way=True)
    world.live(12)
    assert not world.seen("E", ClusterStateChanged)


def test_a_loser_that_cannot_be_reached_by_the_winner_does_not_freeze_either() -> None:
    world = two(loser_knows="A", settings=training_settings(disconnection_heartbeats=0))
    world.cut_links("ABC", "DE", one_way=True)
    world.live(12)
    assert not world.seen("E", ClusterStateChanged)


# What was said and is not true any more


def test_a_reason_that_is_gone_is_taken_back() -> None:
    world = two()
    state = state_of(world.machines["D"])
    cluster_search.explain(state, world.now, Reason("state", "its cluster is FROZEN"))
    world.conclude("D")
    state.join_list = (address_of("A"),)
    world.search("D")
    assert [event.reason for event in world.seen("D", NotMerging)][:2] == ["its cluster is FROZEN", ""]


def test_what_was_found_about_a_cluster_is_void_once_it_has_come_in() -> None:
    """So when it splits off again, the same verdict and the same reason are told again."""
    world = two()
    state = state_of(world.machines["A"])
    loser = cluster_search.profile(state_of(world.machines["D"]))
    cluster_search.judge(state, world.now, loser)
    assert loser.address in state.other_clusters.verdicts and loser.address in state.other_clusters.not_merging
    world.receive("A", "D", JoinRequest("the next incarnation of D", False))
    assert loser.address in state.peers
    assert loser.address not in state.other_clusters.verdicts and loser.address not in state.other_clusters.not_merging

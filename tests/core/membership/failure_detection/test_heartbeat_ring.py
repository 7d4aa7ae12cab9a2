"""The ring topology (Emergent Leader, Avoiding all-to-all heartbeating; Decisions: Heartbeat topology)."""

from typing import Any

import pytest

from quarterdeck.backend.core.membership.events import MemberRemoved, SuspicionCleared, SuspicionRaised
from quarterdeck.backend.core.membership.failure_detection import heartbeat_ring
from quarterdeck.backend.core.membership.messages import FailureReport, Heartbeat, LinkProbe
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster, address_of, names_of, training_settings


def ring(names: str = "ABCDEFGH", successors: int = 2, **changed: Any) -> SteppedCluster:
    world = SteppedCluster(training_settings(heartbeat_topology="ring", ring_successors=successors, **changed))
    world.settled(names)
    return world


def watched(world: SteppedCluster, name: str) -> str:
    return "".join(sorted(names_of(tuple(heartbeat_ring.watched_peers(state_of(world.machines[name]), world.now)))))


def receivers(world: SteppedCluster, name: str) -> str:
    return "".join(
        sorted(names_of([address for address, _ in heartbeat_ring.receivers(state_of(world.machines[name]))]))
    )


def report(world: SteppedCluster, suspect: str, *, withdrawn: bool = False) -> FailureReport:
    return FailureReport(address_of(suspect), world.machines[suspect].uuid, withdrawn, "no heartbeat for 4.0 s")


# Who watches whom


def test_each_watches_its_next_few_and_every_slave_the_master() -> None:
    world = ring()
    assert [watched(world, name) for name in "ABCDEFGH"] == ["BC", "ACD", "ADE", "AEF", "AFG", "AGH", "AH", "AB"]


@pytest.mark.parametrize("successors", [1, 2, 3, 10])
@pytest.mark.parametrize("names", ["AB", "ABC", "ABCDEFGH"])
def test_whoever_is_watched_sends_to_its_watchers(successors: int, names: str) -> None:
    world = ring(names, successors)
    for watcher in names:
        for other in watched(world, watcher):
            assert watcher in receivers(world, other)


@pytest.mark.parametrize("successors", [1, 2])
def test_the_master_sends_to_all_and_slaves_to_a_few_and_to_the_master(successors: int) -> None:
    world = ring(successors=successors)
    assert receivers(world, "A") == "BCDEFGH"
    assert all("A" in receivers(world, name) for name in "BCDEFGH")
    assert all(len(receivers(world, name).replace("A", "")) <= successors for name in "BCDEFGH")


def test_a_suspect_is_replaced_by_the_next_one() -> None:
    world = ring()
    world.suspect("B", "C")
    assert watched(world, "B") == "ADE"
    world.suspect("D", "C")
    assert receivers(world, "D") == "AB"


def test_who_comes_newly_under_watch_gets_the_whole_timeout() -> None:
    world = ring()
    world.live(10)
    world.suspect("B", "C")
    assert watched(world, "B") == "ADE"
    peer = state_of(world.machines["B"]).peers[address_of("E")]
    assert peer.detector.silence_us(world.now) == 0


def test_in_a_small_ring_all_watch_all() -> None:
    world = ring("ABC", 3)
    assert [watched(world, name) for name in "ABC"] == ["BC", "AC", "AB"]


# Reports


def test_a_finding_is_told_to_everybody_and_again_at_each_heartbeat() -> None:
    world = ring(successors=1)
    world.loses = lambda sender, receiver, message: isinstance(message, FailureReport)
    world.live(3.5, dead="D")
    reports: list[str] = []
    for _ in range(35):
        world.pass_seconds(0.1, *"ABCEFGH")
        reports += [receiver for sender, receiver, message in world.sent if isinstance(message, FailureReport)]
        world.deliver_all(dead="D")
    assert set(reports) == set("ABEFGH")
    assert reports.count("A") >= 2


def test_a_crashed_slave_is_off_everybodys_list_although_the_master_does_not_watch_it() -> None:
    world = ring()
    assert "F" not in watched(world, "A")
    world.live(1)
    world.live(7.5, dead="F")
    assert {world.list_of(name) for name in "ABCDEGH"} == {(9, "ABCDEGH")}


def test_even_if_half_of_the_reports_are_lost() -> None:
    world = ring()
    count = [0]

    def every_other(sender: str, receiver: str, message: object) -> bool:
        count[0] += isinstance(message, FailureReport)
        return isinstance(message, FailureReport) and count[0] % 2 == 1

    world.loses = every_other
    world.live(10, dead="F")
    assert world.list_of("A") == (9, "ABCDEGH")


def test_a_crashed_master_is_succeeded() -> None:
    world = ring()
    world.live(1)
    world.live(9, dead="A")
    assert {world.list_of(name) for name in "BCDEFGH"} == {(9, "BCDEFGH")}
    assert world.master_of("H") == "B"


def test_neighbours_that_crash_together_are_found() -> None:
    world = ring()
    world.live(1)
    world.live(14, dead="DEF")
    assert {world.list_of(name)[1] for name in "ABCGH"} == {"ABCGH"}


def test_a_report_is_heeded_by_those_who_do_not_watch_the_member_when_it_does_not_answer_them_either() -> None:
    world = ring()
    world.receive("G", "B", report(world, "C"))
    assert world.messages(LinkProbe, to="C")
    assert world.suspects_of("G") == ""
    world.pass_seconds(1.1, "G")
    assert world.suspects_of("G") == "C"
    assert "reports" in world.seen("G", SuspicionRaised)[0].reason


def test_who_hears_the_member_itself_trusts_its_own_ears() -> None:
    world = ring()
    world.live(1)
    world.receive("A", "H", report(world, "C"))
    assert world.list_of("A") == (8, "ABCDEFGH")


def test_a_finding_is_withdrawn_when_the_member_is_heard_again() -> None:
    world = ring("ABCDEFGH", 1)
    world.cut_links("E", "F")
    world.loses = lambda sender, receiver, message: isinstance(message, FailureReport) and receiver == "A"
    world.live(7)
    assert world.suspects_of("G") == "F" or world.suspects_of("E") == "F"
    world.cut.clear()
    world.live(9)
    assert all(world.suspects_of(name) == "" for name in "ABCDEFGH")
    assert any(world.seen(name, SuspicionCleared) for name in "BCDEGH")


def test_reports_of_strangers_about_strangers_and_about_old_lives_are_ignored() -> None:
    world = ring()
    world.receive("G", "X", report(world, "C"))
    world.receive("G", "B", FailureReport(address_of("X"), "x", False, ""))
    world.receive("G", "B", FailureReport(address_of("C"), "an earlier life", False, ""))
    assert not world.messages(LinkProbe)
    world.pass_seconds(1.1, "G")
    assert world.suspects_of("G") == ""


def test_nobody_suspects_itself() -> None:
    world = ring()
    world.receive("G", "B", report(world, "G"))
    assert world.suspects_of("G") == ""


# Together


def test_a_quiet_ring_changes_nothing_and_says_little() -> None:
    world = ring()
    beats = 0
    for _ in range(200):
        world.pass_seconds(0.1)
        beats += len(world.messages(Heartbeat))
        world.deliver_all()
    assert {world.list_of(name) for name in "ABCDEFGH"} == {(8, "ABCDEFGH")}
    assert beats <= 21 * (7 + 7 * 3)


def test_halves_that_split_and_heal_converge() -> None:
    world = SteppedCluster(training_settings(heartbeat_topology="ring", ring_successors=2))
    for name in "ABCDEFGH":
        world.born(name, "ABCDEFGH")
    world.settled("ABCDEFGH")
    world.live(1)
    world.cut_links("ACEG", "BDFH")
    world.live(25)
    assert {world.list_of(name)[1] for name in "ACEG"} == {"ACEG"}
    assert {world.list_of(name)[1] for name in "BDFH"} == {"BDFH"}
    world.cut.clear()
    world.live(25)
    assert {world.list_of(name) for name in "ABCDEFGH"} == {world.list_of("A")}
    assert set(world.list_of("A")[1]) == set("ABCDEFGH")


def test_members_join_a_ring() -> None:
    world = ring("ABC", 1)
    for name in "DE":
        world.born(name, "C")
        world.start(name)
    world.live(8)
    assert {world.list_of(name)[1] for name in "ABCDE"} <= {"ABCDE", "ABCED"}


def test_one_cut_link_between_two_slaves_costs_at_most_those_two() -> None:
    """Only B and C cannot reach one another. Everybody else is well."""
    world = ring()
    world.live(1)
    world.cut_links("B", "C")
    world.live(20)
    removed = {names_of((event.address,)) for name in "ABCDEFGH" for event in world.seen(name, MemberRemoved)}
    assert removed <= {"B", "C"}


def test_one_cut_link_does_not_remove_members_over_and_over() -> None:
    world = ring()
    world.live(1)
    world.cut_links("E", "F")
    world.live(60)
    assert len(world.seen("A", MemberRemoved)) <= 2


@pytest.mark.parametrize(("successors", "victim"), [(1, "H"), (2, "G"), (3, "F")])
def test_a_slave_that_cannot_hear_the_master_accuses_no_healthy_member(successors: int, victim: str) -> None:
    world = ring(successors=successors)
    world.live(1)
    world.cut_links("A", victim, one_way=True)
    world.live(30)
    removed = {names_of((event.address,)) for name in "ABCDEFGH" for event in world.seen(name, MemberRemoved)}
    assert removed <= {victim}


def test_a_finding_about_a_life_that_is_gone_says_nothing_of_the_next_one() -> None:
    world = ring()
    world.receive("A", "B", report(world, "F"))
    state = state_of(world.machines["A"])
    assert address_of("F") in state.ring.reported
    world.suspect("A", "F")
    assert not state.ring.reported

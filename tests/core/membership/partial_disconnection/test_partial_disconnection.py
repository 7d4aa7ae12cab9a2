"""Partial disconnection resolution by the master (Partial Member Disconnection Resolution; Hazelcast:
partial disconnections; Decisions: Equal cliques)."""

import pytest

from quarterdeck.backend.core.effects import Happened
from quarterdeck.backend.core.inputs import TICK
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.membership.events import (
    DisconnectionReported,
    DisconnectionResolved,
    ListInstalled,
    MemberRemoved,
    SuspicionRaised,
)
from quarterdeck.backend.core.membership.messages import Heartbeat, JoinHeld, JoinRequest
from quarterdeck.backend.core.membership.partial_disconnection import disconnection_reports, independent_set
from quarterdeck.backend.core.membership.partial_disconnection.shrinking_graph import ShrinkingGraph
from quarterdeck.backend.core.properties import SECOND_US, Settings
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SETTINGS, SteppedCluster, address_of, names_of, training_settings


def cluster(names: str = "ABCD", settings: Settings = SETTINGS) -> SteppedCluster:
    return SteppedCluster(settings).settled(names)


def report(world: SteppedCluster, reporter: str, suspects: str, master: str = "A", version: int | None = None) -> None:
    """A heartbeat of `reporter` to the master with these suspicions arrives, sent at its list of `version`."""
    state = state_of(world.machines[reporter])
    assert state.members is not None
    beat = Heartbeat(
        state.uuid,
        world.machines[master].uuid,
        address_of(master),
        state.members.version if version is None else version,
        tuple(map(address_of, suspects)),
    )
    world.receive(master, reporter, beat)


def changed_us(world: SteppedCluster) -> int:
    return state_of(world.machines["A"]).disconnections.changed_us


def reports(world: SteppedCluster) -> dict[str, str]:
    by_reporter = state_of(world.machines["A"]).disconnections.by_reporter
    return {names_of((reporter,)): names_of(suspects) for reporter, suspects in by_reporter.items()}


def beat_for(world: SteppedCluster, seconds: float, silent: str = "") -> None:
    """The master's heartbeats go by; it hears all but `silent`, who report nothing new."""
    for _ in range(round(seconds * 10)):
        world.pass_seconds(0.1, "A")
        world.sent.clear()
        for address, peer in state_of(world.machines["A"]).peers.items():
            if names_of((address,)) not in silent:
                peer.detector.heard(world.now)
                peer.confirmed_us = world.now


# Propagation


def test_suspicions_ride_only_from_a_slave_to_its_master() -> None:
    world = cluster()
    world.suspect("B", "CD")
    world.sent.clear()
    world.pass_seconds(1, "B")
    (beat,) = world.messages(Heartbeat)
    assert world.messages(Heartbeat, to="A") == [beat] and names_of(beat.suspects) == "CD"


def test_nothing_rides_while_the_feature_is_off() -> None:
    world = cluster(settings=training_settings(disconnection_heartbeats=0))
    world.suspect("B", "CD")
    world.pass_seconds(1, "B")
    assert all(not beat.suspects for beat in world.messages(Heartbeat))


def test_a_report_to_a_member_that_is_no_master_is_ignored() -> None:
    world = cluster()
    state = state_of(world.machines["C"])
    world.receive("B", "C", Heartbeat(state.uuid, world.machines["B"].uuid, address_of("A"), 4, (address_of("D"),)))
    assert not state_of(world.machines["B"]).disconnections.by_reporter


def test_reports_are_ignored_while_the_feature_is_off() -> None:
    world = cluster(settings=training_settings(disconnection_heartbeats=0))
    report(world, "B", "C")
    assert not reports(world)


def test_a_report_that_names_the_master_is_dropped() -> None:
    world = cluster()
    report(world, "B", "AC")
    assert not reports(world)
    report(world, "B", "C")
    report(world, "B", "AD")
    assert reports(world) == {"B": "C"}


def test_a_report_is_not_about_an_incarnation_that_its_reporter_did_not_know() -> None:
    """The list of the reporter has another incarnation at the address, or none (Decisions: Suspicions)."""
    world = cluster()
    before_d = state_of(world.machines["A"]).members.find(address_of("D")).join_version - 1  # type: ignore[union-attr]
    report(world, "B", "CD", version=before_d)
    assert reports(world) == {"B": "C"}


def test_strangers_and_the_reporter_itself_are_filtered_out() -> None:
    world = cluster()
    report(world, "B", "BXC")
    assert reports(world) == {"B": "C"}
    report(world, "D", "X")
    assert reports(world) == {"B": "C"}


def test_an_empty_report_withdraws() -> None:
    world = cluster()
    report(world, "B", "C")
    world.now = 100
    report(world, "B", "")
    assert not reports(world)
    assert [names_of(event.suspects) for event in world.seen("A", DisconnectionReported)] == ["C", ""]


def test_a_report_during_a_claim_is_ignored() -> None:
    world = cluster()
    world.suspect("B", "A")
    assert world.inspect("B").claim
    report(world, "D", "C", master="B")
    assert not state_of(world.machines["B"]).disconnections.by_reporter


# The quiet period


def test_a_new_suspicion_starts_the_quiet_period_anew() -> None:
    world = cluster()
    report(world, "B", "C")
    world.now = 100
    report(world, "B", "CD")
    assert changed_us(world) == 100
    world.now = 200
    report(world, "D", "C")
    assert changed_us(world) == 200


def test_the_mirror_image_of_a_known_suspicion_does_too() -> None:
    """Document 001: the ticks count from "the last received suspicion information"."""
    world = cluster()
    report(world, "B", "C")
    world.now = 100
    report(world, "C", "B")
    assert changed_us(world) == 100
    assert reports(world) == {"B": "C", "C": "B"}


def test_the_same_report_again_does_not() -> None:
    world = cluster()
    report(world, "B", "C")
    for world.now in range(100, 1000, 100):
        report(world, "B", "C")
    assert changed_us(world) == 0
    assert len(world.seen("A", DisconnectionReported)) == 1


def test_a_withdrawal_does() -> None:
    world = cluster()
    report(world, "B", "CD")
    world.now = 100
    report(world, "B", "C")
    assert changed_us(world) == 100


@pytest.mark.parametrize(("heartbeats", "seconds"), [(1, 1), (3, 3), (20, 20)])
def test_the_quiet_period_is_as_many_heartbeats_as_are_set(heartbeats: int, seconds: int) -> None:
    """Also beyond the heartbeat timeout, at which the product's ends."""
    world = cluster(settings=training_settings(disconnection_heartbeats=heartbeats))
    report(world, "B", "C")
    beat_for(world, seconds - 0.1)
    assert not world.seen("A", DisconnectionResolved)
    beat_for(world, 0.1)
    assert len(world.seen("A", DisconnectionResolved)) == 1


def test_nothing_is_decided_when_all_was_withdrawn_in_time() -> None:
    world = cluster()
    report(world, "B", "C")
    beat_for(world, 2)
    report(world, "B", "")
    beat_for(world, 10)
    assert not world.seen("A", DisconnectionResolved)
    assert world.list_of("A") == (4, "ABCD")


# The decision


def test_figure_5() -> None:
    """B reaches neither C nor D: [A, C, D] is kept because it is the most."""
    world = cluster()
    report(world, "B", "CD")
    report(world, "C", "B")
    report(world, "D", "B")
    beat_for(world, 3)
    assert world.list_of("A") == (5, "ACD")
    (resolved,) = world.seen("A", DisconnectionResolved)
    assert (names_of(resolved.keep), names_of(resolved.remove), resolved.exact) == ("ACD", "B", True)


def test_who_was_removed_for_its_links_has_to_prove_them() -> None:
    world = cluster()
    report(world, "B", "CD")
    beat_for(world, 3)
    assert world.list_of("A")[1] == "ACD"
    world.receive("A", "B", JoinRequest("the next life", False))
    assert world.messages(JoinHeld, to="B") and world.list_of("A")[1] == "ACD"


def test_figure_5_from_the_cut_on() -> None:
    world = cluster()
    world.live(1.5)
    world.cut_links("B", "CD")
    world.live(4.5)
    assert world.suspects_of("B") == "CD"
    world.live(4)
    assert world.list_of("A")[1] == "ACD"
    assert {world.list_of(name) for name in "ACD"} == {world.list_of("A")}


def test_one_way_counts_both_ways() -> None:
    world = cluster()
    report(world, "C", "B")
    report(world, "D", "B")
    beat_for(world, 3)
    assert world.list_of("A") == (5, "ACD")


def test_the_racks() -> None:
    """Partial Member Disconnection Resolution: racks B and C are cut; one rack goes whole, the older stays."""
    world = cluster("ABCDEF")  # racks AB, CD, EF
    for reporter, suspects in {"C": "EF", "D": "EF", "E": "CD", "F": "CD"}.items():
        report(world, reporter, suspects)
    beat_for(world, 3)
    assert world.list_of("A") == (8, "ABCD")


def test_the_random_disconnections_of_seed_001() -> None:
    """A1 x B1 and B2 x C1 with a master besides: four members of six stay."""
    world = cluster("MABCDEF")  # M leads; A, B = A1, A2; C, D = B1, B2; E, F = C1, C2
    report(world, "A", "C", master="M")
    report(world, "D", "E", master="M")
    for _ in range(30):
        world.pass_seconds(0.1, "M")
        for peer in state_of(world.machines["M"]).peers.values():
            peer.detector.heard(world.now)
        world.sent.clear()
    (resolved,) = world.seen("M", DisconnectionResolved)
    assert len(resolved.remove) == 2 and resolved.exact
    assert names_of(resolved.keep) == "MABDF"


def test_data_members_are_kept_before_lite_ones() -> None:
    world = SteppedCluster()
    for name in "ABCD":
        world.born(name, lite=name in "CD")
    world.settled("ABCD")
    report(world, "B", "CD")
    beat_for(world, 3)
    assert world.list_of("A") == (6, "AB")


def test_several_removals_are_one_installation_that_counts_each() -> None:
    world = cluster("ABCDEF")
    for reporter, suspects in {"C": "EF", "D": "EF"}.items():
        report(world, reporter, suspects)
    beat_for(world, 3)
    (installed,) = world.seen("A", ListInstalled)
    assert installed.version == 8
    assert len(world.seen("A", MemberRemoved)) == 2


# A search in slices

LONG_DISPUTE = {"B": "CD", "C": "E", "D": "F", "E": "G", "F": "H", "G": "H"}


def searching(monkeypatch: pytest.MonkeyPatch) -> SteppedCluster:
    """Return a cluster whose master has begun a search of many slices, one for each tick."""
    monkeypatch.setattr(independent_set, "SLICE_VISITS", 1)
    monkeypatch.setattr(ShrinkingGraph, "shrink", lambda graph: None)
    world = cluster("ABCDEFGH")
    for reporter, suspects in LONG_DISPUTE.items():
        report(world, reporter, suspects)
    while state_of(world.machines["A"]).disconnections.search is None:
        world.now += SECOND_US
        for peer in state_of(world.machines["A"]).peers.values():
            peer.detector.heard(world.now)
        world.tell("A", TICK)
    assert not world.seen("A", DisconnectionResolved)
    return world


def test_a_long_search_is_made_in_slices_between_which_the_master_does_all_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = searching(monkeypatch)
    slices = 0
    while not world.seen("A", DisconnectionResolved):
        report(world, "B", "CD")
        world.now += 1
        world.tell("A", TICK)
        slices += 1
    assert slices > 3
    (resolved,) = world.seen("A", DisconnectionResolved)
    monkeypatch.undo()
    at_once = cluster("ABCDEFGH")
    for reporter, suspects in LONG_DISPUTE.items():
        report(at_once, reporter, suspects)
    beat_for(at_once, 3)
    assert at_once.seen("A", DisconnectionResolved) == [resolved]


def test_another_report_or_another_list_makes_a_search_void(monkeypatch: pytest.MonkeyPatch) -> None:
    world = searching(monkeypatch)
    report(world, "B", "C")
    world.now += 1
    world.tell("A", TICK)
    assert state_of(world.machines["A"]).disconnections.search is None
    beat_for(world, 4)
    assert len(world.seen("A", DisconnectionResolved)) == 1
    world = searching(monkeypatch)
    world.suspect("A", "H")
    assert state_of(world.machines["A"]).disconnections.search is None
    beat_for(world, 1.1)
    (resolved,) = world.seen("A", DisconnectionResolved)
    assert "H" not in names_of(resolved.keep + resolved.remove)


def test_a_search_ends_with_the_best_choice_found_so_far_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    world = searching(monkeypatch)
    world.now += SETTINGS.disconnection_timeout_us
    world.tell("A", TICK)
    (resolved,) = world.seen("A", DisconnectionResolved)
    assert not resolved.exact and resolved.remove


def test_a_member_that_goes_on_from_a_snapshot_goes_on_with_its_search(monkeypatch: pytest.MonkeyPatch) -> None:
    world = searching(monkeypatch)
    world.tell("A", TICK)
    machine = world.machines["A"]
    copy = MemberMachine.restored(machine.snapshot(), state_of(machine).member_configuration)
    while not world.seen("A", DisconnectionResolved):
        world.now += 1
        made = copy.step(world.now, TICK)
        world.tell("A", TICK)
        assert copy.canonical() == machine.canonical()
    assert any(
        isinstance(effect, Happened) and isinstance(effect.record.event, DisconnectionResolved) for effect in made
    )


def test_the_reports_are_used_up_by_the_decision() -> None:
    world = cluster()
    report(world, "B", "C")
    beat_for(world, 3)
    assert not reports(world)
    before = len(world.seen("A", DisconnectionResolved))
    beat_for(world, 8)
    assert len(world.seen("A", DisconnectionResolved)) == before == 1


def test_who_leaves_for_another_reason_is_purged_as_reporter_and_as_suspect() -> None:
    world = cluster("ABCDE")
    report(world, "B", "CD")
    report(world, "C", "B")
    report(world, "E", "B")
    world.suspect("A", "B")
    assert reports(world) == {}
    report(world, "D", "CE")
    world.suspect("A", "E")
    assert reports(world) == {"D": "C"}


def test_a_leaver_during_the_quiet_period_does_not_void_the_decision_on_the_others() -> None:
    """The product drops the whole decision then (Hazelcast: partial disconnections, Apply)."""
    world = cluster("ABCDE")
    report(world, "B", "CDE")
    beat_for(world, 2)
    world.suspect("A", "E")
    beat_for(world, 1.1)
    assert world.list_of("A") == (7, "ACD")


def test_a_new_master_decides_on_fresh_reports_only() -> None:
    world = cluster("ABCDE")
    report(world, "D", "E")
    world.suspect("C", "A")
    world.suspect("D", "A")
    world.suspect("E", "A")
    world.suspect("B", "A")
    world.deliver_all(dead="A")
    assert world.list_of("B")[1] == "BCDE"
    world.live(6, dead="A")
    assert world.list_of("B")[1] == "BCDE"
    assert not world.seen("B", DisconnectionResolved)


def test_it_works_while_the_cluster_is_frozen() -> None:
    world = cluster()
    world.change_state("A", "FROZEN")
    world.deliver_all()
    report(world, "B", "CD")
    beat_for(world, 3)
    assert world.list_of("A") == (5, "ACD")


def test_off_means_that_nothing_is_ever_resolved() -> None:
    world = cluster(settings=training_settings(disconnection_heartbeats=0))
    world.cut_links("B", "CD")
    world.live(15)
    assert {world.list_of(name) for name in "ABCD"} == {(4, "ABCD")}
    assert world.seen("B", SuspicionRaised)


def test_the_master_decides_nothing_between_members_of_which_one_does_not_know_that_the_other_has_joined() -> None:
    world = cluster()
    state = state_of(world.machines["A"])
    behind = state.peers[address_of("C")]
    behind.version, behind.behind_since_us = 3, 1  # D has joined with version 4
    report(world, "D", "C")
    state.disconnections.changed_us = world.now - 60 * SECOND_US
    disconnection_reports.resolve_when_quiet(state, world.now)
    assert not world.seen("A", DisconnectionResolved) and reports(world) == {"D": "C"}
    behind.behind_since_us = 0
    disconnection_reports.resolve_when_quiet(state, world.now)
    world.conclude("A")
    assert len(world.seen("A", DisconnectionResolved)) == 1

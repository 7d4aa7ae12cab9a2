"""The decision that is predicted is the one that the master then takes; its alternatives are as good; its cost is counted."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import CutLink
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership.events import (
    DisconnectionReported,
    DisconnectionResolved,
    MemberStarted,
    SettingsChanged,
)
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.what_if.disconnection_decision import (
    INTERVAL,
    QUIET_HEARTBEATS,
    Timing,
    decide,
    decision_facts,
    reports_changed_us,
    timing_of,
)
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FIVE, FakeCluster, fold, formed
from tests.picture.simulated_picture import SimulatedPicture
from tests.thoroughness import long_after


def reported(reports: dict[str, tuple[str, ...]], labels: tuple[str, ...] = FIVE) -> tuple[FakeCluster, Picture]:
    cluster = formed(labels)
    for reporter, suspects in reports.items():
        cluster.happen("n1", DisconnectionReported(cluster.address(reporter), tuple(map(cluster.address, suspects))))
    picture = fold(cluster)
    return cluster, picture


def told(picture: Picture, timing: Timing = Timing(), after_us: int = 0, changed_us: int | None = None) -> str:  # noqa: B008
    master = picture.members["n1"]
    facts = decision_facts(picture, master, decide(master), timing, picture.at + after_us, changed_us)
    return "\n".join(f"{fact.heading}: {fact.text}" for fact in facts)


@pytest.mark.parametrize("part", long_after(1, range(4)))
def test_what_is_predicted_is_what_the_master_does(part: int) -> None:
    for cut in [*combinations(combinations("BCDEF", 2), 2)][part::4]:
        cluster = SimulatedPicture(6)
        cluster.arrange()
        begun = len(cluster.records)
        cluster.do(*(CutLink((one,), (other,)) for one, other in cut))
        decision = None
        while True:
            master = cluster.picture.members["A"]
            decision = decide(master) or decision
            resolved = [
                record.event for record in cluster.records[begun:] if isinstance(record.event, DisconnectionResolved)
            ]
            if resolved:
                break
            cluster.pass_seconds(0.2)
        assert decision is not None and decision.exact
        assert (decision.keep, decision.chosen.remove) == (resolved[0].keep, resolved[0].remove)
        assert decision.why == resolved[0].why


def test_the_countdown_is_that_of_the_master() -> None:
    told_by = SettingsChanged({INTERVAL: "1", "hazelcast.max.no.heartbeat.seconds": "4", QUIET_HEARTBEATS: "3"})
    cluster = SimulatedPicture(4)
    cluster.do(CutLink(("B",), ("C",)))
    while not cluster.picture.members["A"].reports:
        cluster.pass_seconds(0.1)
    cluster.pass_seconds(1)
    setting = Record("r", "A", "u", 1, 0, 0, told_by)
    timing = timing_of([setting, *cluster.records])
    changed_us = reports_changed_us(cluster.records, cluster.picture.members["A"].uuid)
    assert timing.quiet_us == 3 * SECOND_US and changed_us is not None
    resolution = None
    while resolution is None:
        cluster.pass_seconds(0.1)
        resolution = cluster.picture.members["A"].resolution
    assert 0 <= resolution.at_us - (changed_us + 3 * SECOND_US) <= SECOND_US
    seen = timing_of(cluster.records)
    assert seen.settles and seen.quiet_seen_us is not None and 3 * SECOND_US <= seen.quiet_seen_us <= 4 * SECOND_US


@settings(deadline=None)
@given(st.sets(st.sampled_from(list(combinations(FIVE[1:], 2))), min_size=1))
def test_alternatives_keep_as_many_and_have_no_conflict(pairs: set[tuple[str, str]]) -> None:
    reports: dict[str, tuple[str, ...]] = {}
    for one, other in sorted(pairs):
        reports[one] = (*reports.get(one, ()), other)
    cluster, picture = reported(reports)
    decision = decide(picture.members["n1"])
    assert decision is not None and decision.exact
    conflicts = {frozenset(map(cluster.address, pair)) for pair in pairs}
    listed = set(map(cluster.address, FIVE))
    best = max(
        len(keep)
        for size in range(1, 6)
        for keep in combinations(sorted(listed), size)
        if cluster.address("n1") in keep and not any(pair <= set(keep) for pair in conflicts)
    )
    found = {frozenset(choice.remove) for choice in (decision.chosen, *decision.alternatives)}
    assert len(found) == 1 + len(decision.alternatives)
    for removed in found:
        keep = listed - removed
        assert len(keep) == best and not any(pair <= keep for pair in conflicts)
    as_good = sum(
        cluster.address("n1") in keep and not any(pair <= set(keep) for pair in conflicts)
        for keep in combinations(sorted(listed), best)
    )
    if decision.searched:
        assert len(found) == as_good or (decision.combine and len(found) < as_good)


def test_the_words_of_a_decision() -> None:
    _, picture = reported({"n2": ("n3",), "n3": ("n2",)})
    text = told(picture)
    assert "n2 cannot reach ⇄ n3" in text
    assert "keeps n1, n2, n4, n5; removes n3" in text
    assert "rule: the greatest set without a conflict" in text
    assert "as good: n2 could go instead: 4 members stay, 1 member goes; there are no partitions yet" in text
    assert "when: when the reports have not changed for some heartbeats" in text
    timing = Timing(quiet_heartbeats=3, interval_us=SECOND_US)
    assert "in about 2 s; they have not changed for 1 s" in told(picture, timing, SECOND_US, picture.at)
    assert "at the next heartbeat" in told(picture, timing, 4 * SECOND_US, picture.at)


def test_partitions_are_counted_on_both_sides() -> None:
    cluster, _ = reported({"n2": ("n3", "n4")})
    cluster.change_table("n1", 3, {0: ["n2", "n5"], 1: ["n2", ""], 2: ["n3", "n4"]})
    cluster.happen("n1", DisconnectionReported(cluster.address("n2"), tuple(map(cluster.address, ("n3", "n4")))))
    picture = Picture()
    again = formed()
    for record in [*again.drain(), *cluster.drain()]:
        picture.apply(record)
    text = told(picture)
    assert "4 members stay without 1 partition; 1 member goes without 1 partition" in text


def test_without_reports_there_is_nothing_to_decide() -> None:
    cluster, picture = reported({})
    assert decide(picture.members["n1"]) is None and decide(picture.members["n2"]) is None
    assert "nothing to decide" in told(picture)
    cluster.suspect("n2", "n3")
    fold(cluster, picture)
    assert "n2: their suspicions have not reached it" in told(picture)
    assert "do not settle" in told(picture, Timing(settles=False))


def test_a_report_that_names_the_master_moves_nobody() -> None:
    _, picture = reported({"n2": ("n1",)})
    assert "all stay: no report that counts" in told(picture)


def test_reports_change_with_each_that_is_recorded() -> None:
    def at(second: int, event: Event) -> Record:
        return Record("r", "n1", "u", second, second * SECOND_US, 0, event)

    a, b = FakeCluster(("a", "b")).address("a"), FakeCluster(("a", "b")).address("b")
    records = [at(1, DisconnectionReported(a, (b,))), at(2, DisconnectionReported(b, (a,)))]
    assert reports_changed_us(records, "u") == 2 * SECOND_US
    assert reports_changed_us([*records, at(3, DisconnectionReported(a, ()))], "u") == 3 * SECOND_US
    assert reports_changed_us([*records, at(4, DisconnectionResolved((a,), (b,), True, ""))], "u") is None
    assert reports_changed_us(records, "another life") is None


def test_timing_that_is_set_goes_before_what_was_seen() -> None:
    def record(event: Event) -> Record:
        return Record("r", "n1", "u", 1, 0, 0, event)

    assert timing_of([]) == Timing()
    off = timing_of([record(SettingsChanged({QUIET_HEARTBEATS: "0"}))])
    assert off.settles is False and off.quiet_us is None


def test_a_member_whose_settings_are_known_tells_timing_from_the_start() -> None:
    picture = Picture()
    address = Address("10.0.0.1:5701")
    started = MemberStarted(address, False, (), settings={INTERVAL: "4"})
    picture.apply(Record("run-1", "n1", "u1", 1, 1, 1, started))
    told = timing_of([], picture.members["n1"])
    assert (told.interval_us, told.quiet_heartbeats) == (4_000_000, 0)
    picture.apply(Record("run-1", "n1", "u1", 2, 2, 2, SettingsChanged({INTERVAL: "1"})))
    assert timing_of([], picture.members["n1"]).interval_us == 1_000_000
    unknown = MemberBelief("n2", address, "u2")
    assert timing_of([], unknown) == Timing()

"""Episodes of demos and of recorded logs, read as a person would tell them; and what must hold of every fold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, partial
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import DataMeasured
from quarterdeck.backend.core.events import ProcessKilled, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership.events import (
    HeartbeatLate,
    JoinListChanged,
    ListInstalled,
    MemberStarted,
    SearchPlanned,
)
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import MigrationDecided, MigrationsPlanned, MigrationStarted
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, MemberWitnessed, ReplicaMigrated
from quarterdeck.backend.judgement.observations.reader import read_logs
from quarterdeck.backend.picture.events.catalogue import describe_record
from quarterdeck.backend.picture.explain.episodes import episode as keeping
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.episodes import BusySecond, Decisions, Episodes
from quarterdeck.backend.picture.explain.episodes.sentences import sentence_of
from quarterdeck.backend.picture.text.formatting import clock_text
from quarterdeck.backend.scenarios.format.reading import load_scenario
from quarterdeck.backend.simulation.simulated_driver import simulate
from quarterdeck.backend.training import demos
from tests.app.fakes.fake_cluster import FakeCluster
from tests.picture.played_scenarios import MemoryJournal

SCRIPTS = Path(demos.__file__).parent / "scripts"
LOGS = Path(__file__).parents[2] / "hazelcast" / "logs" / "data"


@cache
def records_of_demo(name: str) -> tuple[Record, ...]:
    journal = MemoryJournal()
    simulate(load_scenario(SCRIPTS / f"{name}.yaml"), seed=1, journal=journal)
    return tuple(journal.records)


def told(episodes: Iterable[Episode]) -> str:
    """What a reader sees: when, what, and of how many events."""
    said = [(episode, sentence_of(episode)) for episode in episodes]
    return "\n".join(f"{clock_text(one.at_us)}  {s.text}  ({s.events}, {s.tone})" for one, s in said)


def folded(records: Sequence[Record]) -> Episodes:
    episodes = Episodes()
    episodes.extend(records)
    return episodes


@pytest.mark.parametrize(
    "name",
    [
        "first-cluster", "heal", "join-storm", "kill-during-migration", "lost-partition", "master-dies-mid-commit",
        "mastership-claim", "migration", "minimum-cluster-size", "partial-racks", "pause-like-death", "ring", "split",
    ],
)  # fmt: skip
def test_a_demo_as_a_person_would_tell_it(name: str, snapshot: SnapshotAssertion) -> None:
    episodes = folded(records_of_demo(name))
    happened = [record for record in records_of_demo(name) if not isinstance(record.event, DataMeasured)]
    assert sum(episode.count for episode in episodes.all) == len(happened)
    assert told(episodes.all) == snapshot


@pytest.mark.parametrize("run", ["split-and-merge", "restarts"])
def test_members_that_are_known_from_their_logs(run: str, snapshot: SnapshotAssertion) -> None:
    records = sorted(read_logs([LOGS / run]).records, key=lambda one: one.at)
    assert told(folded(records).all) == snapshot


def test_record_by_record_is_the_same_as_all_at_once_and_a_line_grows() -> None:
    records = records_of_demo("first-cluster")
    growing, lines = Episodes(), []
    for record in records:
        growing.extend([record])
        line = sentence_of(growing.latest(1)[0]).text
        if not lines or lines[-1] != line:
            lines.append(line)
    assert told(growing.all) == told(folded(records).all)
    kill = [line for line in lines if line.startswith("kill athens")]
    assert kill[0] == "kill athens"
    assert kill[-1] == "kill athens: suspected by 3 in 303 ms, byzantium leads v5 of 3"


def of_cluster(seq: int, at: int, event: object, member: str = "dev", uuid: str = "dev") -> Record:
    return Record("r", member, uuid, seq, at, at, event)  # type: ignore[arg-type]


def test_members_that_miss_the_other_half_are_two_lines() -> None:
    labels = [f"n{place}" for place in range(60)]
    addresses = {label: Address(f"h:{5701 + place}") for place, label in enumerate(labels)}
    records = [
        of_cluster(1, 0, MemberStarted(addresses[label], False, ()), label, f"u-{label}") for label in labels
    ]  # their names are known
    halves = labels[:30], labels[30:]
    records += [
        of_cluster(2, 100, LinkChanged(label, other, "blackhole")) for label in halves[0] for other in halves[1]
    ] + [of_cluster(2, 100, LinkChanged(other, label, "blackhole")) for label in halves[0] for other in halves[1]]
    for mine, theirs in (halves, halves[::-1]):
        for label in mine:
            for other in theirs:
                late = HeartbeatLate(addresses[other], f"u-{other}", 3, 4, False)
                records.append(of_cluster(3, 200, late, label, f"u-{label}"))
    lines = [sentence_of(episode).text for episode in folded(records).all]
    assert lines == [
        "start n0, n1, n2, n3, n4, n5 and 54 more",
        "cut {n0, n1, n2, n3, n4, n5 and 24 more} | {n30, n31, n32, n33, n34, n35 and 24 more}: 1800 links",
        "no heartbeat from n30, n31, n32, n33, n34, n35 and 24 more at n0, n1, n2, n3, n4, n5 and 24 more",
        "no heartbeat from n0, n1, n2, n3, n4, n5 and 24 more at n30, n31, n32, n33, n34, n35 and 24 more",
    ]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MOST_EPISODES", 10)
    monkeypatch.setattr(keeping, "MOST_RECORDS_KEPT", 5)
    records = [of_cluster(number, 2_000_000 * number, ProcessKilled(f"n{number}")) for number in range(1, 31)]
    episodes = folded(records)
    assert len(episodes.all) == 10
    assert episodes.forgotten == 20
    assert sum(len(episode.records) for episode in episodes.all) == 5
    assert sentence_of(episodes.latest(1)[0]).text == "kill n30"


def test_a_witness_tells_of_members_that_keep_no_journal() -> None:
    addresses = Address("h:1"), Address("h:2")
    moved = ReplicaMigrated(3, 0, addresses[0], addresses[1], True, 2_000, 2, 1)
    records = [
        of_cluster(1, 0, MemberWitnessed(("client-protocol",), ("owners",)), "m1", "u1"),
        of_cluster(1, 10, MemberWitnessed(("client-protocol",), ("owners",)), "m2", "u2"),
        of_cluster(2, 20_000_000, moved, "m1", "u1"),
        of_cluster(3, 20_001_000, msgspec.structs.replace(moved, done_count=2), "m1", "u1"),
        of_cluster(2, 40_000_000, ConnectionChanged("gone", "connection refused"), "m2", "u2"),
    ]
    assert [sentence_of(episode).text for episode in folded(records).all] == [
        "watch m1, m2 by what they report to clients",
        "replicas move: 2 migrations in 3 ms",
        "m2 cannot be reached: connection refused",
    ]


def test_a_member_that_starts_again_has_arrived_where_others_listed_it_first() -> None:
    """`1 of 1 not there yet` stood for minutes below each restart that was watched without a journal."""
    a, b = Address("h:1"), Address("h:2")
    first, again = Member(a, "u1", 1), Member(b, "u2-again", 4)
    both, lists = (first, again), partial(ListInstalled, lineage="u1", master=a, author=a, cause="unknown")
    records = [
        of_cluster(1, 0, MemberStarted(a, False, ()), a, "u1"),
        of_cluster(2, 0, lists(2, members=(first, Member(b, "u2", 2))), a, "u1"),
        of_cluster(1, 0, MemberStarted(b, False, ()), b, "u2"),
        of_cluster(3, 30_000_000, lists(3, members=(first,)), a, "u1"),
        of_cluster(4, 60_000_000, lists(4, members=both), a, "u1"),
        of_cluster(1, 60_400_000, MemberStarted(b, False, ()), b, "u2-again"),
        of_cluster(2, 60_400_000, lists(4, members=both), b, "u2-again"),
    ]
    (joined,) = [text for text in told(folded(records).all).splitlines() if "v4 of 2" in text]
    assert "h:2 joins: v4 of 2" in joined and "not there" not in joined


def test_a_search_that_is_planned_anew_minutes_later_does_not_make_the_start_longer() -> None:
    """After Ctrl-Z and `fg` the first line of the events said that three members had started in 33.9 s."""
    a = Address("h:1")
    records = [
        of_cluster(1, 0, MemberStarted(a, False, ()), a, "u1"),
        of_cluster(2, 5_000, ListInstalled(1, "u1", a, (Member(a, "u1", 1),), a, "formed"), a, "u1"),
        of_cluster(3, 33_900_000, SearchPlanned(3_000_000, 3_000_000), a, "u1"),
    ]
    (started,) = folded(records).all
    assert started.count == 3 and sentence_of(started).text == "start h:1: v1 of 1, master h:1 in 5 ms"


def test_decisions_and_a_line_a_second_for_what_comes_by_the_thousand() -> None:
    records = records_of_demo("migration")
    lines = list(Decisions().lines(records))
    busy = [line for line in lines if isinstance(line, BusySecond)]
    seconds = [second.at_us // 1_000_000 for second in busy]
    assert len(seconds) == len(set(seconds))
    assert sum(second.committed for second in busy) == sum(
        isinstance(record.event, MigrationDecided) and record.event.committed for record in records
    )
    assert sum(second.begun for second in busy) == sum(isinstance(record.event, MigrationStarted) for record in records)
    kept = [describe_record(line) for line in lines if isinstance(line, Record)]
    assert any("is killed" in text for text in kept)
    assert not any("as source" in text for text in kept)
    assert len(kept) < 100 < len(records)
    assert busy[0].text == "3 migrations begun, 3 done, 36 B, 16 calls of clients"


def witnessed_lists(*editions: int) -> str:
    """What is said of two witnessed members whose configurations are read, so many edits after each other."""
    cluster = FakeCluster(("n1", "n2"))
    for label in cluster.labels:
        cluster.happen(label, MemberWitnessed(("client-protocol",), ("join-list",)))
    for edition in editions:
        for label in cluster.labels:
            joined = tuple(cluster.address(label) for label in cluster.labels[: edition + 1])
            cluster.happen(label, JoinListChanged(joined, edition, cluster.address(label)), after_us=20_000_000)
    return told(folded(cluster.drain()).all)


def test_a_configuration_that_is_read_is_no_edit_and_an_edit_has_no_author() -> None:
    assert "n1, n2 look for others at 10.0.0.1:5701" in witnessed_lists(0)
    assert "edit" not in witnessed_lists(0)
    assert "the join list of n1, n2 was edited: 10.0.0.1:5701" in witnessed_lists(0, 1)


def test_what_is_planned_long_after_the_end_of_a_start_is_a_line_of_its_own() -> None:
    """A recovered table ends a migration a second time, so that fewer than none run."""
    records = records_of_demo("master-dies-mid-commit")
    plan = next(
        record
        for record in reversed(records)
        if record.member == "byzantium" and isinstance(record.event, MigrationsPlanned) and record.event.planned
    )
    event = replace(plan.event, cause="members-changed", why="one joined")
    late = replace(plan, seq=10_000, at=records[-1].at + 20_000_000, event=event)
    newest = folded([*records, late]).all[-1]
    assert newest.at_us == late.at and sentence_of(newest).text.startswith("byzantium moves replicas: one joined")

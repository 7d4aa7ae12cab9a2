"""Everything known of one member, in words."""

from __future__ import annotations

from quarterdeck.backend.boards.member_detail import INDENT, member_detail, recent_facts, seconds_of_run
from quarterdeck.backend.core.data.events import BackupOutOfStep, DataMeasured
from quarterdeck.backend.core.events import ProcessPaused, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.member_list import MemberList, member_list_text
from quarterdeck.backend.core.partitions.events import (
    DrainStarted,
    MigrationAccepted,
    MigrationsPlanned,
    PlannedMigration,
    TableChanged,
    TableRecoveryStarted,
)
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import age_text
from tests.app.fakes.fake_cluster import FIVE, FakeCluster, fold, formed


def facts_of(cluster: FakeCluster, label: str, *, later_us: int = 0) -> list[tuple[str, str]]:
    picture = fold(cluster)
    return [(fact.heading, fact.text) for fact in member_detail(picture, label, picture.at + later_us)]


def test_a_plain_member() -> None:
    cluster = formed()
    facts = facts_of(cluster, "n5", later_us=12 * SECOND_US)
    assert facts[:5] == [
        ("status", "member, follows n1, list v5 since 12 s"),
        ("", "10.0.0.5:5701, uuid n5-life-1"),
        ("cluster", "ACTIVE"),
        ("operations", "served"),
        ("suspects", "none"),
    ]
    assert facts[5][0] == "join list" and facts[5][1].startswith("n1 (10.0.0.1:5701), n2 (10.0.0.2:5701)")
    assert facts[5][1].endswith("; as configured")


def test_the_list_is_the_text_that_operators_know() -> None:
    cluster = formed()
    members = MemberList(5, tuple(cluster.member(label) for label in FIVE), "L1")
    text = member_list_text(members, "n2-life-1").replace("\t", INDENT)
    assert "\n".join(text for _, text in facts_of(cluster, "n2")).endswith(text)


def test_nobody_and_those_whose_process_stands_still() -> None:
    assert facts_of(formed(), "n9") == [("status", "not up: nothing was ever heard of it")]
    cluster = formed()
    cluster.happen("dev", ProcessPaused("n1"))
    facts = facts_of(cluster, "n1")
    assert facts[0][1].startswith("paused, is master") and facts[1][1] == "its last known belief:"


def test_suspicions_reports_and_how_they_were_settled() -> None:
    cluster = formed()
    n2, n3, n4 = (cluster.address(label) for label in ("n2", "n3", "n4"))
    cluster.suspect("n1", "n5", f"no heartbeat through {n4}")
    cluster.happen("n1", events.DisconnectionResolved((n3, n4), (n2,), False, f"{n3} and {n4} reach each other"))
    cluster.happen("n1", events.DisconnectionReported(n3, (n4,)))
    facts = facts_of(cluster, "n1", later_us=3 * SECOND_US)
    assert ("suspects", "? n5 since 3 s: no heartbeat through n4") in facts
    assert ("reports", "n3 cannot reach n4; not settled yet") in facts
    assert (
        "settled",
        "3 s ago, the best found in time: kept n3, n4; removed n2: n3 and n4 reach each other",
    ) in facts
    assert ("holds back", "⊘ n2, until all its links are proven both ways") in facts


def test_what_is_measured_leaves_room_for_what_happened() -> None:
    cluster = formed()
    records = cluster.drain()
    measured = Record(
        "run-1",
        "n1",
        records[0].uuid,
        99,
        cluster.now_us(),
        cluster.now_us(),
        DataMeasured(2, 0, 0, 0, 0, 0, (), (), ()),
    )
    facts = [fact.text for fact in recent_facts(Picture(), [*records, *[measured] * 50], "n1", seconds_of_run)]
    assert any("installs list" in text for text in facts) and not any("stores" in text for text in facts)


def test_why_it_does_not_heal() -> None:
    cluster = formed()
    n1, n2, n3, n4 = (cluster.address(label) for label in ("n1", "n2", "n3", "n4"))
    cluster.happen("n1", events.NotMerging(f"nobody answers at {n4}"))
    cluster.happen("n1", events.MergeVerdict(n4, "cannot-merge", "cluster-name", "the names differ"))
    cluster.happen("n1", events.MemberHeldBack(n2, (n3, n4)))
    cluster.install("n1", 6, ["n1", "n3"])
    cluster.happen("n1", events.MemberHeldBack(n2, (n3, n4)))
    cluster.happen("n1", events.JoinListChanged((n1, n3), 2, n3))
    cluster.happen("n1", events.ClusterStateChanged("FROZEN", "asked"))
    cluster.happen("n1", events.ProtectionChanged(2, 3, False))
    facts = facts_of(cluster, "n1")
    assert ("not merging", "nobody answers at n4") in facts
    assert ("met", "n4, 0 s ago: the two cannot merge (cluster-name: the names differ)") in facts
    assert ("holds back", "⊘ n2, until its links to n3, n4 are proven both ways") in facts
    assert ("join list", "n1 (10.0.0.1:5701), n3 (10.0.0.3:5701); edition 2, given to n3") in facts
    assert ("cluster", "FROZEN") in facts
    assert ("operations", "✕ refused: it sees 2 members and needs 3") in facts


def test_what_a_joiner_waits_for() -> None:
    cluster = formed()
    cluster.start("n2", life=2)
    cluster.happen(
        "n2", events.JoinDelayed(cluster.address("n1"), (cluster.address("n3"),), 2 * SECOND_US), life=2, after_us=0
    )
    facts = facts_of(cluster, "n2")
    assert facts[0] == ("status", "held back, no list yet")
    assert ("waits", "n1 lets it in when its links to n3 are proven; tries again in 2 s") in facts


def test_its_partitions_and_its_part_in_migrations() -> None:
    cluster = formed()
    cluster.change_table("n1", 4, {0: ["n1", "n2"], 1: ["n2", "n3"]}, "arranged")
    facts = facts_of(cluster, "n2", later_us=2 * SECOND_US)
    assert ("table", "none yet; ≠ its master n1 has v4") in facts and "partitions" not in dict(facts)
    cluster = formed()
    for label in ("n1", "n2"):
        cluster.change_table(label, 4, {0: ["n1", "n2"], 1: ["n2", "n3"]}, "arranged")
    cluster.happen("n2", MigrationAccepted("m1", 1, "source", 0, -1), after_us=0)
    cluster.happen("n2", BackupOutOfStep(0, cluster.address("n1"), f"{cluster.address('n1')} is ahead"), after_us=0)
    cluster.happen("n1", DrainStarted(cluster.address("n2")), after_us=0)
    facts = facts_of(cluster, "n2", later_us=2 * SECOND_US)
    assert ("table", "v4 since 2 s (arranged), digest 0000000000000004 (the same for equal tables)") in facts
    assert ("partitions", "owns 1 of 271, keeps 1 backup") in facts
    assert ("leaves", "n1 moves all data off it since 2 s") in facts
    assert ("migrates", "p1 (source)") in facts
    assert ("out of step", "✕ backup of p0 with its owner n1: n1 is ahead") in facts


def test_a_table_that_is_not_its_masters() -> None:
    cluster = formed()
    cluster.change_table("n2", 4, {0: ["n1", "n2"]})
    cluster.change_table("n1", 5, {0: ["n2", "n1"]}, "migration")
    text = dict(facts_of(cluster, "n2"))["table"]
    assert (
        text == "v4 since 0 s (published), digest 0000000000000004 (the same for equal tables); ≠ its master n1 has v5"
    )
    cluster = formed()
    cluster.change_table("n2", 4, {0: ["n1", "n2"]})
    cluster.change_table("n1", 4, {0: ["n2", "n1"]})
    cluster.happen("n2", TableChanged(4, "other", 271, (), (), "n1-life-1", "published"))
    assert dict(facts_of(cluster, "n2"))["table"].endswith("; ≠ its master n1 has v4 too, with other content")


def test_what_a_master_leads() -> None:
    cluster = formed()
    move = PlannedMigration(0, "MOVE", cluster.address("n2"), cluster.address("n5"), 0)
    cluster.happen("n1", MigrationsPlanned((move,), 1, 1, f"{cluster.address('n5')} joined"))
    cluster.happen("n1", MigrationsPlanned((), 0, 0, "they have changed"))
    cluster.happen("n1", TableRecoveryStarted((cluster.address("n2"),)))
    facts = facts_of(cluster, "n1")
    place = facts.index(("leads", "asks n2 for the latest table since 0 s"))
    assert facts[place + 1] == ("", "0 running, 0 planned, 0 done, 0 failed")
    assert facts[place + 2] == ("", "latest plan, 1 replica to copy, 1 places to fill at least: n5 joined")
    cluster = formed()
    cluster.happen("n1", MigrationsPlanned((), 0, 0, f"{cluster.address('n5')} joined"))
    assert ("leads", "0 running, 0 planned, 0 done, 0 failed; all of its plan is done") in facts_of(cluster, "n1")


def test_ages() -> None:
    ages = [age_text(seconds * SECOND_US) for seconds in (-5, 0, 119, 120, 7_199, 7_200)]
    assert ages == ["0 s", "0 s", "119 s", "2 min", "119 min", "2 h"]


def test_nothing_steers_a_terminal() -> None:
    cluster = formed()
    cluster.suspect("n1", "n2", "\x1b]0;owned\x07\r\n")
    assert all(text.isprintable() for _, text in facts_of(cluster, "n1"))

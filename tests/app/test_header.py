"""The first line says what is so now, and of whom: it never counts whom nobody hears, and keeps no trouble that is over."""

from __future__ import annotations

from quarterdeck.app.screen.header import ConnectionSummary, header_parts
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.core.data.events import DataMeasured
from quarterdeck.backend.core.events import JournalChanged, ProcessKilled
from quarterdeck.backend.core.membership.events import MemberStarted
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.core.witnessed.events import ConnectionChanged
from tests.app.fakes.fake_cluster import formed

CITIES = ("athens", "byzantium", "cyrene")


def header(session: ConsoleSession) -> str:
    session.poll()
    whole, more = header_parts(session, ConnectionSummary(session.cluster), "overview")
    return "  ".join(part.text for part in (*whole, *more) if part.text)


def test_who_is_not_reached_counts_neither_as_running_nor_as_master() -> None:
    cluster = formed(CITIES)
    session = ConsoleSession(cluster)
    assert "members 3/3  master athens" in header(session)
    cluster.happen("cyrene", ConnectionChanged("gone", "connection refused"))
    assert "members 2/3  master athens" in header(session)
    cluster.happen("athens", ConnectionChanged("gone", "connection refused"))
    cluster.install("byzantium", 4, ["byzantium"], lineage="L2")
    assert "members 1/3  master byzantium" in header(session)
    cluster.happen("byzantium", ConnectionChanged("silent"))
    assert "members 0/3  master none" in header(session)
    cluster.happen("athens", ConnectionChanged("connected"))
    assert "members 1/3  master athens" in header(session)


def test_a_loss_is_told_with_its_side_and_ends_with_it() -> None:
    cluster = formed(CITIES)
    session = ConsoleSession(cluster)
    cluster.split(["athens", "byzantium"], ["cyrene"])
    for partition in (1, 2, 3):
        cluster.happen("cyrene", PartitionLost(partition, ALL_LOST))
    cluster.happen("cyrene", PartitionLost(3, ALL_LOST))
    assert (
        "SPLIT since 0 s · 2 + 1, masters athens, cyrene · writes go to both · cyrene maybe lost 3 partitions"
        in header(session)
    )
    cluster.happen("cyrene", MemberStarted(cluster.address("cyrene"), False, (), merged_from="cyrene-life-1"), life=2)
    assert "lost" not in header(session)
    cluster.install("cyrene", 8, CITIES, life=2)
    assert "lost" not in header(session)


def test_a_loss_goes_over_to_who_leads_next() -> None:
    cluster = formed(CITIES)
    session = ConsoleSession(cluster)
    row = (7, 5, 10, 0, 1)
    cluster.happen("athens", DataMeasured(1_000_000, 5, 10, 0, 0, 0, (), (row,), ()))
    cluster.happen("athens", PartitionLost(7, ALL_LOST))
    assert header(session).startswith("DATA LOST · 1 partition, about 5 entries, 0 s ago · 3 members agree")
    cluster.happen("dev", ProcessKilled("athens"))
    assert header(session).startswith("DATA LOST · 1 partition, about 5 entries, 0 s ago · athens gone")
    for label in ("byzantium", "cyrene"):
        cluster.install(label, 4, ["byzantium", "cyrene"], lineage="L2")
    assert header(session).startswith("DATA LOST · 1 partition, about 5 entries, 0 s ago · 2 of 3 · athens gone")


def test_a_side_that_lost_nothing_does_not_take_over_a_loss_with_a_list() -> None:
    cluster = formed(CITIES)
    session = ConsoleSession(cluster)
    cluster.install("cyrene", 4, ["cyrene"], lineage="L2")
    cluster.happen("cyrene", PartitionLost(7, ALL_LOST))
    cluster.install("cyrene", 5, CITIES)
    assert "lost" not in header(session)


def test_a_failing_journal_is_told_while_it_lasts() -> None:
    cluster = formed(CITIES, source="live")
    session = ConsoleSession(cluster)
    cluster.happen("dev", JournalChanged("dev", "No space left on device", 0))
    assert "✕ no journal: No space left on device" in header(session)
    cluster.happen("dev", JournalChanged("dev", "", 3))
    assert "journal" not in header(session)


def test_the_past_is_neither_live_nor_to_be_changed() -> None:
    cluster = formed(CITIES, source="live")
    session = ConsoleSession(cluster)
    assert "  members 3/3  master athens  dev  RW  live" in header(session)
    session.playhead.go(300_000)
    told = header(session)
    assert (
        told.startswith("‖ past 0.300 of 0.6 s  changing · 3 members joining")
        and "  members 0/3  master none  dev  RO" in told
    )


def test_an_alarm_has_the_first_columns_of_every_view() -> None:
    cluster = formed(CITIES, name="a-cluster-with-a-very-long-name-that-fills-a-narrow-screen")
    session = ConsoleSession(cluster)
    cluster.split(["athens", "byzantium"], ["cyrene"])
    assert "writes go to both" in header(session)[:80]


def test_the_leader_and_the_count_stand_before_the_name_of_the_run() -> None:
    cluster = formed(CITIES, name="a-cluster-with-a-very-long-name-that-fills-a-narrow-screen")
    assert "members 3/3  master athens" in header(ConsoleSession(cluster))[:80]

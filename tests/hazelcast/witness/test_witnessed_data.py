"""What members report of tables, maps and themselves becomes events: a digest of each table, measured entries, judged losses."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from quarterdeck.backend.boards.cluster_metrics import cluster_metrics
from quarterdeck.backend.boards.data_board import data_facts, data_rows
from quarterdeck.backend.boards.member_detail import link_facts, process_facts
from quarterdeck.backend.boards.migration_board import progress_text
from quarterdeck.backend.boards.migration_lanes import queue_figure
from quarterdeck.backend.core.data.events import DataMeasured, MapMeasured
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.core.witnessed.events import (
    MemberMeasured,
    OwnersTold,
    ReplicaMigrated,
)
from quarterdeck.backend.hazelcast.wire.messages import (
    MemberConfig,
    Metrics,
    MetricSample,
    MetricSet,
    MigrationState,
    PartitionLostEvent,
    PartitionsView,
    ReplicaMigrationEvent,
)
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.losses.ledger import losses_of
from quarterdeck.backend.judgement.watcher import WATCHES_ALL
from quarterdeck.backend.picture.fold.member_data import Answered, answered
from tests.hazelcast.witness.test_cluster_witness import A, B, Watched, view


def test_members_with_the_same_table_have_the_same_digest() -> None:
    watched = Watched()
    members = ((A, "a"), (B, "b"))
    for address, uuid in members:
        watched.answers(address, uuid, view(3, *members))
        watched.says(address, uuid, PartitionsView(("a", "b"), (0, 1, -1)))
    tables = [record.event for record in watched.told if isinstance(record.event, OwnersTold)]
    assert len(tables) == 2
    assert tables[0] == tables[1]
    assert [holder.address for holder in tables[0].holders] == [A, B]


def test_a_table_that_changes_all_the_time_is_told_a_few_times_a_second_and_its_end_is_told() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    for number in range(100):
        watched.now_us += 5_000
        watched.says(A, "a", PartitionsView(("a", "b"), (0,) * (100 - number) + (1,) * number))
    watched.wait(1)
    tables = [record.event for record in watched.told if isinstance(record.event, OwnersTold)]
    assert 2 <= len(tables) <= 5
    assert tables[-1].owners.count(1) == 99


def test_the_state_stamp_comes_with_the_table() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    watched.says(A, "a", PartitionsView(("a",), (0, 0)))
    watched.wait(1)
    unarranged = Metrics(1, (MetricSet(0, (MetricSample("partitions.stateStamp", 0),)),))
    assert watched.says(A, "a", unarranged) == []  # that of a member that has just joined is not yet one
    stamp = Metrics(1, (MetricSet(0, (MetricSample("partitions.stateStamp", 17),)),))
    assert [type(event) for event in watched.says(A, "a", stamp)] == [OwnersTold]
    assert watched.picture().members[A].state_stamp == 17


def of_map(at_ms: int, **counts: int) -> Metrics:
    """The metrics of the map `orders`."""
    which = ("name", "orders")
    samples = (MetricSample(f"map.{name}", value, which) for name, value in counts.items())
    return Metrics(1, (MetricSet(at_ms, tuple(samples)),))


def test_entries_and_operations_of_maps_are_measured_by_the_metrics_that_come_anyway() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    first = of_map(1_000, ownedEntryCount=50, ownedEntryMemoryCost=700, backupEntryCount=40, getCount=9, putCount=90)
    assert watched.says(A, "a", first) == [
        DataMeasured(0, 50, 700, 40, 0, 0, (MapMeasured("orders", 50, 700, 0, 0),), (), ())
    ]
    assert watched.says(A, "a", first) == [], "what has not changed is not recorded"
    (second,) = watched.says(A, "a", of_map(6_000, ownedEntryCount=52, getCount=19, putCount=95, setCount=2))
    assert second == DataMeasured(5_000_000, 52, 0, 0, 0, 0, (MapMeasured("orders", 52, 0, 10, 7),), (), ())
    (third,) = watched.says(A, "a", of_map(11_000, ownedEntryCount=52, backupEntryCount=40, backupCount=2))
    assert third.maps == (MapMeasured("orders", 52, 0, 0, 0, 2, 40),)
    data = watched.picture().members[A].data
    assert data is not None and data.maps["orders"].entries == 52
    assert (data.reads, data.writes) == (10, 7)


def test_hits_and_times_of_operations_are_of_the_time_since_the_metrics_before() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    counts = {"getCount": 100, "putCount": 50, "hits": 90, "totalGetLatency": 7, "totalPutLatency": 40}
    watched.says(A, "a", of_map(1_000, ownedEntryCount=50, **counts))
    counts = {"getCount": 140, "putCount": 60, "hits": 80, "totalGetLatency": 9, "totalPutLatency": 45}
    (second,) = watched.says(A, "a", of_map(6_000, ownedEntryCount=50, **counts))
    (orders,) = second.maps
    assert (orders.hits, orders.reading, orders.writing) == (0, 2_000, 5_000), "entries that left took their hits along"
    data = watched.picture().members[A].data
    assert data is not None
    assert answered(data.maps.values(), data.at_us) == Answered(0.0, 50.0, 500.0)
    assert answered(data.maps.values(), data.at_us + 11_000_000) == Answered(), "it would have reported more"
    (fact,) = data_facts(watched.picture(), watched.picture().members[A], data.at_us)
    assert fact.text.endswith("; · hits/s, a read took 0.05 ms in the mean, a write 0.5 ms")
    (row,) = data_rows(watched.picture(), "map", data.at_us).values()
    assert row.answered.write_us == 500


def test_the_slowest_operations_are_of_all_the_time_and_of_all_owners() -> None:
    watched = Watched()
    for address, uuid, slowest in ((A, "a", 35), (B, "b", 20)):
        watched.answers(address, uuid, view(3, (A, "a"), (B, "b")))
        latencies = {"totalMaxGetLatency": slowest, "totalMaxPutLatency": 2, "totalMaxSetLatency": slowest + 1}
        watched.says(address, uuid, of_map(1_000, ownedEntryCount=50, **latencies))
    picture = watched.picture()
    (row,) = data_rows(picture, "map", 60_000_000).values()
    assert (row.answered.slowest_read_us, row.answered.slowest_write_us) == (35_000, 36_000)
    (fact,) = data_facts(picture, picture.members[B], 60_000_000)
    assert fact.text.endswith("the slowest read so far 20 ms, the slowest write so far 21 ms")
    (metric,) = (one for one in cluster_metrics(Judge(picture, now_us=0), {}) if "slowest" in one.name)
    assert metric.samples == {("orders", "read"): 0.035, ("orders", "write"): 0.036}


def test_the_end_of_a_migration_names_members_by_address() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    end = ReplicaMigrationEvent(7, 1, "a", "b", True, 12, MigrationState(54, 31))
    assert watched.says(A, "a", end) == [ReplicaMigrated(7, 1, A, B, True, 12_000, 54, 31)]
    (endless,) = watched.says(A, "a", replace(end, took_ms=(1 << 63) - 1))
    assert msgspec.json.decode(msgspec.json.encode(endless), type=ReplicaMigrated) == endless
    assert watched.says(A, "a", PartitionLostEvent(7, 6)) == [PartitionLost(7, 6, data_lost=True)]


MAPS = """<hazelcast xmlns="http://www.hazelcast.com/schema/config"><map name="default"/>
<map name="orders"><backup-count>1</backup-count><async-backup-count>1</async-backup-count></map>
<map name="cache*"><backup-count>0</backup-count></map></hazelcast>"""


def test_a_loss_is_judged_against_the_backups_of_maps() -> None:
    """Two of five members were killed at once, and a map with one backup lost 1,785 entries: `lost_backups` was 1."""
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    assert watched.says(A, "a", PartitionLostEvent(7, 0)) == [PartitionLost(7, 0, data_lost=False)]
    assert watched.says(A, "a", PartitionLostEvent(7, 1)) == [PartitionLost(7, 1, data_lost=True)]
    watched.says(A, "a", MemberConfig(MAPS))
    assert watched.says(A, "a", PartitionLostEvent(8, 0)) == [PartitionLost(8, 0, True, ("cache*",))]
    assert watched.says(A, "a", PartitionLostEvent(8, 1)) == [PartitionLost(8, 1, True, ("cache*", "default"))]
    (lost,) = watched.says(A, "a", PartitionLostEvent(9, 2))
    assert lost == PartitionLost(9, 2, True, ("cache*", "default", "orders"))
    picture = watched.picture()
    (loss,) = losses_of(picture, WATCHES_ALL, picture.at)
    assert loss.what == "3 partitions of cache*, default, orders"
    assert picture.history.lost_count == 3, "each partition once, although several members report it"


def of_member(at_ms: int, **values: int) -> Metrics:
    """Metrics of the member itself; two underscores stand for a point."""
    samples = (MetricSample(name.replace("__", "."), value) for name, value in values.items())
    return Metrics(1, (MetricSet(at_ms, tuple(samples)),))


def test_what_metrics_say_of_a_member_is_recorded_when_much_has_changed() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    heap, sent = "memory__usedHeap", "cluster__heartbeat__lastHeartbeat"
    collected = {"gc__minorTime": 40, "gc__majorTime": 0}
    (first,) = watched.says(A, "a", of_member(10_000, **{heap: 50_000, sent: 9_100}, **collected))
    assert first == MemberMeasured(heartbeat_age=900_000, heap_used=50_000), "the rest is not reported"
    steady = {heap: 50_000, sent: 13_200, "gc__minorTime": 90, "gc__majorTime": 0}
    assert watched.says(A, "a", of_member(15_000, **steady)) == [
        MemberMeasured(heartbeat_age=1_800_000, heap_used=50_000, span=5_000_000, collecting=50_000)
    ], "the time of collections is known from the second metrics on"
    assert watched.says(A, "a", of_member(20_000, **{**steady, sent: 18_000})) == []
    (paused,) = watched.says(A, "a", of_member(25_000, **{**steady, sent: 18_000, "gc__majorTime": 4_000}))
    assert isinstance(paused, MemberMeasured)
    assert (paused.heartbeat_age, paused.collecting) == (7_000_000, 4_000_000)
    belief = watched.picture().members[A]
    assert belief.metrics == paused
    facts = {fact.heading: fact.text for fact in process_facts(belief, belief.metrics_us + 2_000_000)}
    assert "stood still" in facts["process"] and "much the same for 2 s" in facts["process"]
    assert "files" not in facts["process"], "what is not reported is left out"
    assert "work" not in facts


def test_the_masters_metrics_say_how_many_migrations_wait() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a")))
    rounds = {"partitions__plannedMigrations": 31, "partitions__completedMigrations": 26}
    watched.says(A, "a", of_member(10_000, partitions__migrationQueueSize=5, **rounds))
    assert (
        progress_text(Judge(watched.picture()).masters) == "5 tasks in the migration queue, 26 of 31 of the round done"
    )
    watched.says(A, "a", of_member(15_000, partitions__migrationQueueSize=0, **rounds))
    assert progress_text(Judge(watched.picture()).masters) == ""
    assert queue_figure(Judge(watched.picture())) == ("none waits, 0 done", "faint")


def test_the_detail_of_a_member_says_to_whom_it_does_not_write() -> None:
    watched = Watched()
    watched.answers(A, "a", view(3, (A, "a"), (B, "b")))
    assert "not reported" in str(list(link_facts(watched.picture(), watched.picture().members[A], 0)))

    def idle(at_ms: int, idle_ms: int) -> Metrics:
        which = ("pipelineId", "/10.0.0.1:5701->/10.0.0.2:5701")
        return Metrics(1, (MetricSet(at_ms, (MetricSample("tcp.connection.out.idleTimeMillis", idle_ms, which),)),))

    watched.says(A, "a", idle(10_000, 40))
    assert "it writes to every member" in str(list(link_facts(watched.picture(), watched.picture().members[A], 0)))
    watched.says(A, "a", idle(25_000, 15_040))
    assert "nothing written for 15 s" in str(list(link_facts(watched.picture(), watched.picture().members[A], 0)))

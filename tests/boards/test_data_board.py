"""Data by member, by map and by partition, told by simulated members; what lags, and what is at rest."""

from __future__ import annotations

from functools import cache

from quarterdeck.backend.boards.data_board import (
    data_facts,
    data_rows,
    data_sentence,
    heat_of,
    lags_of_backups,
    partition_rates,
    rate_text,
)
from quarterdeck.backend.boards.replicas.replica_map import ReplicaMap
from quarterdeck.backend.core.commands import CallMap, CutLink, KillMember
from quarterdeck.backend.core.operations import Get, Put, PutAll
from quarterdeck.backend.picture.fold.picture import Picture
from tests.picture.simulated_picture import SimulatedPicture

ENTRIES = tuple((f"k{number}", b"value") for number in range(50))
PROPERTIES = {"hazelcast.partition.count": 12}


def filled() -> SimulatedPicture:
    """Three members, with fifty entries in `orders` and one in `users`, of which one key is read again and again."""
    cluster = SimulatedPicture(3, properties=PROPERTIES)
    cluster.arrange()
    cluster.do(CallMap("A", PutAll("orders", ENTRIES)), CallMap("B", Put("users", "u", b"1")))
    for _ in range(40):
        cluster.do(CallMap("C", Get("users", "u")))
        cluster.pass_seconds(0.05)
    cluster.pass_seconds(0.5)
    return cluster


@cache
def busy() -> SimulatedPicture:
    return filled()


def test_members_tell_all_that_is_stored_once_as_owners_and_once_as_backups() -> None:
    cluster = busy()
    rows = data_rows(cluster.picture, "member", cluster.now_us)
    assert list(rows) == ["A", "B", "C"]
    assert sum(row.entries or 0 for row in rows.values()) == 51
    assert sum(row.backup_entries or 0 for row in rows.values()) == 51
    assert sum(row.bytes or 0 for row in rows.values()) == sum(row.backup_bytes or 0 for row in rows.values())
    assert sum(row.rate.reads for row in rows.values() if row.rate) > 5


def test_maps_are_counted_over_all_owners() -> None:
    cluster = busy()
    rows = {row.name: row for row in data_rows(cluster.picture, "map", cluster.now_us).values()}
    assert {name: row.entries for name, row in rows.items()} == {"orders": 50, "users": 1}
    assert rows["users"].bytes == 2 and rows["orders"].bytes == sum(len(key) + len(value) for key, value in ENTRIES)


def test_the_partition_of_a_key_that_is_read_often_is_the_hottest() -> None:
    cluster = busy()
    rates = partition_rates(cluster.picture, "A", cluster.now_us)
    hottest = max(rates, key=lambda partition: rates[partition].reads)
    rows = data_rows(cluster.picture, "partition", cluster.now_us)
    row = next(row for row in rows.values() if row.name == f"p{hottest}")
    shown = ReplicaMap()
    shown.follow(cluster.picture)
    owner = shown.table.row(hottest)[0]
    assert owner is not None and row.owner == cluster.picture.label_of(owner.address)
    assert row.rate is not None and row.rate.reads > 5
    assert sum(row.entries or 0 for row in rows.values()) == 51


def test_rates_end_when_nothing_is_asked_any_more_and_what_is_stored_stays() -> None:
    cluster = filled()
    before = len(cluster.records)
    cluster.pass_seconds(10)
    assert not partition_rates(cluster.picture, "A", cluster.now_us)
    assert "51 keys" in data_sentence(cluster.picture, cluster.now_us).text
    assert "· reads/s" in data_sentence(cluster.picture, cluster.now_us).text
    told = [record for record in cluster.records[before:] if type(record.event).__name__ == "DataMeasured"]
    assert len(told) <= 3  # what had not been told yet, and nothing since


def test_whoever_takes_over_tells_what_it_has_and_who_is_gone_does_not_count() -> None:
    cluster = filled()
    cluster.do(KillMember("B"))
    cluster.pass_seconds(20)
    rows = data_rows(cluster.picture, "member", cluster.now_us)
    assert list(rows) == ["A", "C"] and sum(row.entries or 0 for row in rows.values()) == 51
    assert sum(row.entries or 0 for row in data_rows(cluster.picture, "partition", cluster.now_us).values()) == 51


def test_a_backup_out_of_reach_lags_and_its_owners_say_so() -> None:
    cluster = filled()
    cluster.do(CutLink(("A",), ("B",)), CutLink(("C",), ("B",)))
    cluster.do(CallMap("A", PutAll("orders", ENTRIES)))
    cluster.pass_seconds(2.2)
    lags = lags_of_backups(cluster.picture)
    assert str(cluster.picture.members["B"].address) in lags
    row = data_rows(cluster.picture, "member", cluster.now_us)["B"]
    assert row.behind and row.tone == "warning" and "writes, " in row.lag
    said = [fact.text for fact in data_facts(cluster.picture, cluster.picture.members["A"], cluster.now_us)]
    assert any(text.startswith("its backup B has not confirmed") for text in said)
    assert "behind" in data_sentence(cluster.picture, cluster.now_us).text


def test_a_copy_of_the_picture_goes_its_own_way() -> None:
    cluster = filled()
    twin = cluster.picture.copy()
    cluster.do(CallMap("A", Put("more", "k", b"v")))
    cluster.pass_seconds(4)
    assert "52 keys" in data_sentence(cluster.picture, cluster.now_us).text
    assert "51 keys" in data_sentence(twin, cluster.now_us).text


def test_of_an_empty_cluster_nothing_is_told() -> None:
    assert data_sentence(Picture(), 0).text == "nothing is stored, as far as the members have reported"
    assert data_rows(Picture(), "partition", 0) == {}


def test_rates_and_heat_in_letters() -> None:
    assert [rate_text(rate) for rate in (0, 0.25, 12.345, 12_345.6)] == ["·", "0.25", "12.3", "12346"]
    assert [heat_of(rate, 90) for rate in (90, 85, 45, 10, 0.1, 0)] == ["9", "9", "5", "2", "1", "0"]

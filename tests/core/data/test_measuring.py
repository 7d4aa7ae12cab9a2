"""What members tell of their data: what has changed, once an interval, and nothing while nothing happens."""

from __future__ import annotations

import pytest
from msgspec import structs

from quarterdeck.backend.core.data import measuring
from quarterdeck.backend.core.data.events import BackupLag, DataMeasured, MapMeasured
from quarterdeck.backend.core.data.messages import BackupWrite
from quarterdeck.backend.core.operations import Keys, Put, PutAll, Remove, Size
from quarterdeck.backend.core.properties import SECOND_US
from tests.core.map_network import MapNetwork
from tests.core.stepped_cluster import address_of, training_settings


def measured(network: MapNetwork, name: str) -> list[DataMeasured]:
    return network.seen(name, DataMeasured)


def test_an_owner_tells_what_it_stores_and_what_was_asked_of_it() -> None:
    network = MapNetwork("AB", ["AB"])
    network.put("A", "k", "four")
    network.put("B", "k2", "xy")
    network.get("B", "k")
    network.pass_seconds(2.1)
    assert measured(network, "A") == [
        DataMeasured(2 * SECOND_US, 2, 9, 0, 0, 0, (MapMeasured("m", 2, 9, 1, 2),), ((0, 2, 9, 1, 2),), ())
    ]
    assert measured(network, "B") == [DataMeasured(2 * SECOND_US, 0, 0, 2, 9, 2, (), (), ())]


def test_who_is_asked_nothing_tells_nothing() -> None:
    network = MapNetwork("AB", ["AB", "BA"])
    network.pass_seconds(20, step=1)
    assert not measured(network, "A") and not measured(network, "B")
    network.put("A", "k", "v")
    network.pass_seconds(20, step=1)
    assert len(measured(network, "A")) == len(measured(network, "B")) == 1


def test_questions_about_a_whole_map_say_nothing_of_a_partition() -> None:
    network = MapNetwork("AB", ["AB"])
    network.ask("A", Size("m"))
    network.ask("A", Keys("m"))
    network.pass_seconds(2, step=1)
    assert not measured(network, "A")


def test_entries_put_together_count_each_and_what_is_removed_goes() -> None:
    network = MapNetwork("A", ["A"])
    network.ask("A", PutAll("m", (("k", b"1"), ("l", b"2"), ("n", b"3"))))
    network.pass_seconds(2.1)
    for key in "kln":
        network.ask("A", Remove("m", key))
    network.pass_seconds(2.1)
    first, second = measured(network, "A")
    assert first.maps == (MapMeasured("m", 3, 6, 0, 3),) and first.rows == ((0, 3, 6, 0, 3),)
    assert second.maps == (MapMeasured("m", 0, 0, 0, 3),) and second.entries == second.bytes == 0


def test_a_partition_that_moves_is_told_by_both() -> None:
    network = MapNetwork("ABC", ["AB"])
    network.put("A", "k", "v")
    network.pass_seconds(2.1)
    network.set_row(0, "BA")
    network.learn_all()
    network.pass_seconds(2.1)
    assert measured(network, "A")[-1] == DataMeasured(
        2 * SECOND_US, 0, 0, 1, 2, 0, (MapMeasured("m", 0, 0, 0, 0),), ((0,),), ()
    )
    assert measured(network, "B")[-1] == DataMeasured(
        2 * SECOND_US, 1, 2, 0, 0, 0, (MapMeasured("m", 1, 2, 0, 0),), ((0, 1, 2, 0, 0),), ()
    )
    assert not measured(network, "C")


def test_a_backup_that_does_not_confirm_lags_until_it_does() -> None:
    network = MapNetwork("AB", ["AB"])
    network.call("A", Put("m", "k", b"v"))
    network.kill("B")
    network.pass_seconds(2.1)
    told = measured(network, "A")
    assert told[0].lagging == (BackupLag(address_of("B"), 1, 1, 2 * SECOND_US),)
    assert told[0].rows == ((0, 1, 2, 0, 1, 1, 2 * SECOND_US),)
    network.pass_seconds(3)
    assert len(measured(network, "A")) == 1  # it lags as before
    network.dead = ""
    network.pass_seconds(6)
    assert measured(network, "A")[-1].lagging == () and measured(network, "A")[-1].rows == ((0, 1, 2, 0, 0),)
    count = len(measured(network, "A"))
    network.pass_seconds(5)
    assert len(measured(network, "A")) == count


def test_a_write_on_its_way_is_no_lag() -> None:
    network = MapNetwork("AB", ["AB"])
    network.put("A", "k", "v")
    network.pass_seconds(1.95)
    network.call("A", Put("m", "k2", b"v"))
    held = network.sent.copy()
    assert network.drop(BackupWrite) == 1
    network.now += SECOND_US // 20
    network.tick("A")
    assert [told.lagging for told in measured(network, "A")] == [()]
    network.sent = held
    network.settle()
    network.pass_seconds(3)
    assert [told.lagging for told in measured(network, "A")] == [()]  # nothing else has changed since


def test_much_is_told_in_several_events_of_one_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "MOST_PARTITIONS", 3)
    network = MapNetwork("A", ["A"] * 8)
    network.ask("A", PutAll("m", tuple((f"k{number}", b"v") for number in range(100))))
    network.pass_seconds(2.1)
    told = measured(network, "A")
    assert [len(event.rows) for event in told] == [3, 3, 2]
    assert [row[0] for event in told for row in event.rows] == list(range(8))
    assert sum(row[1] for event in told for row in event.rows) == told[0].entries == 100
    assert [len(event.maps) for event in told] == [1, 0, 0]
    assert {structs.astuple(event)[:6] for event in told} == {(2 * SECOND_US, 100, told[0].bytes, 0, 0, 0)}


def test_an_interval_of_nothing_measures_nothing() -> None:
    settings = training_settings(partition_count=1).with_properties({"quarterdeck.data.measure.interval.seconds": 0})
    network = MapNetwork("AB", ["AB"], settings)
    network.put("A", "k", "v")
    network.pass_seconds(3)
    assert not measured(network, "A") and not measured(network, "B")


def test_now_and_then_everything_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "EVERYTHING_EVERY", 3)
    network = MapNetwork("A", ["A"] * 4)
    network.ask("A", PutAll("m", tuple((f"k{number}", b"v") for number in range(40))))
    network.ask("A", Put("still", "k", b"v"))
    network.pass_seconds(2.1)
    for _ in range(3):
        network.get("A", "k0")
        network.pass_seconds(2.1)
    told = measured(network, "A")
    assert [len(event.rows) for event in told] == [4, 1, 1, 4]
    assert [[measured.map for measured in event.maps] for event in told] == [
        ["m", "still"],
        ["m"],
        ["m"],
        ["m", "still"],
    ]

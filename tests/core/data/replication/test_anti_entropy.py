"""Anti-entropy: what is wrong with a backup is found and repaired, whatever the owner believes (Hazelcast: anti-entropy)."""

from __future__ import annotations

from quarterdeck.backend.core.data.events import BackupInStep, BackupOutOfStep
from quarterdeck.backend.core.data.messages import BackupCheck, MapCall, SyncRequest
from quarterdeck.backend.core.data.partition_store import PartitionStore, Stamp, StoredEntry
from quarterdeck.backend.core.data.replication import anti_entropy
from quarterdeck.backend.core.operations import Put
from quarterdeck.backend.core.properties import SECOND_US
from tests.core.map_network import MapNetwork
from tests.core.stepped_cluster import address_of, training_settings

INTERVAL_US = 5 * SECOND_US


def filled(rows: list[str]) -> MapNetwork:
    chosen = training_settings(
        partition_count=len(rows), backup_sync_interval_us=INTERVAL_US, call_timeout_us=INTERVAL_US
    )
    network = MapNetwork("ABC", rows, chosen)
    for number in range(100):
        network.call("A", Put("m", f"k{number}", b"v"))
    network.settle()
    return network


def test_a_dirty_backup_takes_the_partition_over() -> None:
    network = filled(["ABC"])
    store = network.states["B"].data.stores[0]
    store.put("m", "k1", StoredEntry(b"dirt", 1, 0, 0, 0, 0))
    network.pass_seconds(5.1)
    assert network.seen("B", BackupOutOfStep)[0].owner == address_of("A")
    assert "digest" in network.seen("B", BackupOutOfStep)[0].reason
    assert [(event.entries, event.bytes) for event in network.seen("B", BackupInStep)] == [(100, 390)]
    assert not network.seen("C", BackupOutOfStep)
    network.assert_equal_replicas()


def test_a_lagging_backup_is_found_although_it_was_confirmed() -> None:
    network = filled(["AB"])
    lagging = PartitionStore()
    lagging.stamp = Stamp(network.states["A"].uuid, 3)
    network.states["B"].data.stores[0] = lagging
    network.pass_seconds(5.1)
    assert len(network.seen("B", BackupInStep)) == 1
    network.assert_equal_replicas()


def test_nothing_is_asked_between_the_intervals_and_one_message_is_enough_for_a_backup() -> None:
    network = filled(["AB", "AC", "BA", "CA"] * 2)
    network.pass_seconds(4.9)
    assert not network.messages(BackupCheck)
    network.now = INTERVAL_US
    network.tick_all()
    asked = [
        (sender, receiver, len(one.checks)) for sender, receiver, one in network.sent if isinstance(one, BackupCheck)
    ]
    assert sorted(asked) == [("A", "B", 2), ("A", "C", 2), ("B", "A", 2), ("C", "A", 2)]
    network.settle()
    assert not network.messages(SyncRequest)


def test_a_partition_that_migrates_is_left_out() -> None:
    network = filled(["AB", "AB"])
    network.begin_migration(network.migration(0, "AC", "C"))
    network.now = INTERVAL_US
    network.tick_all()
    assert [[check.partition for check in message.checks] for message in network.messages(BackupCheck)] == [[1]]


def test_it_goes_on_and_on() -> None:
    network = filled(["AB"])
    rounds = 0
    for _ in range(4):
        network.now += INTERVAL_US
        network.tick_all()
        rounds += len(network.messages(BackupCheck))
        network.settle()
    assert rounds == 4


def test_calls_of_those_who_left_are_forgotten_some_time_later() -> None:
    network = filled(["AB"])
    network.put("C", "k", "v")
    gone = network.states["C"].uuid
    network.kill("C")
    network.list_all()
    network.pass_seconds(4)
    assert gone in network.states["A"].data.stores[0].sessions
    network.pass_seconds(7)
    assert gone not in network.states["A"].data.stores[0].sessions
    assert gone not in network.states["B"].data.stores[0].sessions
    assert network.states["A"].uuid in network.states["B"].data.stores[0].sessions


def test_a_call_of_somebody_who_has_left_is_not_done() -> None:
    network = filled(["AB"])
    network.call("C", Put("m", "k", b"late"))
    network.kill("C")
    network.list_all()
    assert len(network.messages(MapCall)) == 1
    network.settle()
    assert ("m", "k") not in network.entries("A")


def test_calls_of_lives_that_left_before_this_member_came_are_forgotten_too() -> None:
    network = filled(["A"])
    network.put("C", "k", "v")
    gone = network.states["C"].uuid
    network.kill("C")
    network.list_all()
    network.born("D")
    network.list_all()
    network.learn_all()
    network.migrate(0, "D", "D")
    network.learn_all()
    assert gone in network.states["D"].data.stores[0].sessions
    network.pass_seconds(15.1)
    assert network.states["D"].data.stores[0].sessions.keys() == {network.states["A"].uuid}


def test_the_calls_of_a_member_that_has_left_are_remembered_as_long_as_they_may_still_come() -> None:
    network = filled(["AB"])
    owner, caller = network.states["A"], network.states["C"].uuid
    network.ask("C", Put("m", "k", b"v"))
    assert caller in owner.data.stores[0].sessions
    owner.data.incarnations -= {caller}
    owner.data.gone[caller] = network.now
    anti_entropy.on_anti_entropy_timer(owner, network.now)
    assert caller in owner.data.stores[0].sessions
    anti_entropy.on_anti_entropy_timer(owner, network.now + INTERVAL_US)
    assert caller not in owner.data.stores[0].sessions

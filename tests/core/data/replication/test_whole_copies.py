"""Copies of whole partitions: a backup that lacks writes takes what its owner has, in chunks, whatever is lost on the way."""

from __future__ import annotations

from random import Random

import pytest

from quarterdeck.backend.core.data.events import BackupInStep, BackupOutOfStep
from quarterdeck.backend.core.data.messages import (
    BackupStale,
    MapAnswer,
    MapCall,
    SyncAck,
    SyncChunk,
    SyncRequest,
)
from quarterdeck.backend.core.operations import Answer, Get, Put
from quarterdeck.backend.core.partitions.state import ActiveMigration, OutgoingCopy
from tests.core.map_network import MapNetwork
from tests.core.stepped_cluster import training_settings

FOREVER_US = 10**12


def out_of_step(entries: int, **changed: int) -> MapNetwork:
    """B, the backup, lacks what A has, because it did not come by the log."""
    network = MapNetwork("ABC", ["AB"], training_settings(partition_count=1, **changed))
    for number in range(entries):
        network.call("A", Put("m", f"k{number}", bytes(1000)))
    network.settle()
    store = network.states["B"].data.stores[0]
    for number in range(0, entries, 2):
        store.remove("m", f"k{number}")
    return network


def copying() -> MapNetwork:
    """A has begun to send the whole partition to B, in small chunks."""
    network = out_of_step(20, transfer_chunk_bytes=1000, backup_sync_interval_us=1_000_000)
    network.now = 1_000_000
    network.tick_all()
    network.deliver()
    network.deliver()
    return network


def test_a_whole_partition_comes_in_chunks_and_a_window() -> None:
    network = out_of_step(100, transfer_chunk_bytes=4000, transfer_window_chunks=3, backup_sync_interval_us=FOREVER_US)
    network.set_row(0, "BA")
    network.learn_all()
    network.settle()  # now A is the backup, and has what B lacks
    assert len(network.entries("A")) == 50
    network = out_of_step(100, transfer_chunk_bytes=4000, transfer_window_chunks=3, backup_sync_interval_us=1_000_000)
    network.now = 1_000_000
    most = chunks = 0
    while not network.seen("B", BackupInStep):
        network.tick_all()
        most = max(most, len(network.messages(SyncChunk)) + len(network.messages(SyncAck)))
        chunks += isinstance(network.sent[0][2], SyncChunk)
        network.deliver()
    assert (most, chunks) == (3, 27)
    assert network.seen("B", BackupInStep)[0].entries == 100
    network.settle()
    network.assert_equal_replicas()


def test_writes_wait_while_a_backup_takes_the_partition_over() -> None:
    network = copying()
    assert network.messages(SyncChunk)
    call = network.call("C", Put("m", "new", b"v"))
    read = network.call("A", Get("m", "k0"))
    place = next(place for place, one in enumerate(network.sent) if isinstance(one[2], MapCall))
    network.deliver(place)
    assert "in step" in network.messages(MapAnswer)[0].retry
    network.pass_seconds(0.1)
    assert network.answers[call] == Answer()
    assert network.answers[read].value == bytes(1000)
    network.assert_equal_replicas()


@pytest.mark.parametrize("lost", [SyncRequest, SyncChunk, SyncAck])
def test_a_copy_survives_losses(lost: type) -> None:
    network = out_of_step(40, transfer_chunk_bytes=4000, backup_sync_interval_us=1_000_000)
    network.now = 1_000_000
    network.tick_all()
    draws, dropped = Random(1), 0
    while network.now < 12_000_000:
        network.tick_all()
        while network.sent:
            if isinstance(network.sent[0][2], lost) and draws.random() < 0.5:
                network.sent.pop(0)
                dropped += 1
            else:
                network.deliver()
            network.tick_all()
        network.now += 50_000
    assert dropped
    network.assert_equal_replicas()


def test_writes_go_on_when_the_receiver_of_a_copy_falls_silent() -> None:
    network = copying()
    network.kill("B")
    network.set_row(0, "A-")
    network.sent.clear()
    call = network.call("A", Put("m", "new", b"v"))
    network.pass_seconds(6)
    assert not network.states["A"].data.outgoing
    assert call not in network.answers
    network.learn_all()
    network.pass_seconds(1)
    assert network.answers[call] == Answer()


def test_a_copy_that_is_out_of_date_is_not_taken() -> None:
    """While chunks are on their way the owner gives up and goes on; what comes late must not undo a confirmed write."""
    network = copying()
    late = []
    network.states["A"].data.outgoing[next(iter(network.states["A"].data.outgoing))].give_up_us = FOREVER_US
    for _ in range(200):
        chunks = [delivery for delivery in network.sent if isinstance(delivery[2], SyncChunk)]
        if not chunks:
            break
        late += chunks
        network.sent.clear()
        last = late[-1][2]
        assert isinstance(last, SyncChunk)
        network.receive("A", "B", SyncAck(0, last.token, last.number, False))
    network.states["A"].data.outgoing.clear()
    call = network.call("A", Put("m", "new", b"v"))
    network.deliver()
    network.deliver()
    assert network.answers[call] == Answer()
    for _, _, chunk in late:
        network.receive("B", "A", chunk)
    assert ("m", "new") in network.entries("B")
    network.pass_seconds(2)
    network.assert_equal_replicas()


def test_only_so_many_copies_at_a_time() -> None:
    network = MapNetwork("AB", ["AB"] * 10, training_settings(partition_count=10, parallel_replications=3))
    for number in range(200):
        network.call("A", Put("m", f"k{number}", b"v"))
    network.settle()
    for store in network.states["B"].data.stores.values():
        store.remove("m", next(iter(store.maps["m"])))
    network.now = network.settings.backup_sync_interval_us
    network.tick_all()
    network.deliver()
    assert len(network.messages(SyncRequest)) == 3 == len(network.states["B"].data.incoming)
    network.settle()
    assert len(network.seen("B", BackupInStep)) == 10
    network.assert_equal_replicas()


def test_nothing_is_copied_while_the_partition_migrates() -> None:
    network = out_of_step(5, backup_sync_interval_us=1_000_000)
    migration = network.migration(0, "CB", "C")
    chunks = network.begin_migration(migration)
    network.now = 1_000_000
    network.settle()
    assert not network.seen("B", BackupOutOfStep)
    network.receive("B", "A", BackupStale(network.states["A"].uuid, 0, network.states["B"].data.stores[0].stamp))
    network.settle()
    assert network.seen("B", BackupOutOfStep) and not network.seen("B", BackupInStep)
    network.take_chunks(migration, chunks)
    network.commit(migration)
    network.learn_all()
    network.pass_seconds(3)
    network.assert_equal_replicas()


def test_a_replica_that_is_being_sent_takes_no_writes() -> None:
    """Its former owner still sends it when it learns that it is a backup now."""
    network = MapNetwork("ABC", ["AB"])
    network.put("A", "k", "1")
    migration = network.migration(0, "CB", "C")
    event = network.event("A", migration, "source")
    network.set_row(0, "BA")
    network.learn_all()
    former_owner = network.states["A"].partitions
    former_owner.active[0] = ActiveMigration(migration, event, OutgoingCopy(begun_us=network.now, resend_us=FOREVER_US))
    written = network.call("B", Put("m", "k", b"2"))
    network.settle()
    assert network.entries("A") == {("m", "k"): b"1"} and written not in network.answers
    del former_owner.active[0]
    network.pass_seconds(3)
    assert network.answers[written] == Answer(b"1") and network.entries("A") == {("m", "k"): b"2"}


def test_a_copy_from_a_former_owner_ends() -> None:
    network = copying()
    chunks = [delivery for delivery in network.sent if isinstance(delivery[2], SyncChunk)]
    assert chunks and network.states["B"].data.incoming
    network.set_row(0, "CB")
    network.learn("B")
    assert not network.states["B"].data.incoming
    before = network.entries("B")
    for _, _, chunk in chunks:
        network.receive("B", "A", chunk)
    assert network.entries("B") == before

"""The map as a service whose partitions migrate (Avoid Data Loss on Migration, User Interaction)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.data.map_service import entries_of, held_partitions
from quarterdeck.backend.core.data.messages import MapAnswer
from quarterdeck.backend.core.data.partition_store import PartitionStore, Stamp, StoredEntry, entry_bytes, entry_digest
from quarterdeck.backend.core.data.replication.store_transfer import Staging, next_chunk
from quarterdeck.backend.core.operations import Answer, Get, Put, PutAll, Size
from quarterdeck.backend.core.partitions.migration.migration import CompletedMigration, StoreCursor
from tests.core.map_network import MapNetwork
from tests.core.stepped_cluster import training_settings


def filled(names: str, row: str, entries: int = 50, **changed: int) -> MapNetwork:
    network = MapNetwork(names, [row], training_settings(partition_count=1, **changed))
    network.ask("A", PutAll("m", tuple((f"k{number}", b"%d" % number) for number in range(entries))))
    return network


@pytest.mark.parametrize(
    ("before", "after", "destination"),
    [
        ("A--", "AC-", "C"),
        ("A--", "C--", "C"),
        ("AB-", "CB-", "C"),
        ("AB-", "AC-", "C"),
        ("A-B", "AB-", "B"),
    ],
)
def test_all_data_comes_and_nothing_stays_where_it_is_not_held(before: str, after: str, destination: str) -> None:
    network = filled("ABCD", before)
    network.migrate(0, after, destination)
    network.learn_all()
    network.pass_seconds(1)
    network.assert_equal_replicas()
    assert network.ask("D", Size("m")).size == 50
    network.put("D", "new", "v")
    network.assert_equal_replicas()


@pytest.mark.parametrize("row", ["B--", "BC-", "-B-"])
def test_an_owner_that_learns_at_once_that_it_gave_a_partition_away_and_got_it_back_holds_an_empty_one(
    row: str,
) -> None:
    """B gave partition 0 to C, C died, and the master gave the lost partition back, before B heard of any of it."""
    network = filled("ABC", "B--")
    migration = network.migration(0, "C--", "C")
    network.take_chunks(migration, network.begin_migration(migration))
    network.commit(migration)
    network.set_row(0, "---")
    network.set_row(0, row)
    network.learn("B", CompletedMigration(migration, True))
    owner = network.states["B"].data
    assert set(owner.owner_states) == ({0} if row[0] == "B" else set()) and owner.stores[0].entries == 0
    network.learn_all()
    network.pass_seconds(12)
    if row[0] == "B":
        assert network.ask("B", Size("m")).size == 0 and not network.put("A", "new", "v").problem


def test_a_destination_that_learns_at_once_that_it_got_a_partition_and_lost_it_holds_nothing() -> None:
    network = filled("ABC", "B--")
    migration = network.migration(0, "C--", "C")
    network.take_chunks(migration, network.begin_migration(migration))
    network.rows[0] = migration.applied_to(network.rows[0])
    network.versions[0] += 1
    network.set_row(0, "A--")
    network.learn("C", CompletedMigration(migration, True))
    assert not held_partitions(network.states["C"])


def test_an_owner_that_steps_back_stays_as_a_backup() -> None:
    network = filled("ABC", "AB-")
    migration = network.migration(0, "CB-", "C")
    shifted = type(migration)(
        migration.id,
        0,
        "SHIFT_DOWN",
        migration.version,
        migration.source,
        0,
        2,
        migration.destination,
        -1,
        0,
        migration.master,
    )
    network.take_chunks(shifted, network.begin_migration(shifted))
    network.commit(shifted)
    assert network.names_in(0) == "CBA"
    network.learn_all()
    network.pass_seconds(1)
    network.assert_equal_replicas()
    assert network.get("A", "k7") == b"7"


def test_while_the_owner_moves_nothing_is_served() -> None:
    network = filled("ABC", "AB")
    network.begin_migration(network.migration(0, "CB", "C"))
    network.call("B", Put("m", "k", b"v"))
    network.call("C", Get("m", "k1"))
    network.deliver()
    network.deliver()
    assert [message.retry for message in network.messages(MapAnswer)] == ["the partition is migrating"] * 2


def test_while_a_backup_moves_reads_are_served() -> None:
    network = filled("ABC", "AB")
    network.begin_migration(network.migration(0, "AC", "C"))
    call = network.call("C", Put("m", "k", b"v"))
    assert network.get("B", "k1") == b"1"
    assert call not in network.answers


def test_calls_that_wait_at_an_owner_that_moves_are_done_once_by_the_new_one() -> None:
    network = filled("ABCD", "AB")
    call = network.call("D", Put("m", "k1", b"new"))
    network.deliver()
    network.sent.clear()  # done at A, not at the backup, and nobody was told
    network.migrate(0, "CB", "C")
    network.learn("A")
    assert network.messages(MapAnswer)[-1].retry == "the partition has moved"
    network.learn_all()
    network.pass_seconds(1)
    assert network.answers[call].value == b"1"
    assert network.get("A", "k1") == b"new"
    network.assert_equal_replicas()


def test_a_rollback_leaves_everything_as_it_was() -> None:
    network = filled("ABC", "AB")
    migration = network.migration(0, "CB", "C")
    chunks = network.begin_migration(migration)
    network.take_chunks(migration, chunks)
    for name in "AC":
        event = network.states[name].partitions.active.pop(0).event
        network.states[name].context.service.rollback(0, event)
    assert held_partitions(network.states["C"]) == ()
    assert not network.states["C"].data.staged
    assert network.put("B", "k1", "v").value == b"1"
    network.assert_equal_replicas()


def test_a_destination_that_has_the_same_store_needs_one_chunk() -> None:
    network = filled("ABC", "A-B", transfer_chunk_bytes=100)
    migration = network.migration(0, "AB-", "B")
    assert network.take_chunks(migration, network.begin_migration(migration)) == 1
    network.commit(migration)
    network.learn_all()
    network.pass_seconds(1)
    network.assert_equal_replicas()
    assert network.ask("C", Size("m")).size == 50


def test_a_destination_that_is_out_of_step_takes_it_all() -> None:
    network = filled("ABC", "A-B", transfer_chunk_bytes=100)
    network.states["B"].data.stores[0].remove("m", "k1")
    migration = network.migration(0, "AB-", "B")
    assert network.take_chunks(migration, network.begin_migration(migration)) > 15
    assert len(network.entries("B")) == 49  # what comes is staged beside
    network.commit(migration)
    assert len(network.entries("B")) == 50


def test_a_commit_before_all_has_come_is_an_error() -> None:
    network = filled("AC", "A-", transfer_chunk_bytes=100)
    migration = network.migration(0, "AC", "C")
    chunks = network.begin_migration(migration)
    state = network.states["C"]
    state.context.service.receive(0, state.partitions.active[0].event, next(chunks))
    state.partitions.active[0].complete = True  # as no member believes that lacks chunks
    with pytest.raises(AssertionError, match="before all its data"):
        network.commit(migration)


def chunks_of(store: PartitionStore, chunk_bytes: int) -> Iterator[bytes]:
    cursor = StoreCursor()
    while (chunk := next_chunk(store, cursor, chunk_bytes)) is not None:
        yield chunk


def test_chunks_are_made_one_by_one() -> None:
    """A million small entries: the first chunks cost no more than their own size."""
    store = PartitionStore()
    entry = StoredEntry(b"12345678", 1, 10**15, 10**15, 10**15, 0)
    store.maps["m"] = {f"k{number}": entry for number in range(1_000_000)}
    store.entries = 1_000_000
    first = list(islice(chunks_of(store, 131_072), 4))
    assert len(first[0]) < 100
    assert all(60_000 < len(chunk) < 140_000 for chunk in first[1:])


texts = st.text(max_size=5)
stores = st.dictionaries(st.tuples(texts, texts), st.binary(max_size=50), max_size=30)


@given(
    stores,
    st.lists(st.tuples(st.tuples(texts, texts), st.none() | st.binary(max_size=20)), max_size=20),
    st.integers(1, 500),
)
def test_any_store_goes_through_chunks(
    content: dict[tuple[str, str], bytes], changes: list[tuple[tuple[str, str], bytes | None]], chunk_bytes: int
) -> None:
    store = PartitionStore()
    for (name, key), value in content.items():
        store.put(name, key, StoredEntry(value, 1, 2, 3, 4, 5))
    for (name, key), value in changes:
        if value is None:
            store.remove(name, key)
        else:
            store.put(name, key, StoredEntry(value, 2, 2, 3, 4, 5))
    store.stamp = Stamp("writer", 7)
    store.sessions = {"x": (3, (Answer(value=b"v"),)), "y": (1, ())}
    entries = [(name, key, entry) for name, ones in store.maps.items() for key, entry in ones.items()]
    assert store.digest == sum(entry_digest(name, key, entry.value) for name, key, entry in entries)
    assert store.bytes == sum(entry_bytes(key, entry) for _, key, entry in entries)
    assert store.entries == len(entries)
    staging = Staging()
    taken = [staging.receive(chunk, None) for chunk in chunks_of(store, chunk_bytes)]
    assert taken == [False] * (len(taken) - 1) + [True]
    copy = staging.store
    assert copy is not None
    for field in ("maps", "stamp", "sessions", "digest", "entries", "bytes"):
        assert getattr(copy, field) == getattr(store, field)
    assert Staging().receive(next(chunks_of(store, chunk_bytes)), copy)


def test_what_is_no_chunk_is_refused() -> None:
    store = PartitionStore()
    store.put("m", "k", StoredEntry(b"v", 1, 0, 0, 0, 0))
    store.stamp = Stamp("w", 1)
    head, entries = chunks_of(store, 100)
    with pytest.raises(ValueError, match="head"):
        Staging().receive(entries, None)
    store.digest += 1
    wrong, _ = chunks_of(store, 100)
    staging = Staging()
    staging.receive(wrong, None)
    with pytest.raises(ValueError, match="digest"):
        staging.receive(entries, None)
    assert head != wrong


def test_what_a_member_holds() -> None:
    network = filled("AB", "AB", entries=3)
    assert held_partitions(network.states["B"]) == (0,)
    assert entries_of(network.states["B"], 0) == {("m", f"k{number}"): b"%d" % number for number in range(3)}
    assert entries_of(network.states["B"], 5) == {}
    assert network.states["B"].data.stores[0].bytes == 9

"""The distributed map as a service that keeps data in partitions (Avoid Data Loss on Migration, User Interaction)."""

from __future__ import annotations

from quarterdeck.backend.core.data import map_owner, measuring
from quarterdeck.backend.core.data.partition_store import PartitionStore, StoredEntry
from quarterdeck.backend.core.data.replication import (
    anti_entropy,
    backups,
    replica_sending,
    replica_sync,
    store_transfer,
)
from quarterdeck.backend.core.data.replication.store_transfer import Staging
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.membership.cluster_state import why_not_operating
from quarterdeck.backend.core.partitions.migration.migration import MigrationEvent, StoreCursor


class MapService:
    """What happens to the replicas of one member when partitions migrate, or come and go by the table."""

    __slots__ = ("_state",)

    def __init__(self, state: MemberState) -> None:
        self._state = state

    def before(self, now: int, event: MigrationEvent) -> None:
        """End whole copies of the partition: the migration brings the data, or the owner looks after it later."""
        self._state.data.staged.pop(event.partition, None)
        replica_sync.end_copies(self._state, event.partition)
        replica_sending.stop(self._state, event.partition)

    def next_chunk(self, partition: int, cursor: StoreCursor, chunk_bytes: int) -> bytes | None:
        return store_transfer.next_chunk(self._state.data.stores[partition], cursor, chunk_bytes)

    def receive(self, now: int, event: MigrationEvent, chunk: bytes | None) -> bool:
        """Stage the chunk. Return whether all is here; the first one may show that the present store is the same."""
        data = self._state.data
        staging = data.staged.setdefault(event.partition, Staging())
        if chunk is None:
            if not staging.complete:
                raise ValueError("it ends before all has come")
            return True
        return staging.receive(chunk, data.stores.get(event.partition))

    def commit(self, now: int, event: MigrationEvent) -> None:
        """Adopt what was staged at the destination; drop the store at a source that holds nothing any more."""
        data = self._state.data
        staging = data.staged.pop(event.partition, None)
        if event.endpoint == "source":
            if event.new_replica_index == -1:
                data.stores.pop(event.partition, None)
            return
        assert staging is not None and staging.complete, "a migration was committed before all its data had come"
        if staging.store is not None:
            data.stores[event.partition] = staging.store
        replica_sync.on_migrated_here(self._state, now, event.partition)

    def rollback(self, now: int, event: MigrationEvent) -> None:
        """Drop what was staged; the store, if there was one, is what it was."""
        self._state.data.staged.pop(event.partition, None)

    def placed(self, now: int, partition: int, before: int, index: int) -> None:
        """Create, keep or drop the store for the new replica index, and begin or end ownership."""
        state, data = self._state, self._state.data
        measuring.note_change(state, now, partition)
        if before == 0:
            replica_sending.stop(state, partition)
            backups.end_owning(state, now, partition)
        if index <= 0:
            replica_sync.forget(state, partition)
            data.early.pop(partition, None)
        if index == -1:
            data.stores.pop(partition, None)
            return
        data.stores.setdefault(partition, PartitionStore())
        anti_entropy.begin_comparing(state, now)
        if index == 0 and before != 0:
            backups.begin_owning(state, now, partition)


def held_partitions(state: MemberState) -> tuple[int, ...]:
    """Return the partitions of which this member holds a store."""
    return tuple(sorted(state.data.stores))


def owned_maps(state: MemberState, partition: int, map: str = "") -> dict[str, dict[str, StoredEntry]] | None:
    """Return what all maps, or one, have in the partition now; None when this member does not serve it as its owner."""
    if partition not in state.data.owner_states or not map_owner.owns(state, partition) or why_not_operating(state):
        return None
    maps = state.data.stores[partition].maps
    return {name: dict(entries) for name, entries in maps.items() if not map or name == map}


def entries_of(state: MemberState, partition: int) -> dict[tuple[str, str], bytes]:
    """Return by map and key what this member holds in the partition; nothing if it holds none."""
    store = state.data.stores.get(partition)
    maps = {} if store is None else store.maps
    return {(name, key): entry.value for name, entries in maps.items() for key, entry in entries.items()}

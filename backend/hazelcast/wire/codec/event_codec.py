"""Decodes what members report unasked: their list, the owners of partitions, migrations, lost partitions."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Layout

from quarterdeck.backend.hazelcast.wire import messages
from quarterdeck.backend.hazelcast.wire.codec import fields
from quarterdeck.backend.hazelcast.wire.codec.frames import BadBytes, Frame

EVENT_HEAD = Layout("<iqi")
"""Type, correlation of the listener, partition."""

MOST_PARTITIONS = 100_000
"""More than the product allows."""

MEMBERS_VIEW, PARTITIONS_VIEW = 0x000302, 0x000303
PARTITION_LOST = 0x000602
MIGRATION_PROCESS, REPLICA_MIGRATION = 0x001102, 0x001103

STARTED, FINISHED = 0, 1


def decode_members_view(fixed: fields.FixedReader, frames: fields.FrameReader) -> messages.MembersView:
    """Read the member's list. The endpoints beside the address, and fields of later versions, are skipped."""
    return messages.MembersView(fixed.int32(), tuple(frames.many(lambda reader: reader.structure(_member))))


def _member(frames: fields.FrameReader) -> messages.ViewMember:
    fixed = frames.fixed()
    uuid, lite = fixed.known_uuid(), fixed.boolean()
    return messages.ViewMember(uuid, frames.address(), lite, frames.texts(), frames.structure(_version))


def _version(frames: fields.FrameReader) -> str:
    fixed = frames.fixed()
    return ".".join(str(fixed.byte() & 0xFF) for _ in range(3))


def decode_partitions_view(fixed: fields.FixedReader, frames: fields.FrameReader) -> messages.PartitionsView:
    """Read the owners. On the wire the partitions of each owner are in one frame; the owners follow."""
    counter = fixed.int32()
    owned = frames.many(lambda reader: _numbers(reader.next()))
    uuids = _uuids(frames.next())
    if len(owned) != len(uuids):
        raise BadBytes(f"{len(uuids)} members own {len(owned)} sets of partitions")
    count = 1 + max((max(numbers, default=-1) for numbers in owned), default=-1)
    if count > MOST_PARTITIONS or any(min(numbers, default=0) < 0 for numbers in owned):
        raise BadBytes("there is no such partition")
    holders = tuple(sorted(set(uuids)))
    place_of = {uuid: place for place, uuid in enumerate(holders)}
    owners = [-1] * count
    for uuid, numbers in zip(uuids, owned, strict=True):
        for number in numbers:
            owners[number] = place_of[uuid]
    return messages.PartitionsView(counter, holders, tuple(owners))


def _numbers(frame: Frame) -> list[int]:
    if len(frame.payload) % fields.INT.size:
        raise BadBytes("a list of numbers ends in the middle of one")
    return [number for (number,) in fields.INT.iter_unpack(frame.payload)]


def _uuids(frame: Frame) -> list[str]:
    if len(frame.payload) % fields.UUID_LAYOUT.size:
        raise BadBytes("a list of uuids ends in the middle of one")
    return [fields.uuid_text(most, least) for _, most, least in fields.UUID_LAYOUT.iter_unpack(frame.payload)]


def _migration_state(frames: fields.FrameReader) -> messages.MigrationState:
    fixed = frames.fixed()
    return messages.MigrationState(fixed.int64(), fixed.int32(), fixed.int32(), fixed.int64())


def _migration_process(fixed: fields.FixedReader, frames: fields.FrameReader) -> messages.MigrationProcessEvent:
    what = fixed.int32()
    return messages.MigrationProcessEvent(
        "started" if what == STARTED else "finished", frames.structure(_migration_state)
    )


def _replica_migration(fixed: fields.FixedReader, frames: fields.FrameReader) -> messages.ReplicaMigrationEvent:
    partition, replica_index = fixed.int32(), fixed.int32()
    source, destination = fixed.uuid(), fixed.uuid()
    succeeded, took_ms = fixed.boolean(), fixed.int64()
    state = frames.structure(_migration_state)
    return messages.ReplicaMigrationEvent(partition, replica_index, source, destination, succeeded, took_ms, state)


EVENT_DECODERS: dict[int, Callable[[fields.FixedReader, fields.FrameReader], messages.Event]] = {
    MEMBERS_VIEW: decode_members_view,
    PARTITIONS_VIEW: decode_partitions_view,
    PARTITION_LOST: lambda fixed, _: messages.PartitionLostEvent(fixed.int32(), fixed.int32(), fixed.uuid()),
    MIGRATION_PROCESS: _migration_process,
    REPLICA_MIGRATION: _replica_migration,
}

"""What members tell unasked, as bytes, both ways: their list, the owners of partitions, migrations, lost partitions."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from struct import Struct as Layout

from quarterdeck.backend.hazelcast.wire.codec.fields import (
    BOOL,
    INT,
    LONG,
    UUID_LAYOUT,
    FixedReader,
    FrameReader,
    address_frames,
    flat,
    pack_uuid,
    structure_frames,
    texts_frames,
    uuid_text,
)
from quarterdeck.backend.hazelcast.wire.codec.frames import IS_EVENT, BadBytes, Frame, Frames
from quarterdeck.backend.hazelcast.wire.messages import (
    Event,
    MembersView,
    MigrationProcessEvent,
    MigrationState,
    PartitionLostEvent,
    PartitionsView,
    ReplicaMigrationEvent,
    ViewMember,
)

EVENT_HEAD = Layout("<iqi")
"""Type, correlation of the listener, partition."""

MOST_PARTITIONS = 100_000
"""More than the product allows. A member that tells of a higher one is none."""

MEMBERS_VIEW, PARTITIONS_VIEW = 0x000302, 0x000303
PARTITION_LOST = 0x000602
MIGRATION_PROCESS, REPLICA_MIGRATION = 0x001102, 0x001103

STARTED, FINISHED = 0, 1


def decode_members_view(fixed: FixedReader, frames: FrameReader) -> MembersView:
    """The member's list. The endpoints beside the address, and whatever comes later, are skipped."""
    return MembersView(fixed.int32(), tuple(frames.many(lambda reader: reader.structure(_member))))


def _member(frames: FrameReader) -> ViewMember:
    fixed = frames.fixed()
    uuid, lite = fixed.known_uuid(), fixed.boolean()
    return ViewMember(uuid, frames.address(), lite, frames.texts(), frames.structure(_version))


def _version(frames: FrameReader) -> str:
    fixed = frames.fixed()
    return ".".join(str(fixed.byte() & 0xFF) for _ in range(3))


def decode_partitions_view(fixed: FixedReader, frames: FrameReader) -> PartitionsView:
    """Who owns what. On the wire the partitions of each owner stand together, in one frame; the owners follow."""
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
    return PartitionsView(counter, holders, tuple(owners))


def _numbers(frame: Frame) -> list[int]:
    if len(frame.payload) % INT.size:
        raise BadBytes("a list of numbers ends in the middle of one")
    return [number for (number,) in INT.iter_unpack(frame.payload)]


def _uuids(frame: Frame) -> list[str]:
    if len(frame.payload) % UUID_LAYOUT.size:
        raise BadBytes("a list of uuids ends in the middle of one")
    return [uuid_text(most, least) for _, most, least in UUID_LAYOUT.iter_unpack(frame.payload)]


def _migration_state(frames: FrameReader) -> MigrationState:
    fixed = frames.fixed()
    return MigrationState(fixed.int64(), fixed.int32(), fixed.int32(), fixed.int64())


def decode_migration_process(fixed: FixedReader, frames: FrameReader) -> MigrationProcessEvent:
    """A process of migrations has started, or has finished."""
    what = fixed.int32()
    return MigrationProcessEvent("started" if what == STARTED else "finished", frames.structure(_migration_state))


def decode_replica_migration(fixed: FixedReader, frames: FrameReader) -> ReplicaMigrationEvent:
    """A replica has been migrated, or not."""
    partition, replica_index = fixed.int32(), fixed.int32()
    source, destination = fixed.uuid(), fixed.uuid()
    succeeded, took_ms = fixed.boolean(), fixed.int64()
    state = frames.structure(_migration_state)
    return ReplicaMigrationEvent(partition, replica_index, source, destination, succeeded, took_ms, state)


def decode_partition_lost(fixed: FixedReader, frames: FrameReader) -> PartitionLostEvent:
    """A partition has lost its owner and some backups."""
    return PartitionLostEvent(fixed.int32(), fixed.int32(), fixed.uuid())


EVENT_DECODERS: dict[int, Callable[[FixedReader, FrameReader], Event]] = {
    MEMBERS_VIEW: decode_members_view,
    PARTITIONS_VIEW: decode_partitions_view,
    PARTITION_LOST: decode_partition_lost,
    MIGRATION_PROCESS: decode_migration_process,
    REPLICA_MIGRATION: decode_replica_migration,
}


def event_frames(event: Event, correlation: int) -> Frames:
    """The frames of an event, as a member sends them."""
    match event:
        case MembersView(version, members):
            number, fixed, frames = (
                MEMBERS_VIEW,
                INT.pack(version),
                structure_frames(*flat(map(_member_frames, members))),
            )
        case PartitionsView():
            number, fixed, frames = PARTITIONS_VIEW, INT.pack(event.counter), _ownership_frames(event)
        case PartitionLostEvent(partition, lost, source):
            number, fixed, frames = PARTITION_LOST, INT.pack(partition) + INT.pack(lost) + pack_uuid(source), []
        case MigrationProcessEvent(what, state):
            fixed = INT.pack(STARTED if what == "started" else FINISHED)
            number, frames = MIGRATION_PROCESS, _state_frames(state)
        case ReplicaMigrationEvent():
            number, fixed, frames = REPLICA_MIGRATION, _replica_fields(event), _state_frames(event.state)
    return (Frame(IS_EVENT, EVENT_HEAD.pack(number, correlation, -1) + fixed), *frames)


def _member_frames(member: ViewMember) -> list[Frame]:
    version = bytes(int(part) for part in member.version.split("."))
    return structure_frames(
        Frame(0, pack_uuid(member.uuid) + BOOL.pack(member.lite)),
        *address_frames(member.address),
        *texts_frames(member.attributes),
        *structure_frames(Frame(0, version)),
        *structure_frames(),  # no other endpoints
    )


def _ownership_frames(view: PartitionsView) -> list[Frame]:
    owned = [array("i") for _ in view.holders]
    for partition, place in enumerate(view.owners):
        if place >= 0:
            owned[place].append(partition)
    numbers = [Frame(0, b"".join(map(INT.pack, partitions))) for partitions in owned]
    return [*structure_frames(*numbers), Frame(0, b"".join(map(pack_uuid, view.holders)))]


def _state_frames(state: MigrationState) -> list[Frame]:
    fields = LONG.pack(state.started_at_ms) + INT.pack(state.planned) + INT.pack(state.done) + LONG.pack(state.total_ms)
    return structure_frames(Frame(0, fields))


def _replica_fields(event: ReplicaMigrationEvent) -> bytes:
    return (
        INT.pack(event.partition)
        + INT.pack(event.replica_index)
        + pack_uuid(event.source_uuid)
        + pack_uuid(event.destination_uuid)
        + BOOL.pack(event.succeeded)
        + LONG.pack(event.took_ms)
    )

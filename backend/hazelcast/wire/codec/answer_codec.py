"""Decodes answers, and with `event_codec` everything that members send."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Layout

from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.hazelcast.wire import messages
from quarterdeck.backend.hazelcast.wire.codec import fields
from quarterdeck.backend.hazelcast.wire.codec.frames import IS_EVENT, BadBytes, Frame, Frames
from quarterdeck.backend.hazelcast.wire.codec.metrics_blob import decode_metric_set

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


ANSWER_HEAD = Layout("<iqb")
"""Type, correlation, how many backups acknowledge."""
TOLD_STATES: tuple[messages.ReportedState, ...] = (*CLUSTER_STATES, "IN_TRANSITION")
ERROR = 0


def decode_message(frames: Frames, wanted_metrics: frozenset[str] | None = None) -> tuple[int, messages.Message]:
    """Return the correlation and the message. Of metrics, those with a wanted prefix; all if no choice is given.

    Raises `BadBytes` for what no member would send.
    """
    first = frames[0].payload
    head = EVENT_HEAD if frames[0].flags & IS_EVENT else ANSWER_HEAD
    if len(first) < head.size:
        raise BadBytes("a message is shorter than its head")
    number, correlation, _ = head.unpack_from(first)
    fixed, rest = fields.FixedReader(first, head.size), fields.FrameReader(frames[1:])
    if head is EVENT_HEAD:
        read_event = EVENT_DECODERS.get(number)
        return correlation, messages.UnknownMessage(number) if read_event is None else read_event(fixed, rest)
    if number == METRICS:
        return correlation, _read_metrics(fixed, rest, wanted_metrics)
    read = ANSWER_DECODERS.get(number)
    return correlation, messages.UnknownMessage(number) if read is None else read(fixed, rest)


def _read_authenticated(fixed: fields.FixedReader, frames: fields.FrameReader) -> messages.Authenticated:
    status = fixed.byte()
    if not 0 <= status < len(messages.AUTHENTICATION_STATUSES):
        raise BadBytes(f"{status} is no answer to a client that introduces itself")
    member_uuid, serialization_version = fixed.uuid(), fixed.byte()
    partition_count, cluster_uuid, failover_supported = fixed.int32(), fixed.uuid(), fixed.boolean()
    address = None if frames.next_is_null() else frames.address()
    return messages.Authenticated(
        messages.AUTHENTICATION_STATUSES[status],
        address,
        member_uuid,
        frames.optional_text() or "",
        partition_count,
        cluster_uuid,
        serialization_version,
        failover_supported,
    )


def _read_metadata(fixed: fields.FixedReader, frames: fields.FrameReader) -> messages.ClusterMetadata:
    number, cluster_time_ms = fixed.byte(), fixed.int64()
    cluster_uuid = None if fixed.at_end else fixed.uuid()
    state = TOLD_STATES[number] if 0 <= number < len(TOLD_STATES) else "unknown"
    return messages.ClusterMetadata(state, cluster_time_ms, frames.text(), cluster_uuid)


def _read_metrics(
    fixed: fields.FixedReader, frames: fields.FrameReader, wanted: frozenset[str] | None
) -> messages.Metrics:
    next_sequence = fixed.int64()
    blobs = frames.many(lambda reader: reader.next().payload)
    times = frames.next().payload
    if len(times) != fields.LONG.size * len(blobs):
        raise BadBytes(f"{len(blobs)} sets of metrics have times of {len(times)} bytes")
    at_ms = [moment for (moment,) in fields.LONG.iter_unpack(times)]
    return messages.Metrics(
        next_sequence, tuple(decode_metric_set(moment, blob, wanted) for moment, blob in zip(at_ms, blobs, strict=True))
    )


def _read_error(fixed: fields.FixedReader, frames: fields.FrameReader) -> messages.ErrorAnswer:
    """Read the first of a list of exceptions; the others are its causes."""

    def holder(reader: fields.FrameReader) -> messages.ErrorAnswer:
        return messages.ErrorAnswer(reader.fixed().int32(), reader.text(), reader.optional_text() or "")

    errors = frames.many(lambda reader: reader.structure(holder))
    if not errors:
        raise BadBytes("an error without a reason")
    return errors[0]


ANSWER_DECODERS: dict[int, Callable[[fields.FixedReader, fields.FrameReader], messages.Answer]] = {
    ERROR: _read_error,
    0x000101: _read_authenticated,
    0x000201: _read_authenticated,
    0x000301: lambda fixed, _: messages.ListenerAdded(),
    0x000601: lambda fixed, _: messages.ListenerAdded(fixed.uuid()),
    0x000B01: lambda fixed, _: messages.RequestDone(),
    0x001101: lambda fixed, _: messages.ListenerAdded(fixed.uuid()),
    0x001201: lambda fixed, _: messages.ListenerRemoved(fixed.boolean()),
    0x200201: lambda fixed, _: messages.RequestDone(),
    0x200501: lambda _, frames: messages.MemberConfig(frames.text()),
    0x200801: lambda fixed, _: messages.RequestDone(),
    0x200901: lambda fixed, _: messages.RequestDone(),
    0x200A01: lambda _, frames: messages.SystemProperties(frames.texts()),
    0x200E01: _read_metadata,
    0x200F01: lambda fixed, _: messages.RequestDone(),
    0x202701: lambda fixed, _: messages.RequestDone(),
}
METRICS = 0x200101

"""Decodes answers, and with `event_codec` everything that members send."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Layout

from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.hazelcast.wire import messages
from quarterdeck.backend.hazelcast.wire.codec import fields
from quarterdeck.backend.hazelcast.wire.codec.event_codec import EVENT_DECODERS, EVENT_HEAD
from quarterdeck.backend.hazelcast.wire.codec.frames import IS_EVENT, BadBytes, Frames
from quarterdeck.backend.hazelcast.wire.codec.metrics_blob import decode_metric_set

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
}
METRICS = 0x200101

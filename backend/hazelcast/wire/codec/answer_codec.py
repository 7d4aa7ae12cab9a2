"""Answers of members as bytes, both ways, and the one reader for everything that members send."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Layout

from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.hazelcast.wire.codec.event_codec import EVENT_DECODERS, EVENT_HEAD
from quarterdeck.backend.hazelcast.wire.codec.fields import (
    BOOL,
    BYTE,
    INT,
    LONG,
    NULL,
    FixedReader,
    FrameReader,
    address_frames,
    pack_uuid,
    structure_frames,
    text_frame,
    texts_frames,
)
from quarterdeck.backend.hazelcast.wire.codec.frames import IS_EVENT, BadBytes, Frame, Frames
from quarterdeck.backend.hazelcast.wire.codec.metrics_blob import decode_metric_set, encode_metric_set
from quarterdeck.backend.hazelcast.wire.messages import (
    AUTHENTICATION_STATUSES,
    Answer,
    Authenticated,
    ClusterMetadata,
    ErrorAnswer,
    ListenerAdded,
    ListenerRemoved,
    MemberConfig,
    Message,
    Metrics,
    RequestDone,
    SystemProperties,
    TimedMemberState,
    ToldState,
    UnknownMessage,
)

ANSWER_HEAD = Layout("<iqb")
"""Type, correlation, how many backups acknowledge."""

TOLD_STATES: tuple[ToldState, ...] = (*CLUSTER_STATES, "IN_TRANSITION")

ERROR = 0


def decode_message(frames: Frames, wanted_metrics: frozenset[str] | None = None) -> tuple[int, Message]:
    """The correlation, and what a member tells with it. Of metrics those whose prefix is wanted; all, without a choice.

    Raises `BadBytes` for what no member would send.
    """
    first = frames[0].payload
    head = EVENT_HEAD if frames[0].flags & IS_EVENT else ANSWER_HEAD
    if len(first) < head.size:
        raise BadBytes("a message is shorter than its head")
    number, correlation, _ = head.unpack_from(first)
    fixed, rest = FixedReader(first, head.size), FrameReader(frames[1:])
    if head is EVENT_HEAD:
        told = EVENT_DECODERS.get(number)
        return correlation, UnknownMessage(number) if told is None else told(fixed, rest)
    if number == METRICS:
        return correlation, _read_metrics(fixed, rest, wanted_metrics)
    read = ANSWER_DECODERS.get(number)
    return correlation, UnknownMessage(number) if read is None else read(fixed, rest)


def _read_authenticated(fixed: FixedReader, frames: FrameReader) -> Authenticated:
    status = fixed.byte()
    if not 0 <= status < len(AUTHENTICATION_STATUSES):
        raise BadBytes(f"{status} is no answer to a client that introduces itself")
    member_uuid, serialization_version = fixed.uuid(), fixed.byte()
    partition_count, cluster_uuid, failover_supported = fixed.int32(), fixed.uuid(), fixed.boolean()
    address = None if frames.next_is_null() else frames.address()
    return Authenticated(
        AUTHENTICATION_STATUSES[status],
        address,
        member_uuid,
        frames.optional_text() or "",
        partition_count,
        cluster_uuid,
        serialization_version,
        failover_supported,
    )


def _read_metadata(fixed: FixedReader, frames: FrameReader) -> ClusterMetadata:
    number, cluster_time_ms = fixed.byte(), fixed.int64()
    cluster_uuid = None if fixed.at_end else fixed.uuid()
    state = TOLD_STATES[number] if 0 <= number < len(TOLD_STATES) else "unknown"
    return ClusterMetadata(state, cluster_time_ms, frames.text(), cluster_uuid)


def _read_metrics(fixed: FixedReader, frames: FrameReader, wanted: frozenset[str] | None) -> Metrics:
    next_sequence = fixed.int64()
    blobs = frames.many(lambda reader: reader.next().payload)
    times = frames.next().payload
    if len(times) != LONG.size * len(blobs):
        raise BadBytes(f"{len(blobs)} sets of metrics have times of {len(times)} bytes")
    at_ms = [moment for (moment,) in LONG.iter_unpack(times)]
    return Metrics(next_sequence, tuple(decode_metric_set(*one, wanted) for one in zip(at_ms, blobs, strict=True)))


def _read_error(fixed: FixedReader, frames: FrameReader) -> ErrorAnswer:
    """The first of a list of exceptions; the others are its causes."""

    def holder(reader: FrameReader) -> ErrorAnswer:
        return ErrorAnswer(reader.fixed().int32(), reader.text(), reader.optional_text() or "")

    errors = frames.many(lambda reader: reader.structure(holder))
    if not errors:
        raise BadBytes("an error without a reason")
    return errors[0]


ANSWER_DECODERS: dict[int, Callable[[FixedReader, FrameReader], Answer]] = {
    ERROR: _read_error,
    0x000101: _read_authenticated,
    0x000201: _read_authenticated,
    0x000301: lambda fixed, _: ListenerAdded(),
    0x000601: lambda fixed, _: ListenerAdded(fixed.uuid()),
    0x000B01: lambda fixed, _: RequestDone(),
    0x001101: lambda fixed, _: ListenerAdded(fixed.uuid()),
    0x001201: lambda fixed, _: ListenerRemoved(fixed.boolean()),
    0x200201: lambda fixed, _: RequestDone(),
    0x200501: lambda _, frames: MemberConfig(frames.text()),
    0x200801: lambda fixed, _: RequestDone(),
    0x200901: lambda fixed, _: RequestDone(),
    0x200A01: lambda _, frames: SystemProperties(frames.texts()),
    0x200B01: lambda _, frames: TimedMemberState(frames.optional_text() or ""),
    0x200E01: _read_metadata,
    0x200F01: lambda fixed, _: RequestDone(),
}
METRICS = 0x200101


def answer_frames(answer: Answer, number: int, correlation: int) -> Frames:
    """The frames of the answer to a request whose type has that `number`, as a member sends them."""
    fixed, frames = _answer_fields(answer)
    answers = ERROR if isinstance(answer, ErrorAnswer) else number + 1
    return (Frame(0, ANSWER_HEAD.pack(answers, correlation, 0) + fixed), *frames)


def _answer_fields(answer: Answer) -> tuple[bytes, list[Frame]]:
    match answer:
        case Authenticated():
            return _authenticated_fields(answer)
        case ClusterMetadata(state, cluster_time_ms, version, cluster_uuid):
            place = TOLD_STATES.index(state)
            return BYTE.pack(place) + LONG.pack(cluster_time_ms) + pack_uuid(cluster_uuid), [text_frame(version), NULL]
        case MemberConfig(text) | TimedMemberState(text):
            return b"", [text_frame(text)]
        case SystemProperties(properties):
            return b"", texts_frames(properties)
        case Metrics(next_sequence, sets):
            blobs = [Frame(0, encode_metric_set(one)) for one in sets]
            times = Frame(0, b"".join(LONG.pack(one.at_ms) for one in sets))
            return LONG.pack(next_sequence), [*structure_frames(*blobs), times]
        case ListenerAdded(registration_uuid):
            return b"" if registration_uuid is None else pack_uuid(registration_uuid), []
        case ListenerRemoved(removed):
            return BOOL.pack(removed), []
        case RequestDone():
            return b"", []
        case ErrorAnswer(code, class_name, message):
            error = [Frame(0, INT.pack(code)), text_frame(class_name), text_frame(message), *structure_frames()]
            return b"", structure_frames(*structure_frames(*error))


def _authenticated_fields(answer: Authenticated) -> tuple[bytes, list[Frame]]:
    fixed = (
        BYTE.pack(AUTHENTICATION_STATUSES.index(answer.status))
        + pack_uuid(answer.member_uuid)
        + BYTE.pack(answer.serialization_version)
        + INT.pack(answer.partition_count)
        + pack_uuid(answer.cluster_uuid)
        + BOOL.pack(answer.failover_supported)
    )
    address = [NULL] if answer.address is None else address_frames(answer.address)
    return fixed, [*address, text_frame(answer.server_version)]

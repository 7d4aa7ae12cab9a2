"""What a member does with bytes, for tests: it reads requests, and writes answers, events and metrics."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from quarterdeck.backend.core.address import Address, host_of, port_of
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES, ClusterState
from quarterdeck.backend.hazelcast.wire import requests
from quarterdeck.backend.hazelcast.wire.codec import answer_codec
from quarterdeck.backend.hazelcast.wire.codec.answer_codec import (
    ANSWER_HEAD,
    DOUBLE,
    DOUBLE_VALUE,
    ERROR,
    EVENT_HEAD,
    FINISHED,
    HEAD,
    LONG_VALUE,
    MEMBERS_VIEW,
    MIGRATION_PROCESS,
    MOST_LETTERS,
    NOTHING,
    PARTITION_LOST,
    PARTITIONS_VIEW,
    REPLICA_MIGRATION,
    STARTED,
    TOLD_STATES,
    VERSION,
)
from quarterdeck.backend.hazelcast.wire.codec.fields import (
    BOOL,
    BYTE,
    INT,
    LONG,
    NULL,
    FixedReader,
    FrameReader,
    pack_uuid,
    structure_frames,
    text_frame,
)
from quarterdeck.backend.hazelcast.wire.codec.frames import (
    BEGIN_FRAGMENT,
    END_FRAGMENT,
    FRAGMENT_ID,
    IS_EVENT,
    BadBytes,
    Frame,
    Frames,
    frames_bytes,
)
from quarterdeck.backend.hazelcast.wire.codec.request_codec import (
    AUTHENTICATE,
    AUTHENTICATE_WITH_TOKEN,
    DIAGNOSTICS,
    NUMBERS,
    REQUEST_HEAD,
)
from quarterdeck.backend.hazelcast.wire.messages import (
    AUTHENTICATION_STATUSES,
    Answer,
    Authenticated,
    ClusterMetadata,
    ErrorAnswer,
    Event,
    ListenerAdded,
    ListenerRemoved,
    MemberConfig,
    MembersView,
    Metrics,
    MetricSample,
    MetricSet,
    MigrationProcessEvent,
    MigrationState,
    PartitionLostEvent,
    PartitionsView,
    ReplicaMigrationEvent,
    RequestDone,
    SystemProperties,
    ViewMember,
)
from quarterdeck.backend.hazelcast.wire.requests import Authenticate, NameOnly, Request, RequestToken, UserAndPassword


def texts_frames(texts: Mapping[str, str]) -> list[Frame]:
    """Return the frames of a map of strings."""
    return structure_frames(*(text_frame(text) for entry in texts.items() for text in entry))


def address_frames(address: Address) -> list[Frame]:
    """Return the frames of a structure of port and host."""
    return structure_frames(Frame(0, INT.pack(port_of(address))), text_frame(host_of(address)))


def flat(many: Iterable[Iterable[Frame]]) -> list[Frame]:
    """Return all frames in one row."""
    return [frame for frames in many for frame in frames]


def answer_frames(answer: Answer, number: int, correlation: int) -> Frames:
    """Return the frames of the answer to a request whose type has that `number`, as a member sends them."""
    fixed, frames = _answer_fields(answer)
    answers = ERROR if isinstance(answer, ErrorAnswer) else number + 1
    return (Frame(0, ANSWER_HEAD.pack(answers, correlation, 0) + fixed), *frames)


def _answer_fields(answer: Answer) -> tuple[bytes, list[Frame]]:
    match answer:
        case Authenticated():
            return _authenticated_fields(answer)
        case ClusterMetadata(state):
            return BYTE.pack(TOLD_STATES.index(state)) + LONG.pack(0) + pack_uuid(None), [text_frame("5.3.8"), NULL]
        case MemberConfig(text):
            return b"", [text_frame(text)]
        case SystemProperties(properties):
            return b"", texts_frames(properties)
        case Metrics(next_sequence, sets):
            blobs = [Frame(0, encode_metric_set(metric_set)) for metric_set in sets]
            times = Frame(0, b"".join(LONG.pack(metric_set.at_ms) for metric_set in sets))
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
        + BYTE.pack(1)
        + INT.pack(271)
        + pack_uuid(None)
        + BOOL.pack(False)
    )
    address = [NULL] if answer.address is None else address_frames(answer.address)
    return fixed, [*address, text_frame(answer.server_version)]


def event_frames(event: Event, correlation: int) -> Frames:
    """Return the frames of an event, as a member sends them."""
    match event:
        case MembersView(version, members):
            number, fixed, frames = (
                MEMBERS_VIEW,
                INT.pack(version),
                structure_frames(*flat(map(_member_frames, members))),
            )
        case PartitionsView():
            number, fixed, frames = PARTITIONS_VIEW, INT.pack(1), _ownership_frames(event)
        case PartitionLostEvent(partition, lost):
            number, fixed, frames = PARTITION_LOST, INT.pack(partition) + INT.pack(lost) + pack_uuid(None), []
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
        *texts_frames({"zone": "a"}),
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
    fields = LONG.pack(0) + INT.pack(state.planned) + INT.pack(state.done) + LONG.pack(0)
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


def encode_metric_set(metrics: MetricSet) -> bytes:
    """Pack a set as a member does. The excluded targets, which are not kept, are none."""
    words = sorted({word for sample in metrics.samples for word in _words_of(sample)})
    numbers = {word: number for number, word in enumerate(words)} | {"": NOTHING}
    samples = b"".join(_sample_bytes(sample, numbers) for sample in metrics.samples)
    dictionary = zlib.compress(_dictionary_bytes(words))
    return (
        HEAD.pack(VERSION, len(dictionary))
        + dictionary
        + answer_codec.INT.pack(len(metrics.samples))
        + zlib.compress(samples)
    )


def _words_of(sample: MetricSample) -> list[str]:
    prefix, _, name = sample.name.rpartition(".")
    return [word for word in (prefix, name, *(sample.discriminator or ())) if word]


def _dictionary_bytes(words: list[str]) -> bytes:
    parts = [answer_codec.INT.pack(len(words))]
    before = b""
    for number, letters in enumerate(word.encode("utf-16-be") for word in words):
        shared = min(_shared_letters(before, letters), MOST_LETTERS)
        rest = letters[2 * shared :]
        parts.append(answer_codec.INT.pack(number) + bytes((shared, len(rest) // 2)) + rest)
        before = letters
    return b"".join(parts)


def _shared_letters(one: bytes, other: bytes) -> int:
    """Return how many letters of UTF-16 both begin with."""
    pairs = zip(one[0::2], one[1::2], other[0::2], other[1::2], strict=False)
    return len(list(takewhile(lambda pair: pair[:2] == pair[2:], pairs)))


def _sample_bytes(sample: MetricSample, numbers: dict[str, int]) -> bytes:
    prefix, _, name = sample.name.rpartition(".")
    key, value = sample.discriminator or ("", "")
    number = DOUBLE.pack(sample.value) if isinstance(sample.value, float) else answer_codec.LONG.pack(sample.value)
    return (
        b"\x00"  # nothing is as before
        + b"".join(answer_codec.INT.pack(numbers[word]) for word in (prefix, name, key, value))
        + b"\xff\x00\x01"  # no unit, no excluded targets, one tag
        + 2 * answer_codec.INT.pack(numbers[name])
        + bytes((DOUBLE_VALUE if isinstance(sample.value, float) else LONG_VALUE,))
        + number
    )


def encode_fragments(number: int, parts: Sequence[Iterable[Frame]]) -> list[bytes]:
    """Return one message of which each of `parts`, two at least, is a fragment."""
    marks = [BEGIN_FRAGMENT, *(0 for _ in parts[2:]), END_FRAGMENT]
    return [
        frames_bytes([Frame(mark, FRAGMENT_ID.pack(number)), *part]) for mark, part in zip(marks, parts, strict=True)
    ]


def _state(number: int) -> ClusterState:
    if not 0 <= number < len(CLUSTER_STATES):
        raise BadBytes(f"{number} is no state of a cluster")
    return CLUSTER_STATES[number]


def decode_request(frames: Frames) -> tuple[int, Request | int]:
    """Return the correlation and the request; of a request of unknown type its number."""
    first = frames[0].payload
    if len(first) < REQUEST_HEAD.size:
        raise BadBytes("a request is shorter than its head")
    number, correlation, _partition = REQUEST_HEAD.unpack_from(first)
    fixed = FixedReader(first, REQUEST_HEAD.size)
    if number in (AUTHENTICATE, AUTHENTICATE_WITH_TOKEN):
        return correlation, _read_authenticate(number, fixed, FrameReader(frames[1:]))
    kind = next((kind for kind, known in NUMBERS.items() if known == number), None)
    if kind is None:
        return correlation, number
    if kind in (requests.AddPartitionLostListener, requests.AddMigrationListener):
        if fixed.boolean():
            raise BadBytes("a listener for one member alone")
        return correlation, kind()
    if kind is requests.RemoveMigrationListener:
        return correlation, requests.RemoveMigrationListener(fixed.known_uuid())
    if kind is requests.ReadMetrics:
        return correlation, requests.ReadMetrics(fixed.known_uuid(), fixed.int64())
    if kind is requests.ChangeClusterState:
        return correlation, requests.ChangeClusterState(_state(fixed.int32()))
    if kind is requests.SetDiagnostics:
        minutes = max(DIAGNOSTICS.unpack_from(first, REQUEST_HEAD.size)[-1], 0)
        reader = FrameReader(frames[1:])
        where = (reader.text(), reader.text(), reader.optional_text())
        if where != ("STDOUT", ".", None):
            raise BadBytes(f"diagnostics go to {where}")
        return correlation, requests.SetDiagnostics(minutes, reader.texts())
    return correlation, kind()  # type: ignore[call-arg] # what is left has no fields


def _read_authenticate(number: int, fixed: FixedReader, frames: FrameReader) -> Authenticate:
    client_uuid = fixed.known_uuid()
    cluster_name = frames.text()
    credentials: requests.Credentials
    if number == AUTHENTICATE_WITH_TOKEN:
        credentials = RequestToken(frames.next().payload)
    else:
        user, password = frames.optional_text(), frames.optional_text()
        credentials = NameOnly() if user is None else UserAndPassword(user, password or "")
    _client_type, client_version, client_name = frames.text(), frames.text(), frames.text()
    return Authenticate(cluster_name, credentials, client_uuid, client_name, client_version)

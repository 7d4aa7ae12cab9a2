"""Decodes answers and events: everything that members send.

Metrics of one moment are packed big-endian: a dictionary of words and the metrics, each under zlib. Both parts leave out
repetitions: a word has the number of letters that it shares with the word before it, and a metric has a mask of the fields
that are the same as in the metric before it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from struct import Struct as Layout

from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES
from quarterdeck.backend.hazelcast.wire import messages
from quarterdeck.backend.hazelcast.wire.codec import fields
from quarterdeck.backend.hazelcast.wire.codec.frames import IS_EVENT, BadBytes, Frame, Frames
from quarterdeck.backend.hazelcast.wire.messages import MOST_MILLISECONDS, MetricSample, MetricSet, MetricValue

HEAD = Layout(">Hi")
"""Version, and the bytes of the dictionary under zlib."""
VERSION = 1
MOST_UNPACKED = 8 * 1024 * 1024
"""The size up to which either part is unpacked. A few kilobytes of zlib can stand for gigabytes."""
NOTHING = -1
"""The number of no word."""
MOST_LETTERS = 255
"""How many letters a word may share with the one before it, and have of its own."""
PREFIX, NAME, DISCRIMINATOR, DISCRIMINATOR_VALUE, UNIT, EXCLUDED_TARGETS, TAG_COUNT = (1 << bit for bit in range(7))
LONG_VALUE, DOUBLE_VALUE = 0, 1
INT = Layout(">i")
LONG = Layout(">q")
DOUBLE = Layout(">d")


def unpack(packed: bytes) -> bytes:
    """Decompress with zlib, up to `MOST_UNPACKED` bytes."""
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(packed, MOST_UNPACKED)
    except zlib.error as error:
        raise BadBytes(f"metrics are not packed with zlib: {error}") from error
    if inflater.unconsumed_tail or not inflater.eof:
        raise BadBytes(f"metrics are cut off, or unpack to more than {MOST_UNPACKED} bytes")
    return data


class _BlobReader:
    """Reads big-endian values in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self, size: int) -> bytes:
        start, self._at = self._at, self._at + size
        if self._at > len(self._data):
            raise BadBytes("metrics end in the middle")
        return self._data[start : self._at]

    def byte(self) -> int:
        return self.read(1)[0]

    def int32(self) -> int:
        return int.from_bytes(self.read(4), "big", signed=True)

    def number(self, layout: Layout) -> MetricValue:
        (value,) = layout.unpack(self.read(layout.size))
        return value  # type: ignore[no-any-return]


def decode_metric_set(at_ms: int, blob: bytes, wanted_prefixes: frozenset[str] | None = None) -> MetricSet:
    """Decode all metrics of a blob, or those with a wanted prefix."""
    if len(blob) < HEAD.size:
        raise BadBytes("metrics are shorter than their head")
    version, dictionary_size = HEAD.unpack_from(blob)
    if version != VERSION or not 0 <= dictionary_size <= len(blob) - HEAD.size - INT.size:
        raise BadBytes(f"metrics of version {version} with a dictionary of {dictionary_size} bytes cannot be read")
    behind = HEAD.size + dictionary_size
    words = _read_dictionary(unpack(blob[HEAD.size : behind]))
    (count,) = INT.unpack_from(blob, behind)
    samples = _read_samples(_BlobReader(unpack(blob[behind + INT.size :])), count, words, wanted_prefixes)
    return MetricSet(at_ms, tuple(samples))


def _read_dictionary(data: bytes) -> dict[int, str]:
    reader = _BlobReader(data)
    words = {NOTHING: ""}
    word = b""
    for _ in range(reader.int32()):
        number, shared, rest = reader.int32(), reader.byte(), reader.byte()
        word = word[: 2 * shared] + reader.read(2 * rest)
        words[number] = word.decode("utf-16-be", errors="replace")
    return words


def _read_samples(
    reader: _BlobReader, count: int, words: dict[int, str], wanted_prefixes: frozenset[str] | None
) -> Iterator[MetricSample]:
    def word() -> str:
        number = reader.int32()
        if number not in words:
            raise BadBytes(f"metrics use the word {number}, which is not in their dictionary")
        return words[number]

    prefix = name = discriminator = discriminator_value = ""
    tag_count = 0
    for _ in range(count):
        same = reader.byte()
        prefix = prefix if same & PREFIX else word()
        name = name if same & NAME else word()
        discriminator = discriminator if same & DISCRIMINATOR else word()
        discriminator_value = discriminator_value if same & DISCRIMINATOR_VALUE else word()
        if not same & UNIT:
            reader.byte()
        if not same & EXCLUDED_TARGETS:
            reader.byte()
        tag_count = tag_count if same & TAG_COUNT else reader.byte()
        reader.read(2 * INT.size * tag_count)  # each is two words
        match reader.byte():
            case 0:  # a whole number
                value = reader.number(LONG)
            case 1:  # any other
                value = reader.number(DOUBLE)
                if not abs(value) < MOST_MILLISECONDS:  # also NaN: nothing that a member can mean
                    continue
            case kind:
                raise BadBytes(f"a metric has a value of the kind {kind}")
        if wanted_prefixes is None or prefix in wanted_prefixes:
            which = (discriminator, discriminator_value) if discriminator else None
            yield MetricSample(f"{prefix}.{name}" if prefix else name, value, which)


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
    uuid, lite, address = fixed.known_uuid(), fixed.boolean(), frames.address()
    frames.texts()  # its attributes
    return messages.ViewMember(uuid, address, lite, frames.structure(_version))


def _version(frames: fields.FrameReader) -> str:
    fixed = frames.fixed()
    return ".".join(str(fixed.byte() & 0xFF) for _ in range(3))


def decode_partitions_view(fixed: fields.FixedReader, frames: fields.FrameReader) -> messages.PartitionsView:
    """Read the owners. On the wire the partitions of each owner are in one frame; the owners follow.

    The member's own count of views means nothing elsewhere: one table was 22, 25, 33 and 37 on four members.
    """
    owned = frames.many(lambda reader: [number for (number,) in _all_in(reader.next(), fields.INT, "numbers")])
    halves = _all_in(frames.next(), fields.UUID_LAYOUT, "uuids")
    uuids = [fields.uuid_text(most, least) for _, most, least in halves]
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
    return messages.PartitionsView(holders, tuple(owners))


def _all_in(frame: Frame, layout: Layout, what: str) -> Iterator[tuple[int, ...]]:
    if len(frame.payload) % layout.size:
        raise BadBytes(f"a list of {what} ends in the middle of one")
    return layout.iter_unpack(frame.payload)


def _migration_state(frames: fields.FrameReader) -> messages.MigrationState:
    fixed = frames.fixed()
    fixed.int64()  # when the round began
    return messages.MigrationState(fixed.int32(), fixed.int32())


def _migration_process(fixed: fields.FixedReader, frames: fields.FrameReader) -> messages.MigrationProcessEvent:
    what = fixed.int32()
    state = frames.structure(_migration_state)
    return messages.MigrationProcessEvent("started" if what == STARTED else "finished", state)


def _replica_migration(fixed: fields.FixedReader, frames: fields.FrameReader) -> messages.ReplicaMigrationEvent:
    partition, replica_index = fixed.int32(), fixed.int32()
    source, destination = fixed.uuid(), fixed.uuid()
    succeeded, took_ms = fixed.boolean(), fixed.int64()
    state = frames.structure(_migration_state)
    return messages.ReplicaMigrationEvent(partition, replica_index, source, destination, succeeded, took_ms, state)


EVENT_DECODERS: dict[int, Callable[[fields.FixedReader, fields.FrameReader], messages.Event]] = {
    MEMBERS_VIEW: decode_members_view,
    PARTITIONS_VIEW: decode_partitions_view,
    PARTITION_LOST: lambda fixed, _: messages.PartitionLostEvent(fixed.int32(), fixed.int32()),
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
    member_uuid = fixed.uuid()
    address = None if frames.next_is_null() else frames.address()
    version = frames.optional_text() or ""
    return messages.Authenticated(messages.AUTHENTICATION_STATUSES[status], address, member_uuid, version)


def _read_metadata(fixed: fields.FixedReader, frames: fields.FrameReader) -> messages.ClusterMetadata:
    number = fixed.byte()
    return messages.ClusterMetadata(TOLD_STATES[number] if 0 <= number < len(TOLD_STATES) else "unknown")


def _read_metrics(
    fixed: fields.FixedReader, frames: fields.FrameReader, wanted: frozenset[str] | None
) -> messages.Metrics:
    next_sequence = fixed.int64()
    blobs = frames.many(lambda reader: reader.next().payload)
    times = frames.next().payload
    if len(times) != fields.LONG.size * len(blobs):
        raise BadBytes(f"{len(blobs)} sets of metrics have times of {len(times)} bytes")
    moments = fields.LONG.iter_unpack(times)
    sets = (decode_metric_set(at_ms, blob, wanted) for (at_ms,), blob in zip(moments, blobs, strict=True))
    return messages.Metrics(next_sequence, tuple(sets))


def _read_error(fixed: fields.FixedReader, frames: fields.FrameReader) -> messages.ErrorAnswer:
    """Read the first of a list of exceptions; the others are its causes."""

    def holder(reader: fields.FrameReader) -> messages.ErrorAnswer:
        return messages.ErrorAnswer(reader.fixed().int32(), reader.text(), reader.optional_text() or "")

    errors = frames.many(lambda reader: reader.structure(holder))
    if not errors:
        raise BadBytes("an error without a reason")
    return errors[0]


DONE = (0x000B01, 0x200201, 0x200801, 0x200901, 0x200F01, 0x202701)
"""What has no answer but that it was done."""

ANSWER_DECODERS: dict[int, Callable[[fields.FixedReader, fields.FrameReader], messages.Answer]] = {
    ERROR: _read_error,
    0x000101: _read_authenticated,
    0x000201: _read_authenticated,
    0x000301: lambda fixed, _: messages.ListenerAdded(),
    0x000601: lambda fixed, _: messages.ListenerAdded(fixed.uuid()),
    0x001101: lambda fixed, _: messages.ListenerAdded(fixed.uuid()),
    0x001201: lambda fixed, _: messages.ListenerRemoved(fixed.boolean()),
    0x200501: lambda _, frames: messages.MemberConfig(frames.text()),
    0x200A01: lambda _, frames: messages.SystemProperties(frames.texts()),
    0x200E01: _read_metadata,
    **dict.fromkeys(DONE, lambda fixed, _: messages.RequestDone()),
}
METRICS = 0x200101

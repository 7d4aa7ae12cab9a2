"""The metrics of one moment, as members pack them: big-endian, a dictionary of words and the metrics, each under zlib.

Both parts leave out repetitions: a word has the number of letters that it shares with the word before it, and a metric has a
mask of the fields that are the same as in the metric before it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct as Layout

from quarterdeck.backend.hazelcast.wire.codec.frames import BadBytes
from quarterdeck.backend.hazelcast.wire.messages import MetricSample, MetricSet, MetricValue

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
UNKNOWN_UNIT = -1


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
    unit = UNKNOWN_UNIT
    tag_count = 0
    for _ in range(count):
        same = reader.byte()
        prefix = prefix if same & PREFIX else word()
        name = name if same & NAME else word()
        discriminator = discriminator if same & DISCRIMINATOR else word()
        discriminator_value = discriminator_value if same & DISCRIMINATOR_VALUE else word()
        unit = unit if same & UNIT else int.from_bytes(reader.read(1), signed=True)
        if not same & EXCLUDED_TARGETS:
            reader.byte()
        tag_count = tag_count if same & TAG_COUNT else reader.byte()
        tags = tuple((word(), word()) for _ in range(tag_count))
        match reader.byte():
            case 0:  # a whole number
                value = reader.number(LONG)
            case 1:  # any other
                value = reader.number(DOUBLE)
            case kind:
                raise BadBytes(f"a metric has a value of the kind {kind}")
        if wanted_prefixes is None or prefix in wanted_prefixes:
            yield MetricSample(
                f"{prefix}.{name}" if prefix else name,
                value,
                None if unit == UNKNOWN_UNIT else unit,
                (discriminator, discriminator_value) if discriminator else None,
                tags,
            )

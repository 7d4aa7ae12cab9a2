"""The metrics of one moment, as members pack them: big-endian, a dictionary of words and the metrics, each under zlib.

Both parts leave out what is as before: a word tells how many letters it shares with the word before it, and a metric has a mask
of the fields that are those of the metric before it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import takewhile
from struct import Struct as Layout

from quarterdeck.backend.hazelcast.wire.codec.frames import BadBytes
from quarterdeck.backend.hazelcast.wire.messages import MetricSample, MetricSet, MetricValue

HEAD = Layout(">Hi")
"""Version, and the bytes of the dictionary under zlib."""
VERSION = 1

MOST_UNPACKED = 8 * 1024 * 1024
"""What either part may grow to. A few kilobytes of zlib can stand for gigabytes."""

NOTHING = -1
"""The number of no word."""

MOST_LETTERS = 255
"""What a word may share with the one before it, and have of its own."""

PREFIX, NAME, DISCRIMINATOR, DISCRIMINATOR_VALUE, UNIT, EXCLUDED_TARGETS, TAG_COUNT = (1 << bit for bit in range(7))
LONG_VALUE, DOUBLE_VALUE = 0, 1

INT = Layout(">i")
LONG = Layout(">q")
DOUBLE = Layout(">d")
UNKNOWN_UNIT = -1


def unpack(packed: bytes) -> bytes:
    """What zlib made smaller, if it is not beyond all measure."""
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(packed, MOST_UNPACKED)
    except zlib.error as error:
        raise BadBytes(f"metrics are not packed with zlib: {error}") from error
    if inflater.unconsumed_tail or not inflater.eof:
        raise BadBytes(f"metrics are cut off, or unpack to more than {MOST_UNPACKED} bytes")
    return data


class _BlobReader:
    """Reads big-endian values, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        start, self._at = self._at, self._at + size
        if self._at > len(self._data):
            raise BadBytes("metrics end in the middle")
        return self._data[start : self._at]

    def byte(self) -> int:
        return self.take(1)[0]

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def number(self, layout: Layout) -> MetricValue:
        (value,) = layout.unpack(self.take(layout.size))
        return value  # type: ignore[no-any-return]


def decode_metric_set(at_ms: int, blob: bytes, wanted_prefixes: frozenset[str] | None = None) -> MetricSet:
    """All metrics of a blob, or those whose prefix is wanted."""
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
        word = word[: 2 * shared] + reader.take(2 * rest)
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
        unit = unit if same & UNIT else int.from_bytes(reader.take(1), signed=True)
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


def encode_metric_set(one: MetricSet) -> bytes:
    """The blob of a set, as a member packs it. The excluded targets, which are not kept, are none."""
    words = sorted({word for sample in one.samples for word in _words_of(sample)})
    numbers = {word: number for number, word in enumerate(words)} | {"": NOTHING}
    metrics = b"".join(_sample_bytes(sample, numbers) for sample in one.samples)
    dictionary = zlib.compress(_dictionary_bytes(words))
    return HEAD.pack(VERSION, len(dictionary)) + dictionary + INT.pack(len(one.samples)) + zlib.compress(metrics)


def _words_of(sample: MetricSample) -> list[str]:
    prefix, _, name = sample.name.rpartition(".")
    tags = (word for tag in sample.tags for word in tag)
    return [word for word in (prefix, name, *(sample.discriminator or ()), *tags) if word]


def _dictionary_bytes(words: list[str]) -> bytes:
    parts = [INT.pack(len(words))]
    before = b""
    for number, letters in enumerate(word.encode("utf-16-be") for word in words):
        shared = min(_shared_letters(before, letters), MOST_LETTERS)
        rest = letters[2 * shared :]
        parts.append(INT.pack(number) + bytes((shared, len(rest) // 2)) + rest)
        before = letters
    return b"".join(parts)


def _shared_letters(one: bytes, other: bytes) -> int:
    """How many letters of UTF-16 both begin with."""
    pairs = zip(one[0::2], one[1::2], other[0::2], other[1::2], strict=False)
    return len(list(takewhile(lambda pair: pair[:2] == pair[2:], pairs)))


def _sample_bytes(sample: MetricSample, numbers: dict[str, int]) -> bytes:
    prefix, _, name = sample.name.rpartition(".")
    key, value = sample.discriminator or ("", "")
    unit = UNKNOWN_UNIT if sample.unit is None else sample.unit
    mask = EXCLUDED_TARGETS if not sample.tags else 0
    number = DOUBLE.pack(sample.value) if isinstance(sample.value, float) else LONG.pack(sample.value)
    return (
        bytes((mask,))
        + b"".join(INT.pack(numbers[word]) for word in (prefix, name, key, value))
        + unit.to_bytes(1, signed=True)
        + (b"" if mask else b"\x00")
        + bytes((len(sample.tags),))
        + b"".join(INT.pack(numbers[word]) for tag in sample.tags for word in tag)
        + bytes((DOUBLE_VALUE if isinstance(sample.value, float) else LONG_VALUE,))
        + number
    )

"""Finds the partition of a key, by the product's own hash of the key as it serializes it.

A key's bytes are hashed with murmur3 (x86, 32 bits) and a seed of its own. Only strings and whole numbers are known here: the
bytes of other types depend on the application, as does a key that its class or a strategy assigns elsewhere.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Literal

KeyType = Literal["string", "int", "long"]
"""Java's ``String``, ``Integer`` and ``Long``. Five as an ``Integer`` is in another partition than as a ``Long``."""
SEED = 0x0100_0193
MASK = 0xFFFF_FFFF
INT = Layout(">i")
LONG = Layout(">q")
BLOCK = Layout("<I")
LOWEST = -(2**31)


class BadKey(ValueError):
    """A text that is no key of the given type."""


def partition_of_key(key: str, key_type: KeyType, partition_count: int) -> int:
    """Return the partition of a key that is given as text. Raises `BadKey`."""
    number = murmur3(serialized(key, key_type), SEED)
    number = number - (1 << 32) if number & 1 << 31 else number  # Java has signed numbers
    return 0 if number == LOWEST else abs(number) % partition_count


def serialized(key: str, key_type: KeyType) -> bytes:
    """Return the bytes of a key after its type: a length and UTF-8, or a big-endian number."""
    if key_type == "string":
        text = key.encode()
        return INT.pack(len(text)) + text
    layout = INT if key_type == "int" else LONG
    limit = 1 << (8 * layout.size - 1)
    try:
        number = int(key)
    except ValueError as error:
        raise BadKey(f"{key!r} is no whole number") from error
    if not -limit <= number < limit:
        raise BadKey(f"{key!r} does not fit into {8 * layout.size} bits")
    return layout.pack(number)


def murmur3(data: bytes, seed: int) -> int:
    """Return Austin Appleby's murmur3 for x86 with 32 bits, unsigned."""
    value = seed
    whole = len(data) - len(data) % BLOCK.size
    for (block,) in BLOCK.iter_unpack(data[:whole]):
        value ^= _scrambled(block)
        value = (_rotated(value, 13) * 5 + 0xE654_6B64) & MASK
    value ^= _scrambled(int.from_bytes(data[whole:], "little"))
    value ^= len(data)
    for shift, factor in ((16, 0x85EB_CA6B), (13, 0xC2B2_AE35)):
        value = ((value ^ value >> shift) * factor) & MASK
    return value ^ value >> 16


def _scrambled(block: int) -> int:
    return (_rotated(block * 0xCC9E_2D51 & MASK, 15) * 0x1B87_3593) & MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & MASK

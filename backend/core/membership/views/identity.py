"""Who a member is: its address and the uuid of its present incarnation."""

from __future__ import annotations

from hashlib import blake2b
from typing import Protocol

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Int64


class Randomness(Protocol):
    """The few draws that a member may make. The driver passes in a seeded generator; the core never makes its own."""

    def getrandbits(self, k: int, /) -> int: ...


class Member(Struct, frozen=True, gc=False):
    """One entry of a member list. The pair (address, uuid) is its identity.

    `join_version` is the version of the list that introduced it. `zone` is where it runs: a rack or a room that fails as a whole.
    """

    address: Address
    uuid: str
    join_version: Int64
    lite: bool = False
    zone: str = ""


class ListMetadata(Struct, frozen=True, gc=False, array_like=True):
    """What a member says of itself and its list: enough to see whether it has moved on.

    All four fields must still match at the receiver for an explicit suspicion to count (Cluster Service Consistency Improvements,
    Explicit Suspicion).
    """

    address: Address
    uuid: str
    master: Address
    version: int


def drawn_from(randomness: Randomness) -> bytes:
    """Return what all draws of a member follow from, in a form that can be stored."""
    return randomness.getrandbits(128).to_bytes(16, "big")


def next_draw(randomness: bytes) -> tuple[int, bytes]:
    """Return 128 bits that follow from `randomness`, and the state for the draw after this one."""
    drawn = blake2b(randomness, digest_size=32).digest()
    return int.from_bytes(drawn[:16], "big"), drawn[16:]


def fresh_uuid(bits: int) -> str:
    """Return the version-4 uuid of 128 bits drawn from the member's own randomness, so that a simulated run repeats it."""
    bits = (bits & ~(0xF000 << 64)) | (0x4000 << 64)
    bits = (bits & ~(0xC000 << 48)) | (0x8000 << 48)
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

"""Who a member is: its address and the uuid of its present incarnation (design section 4)."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from quarterdeck.backend.core.address import Address


class Randomness(Protocol):
    """The few draws a member may make. A seeded generator is handed in at birth; the core never makes its own."""

    def getrandbits(self, k: int, /) -> int:
        """A number of `k` random bits."""
        ...


class Member(Struct, frozen=True, gc=False):
    """One entry of a member list. The pair (address, uuid) is its identity.

    `join_version` is the version of the list that introduced it. `zone` is where it stands: a rack, a room, whatever
    fails as one.
    """

    address: Address
    uuid: str
    join_version: int
    lite: bool = False
    zone: str = ""


class ListMetadata(Struct, frozen=True, gc=False, array_like=True):
    """What a member says of itself and its list: enough to tell whether it has moved on (seed 000, Explicit Suspicion).

    All four fields must still match at the receiver for an explicit suspicion to count.
    """

    address: Address
    uuid: str
    master: Address
    version: int


def fresh_uuid(randomness: Randomness) -> str:
    """A version-4 uuid drawn from the member's own generator, so that a simulated run repeats it."""
    bits = randomness.getrandbits(128)
    bits = (bits & ~(0xF000 << 64)) | (0x4000 << 64)
    bits = (bits & ~(0xC000 << 48)) | (0x8000 << 48)
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

"""Who owns which partition, as a member tells its clients, and the digest by which the tables of members are compared.

The counter that members give with their table is of each member's own: one and the same table has another on each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.partitions.events import Holder
from quarterdeck.backend.core.witnessed.events import OwnersTold
from quarterdeck.backend.hazelcast.wire.messages import PartitionsView

NOBODY = -1
DIGEST_BYTES = 6


def owners_of(view: PartitionsView, addresses: Mapping[str, Address], state_stamp: int | None = None) -> OwnersTold:
    """The same table with the addresses of those who hold it. Who has no known address stands under the uuid."""
    holders = tuple(Holder(addresses.get(uuid, Address(uuid)), uuid) for uuid in view.holders)
    return OwnersTold(holders, view.owners, digest_of(view.holders, view.owners), state_stamp)


def digest_of(holders: Sequence[str], owners: Sequence[int]) -> str:
    """The same for all members that tell the same table; empty while nobody owns anything."""
    if not holders:
        return ""
    digest = blake2b(digest_size=DIGEST_BYTES)
    for place in owners:
        digest.update(b"-" if place == NOBODY else holders[place].encode())
        digest.update(b"\n")
    return digest.hexdigest()

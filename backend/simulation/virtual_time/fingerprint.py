"""The fingerprint of a run: a running hash of everything that happened in it."""

from __future__ import annotations

from array import array
from hashlib import blake2b

import msgspec

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.membership.views.identity import Member

DIGEST_BYTES = 16
NUMBERS_PER_UPDATE = 4096


class Fingerprint:
    """Takes in deliveries as numbers and records whole. Two runs that differ anywhere differ here.

    Numbers are hashed in batches, because hashing each by itself would cost as much as simulating it.
    """

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=DIGEST_BYTES)
        self._numbers: list[int] = []
        self.add = self._numbers.append
        self._latest_list: tuple[tuple[Member, ...], bytes] = ((), b"")
        self._encode = msgspec.msgpack.Encoder().encode

    def add_record(self, record: Record) -> None:
        """Take in a record, but for the name of its run: people give that name, and it does not depend on the run's events."""
        self.settle()
        event = record.event
        if isinstance(event, ListInstalled):
            self._hash.update(self._digest_of(event))
            event = msgspec.structs.replace(event, members=())
        self._hash.update(self._encode((record.member, record.seq, record.at, event, record.because)))

    def _digest_of(self, event: ListInstalled) -> bytes:
        """Return the digest of the members of a list. All members install the very same one, which is hashed only once."""
        members, digest = self._latest_list
        if members is not event.members:
            digest = blake2b(self._encode(event.members), digest_size=DIGEST_BYTES).digest()
            self._latest_list = (event.members, digest)
        return digest

    def settle(self) -> None:
        """Take the numbers collected so far into the hash; to be called every `NUMBERS_PER_UPDATE` numbers or so."""
        self._hash.update(array("Q", self._numbers).tobytes())
        self._numbers.clear()

    def hexdigest(self) -> str:
        self.settle()
        return self._hash.hexdigest()

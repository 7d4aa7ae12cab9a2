"""The fingerprint of a run: a running hash of everything that happened in it."""

from __future__ import annotations

from array import array
from hashlib import blake2b

import msgspec

from backend.core.events import Record

DIGEST_BYTES = 16
BATCH = 4096


class Fingerprint:
    """Takes in deliveries as numbers and records whole. Two runs that differ anywhere differ here.

    Numbers are hashed in batches, because hashing each by itself would cost as much as simulating it.
    """

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=DIGEST_BYTES)
        self._numbers: list[int] = []
        self.add = self._numbers.append
        self._encode = msgspec.msgpack.Encoder().encode

    def add_record(self, record: Record) -> None:
        """Take in a record, but for the name of its run: that is given by people and says nothing of what happened."""
        self.settle()
        self._hash.update(self._encode((record.member, record.seq, record.at, record.event)))

    def settle(self) -> None:
        """Take the numbers collected so far into the hash; to be called every `BATCH` numbers or so."""
        self._hash.update(array("Q", self._numbers).tobytes())
        self._numbers.clear()

    def hexdigest(self) -> str:
        """The fingerprint so far."""
        self.settle()
        return self._hash.hexdigest()

"""The cluster's secret: how a member proves that it knows it, without saying it.

Each side adds a number that it has never used before, so that no proof is good twice. A proof covers both numbers, the
cluster's name, both addresses and uuids, and which of the two sides it comes from, so that it cannot be sent back or used
elsewhere. The initiator proves it first: whoever only connects learns nothing from which a secret could be guessed. This keeps
others out; what is sent afterwards stands in the clear unless there is TLS as well.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Literal

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.address import Address

NONCE_BYTES = 32

KEY_ROUNDS = 100_000
"""What one guess at a short secret costs somebody who has got hold of a proof; paid once in each incarnation of a member."""

Side = Literal["calls", "answers"]

_ENCODER = msgspec.msgpack.Encoder()


class Exchange(Struct, frozen=True, array_like=True):
    """All that a proof is about."""

    protocol: int
    cluster: str
    caller: Address
    caller_uuid: str
    caller_nonce: bytes
    called: Address
    called_uuid: str
    called_nonce: bytes


class ClusterSecret:
    """Knows a key made of the secret, and shows it to nobody."""

    __slots__ = ("_key",)

    def __init__(self, secret: str, cluster: str) -> None:
        """Derive the key of a cluster.

        Raises:
            ValueError: `secret` is empty.
        """
        if not secret:
            raise ValueError("an empty secret keeps nobody out; leave it away or give one")
        salt = f"quarterdeck/{cluster}".encode()
        self._key = hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, KEY_ROUNDS)

    def __repr__(self) -> str:
        return "ClusterSecret()"

    def proof(self, side: Side, exchange: Exchange) -> bytes:
        """Return what `side` sends to prove that it knows the secret."""
        return hmac.digest(self._key, _ENCODER.encode((side, exchange)), "sha256")

    def proven(self, side: Side, exchange: Exchange, proof: bytes) -> bool:
        """Whether `proof` is that of `side`; takes as long for a nearly right one as for any other."""
        return hmac.compare_digest(self.proof(side, exchange), proof)


def new_nonce() -> bytes:
    """Return a number that was never used before and that cannot be foreseen."""
    return secrets.token_bytes(NONCE_BYTES)

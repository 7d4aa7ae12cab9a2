"""The cluster's secret: how a member proves that it knows the secret, without saying it.

Each side adds a number that it has never used before, so that no proof is good twice. A proof covers both numbers, the
cluster's name, both addresses and uuids, and which of the two sides it comes from, so that it cannot be sent back or used
elsewhere. The initiator proves it first: one that only connects learns nothing from which a secret could be guessed. This keeps
others out; what is sent afterwards stands in the clear unless there is TLS as well.

The secret turns without a stop: for a while members accept two, and use one of them when they dial (as Consul's keyring).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Literal

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import CommandRefused

NONCE_BYTES = 32

KEY_ROUNDS = 100_000
"""The cost of one guess at a short secret for an attacker who holds a proof; paid once in each incarnation of a member."""

FINGERPRINT_DIGITS = 12

Side = Literal["calls", "answers", "refuses"]

_ENCODER = msgspec.msgpack.Encoder()


class Exchange(Struct, frozen=True, array_like=True):
    """The facts that a proof is about."""

    protocol: int
    cluster: str
    caller: Address
    caller_uuid: str
    caller_nonce: bytes
    called: Address
    called_uuid: str
    called_nonce: bytes


class ClusterSecret:
    """Knows a key made of the secret, and never shows it."""

    __slots__ = ("_key",)

    def __init__(self, secret: str, cluster: str) -> None:
        """Derive the key of a cluster.

        Raises:
            ValueError: `secret` is empty.
        """
        if not secret:
            raise ValueError("an empty secret refuses no peer; leave it out or give one")
        salt = f"quarterdeck/{cluster}".encode()
        self._key = hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, KEY_ROUNDS)

    def __repr__(self) -> str:
        return "ClusterSecret()"

    @property
    def fingerprint(self) -> str:
        """The name by which people know the secret. A reader can check guesses at it, so only operators see it."""
        return hmac.digest(self._key, b"fingerprint", "sha256").hex()[:FINGERPRINT_DIGITS]

    def proof(self, side: Side, exchange: Exchange) -> bytes:
        """Return the proof of `side` that it knows the secret."""
        return hmac.digest(self._key, _ENCODER.encode((side, exchange)), "sha256")

    def proven(self, side: Side, exchange: Exchange, proof: bytes) -> bool:
        """Whether `proof` is that of `side`; takes as long for a nearly right one as for any other."""
        return hmac.compare_digest(self.proof(side, exchange), proof)


class ClusterKeyring:
    """The secrets that a member accepts, the one that it uses first: one or two."""

    def __init__(self, secret: ClusterSecret) -> None:
        self.accepted: tuple[ClusterSecret, ...] = (secret,)

    @property
    def used(self) -> ClusterSecret:
        """The secret with which this member introduces itself."""
        return self.accepted[0]

    def proving(self, side: Side, exchange: Exchange, proof: bytes) -> ClusterSecret | None:
        """Return the secret of which `proof` is that of `side`, or None."""
        return next((secret for secret in self.accepted if secret.proven(side, exchange, proof)), None)

    def add(self, secret: ClusterSecret) -> None:
        """Accept it as well. Raises `CommandRefused` when there are two others."""
        if self._known(secret) is not None:
            return
        if len(self.accepted) == MOST_ACCEPTED:
            raise CommandRefused("two secrets are accepted already; remove the one that is not used first")
        self.accepted += (secret,)

    def use(self, secret: ClusterSecret) -> None:
        """Introduce this member with it from now on. Raises `CommandRefused` when it is not accepted."""
        chosen = self._known(secret)
        if chosen is None:
            raise CommandRefused("this secret is not accepted; add it at every member first")
        self.accepted = (chosen, *(other for other in self.accepted if other is not chosen))

    def remove(self, secret: ClusterSecret) -> ClusterSecret | None:
        """Accept it no more. Return it, or None when it was not accepted. Raises `CommandRefused` when it is used."""
        removed = self._known(secret)
        if removed is self.used:
            raise CommandRefused("this secret is used; use the other one at every member first")
        self.accepted = tuple(other for other in self.accepted if other is not removed)
        return removed

    def _known(self, secret: ClusterSecret) -> ClusterSecret | None:
        """Return the accepted secret that is the same, or None."""
        return next((known for known in self.accepted if known.fingerprint == secret.fingerprint), None)


MOST_ACCEPTED = 2


def new_nonce() -> bytes:
    """Return a number that was never used before and that cannot be foreseen."""
    return secrets.token_bytes(NONCE_BYTES)

"""The handshake: what is said first on a connection, and the rules by which peers are refused.

The initiator sends `HandshakeHello`, the responder answers `Welcome` or `HandshakeRejection`. When they share a secret, a
`Challenge` and a `Proof` come in between, and the welcome carries a proof as well.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.address import Address, BadAddress, parse_address
from quarterdeck.backend.core.causes import RefusalCause

PROTOCOL_VERSION = 4
"""Raised whenever members say something that those of the version before could not understand."""

OLDEST_VERSION = 2
"""The oldest version that members of this one speak, too, so that a cluster can be upgraded member by member."""

NO_SECRET_THERE = "does not prove that it knows the secret of the cluster"
NO_SECRET_HERE = "asks for proof of a cluster secret, and no secret is configured here"
NO_SECRET_AT_CALLED = "asks for proof of a cluster secret, and no secret is configured at the member that it calls"
WRONG_SECRET = "does not know the secret of the cluster"


RejectionCause = Literal["rejected", "other-cluster", "itself"]
"""What the one who dialled may make of it, in the words of `backend.core.causes.UnreachableCause`."""


class HandshakeHello(Struct, frozen=True, tag="quarterdeck-hello", array_like=True):
    """The one who dialled introduces itself. `address` is where it listens, `uuid` its present incarnation."""

    protocol: int
    """The oldest version that it speaks. Members of version 2 speak no other, and compare it with theirs."""
    cluster: str
    address: Address
    uuid: str
    nonce: bytes = b""
    """For the proof of the cluster's secret, when there is one."""
    newest: int = 0
    """The newest version that it speaks; members of version 2 do not say it."""


class Challenge(Struct, frozen=True, tag="quarterdeck-challenge", array_like=True):
    """The one who was dialled says who it is and asks for the proof of the cluster's secret."""

    address: Address
    uuid: str
    nonce: bytes


class Proof(Struct, frozen=True, tag="quarterdeck-proof", array_like=True):
    """The one who dialled proves that it knows the secret."""

    proof: bytes


class Welcome(Struct, frozen=True, tag="quarterdeck-welcome", array_like=True):
    """The one who was dialled agrees, and says who it is."""

    address: Address
    uuid: str
    proof: bytes = b""
    """That it knows the secret as well, when there is one."""
    newest: int = 0
    """The newest version that it speaks; members of version 2 do not say it."""


class HandshakeRejection(Struct, frozen=True, tag="quarterdeck-refused", array_like=True):
    """The one who was dialled will not talk.

    `crossed` when only because its own dial to the other side is under way and takes precedence, so that the other side
    should wait for that instead of giving up.
    """

    reason: str
    crossed: bool = False
    cause: RejectionCause = "rejected"
    joined: bool = False
    """The one who was dialled is in a cluster, which the other one therefore should not found anew."""
    proof: bytes = b""
    """That it knows the secret, when both have proven it."""
    without_secret: bool = False
    """It refuses whoever has a secret, since it has none. So it cannot prove anything."""


HELLO = msgspec.msgpack.Decoder(HandshakeHello)
PROOF = msgspec.msgpack.Decoder(Proof)
ANSWER: msgspec.msgpack.Decoder[Welcome | HandshakeRejection | Challenge] = msgspec.msgpack.Decoder(
    Welcome | HandshakeRejection | Challenge
)

QUOTED_CHARACTERS = 100
"""How much of what an unidentified peer has sent is repeated to people."""


def hello_of(cluster: str, address: Address, uuid: str) -> HandshakeHello:
    """Return what a member of this version says."""
    return HandshakeHello(OLDEST_VERSION, cluster, address, uuid, newest=PROTOCOL_VERSION)


def refusal_of(hello: HandshakeHello, ours: HandshakeHello) -> tuple[RefusalCause, str] | None:
    """Why a peer that says `hello` is refused by the member that would say `ours`, or None when it is welcome."""
    if hello.protocol > _newest(ours) or _newest(hello) < ours.protocol:
        return "other-version", f"speaks protocol version {_versions(hello)}, not {_versions(ours)}"
    if hello.cluster != ours.cluster:
        named = hello.cluster[:QUOTED_CHARACTERS]
        return "other-cluster", f"belongs to the cluster {named!r}, not {ours.cluster!r}"
    try:
        canonical = parse_address(hello.address)
    except BadAddress as problem:
        return "no-member", f"gives an address that is none: {str(problem)[: 2 * QUOTED_CHARACTERS]}"
    if canonical != hello.address:
        return "no-member", f"gives the address {hello.address[:QUOTED_CHARACTERS]!r} instead of {canonical!r}"
    if hello.address == ours.address:
        return "itself", f"claims to be {ours.address} itself"
    if not hello.uuid:
        return "no-member", "has no uuid"
    if bool(hello.nonce) != bool(ours.nonce):
        return "secret", NO_SECRET_THERE if ours.nonce else NO_SECRET_AT_CALLED
    return None


def common_version(newest: int) -> int:
    """Return the newest version that this member has in common with one whose `newest` is known; 0 is that of version 2."""
    return min(max(newest, OLDEST_VERSION), PROTOCOL_VERSION)


def _newest(hello: HandshakeHello) -> int:
    return max(hello.protocol, hello.newest)


def _versions(hello: HandshakeHello) -> str:
    newest = _newest(hello)
    return str(newest) if newest == hello.protocol else f"{hello.protocol} to {newest}"


def rejection_of(refusal: RefusalCause, reason: str) -> HandshakeRejection:
    """Return what a refused peer gets as an answer: it knows best what to make of two of the causes."""
    shown_cause: RejectionCause = refusal if refusal in ("other-cluster", "itself") else "rejected"
    return HandshakeRejection(reason, cause=shown_cause, without_secret=reason == NO_SECRET_AT_CALLED)


def impostor_reason(welcome: Welcome | Challenge, dialled: Address) -> str | None:
    """Why the one who answered at `dialled` is not the member that was looked for, or None when it is."""
    if welcome.address != dialled:
        return f"{welcome.address[:QUOTED_CHARACTERS]} answered instead"
    return None if welcome.uuid else "answered without a uuid"

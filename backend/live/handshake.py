"""The handshake: the first frame in each direction of a connection, and the rules by which strangers are refused."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from backend.core.address import Address, BadAddress, parse_address

PROTOCOL_VERSION = 1
"""Raised whenever members of the old and of the new version could not understand one another."""


class Hello(Struct, frozen=True, tag="quarterdeck-hello", array_like=True):
    """The one who dialled introduces itself. `address` is where it listens, `uuid` its present life."""

    protocol: int
    cluster: str
    address: Address
    uuid: str


class Welcome(Struct, frozen=True, tag="quarterdeck-welcome", array_like=True):
    """The one who was dialled agrees, and says who it is."""

    address: Address
    uuid: str


class Refused(Struct, frozen=True, tag="quarterdeck-refused", array_like=True):
    """The one who was dialled will not talk. `crossed` when only because its own dial to the other side is under way
    and takes precedence, so that the other side should wait for that instead of giving up."""

    reason: str
    crossed: bool = False


HELLO = msgspec.msgpack.Decoder(Hello)
ANSWER: msgspec.msgpack.Decoder[Welcome | Refused] = msgspec.msgpack.Decoder(Welcome | Refused)


def refusal_of(hello: Hello, ours: Hello) -> str | None:
    """Why somebody who says `hello` is a stranger to the member that would say `ours`, or None when it is welcome."""
    if hello.protocol != ours.protocol:
        return f"speaks protocol version {hello.protocol}, not {ours.protocol}"
    if hello.cluster != ours.cluster:
        return f"belongs to the cluster {hello.cluster!r}, not {ours.cluster!r}"
    try:
        canonical = parse_address(hello.address)
    except BadAddress as problem:
        return f"gives an address that is none: {problem}"
    if canonical != hello.address:
        return f"gives the address {hello.address!r} instead of {canonical!r}"
    if hello.address == ours.address:
        return f"claims to be {ours.address} itself"
    if not hello.uuid:
        return "has no uuid"
    return None


def impostor_reason(welcome: Welcome, dialled: Address) -> str | None:
    """Why the one who answered at `dialled` is not the member that was looked for, or None when it is."""
    if welcome.address != dialled:
        return f"{welcome.address} answered instead"
    return None if welcome.uuid else "answered without a uuid"

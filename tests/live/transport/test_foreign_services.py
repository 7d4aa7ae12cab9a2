"""Services that are no members, at an address where a member looks for others: each counts as silent, and is named once.

Members always say why they refuse. So an end without a word, rubbish, and what a member would have proven are no refusals.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import UnreachableCause
from quarterdeck.backend.core.membership.messages import JoinRefused
from quarterdeck.backend.live.security.cluster_secret import NONCE_BYTES, ClusterKeyring, ClusterSecret
from quarterdeck.backend.live.security.tls import OTHER_VERSION_ALERT, WireSecurity
from quarterdeck.backend.live.transport.frames import FrameParser, frame_of
from quarterdeck.backend.live.transport.handshake import (
    NO_SECRET_AT_CALLED,
    WRONG_SECRET,
    Challenge,
    HandshakeHello,
    HandshakeRefused,
    HandshakeRejection,
    Initiator,
    PeerRejected,
    Proof,
    Responder,
    Welcome,
    rejection_of,
)
from tests.live.security.certificates import Authority
from tests.live.transport.transports import SHORT, net
from tests.waiting import until

Service = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

SAFE = WireSecurity(secret="swordfish")
HERE, THERE = Address("127.0.0.1:5701"), Address("127.0.0.1:5702")


@asynccontextmanager
async def serving(service: Service) -> AsyncIterator[Address]:
    """A port of the join list on which something else listens."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await service(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        server.close()


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close at once, with what was said unread: a reset for who has said it."""


async def hang_up_after_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(4096)


async def be_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


def answering(answer: bytes) -> Service:
    async def service(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4096)
        writer.write(answer)
        await writer.drain()
        await reader.read()

    return service


async def found_at(service: Service, security: WireSecurity) -> tuple[UnreachableCause, str]:
    """What a member finds at the port of `service`."""
    async with net(listening=1, security=security, timeouts=SHORT) as world, serving(service) as address:
        member = world.members[0]
        member.transport.send(address, JoinRefused("hello"))
        await until(lambda: member.failed)
        return member.causes[0], member.failed[0][1]


RUBBISH = {
    "another protocol": b"220 mail.example ESMTP\r\n",
    "zeros": bytes(64),
    "half a frame": b"\0\0\0\x05ab",
    "an alert of TLS that is none": b"\x15 is a control character",
}


@pytest.mark.parametrize("security", [WireSecurity(), SAFE], ids=["open", "secret"])
@pytest.mark.parametrize("name", ["hangs up", "hangs up after hello", "is silent", *RUBBISH])
async def test_who_says_nothing_or_rubbish_is_no_refusal(name: str, security: WireSecurity) -> None:
    services: dict[str, Service] = {
        "hangs up": hang_up,
        "hangs up after hello": hang_up_after_hello,
        "is silent": be_silent,
    }

    cause, reason = await found_at(services.get(name) or answering(RUBBISH[name]), security)
    assert cause in ("no-member", "no-answer"), reason
    assert cause == "no-member" or name in ("is silent", "half a frame")


@pytest.mark.parametrize("service", [hang_up, hang_up_after_hello, be_silent, answering(b"220 mail.example ESMTP\r\n")])
async def test_nor_is_it_where_tls_is_spoken(service: Service, tmp_path: Path) -> None:
    cause, reason = await found_at(service, WireSecurity("swordfish", Authority(tmp_path).files()))
    assert cause in ("no-member", "no-answer"), reason


FAKES = {
    "refuses": HandshakeRejection("is not wanted", joined=True),
    "says what members say of another secret": HandshakeRejection(WRONG_SECRET, joined=True),
    "welcomes": Welcome(HERE, "u"),
}


@pytest.mark.parametrize("name", FAKES)
async def test_where_a_secret_is_set_who_proves_nothing_is_no_refusal(name: str) -> None:
    fake = FAKES[name]
    cause, reason = await found_at(answering(frame_of(fake)), SAFE)
    assert cause == "no-member", reason


async def test_a_member_that_speaks_another_transport_security_refuses_as_ever() -> None:
    assert (await found_at(answering(OTHER_VERSION_ALERT), WireSecurity()))[0] == "rejected"


STEERING = "\x1b[2J\n\u202eon \u2066x\u2069 \u200f\x9b"


@pytest.mark.parametrize("fake", [HandshakeRejection(STEERING), Welcome(Address(STEERING), "u")])
async def test_what_strangers_answer_steers_no_terminal(fake: HandshakeRejection | Welcome) -> None:
    _, reason = await found_at(answering(frame_of(fake)), WireSecurity())
    assert reason.isprintable() and "on" in reason


@pytest.mark.parametrize(
    "hello", [HandshakeHello(2, STEERING, HERE, "u"), HandshakeHello(2, "dev", Address(STEERING), "u")]
)
async def test_nor_does_what_they_call_themselves(hello: HandshakeHello) -> None:
    async with net(listening=1) as world:
        member = world.members[0]
        reader, writer = await asyncio.open_connection(*member.address.split(":"))
        writer.write(frame_of(hello))
        assert await reader.read()
        writer.close()
        assert member.strangers and member.strangers[0].isprintable()


SECRET = ClusterSecret("swordfish", "dev")


def initiator() -> Initiator:
    return Initiator(HandshakeHello(2, "dev", THERE, "u-caller"), HERE, SECRET)


def payload_of(content: Challenge | HandshakeRejection | HandshakeHello | Proof | Welcome) -> memoryview:
    (payload,) = FrameParser().feed(frame_of(content))
    return payload


def test_a_refusal_is_proven_where_both_know_the_secret() -> None:
    caller = initiator()
    newer = HandshakeHello(7, "dev", HERE, "u-called")
    called = Responder(lambda: newer, ClusterKeyring(SECRET), lambda hello: None)
    challenge = called.take(payload_of(caller.hello))
    assert isinstance(challenge, Challenge)
    proof = caller.take(payload_of(challenge))
    assert proof is not None
    with pytest.raises(PeerRejected, match="speaks protocol version 2") as rejected:
        called.take(payload_of(proof))
    assert rejected.value.cause == "other-version"
    assert rejected.value.answer.proof
    with pytest.raises(HandshakeRefused, match="speaks protocol version 2") as refused:
        caller.take(payload_of(rejected.value.answer))
    assert refused.value.cause == "rejected"


def test_a_wrong_proof_of_a_refusal_is_worth_nothing() -> None:
    caller = initiator()
    assert caller.take(payload_of(Challenge(HERE, "u-called", bytes(NONCE_BYTES)))) is not None
    with pytest.raises(HandshakeRefused, match="as far as it proves") as refused:
        caller.take(payload_of(HandshakeRejection("is not wanted", proof=bytes(32))))
    assert refused.value.cause == "no-member"


@pytest.mark.parametrize("challenged", [False, True])
def test_who_has_another_secret_or_none_cannot_prove_its_refusal(challenged: bool) -> None:
    """It is a member all the same, and one that is set up otherwise is no reason to found a second cluster."""
    caller = initiator()
    answer = HandshakeRejection(WRONG_SECRET)
    if challenged:
        caller.take(payload_of(Challenge(HERE, "u-called", bytes(NONCE_BYTES))))
    else:
        answer = rejection_of("secret", NO_SECRET_AT_CALLED)
    with pytest.raises(HandshakeRefused) as refused:
        caller.take(payload_of(answer))
    assert refused.value.cause == "rejected"


def test_tls_has_proven_already_who_refuses() -> None:
    caller = Initiator(HandshakeHello(2, "dev", THERE, "u"), HERE, SECRET, certified=True)
    with pytest.raises(HandshakeRefused) as refused:
        caller.take(payload_of(HandshakeRejection("gives an address on 10.0.0.1, but its certificate is for 10.0.0.2")))
    assert refused.value.cause == "rejected"

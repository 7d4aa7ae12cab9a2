"""Whatever is thrown at a member's port: it lives on, is not slowed down for long, and keeps nothing of it."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.live.security.cluster_secret import ClusterKeyring, ClusterSecret
from quarterdeck.backend.live.security.tls import WireSecurity
from quarterdeck.backend.live.transport.frames import frame_of
from quarterdeck.backend.live.transport.handshake import PROTOCOL_VERSION, HandshakeHello
from quarterdeck.backend.live.transport.limits import TransportLimits
from quarterdeck.backend.live.transport.listener import PendingConnection
from quarterdeck.backend.live.transport.network import LiveNetwork
from tests.bench.bad_inputs import measure
from tests.live.transport.bad_inputs import REQUEST, frame, throw_many
from tests.live.transport.http_echo import echo
from tests.live.transport.transports import SHORT, Member, net
from tests.thoroughness import examples
from tests.waiting import until

SECRET = ClusterSecret("swordfish", "dev")
HERE, THERE = Address("127.0.0.1:5701"), Address("127.0.0.1:5702")


class Wire(asyncio.Transport):
    """A transport without a network."""

    def __init__(self) -> None:
        super().__init__({"peername": ("10.0.0.9", 1234)})
        self.protocol: Any = None
        self.closing = False
        self.written = b""

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    abort = close

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

    def say(self, data: bytes) -> None:
        """As a selector event loop hands data to whatever protocol there is at the time."""
        if isinstance(self.protocol, asyncio.BufferedProtocol):
            buffer = self.protocol.get_buffer(len(data))
            buffer[: len(data)] = data
            self.protocol.buffer_updated(len(data))
        else:
            self.protocol.data_received(data)


PIECES = st.one_of(
    st.binary(max_size=200),
    st.binary(max_size=80).map(frame),
    st.sampled_from([REQUEST, REQUEST[:9], b"\0", b"\0\0\x10\0", b"\0\0\x10\1", b"\xff" * 4, b"\x16\x03\x01"]),
    st.builds(
        lambda nonce, uuid: frame_of(HandshakeHello(PROTOCOL_VERSION, "dev", THERE, uuid, nonce)),
        st.sampled_from([b"", b"n" * 32, b"n"]),
        st.sampled_from(["", "u"]),
    ),
)


@settings(max_examples=examples(400))
@given(pieces=st.lists(PIECES, max_size=6), secret=st.sampled_from([None, SECRET]), hang_up=st.booleans())
def test_no_bytes_bring_it_down_or_let_anybody_in(
    pieces: list[bytes], secret: ClusterSecret | None, hang_up: bool
) -> None:
    async def story() -> None:
        member = Member(HERE, LiveNetwork({}, Random(1)), http=echo)
        member.transport.keyring = None if secret is None else ClusterKeyring(secret)
        wire = Wire()
        wire.protocol = PendingConnection(member.transport._listener, frames=True)
        wire.protocol.connection_made(wire)
        for piece in pieces:
            if not wire.closing:
                wire.say(piece)
        if hang_up and not wire.closing:
            wire.protocol.eof_received()
        wire.closing = True
        wire.protocol.connection_lost(None)
        if secret is not None:
            assert not member.got and not member.failed
        assert member.transport._listener.slots.taken == 0
        assert not member.transport._connections and not member.transport.peers

    asyncio.run(story())


async def test_members_talk_while_others_throw() -> None:
    limits = TransportLimits(pending_per_host=1_000, pending=1_000, failures=1e9)
    async with net(timeouts=SHORT, http=echo, security=WireSecurity("swordfish"), limits=limits) as world:
        a, b, _ = world.members
        thrown = asyncio.create_task(throw_many(a.address, 400, seed=5))
        said = 0
        while not thrown.done():
            b.say(a, str(said))
            said += 1
            await asyncio.sleep(0.02)  # the pace of what the members say meanwhile
        await thrown
        await until(lambda: len(a.words) == said)
        assert a.words == [str(number) for number in range(said)]
        await until(lambda: a.transport._listener.slots.taken == 0 and len(a.transport._connections) == 1)
        assert a.strangers and not a.failed and not b.failed


@pytest.mark.parametrize(("kind", "tolerant"), [("plain", True), ("secret", False), ("tls", True)])
def test_nothing_is_kept_of_them(kind: str, tolerant: bool) -> None:
    """On a small scale; ``tests/bench/bad_inputs.py`` does the same with as many as one likes."""
    told = measure(250, kind, tolerant=tolerant, seed=1, warm_up=250)
    assert told["members"] == 2
    assert told["troubles"] == told["ended"] == told["strangers_inside"] == told["http_inside"] == 0
    assert told["connections"] == 1
    assert isinstance(told["memory_mb_grown"], float) and told["memory_mb_grown"] < 2.5

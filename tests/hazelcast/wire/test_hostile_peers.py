"""Whoever is at the other end, a watch says so in clear words, and it costs no more than that connection."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from quarterdeck.backend.core.address import Address, make_address
from quarterdeck.backend.hazelcast.wire.codec.frames import BEGIN_FRAGMENT, HEAD, UNFRAGMENTED, encode_frames
from quarterdeck.backend.hazelcast.wire.connection import NoAnswer
from quarterdeck.backend.hazelcast.wire.messages import (
    Authenticated,
    MemberConfig,
    MembersView,
    NotFollowed,
    RequestDone,
    ViewMember,
)
from quarterdeck.backend.hazelcast.wire.requests import GetMemberConfig
from quarterdeck.backend.hazelcast.wire.route import WatchSettings
from tests.hazelcast.wire.fake_member import FakeMember, uuid_of
from tests.hazelcast.wire.member_codec import answer_frames
from tests.hazelcast.wire.watching import QUICK, watching

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

GREETING = encode_frames(
    answer_frames(Authenticated("authenticated", Address("127.0.0.1:1"), uuid_of(1), "5.3.8"), 0x000100, 1)
)


@asynccontextmanager
async def listening(peer: Peer, host: str = "127.0.0.1") -> AsyncIterator[Address]:
    """Somebody who is no member."""
    writers: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        with suppress(ConnectionError):
            await peer(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, host, 0)
    yield make_address("127.0.0.1", server.sockets[0].getsockname()[1])
    server.close()
    for writer in writers:
        writer.transport.abort()
    await asyncio.sleep(0)


def saying(data: bytes, *, stay: bool = True) -> Peer:
    """Reads the greeting of a client, says this, and stays or goes."""

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(data)
        while stay and await reader.read(65536):
            pass

    return peer


STRANGERS = {
    "a web server": (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "answers in HTTP"),
    "a mail server": (b"220 mail.example.com ESMTP\r\n", 'it answers "220 mail.example.com ESMTP"'),
    "a port with TLS": (b"\x15\x03\x03\x00\x02\x02\x28", "give --tls"),
    "a frame of two gigabytes": (HEAD.pack(2**31 - 1, UNFRAGMENTED), "2147483647 bytes long"),
    "a frame without a length": (HEAD.pack(0, UNFRAGMENTED), "less than its own head"),
    "frames for ever": (
        (HEAD.pack(HEAD.size, BEGIN_FRAGMENT)) * 20_000,
        "more than 65536 is not taken|more than 1000 frames",
    ),
    "the wrong answer": (encode_frames(answer_frames(RequestDone(), 0x000100, 1)), "a frame of"),
    "nobody's answer": (
        encode_frames(answer_frames(Authenticated("authenticated", None, None, ""), 0x000100, 1)),
        "does not say which member it is",
    ),
    "garbage after a greeting": (GREETING + bytes(range(100)), "does not speak the client protocol"),
}


@pytest.mark.parametrize("who", STRANGERS)
async def test_whoever_is_no_member_is_called_so(who: str) -> None:
    data, words = STRANGERS[who]
    async with listening(saying(data)) as address, watching(WatchSettings((address,), pace=QUICK)) as watched:
        await watched.until(lambda: any(follower.state == "refused" for follower in watched.watch.followed.values()))
        (follower,) = watched.watch.followed.values()
        assert any(part in follower.reason for part in words.split("|"))


async def test_half_a_frame_for_ever_is_a_silence() -> None:
    half = GREETING[:20]
    async with listening(saying(half)) as address, watching(WatchSettings((address,), pace=QUICK)) as watched:
        await watched.until(lambda: watched.states(address) == ["silent"])
        assert watched.reason(address) == "nothing has come but the beginning of a message"


async def test_who_hangs_up_again_and_again_before_it_answers_may_want_tls() -> None:
    async with (
        listening(saying(b"", stay=False)) as address,
        watching(WatchSettings((address,), pace=QUICK)) as watched,
    ):
        await watched.until(lambda: watched.states(address) == ["silent", "refused"])
        assert "does it want TLS?" in watched.reason(address)


async def test_half_a_message_from_a_member_is_a_silence_and_a_new_connection() -> None:
    member = FakeMember()
    await member.start()
    async with watching(WatchSettings((member.address,), pace=QUICK)) as watched:
        await watched.until(lambda: watched.states(member.address) == ["connected"])
        member.silent = True
        member.say(HEAD.pack(1_000, UNFRAGMENTED))
        await watched.until(lambda: watched.states(member.address) == ["connected", "silent"])
        assert "the beginning of a message" in watched.reason(member.address)
        member.silent = False
        await watched.until(lambda: watched.states(member.address) == ["connected", "silent", "connected"])
        assert member.connections > 1
    await member.stop()


async def test_answers_that_nobody_waits_for_and_configurations_that_are_none_are_no_matter() -> None:
    member = FakeMember()
    member.answers[GetMemberConfig] = MemberConfig('<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><hazelcast>&a;</hazelcast>')
    await member.start()
    async with watching(WatchSettings((member.address,), pace=QUICK)) as watched:
        await watched.until(lambda: len(watched.messages(member.address)) > 10)
        member.say(encode_frames(answer_frames(RequestDone(), 0x777700, 3)))
        for text in ("<hazelcast", "", "<other/>"):
            member.answers[GetMemberConfig] = config = MemberConfig(text)
            await watched.until(lambda config=config: config in watched.messages(member.address))
        assert watched.states(member.address) == ["connected"]
    await member.stop()


async def test_a_list_of_a_thousand_strangers_is_followed_up_to_the_limit() -> None:
    member = FakeMember()
    await member.start()
    strangers = (
        ViewMember(uuid_of(number), Address(f"127.0.0.1:{number}"), False, "5.3.8") for number in range(1, 1001)
    )
    member.members = MembersView(1, (member.on_list(), *strangers))
    settings = WatchSettings((member.address,), most_followed=10, pace=QUICK)
    async with watching(settings) as watched:
        await watched.until(lambda: any(isinstance(observation, NotFollowed) for observation in watched.heard))
        member.tell(member.members)
        await watched.until(lambda: len(watched.messages(member.address)) > 20)
        assert len(watched.watch.followed) == 10
        left_out = [observation.address for observation in watched.heard if isinstance(observation, NotFollowed)]
        assert len(left_out) == len(set(left_out)) == 991
    await member.stop()


async def test_an_operator_is_not_kept_waiting_by_a_member_that_is_asked_too_much() -> None:
    member = FakeMember()
    await member.start()
    async with watching(WatchSettings((member.address,), pace=QUICK)) as watched:
        await watched.until(lambda: watched.states(member.address) == ["connected"])
        member.silent = True
        asking = [asyncio.create_task(watched.watch.ask(member.address, GetMemberConfig())) for _ in range(300)]
        answers = await asyncio.gather(*asking, return_exceptions=True)  # ends when the connection is given up
        assert all(isinstance(answer, NoAnswer) for answer in answers)
    await member.stop()


async def test_a_hundred_hostile_members_do_not_grow() -> None:
    """Each begins a message of megabytes after a greeting, and dribbles."""

    async def dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        host, port = writer.get_extra_info("sockname")
        who = Authenticated("authenticated", make_address(host, port), uuid_of(port), "5.3.8")
        writer.write(encode_frames(answer_frames(who, 0x000100, 1)))
        await reader.read(65536)
        writer.write(HEAD.pack(3_000_000, UNFRAGMENTED))
        while await reader.read(65536):
            writer.write(bytes(1_000))

    async with listening(dribble, "0.0.0.0") as anywhere:
        port = anywhere.rpartition(":")[2]
        addresses = tuple(Address(f"127.0.{number}.1:{port}") for number in range(100))
        tracemalloc.start()
        async with watching(WatchSettings(addresses, pace=QUICK)) as watched:
            await watched.until(lambda: all("silent" in watched.states(address) for address in addresses))
            assert tracemalloc.get_traced_memory()[0] < 30_000_000
        tracemalloc.stop()

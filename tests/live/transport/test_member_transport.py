"""Transports on real sockets, without members: connections, crossed dials, strangers, link conditions, pauses."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import (
    CutLink,
    DelayLink,
    DropMessages,
    DuplicateOnLink,
    Heal,
    LoseOnLink,
)
from quarterdeck.backend.core.membership.messages import JoinRefused
from quarterdeck.backend.live.transport.frames import MAX_HANDSHAKE_BYTES, FrameParser, content_of, frame_of
from quarterdeck.backend.live.transport.handshake import (
    ANSWER,
    PROTOCOL_VERSION,
    HandshakeHello,
    HandshakeRejection,
)
from quarterdeck.backend.live.transport.limits import Timeouts
from tests.live.transport.transports import PATIENT, SHORT, Member, net
from tests.waiting import until


async def test_messages_arrive_in_order_over_one_connection() -> None:
    async with net() as world:
        a, b, _ = world.members
        a.say(b, *"123")
        await until(lambda: b.words == list("123"))
        b.say(a, *"45")
        await until(lambda: a.words == list("45"))
        assert b.got[0][0] == a.address
        assert len(a.transport._connections) == len(b.transport._connections) == 1


@pytest.mark.parametrize("_", range(5))
async def test_crossed_dials_leave_the_one_of_the_lower_address(_: int) -> None:
    async with net() as world:
        a, b, _ = world.members
        a.say(b, *"12")
        b.say(a, *"34")
        await until(lambda: b.words == list("12") and a.words == list("34"))
        await until(lambda: len(a.transport._connections) == len(b.transport._connections) == 1)
        (of_a,), (of_b,) = a.transport._connections, b.transport._connections
        assert of_a.dialled == b.address and of_b.dialled is None
        assert not (a.failed or b.failed or a.strangers or b.strangers)


async def test_nobody_there_is_reported() -> None:
    async with net(listening=1) as world:
        a, b, _ = world.members
        a.say(b, "1")
        await until(lambda: a.failed)
        assert a.failed == [(b.address, "connection refused")] and a.causes == ["no-answer"]


async def test_another_cluster_is_refused_on_both_sides() -> None:
    async with net(listening=1) as world:
        a, b, _ = world.members
        other = Member(b.address, world.network, cluster="prod")
        other.say(a, "1")
        await until(lambda: other.failed)
        assert a.strangers == ["belongs to the cluster 'prod', not 'dev'"]
        assert other.failed == [(a.address, "it refuses this member, which belongs to the cluster 'prod', not 'dev'")]
        assert other.causes == ["other-cluster"]
        assert not a.got
        other.transport.abort()


async def test_a_host_that_does_not_resolve_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    async with net(listening=1) as world:
        a, _, _ = world.members
        a.transport.send(Address("db9.invalid:5701"), JoinRefused("1"))
        await until(lambda: a.failed)
        ((_, reason),) = a.failed
        assert reason.startswith("the name of the host does not resolve: ") and a.causes == ["unresolvable"]


async def test_its_own_address_under_another_name_is_told_as_itself() -> None:
    async with net(listening=1) as world:
        a, _, _ = world.members
        a.transport.send(Address(a.address.replace("127.0.0.1", "localhost")), JoinRefused("1"))
        await until(lambda: a.failed)
        assert a.causes == ["itself"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "announced a frame of 1195725856 bytes; the limit is 4096"),
        ((MAX_HANDSHAKE_BYTES + 1).to_bytes(4, "big"), "announced a frame of 4097 bytes"),
        (b"\x00\x00\x00\x02hi", "sent a frame that cannot be read"),
        (b"", "said no hello within 0.3 s"),
        (b"\x00\x00", "said no hello within 0.3 s"),
        (frame_of(HandshakeHello(7, "dev", Address("127.0.0.1:1"), "u")), "speaks protocol version 7, not 2 to 4"),
    ],
)
async def test_a_stranger_is_one_event_and_disturbs_nobody(said: bytes, reason: str) -> None:
    async with net(timeouts=SHORT) as world:
        a, b, _ = world.members
        b.say(a, "before")
        host, port = a.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(said)
        (payload,) = FrameParser().feed(await reader.read())
        answer = content_of(ANSWER, payload)
        assert isinstance(answer, HandshakeRejection) and answer.reason.startswith(reason)
        writer.close()
        b.say(a, "after")
        await until(lambda: a.words == ["before", "after"])
        assert len(a.strangers) == 1 and reason in a.strangers[0]


async def test_a_knock_without_a_word_is_nothing_and_half_a_frame_is_a_stranger() -> None:
    async with net() as world:
        a = world.members[0]
        host, port = a.address.split(":")
        for said in (b"", b"\x00\x00\x00"):
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(said)
            writer.close()
        await until(lambda: a.strangers)
        await until(lambda: not a.transport._connections)
        assert a.strangers == ["hung up in the middle of a frame"]


async def test_a_member_that_turns_to_garbage_is_dropped_and_may_come_back() -> None:
    async with net() as world:
        a, b, _ = world.members
        b.say(a, "1")
        await until(lambda: a.words)
        next(iter(b.transport._connections)).send(b"\xff\xff\xff\xff")
        await until(lambda: a.strangers)
        await until(lambda: not b.transport.connected)
        b.say(a, "2")
        await until(lambda: a.words == ["1", "2"])
        assert a.strangers == ["announced a frame of 4294967295 bytes; the limit is 33554432"]


async def test_a_new_life_replaces_the_connection_of_the_old() -> None:
    async with net() as world:
        a, b, _ = world.members
        a.say(b, "1")
        await until(lambda: b.words)
        host, port = a.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(frame_of(HandshakeHello(PROTOCOL_VERSION, "dev", b.address, "a new life")))
        await until(lambda: [c.peer_uuid for c in a.transport._connections if not c.closed] == ["a new life"])
        a.say(b, "2")
        assert JoinRefused("2").reason.encode() in await reader.read(200)
        writer.close()


async def test_a_blackhole_swallows_one_way_and_dials_time_out() -> None:
    async with net(timeouts=SHORT) as world:
        a, b, _ = world.members
        a.say(b, "1")
        await until(lambda: b.words)
        world.change(CutLink(("a",), ("b",), one_way=True))
        a.say(b, "lost")
        b.say(a, "back")
        await until(lambda: a.words == ["back"])
        assert not a.failed
        world.change(CutLink(("a",), ("c",)))
        world.members[0].say(world.members[2], "x")
        await until(lambda: a.failed)
        assert a.failed == [(world.members[2].address, "timed out after 0.3 s")]
        world.change(Heal())
        a.say(b, "2")
        await until(lambda: b.words == ["1", "2"])


async def test_a_reset_breaks_the_connection_and_fails_dials() -> None:
    async with net() as world:
        a, b, _ = world.members
        a.say(b, "1")
        await until(lambda: b.words)
        world.change(CutLink(("a",), ("b",), mode="reset"))
        await until(lambda: not a.transport.connected and not b.transport.connected)
        await until(lambda: a.failed and b.failed)
        assert a.failed == [(b.address, "connection reset by the network")]
        assert b.failed == [(a.address, "connection reset by the network")]
        a.say(b, "2")
        await until(lambda: len(a.failed) == 2)
        assert a.failed[1] == a.failed[0]
        world.change(Heal())
        a.say(b, "3")
        await until(lambda: b.words == ["1", "3"])


async def test_a_delay_keeps_the_order_and_ends_with_the_heal() -> None:
    async with net() as world:
        a, b, _ = world.members
        world.change(DelayLink(("a",), ("b",), 60_000))
        began = time.monotonic()
        a.say(b, "1", "2")
        world.change(DelayLink(("a",), ("b",), 1_000))
        a.say(b, "3")
        await until(lambda: b.words == list("123"))
        assert time.monotonic() - began >= 0.06
        world.change(DelayLink(("a",), ("b",), 60_000_000))
        a.say(b, "4")
        world.change(Heal())
        a.say(b, "5")
        await until(lambda: b.words == list("12345"))


async def test_loss_drops_about_its_share_and_certain_loss_drops_all() -> None:
    async with net() as world:
        a, b, _ = world.members
        a.say(b, "first")
        await until(lambda: b.words)
        world.change(LoseOnLink(("a",), ("b",), 0.5))
        a.say(b, *(str(number) for number in range(200)))
        world.change(LoseOnLink(("a",), ("b",), 1.0))
        a.say(b, "never")
        world.change(Heal())
        a.say(b, "last")
        await until(lambda: b.words[-1] == "last")
        assert 60 < len(b.words) < 140 and "never" not in b.words


async def test_a_paused_member_reads_nothing_until_it_goes_on() -> None:
    async with net() as world:
        a, b, c = world.members
        hasty = Member(c.address, world.network, timeouts=SHORT)
        a.say(b, "1")
        await until(lambda: b.words)
        b.transport.pause()
        b.transport.timeouts = SHORT
        a.say(b, "2", "3")
        hasty.say(b, "from c")
        await until(lambda: hasty.failed)
        assert hasty.failed == [(b.address, "timed out after 0.3 s")]
        assert b.words == ["1"] and a.address in b.transport.connected and not b.strangers
        b.transport.resume()
        await until(lambda: b.words == ["1", "2", "3"])
        assert not b.strangers
        b.transport.timeouts = PATIENT
        c.say(b, "again")
        await until(lambda: b.words[-1] == "again")
        assert not b.strangers
        hasty.transport.abort()


async def test_what_waits_for_a_dial_is_bounded() -> None:
    async with net() as world:
        a, b, _ = world.members
        a.say(b, *(str(number) for number in range(1000)))
        await until(lambda: b.words and b.words[-1] == "999")
        assert b.words == [str(number) for number in range(1000 - 256, 1000)]


async def test_what_is_doubled_arrives_twice_in_order() -> None:
    async with net() as world:
        a, b, _ = world.members
        world.change(DuplicateOnLink(("a",), ("b",), 1.0, one_way=True))
        a.say(b, "1", "2")
        await until(lambda: b.words == list("1122"))
        b.say(a, "3")
        world.change(DuplicateOnLink(("a",), ("b",), 0.5, one_way=True))
        a.say(b, *(["x"] * 100))
        world.change(Heal())
        a.say(b, "last")
        await until(lambda: b.words[-1] == "last" and a.words == ["3"])
        assert 120 < b.words.count("x") < 180


async def test_dropped_kinds_alone_are_dropped() -> None:
    async with net() as world:
        a, b, _ = world.members
        world.change(DropMessages(("a",), ("b",), ("heartbeat",)))
        a.say(b, "1")
        world.change(DropMessages(("a",), ("b",), ("heartbeat", "join-refused")))
        a.say(b, "2")
        world.change(DropMessages(("a",), ("b",), ()))
        a.say(b, "3")
        await until(lambda: b.words == ["1", "3"])
        assert world.network.plain


async def test_a_frame_that_is_left_unfinished_ends_the_connection_and_slow_ones_that_go_on_do_not() -> None:
    async with net(timeouts=SHORT) as world:
        a, b, _ = world.members
        b.say(a, "hello")
        await until(lambda: a.words)
        a.transport.timeouts = Timeouts(0.3, 0.3, frame_seconds=1)
        (connection,) = b.transport._connections
        stream = connection._transport
        assert stream is not None
        frame = frame_of(JoinRefused("slowly"))
        for number in range(20):  # there is always half a frame, but never the same one for long
            stream.write(frame[-4:] + frame[:-4] if number else frame[:-4])
            await asyncio.sleep(0.06)  # time is the subject: all of them take longer than one may
        assert len(a.words) == 20 and not a.failed
        await until(lambda: a.failed)
        assert a.failed == [(b.address, "the other side did not finish a frame within 1 s")]
        assert a.strangers == ["did not finish a frame within 1 s"]


async def test_a_paused_member_does_not_hold_half_frames_against_others() -> None:
    async with net() as world:
        a, b, _ = world.members
        b.say(a, "hello")
        await until(lambda: a.words)
        a.transport.timeouts = Timeouts(frame_seconds=0.5)
        (connection,) = b.transport._connections
        assert connection._transport is not None
        frame = frame_of(JoinRefused("in two pieces"))
        connection._transport.write(frame[:9])
        (listening,) = a.transport._connections
        await until(lambda: listening._timer is not None)  # half a frame has arrived
        a.transport.pause()
        await asyncio.sleep(0.6)  # time is the subject: the pause is longer than a frame may take
        connection._transport.write(frame[9:])
        a.transport.resume()
        await until(lambda: a.words[1:] == ["in two pieces"])
        assert not a.failed

"""How connections end: what is reported, to whom, and how often."""

from __future__ import annotations

import asyncio
import gc

import pytest

from quarterdeck.backend.core.commands import CutLink
from quarterdeck.backend.live.transport.limits import Timeouts
from tests.live.transport.transports import Member, net
from tests.waiting import until


@pytest.mark.parametrize("who_dials", ["a", "b"])
async def test_a_death_is_reported_once_and_a_new_connection_works(who_dials: str) -> None:
    async with net() as world:
        a, b, _ = world.members
        dialler, other = (a, b) if who_dials == "a" else (b, a)
        dialler.say(other, "1")
        await until(lambda: other.words)
        b.transport.abort()
        await until(lambda: a.failed)
        await asyncio.sleep(0.05)  # time is the subject: nothing follows
        assert a.failed == [(b.address, "connection closed by the other side")] and not b.failed
        a.say(b, "nobody hears")
        await until(lambda: len(a.failed) == 2)
        assert a.failed[1] == (b.address, "connection refused")
        again = Member(b.address, world.network)
        await again.transport.listen()
        a.say(again, "2")
        await until(lambda: again.words == ["2"])
        assert len(a.failed) == 2 and not a.strangers
        again.transport.abort()


async def test_a_death_in_the_middle_of_a_frame_is_a_death() -> None:
    async with net() as world:
        a, b, _ = world.members
        b.say(a, "1")
        await until(lambda: a.words)
        (connection,) = b.transport._connections
        connection.send(b"\x00\x00\x00\x09half")
        b.transport.abort()
        await until(lambda: a.failed)
        assert [address for address, _ in a.failed] == [b.address] and not a.strangers


async def test_a_goodbye_is_reported_to_nobody() -> None:
    async with net() as world:
        a, b, _ = world.members
        a.say(b, "1")
        await until(lambda: b.words)
        b.say(a, "last words")
        b.transport.close()
        await b.transport.until_closed(5)
        await until(lambda: not a.transport.connected)
        assert a.words == ["last words"]
        assert not a.failed and not a.strangers and not b.failed


async def test_a_blackhole_hides_a_death() -> None:
    async with net() as world:
        a, b, _ = world.members
        a.say(b, "1")
        await until(lambda: b.words)
        world.change(CutLink(("b",), ("a",), one_way=True))
        b.transport.abort()
        await until(lambda: not a.transport.connected)
        await asyncio.sleep(0.05)  # time is the subject: nothing is reported
        assert not a.failed


@pytest.mark.parametrize("who_dials", ["a", "b"])
async def test_a_member_that_reconnects_is_known_by_its_new_life(who_dials: str) -> None:
    async with net() as world:
        a, b, _ = world.members
        dialler, other = (a, b) if who_dials == "a" else (b, a)
        dialler.say(other, "hello")
        await until(lambda: other.words)
        a.say(b, "1", "2")
        a.uuid = "the next life"
        a.transport.disconnect()
        a.say(b, "3")
        await until(lambda: b.words[-3:] == list("123"))
        await until(lambda: len(a.transport._connections) == len(b.transport._connections) == 1)
        (of_b,) = b.transport._connections
        assert of_b.peer_uuid == "the next life" and of_b.dialled is None
        assert not (a.failed or b.failed or a.strangers or b.strangers)


async def test_a_reconnect_during_a_dial_loses_nothing() -> None:
    async with net() as world:
        a, b, _ = world.members
        a.say(b, "1")
        await asyncio.sleep(0)
        a.uuid = "the next life"
        a.transport.disconnect()
        a.say(b, "2")
        await until(lambda: b.words == ["1", "2"])
        await until(lambda: len(b.transport._connections) == 1)
        assert [connection.peer_uuid for connection in b.transport._connections] == ["the next life"]
        assert not (a.failed or b.failed or a.strangers or b.strangers)


async def test_the_connections_with_some_incarnations_are_closed_and_no_others() -> None:
    async with net() as world:
        a, b, c = world.members
        a.say(b, "1")
        c.say(a, "1")
        await until(lambda: b.words and a.words)
        a.say(b, "last words")
        a.transport.disconnect(((b.address, b.uuid), (c.address, "an earlier incarnation")))
        await until(lambda: b.words == ["1", "last words"] and not b.transport._connections)
        assert [connection.peer_uuid for connection in a.transport._connections] == [c.uuid]
        a.say(b, "again")
        await until(lambda: b.words[-1] == "again")
        assert not (a.failed or b.failed or c.failed)


@pytest.mark.parametrize("steps", range(6))
async def test_a_dial_that_is_given_up_is_no_error_of_the_event_loop(steps: int) -> None:
    errors: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    async with net() as world:
        a, b, _ = world.members
        a.say(b, "1")
        for _ in range(steps):  # the dial gets so far
            await asyncio.sleep(0)
        a.transport.disconnect()
        a.transport.abort()
        await until(lambda: not a.transport._connections)
    gc.collect()
    assert not errors


async def test_a_receiver_that_does_not_read_keeps_no_connection_open() -> None:
    async with net(timeouts=Timeouts(close_seconds=0.2)) as world:
        a, b, _ = world.members
        a.say(b, "1")
        await until(lambda: b.words)
        b.transport.pause()
        for _ in range(100):
            a.say(b, "x" * 200_000)
        (connection,) = a.transport._connections
        a.transport.disconnect()
        assert connection.closed and a.transport._connections  # what was sent is owed to a receiver that reads
        await until(lambda: not a.transport._connections)

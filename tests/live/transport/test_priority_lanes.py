"""What is long does not keep waiting what is urgent: the two lanes of a connection."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import suppress

import pytest

from quarterdeck.backend.core.membership.messages import JoinRefused
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.partitions.messages import MigrationReport
from quarterdeck.backend.live.transport import connection
from quarterdeck.backend.live.transport.connection import BULK_AHEAD_BYTES
from quarterdeck.backend.live.transport.frames import MAX_FRAME_BYTES, FrameTooLarge
from tests.live.transport.transports import Member, Net, net
from tests.waiting import until

CHUNK_BYTES = 128 * 1024


class Mixed:
    """Both ends of a link on which bulk and urgent words are sent; what came is noted in order."""

    def __init__(self, world: Net) -> None:
        self.sender, self.receiver, _ = world.members
        self.came: list[str] = []
        self.receiver.received = self._note  # type: ignore[method-assign]

    def _note(self, _: object, message: Message, because: object) -> None:
        self.came.append(message.reason if isinstance(message, JoinRefused) else getattr(message, "migration_id", ""))

    def bulk(self, *names: str, size: int = CHUNK_BYTES) -> None:
        for name in names:
            self.sender.transport.send(self.receiver.address, MigrationReport(name, "x" * size))

    def urgent(self, word: str) -> None:
        self.sender.say(self.receiver, word)

    async def connect(self) -> None:
        self.urgent("hello")
        await until(lambda: self.came == ["hello"])
        self.came.clear()


def waiting_bytes(member: Member) -> int:
    (one,) = member.transport._connections
    return one._bulk_bytes


async def test_what_is_urgent_overtakes_the_bulk_that_waits_and_the_bulk_stays_in_order() -> None:
    async with net() as world:
        mixed = Mixed(world)
        await mixed.connect()
        mixed.receiver.transport.pause()
        chunks = [str(number) for number in range(50)]
        mixed.bulk(*chunks)
        await asyncio.sleep(0.05)  # the system takes what it takes
        mixed.urgent("heartbeat")
        mixed.receiver.transport.resume()
        await until(lambda: len(mixed.came) == 51)
        place = mixed.came.index("heartbeat")
        assert [name for name in mixed.came if name != "heartbeat"] == chunks
        assert place < 30, "it waited behind most of the bulk"
        assert waiting_bytes(mixed.sender) == 0


async def test_heartbeats_keep_going_while_bulk_flows() -> None:
    """The same with a receiver that reads: no heartbeat waits for more than what the system holds."""

    async with net() as world:
        mixed = Mixed(world)
        await mixed.connect()
        for beat in range(20):
            mixed.bulk(*(["chunk"] * 10))
            mixed.urgent(f"beat {beat}")
            await asyncio.sleep(0)
        await until(lambda: len(mixed.came) == 220)
        last = mixed.came.index("beat 19")
        assert mixed.came[last:].count("chunk") > 20


async def test_a_receiver_that_never_reads_costs_a_bounded_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BULK_BACKLOG_BYTES", 4 * CHUNK_BYTES)

    async with net() as world:
        mixed = Mixed(world)
        await mixed.connect()
        mixed.receiver.transport.pause()
        mixed.bulk(*map(str, range(200)))
        await asyncio.sleep(0.05)  # the system takes what it takes
        assert waiting_bytes(mixed.sender) <= 4 * CHUNK_BYTES
        (one,) = mixed.sender.transport._connections
        assert one._transport is not None
        assert one._transport.get_write_buffer_size() <= BULK_AHEAD_BYTES + 2 * CHUNK_BYTES
        mixed.receiver.transport.resume()
        await until(lambda: waiting_bytes(mixed.sender) == 0 and mixed.came)
        mixed.bulk("after")
        await until(lambda: mixed.came[-1] == "after")


async def test_a_goodbye_comes_after_the_bulk_that_waits() -> None:
    async with net() as world:
        mixed = Mixed(world)
        await mixed.connect()
        mixed.receiver.transport.pause()
        mixed.bulk(*map(str, range(50)))
        mixed.sender.transport.close()
        mixed.receiver.transport.resume()
        await until(lambda: not mixed.receiver.transport._connections)
        assert mixed.came == [str(number) for number in range(50)]
        assert not mixed.receiver.failed


async def test_the_longest_frame_gets_across_and_a_longer_one_is_not_sent() -> None:
    async with net() as world:
        mixed = Mixed(world)
        await mixed.connect()
        mixed.bulk("great", size=MAX_FRAME_BYTES - 64)
        await until(lambda: mixed.came == ["great"])
        with pytest.raises(FrameTooLarge):
            mixed.bulk("too great", size=MAX_FRAME_BYTES)
        mixed.urgent("still there")
        await until(lambda: mixed.came == ["great", "still there"])


async def test_a_heartbeat_behind_a_great_frame_is_not_dropped() -> None:
    async with net() as world:
        mixed = Mixed(world)
        await mixed.connect()
        mixed.receiver.transport.pause()
        mixed.bulk("great", size=8 * 1024 * 1024)
        mixed.urgent("heartbeat")
        mixed.receiver.transport.resume()
        await until(lambda: mixed.came == ["great", "heartbeat"])


@pytest.mark.skipif(sys.platform != "linux", reason="these options are Linux's")
async def test_both_ends_have_tcp_send_again_soon() -> None:
    """On a link that fails again and again, its own waits of twice the time each are longer than members wait."""

    async with net() as world:
        await Mixed(world).connect()
        for member in world.members[:2]:
            (one,) = member.transport._connections
            assert one._transport is not None
            tcp = one._transport.get_extra_info("socket")
            assert tcp.getsockopt(socket.IPPROTO_TCP, connection.TCP_THIN_LINEAR_TIMEOUTS) == 1
            with suppress(OSError):  # a kernel before 6.15
                longest_ms = tcp.getsockopt(socket.IPPROTO_TCP, connection.TCP_RTO_MAX_MS)
                assert longest_ms == connection.RESENT_WITHIN_MS

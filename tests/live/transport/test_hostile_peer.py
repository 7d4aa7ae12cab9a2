"""A peer that speaks the protocol badly over a real connection: the member refuses what it says, and goes on."""

from __future__ import annotations

import asyncio
from random import Random

from quarterdeck.backend.core.events import Record, StrangerRefused
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine
from quarterdeck.backend.core.membership.events import MessageRefused
from quarterdeck.backend.core.membership.messages import LinkProbe, LinkProbeReply
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.live.member.member_host import Host, MemberHost, RunClock
from quarterdeck.backend.live.transport.frames import MAX_FRAME_BYTES
from tests.live.transport.transports import net
from tests.simulation.hostile_peer import MessageMaker
from tests.waiting import until

MESSAGES = 3_000


class Observer:
    """Notes what a host reports."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.crashed: list[bool] = []

    def recorded(self, record: Record) -> None:
        self.records.append(record)

    def stranger_refused(self, refused: StrangerRefused) -> None:
        """A frame that cannot be read ends its connection."""

    def ended(self, host: Host, crashed: bool) -> None:
        self.crashed.append(crashed)


async def attack() -> tuple[MemberHost, Observer, int]:
    observer, sent = Observer(), 0
    async with net(listening=0) as there:
        address, hostile = there.addresses[0], there.members[1]
        answers: list[Message] = []
        hostile.received = lambda sender, message, because: answers.append(message)  # type: ignore[method-assign]
        configuration = MemberConfiguration("r", "a", address, (), Settings.of(preset="training"))
        machine = MemberMachine(configuration, Random(1))
        host = MemberHost("a", "dev", machine, RunClock.started_now(), there.network, observer)
        await host.start()
        await hostile.transport.listen()
        maker = MessageMaker(Random(2))
        while sent < MESSAGES:
            if sent % 100 == 0:
                maker.learn(machine.inspect())
            hostile.transport.send(address, maker.message())
            sent += 1
            if sent % 20 == 0:
                await asyncio.sleep(0)
        hostile.transport.send(address, LinkProbe(hostile.uuid, machine.uuid, "the end"))
        await until(lambda: any(isinstance(one, LinkProbeReply) and one.token == "the end" for one in answers))
        assert not host.ended
        await host.kill()
    return host, observer, sent


def test_a_peer_that_speaks_badly_ends_no_member() -> None:
    _, observer, _ = asyncio.run(attack())
    assert not observer.crashed
    assert any(isinstance(record.event, MessageRefused) for record in observer.records)


def test_a_message_that_is_too_long_to_be_sent_ends_no_member() -> None:
    """What a peer sends just below the limit is longer in the answer that repeats it."""

    async def answer() -> None:
        observer = Observer()
        async with net(listening=1) as there:
            configuration = MemberConfiguration("r", "b", there.addresses[1], (), Settings.of(preset="training"))
            machine = MemberMachine(configuration, Random(1))
            host = MemberHost("b", "dev", machine, RunClock.started_now(), there.network, observer)
            await host.start()
            host.received(there.addresses[0], LinkProbe("u", machine.uuid, "x" * MAX_FRAME_BYTES), None)
            assert not host.ended and not observer.crashed
            await host.kill()

    asyncio.run(answer())

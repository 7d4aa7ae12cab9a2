"""Transports without members: each writes down what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import TypedDict, Unpack

from quarterdeck.backend.core.address import Address, make_address
from quarterdeck.backend.core.causes import RecordId, UnreachableCause
from quarterdeck.backend.core.commands import LinkCommand
from quarterdeck.backend.core.events import StrangerRefused
from quarterdeck.backend.core.membership.messages import JoinRefused
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.live.cluster.addressing import HeldPorts
from quarterdeck.backend.live.security.tls import WireSecurity
from quarterdeck.backend.live.transport.limits import Timeouts, TransportLimits
from quarterdeck.backend.live.transport.listener import HttpHandover
from quarterdeck.backend.live.transport.member_transport import MemberTransport
from quarterdeck.backend.live.transport.network import LiveNetwork
from tests.ports import take_ports

BASE_PORT = take_ports(20)
PATIENT = Timeouts(connect_seconds=5.0, hello_seconds=5.0)
"""What is dropped when time is up would be missed on a busy machine."""

SHORT = Timeouts(connect_seconds=0.3, hello_seconds=0.3)
"""Where a test waits for the time to be up."""


class Wire(TypedDict, total=False):
    http: HttpHandover | None
    security: WireSecurity
    limits: TransportLimits
    timeouts: Timeouts


class Member:
    """A transport that writes down what it is told."""

    def __init__(self, address: Address, network: LiveNetwork, cluster: str = "dev", **wire: Unpack[Wire]) -> None:
        self.uuid = f"life of {address}"
        self.got: list[tuple[Address, str]] = []
        self.because: list[RecordId | None] = []
        self.failed: list[tuple[Address, str]] = []
        self.causes: list[UnreachableCause] = []
        self.strangers: list[str] = []
        wire.setdefault("timeouts", PATIENT)
        self.transport = MemberTransport(address, cluster, lambda: self.uuid, network, self, **wire)
        self.address = address

    def received(self, sender: Address, message: Message, because: RecordId | None) -> None:
        assert isinstance(message, JoinRefused)
        self.got.append((sender, message.reason))
        self.because.append(because)

    def unreachable(self, address: Address, reason: str, cause: UnreachableCause) -> None:
        self.failed.append((address, reason))
        self.causes.append(cause)

    def stranger_refused(self, refused: StrangerRefused) -> None:
        self.strangers.append(refused.reason)

    def say(self, other: Member, *words: str, because: RecordId | None = None) -> None:
        for word in words:
            self.transport.send(other.address, JoinRefused(word), because)

    @property
    def words(self) -> list[str]:
        return [word for _, word in self.got]


class Net:
    def __init__(self, **wire: Unpack[Wire]) -> None:
        self.held = HeldPorts(3, BASE_PORT, "127.0.0.1")
        self.addresses = [make_address("127.0.0.1", port) for port in self.held.ports]
        self.network = LiveNetwork(dict(zip("abc", self.addresses, strict=True)), Random(1))
        self.members = [Member(address, self.network, **wire) for address in self.addresses]

    def change(self, command: LinkCommand) -> None:
        places = dict(zip("abc", self.members, strict=True))
        for condition in self.network.links.apply(command):
            places[condition.source].transport.link_changed(condition, places[condition.target].address)


@asynccontextmanager
async def net(listening: int = 2, **wire: Unpack[Wire]) -> AsyncIterator[Net]:
    made = Net(**wire)
    for member in made.members[:listening]:
        await member.transport.listen()
    try:
        yield made
    finally:
        for member in made.members:
            member.transport.abort()
        await asyncio.sleep(0.01)  # what was aborted is closed by the loop, which tells nobody
        made.held.release()

"""A member that is none: it speaks the client protocol on a free port of this machine, and says what a test tells it to.

It answers every request of this project as a healthy member would, unless `answers` has something else for it. What it tells
unasked goes to all who listen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from uuid import UUID

from quarterdeck.backend.core.address import Address, make_address
from quarterdeck.backend.hazelcast.wire.codec.frames import (
    PREAMBLE,
    BadBytes,
    FrameLimits,
    Frames,
    MessageReader,
    encode_frames,
)
from quarterdeck.backend.hazelcast.wire.codec.request_codec import number_of
from quarterdeck.backend.hazelcast.wire.messages import (
    Answer,
    Authenticated,
    ClusterMetadata,
    ErrorAnswer,
    Event,
    ListenerAdded,
    ListenerRemoved,
    MemberConfig,
    MembersView,
    Metrics,
    MetricSample,
    MetricSet,
    MigrationProcessEvent,
    PartitionLostEvent,
    PartitionsView,
    ReplicaMigrationEvent,
    RequestDone,
    SystemProperties,
    ViewMember,
)
from quarterdeck.backend.hazelcast.wire.requests import (
    AddClusterViewListener,
    AddMigrationListener,
    AddPartitionLostListener,
    Authenticate,
    ChangeClusterState,
    Credentials,
    GetClusterMetadata,
    GetMemberConfig,
    GetSystemProperties,
    NameOnly,
    ReadMetrics,
    RemoveMigrationListener,
    Request,
)
from tests.hazelcast.wire.member_codec import answer_frames, decode_request, event_frames

NOT_READY = ErrorAnswer(
    28, "com.hazelcast.core.HazelcastInstanceNotActiveException", "Hazelcast instance is not ready yet!"
)
DENIED = ErrorAnswer(1, "java.security.AccessControlException", "access denied: the interface is not trusted")

CONFIG = """<hazelcast xmlns="http://www.hazelcast.com/schema/config"><network><join>
<multicast enabled="false"/><tcp-ip enabled="true"><member-list>{}</member-list></tcp-ip>
</join></network></hazelcast>"""


def uuid_of(number: int) -> str:
    """A uuid that a person tells from others."""
    return str(UUID(int=number))


@dataclass
class Guest:
    """One client that is connected."""

    writer: asyncio.StreamWriter
    authenticated: bool = False
    listeners: dict[type[Request], int] = field(default_factory=dict)
    """The correlation of each listener."""


class FakeMember:
    """One member. Set its fields at any time; a test's own loop serves it."""

    def __init__(
        self,
        uuid: str = uuid_of(1),
        *,
        version: str = "5.3.8",
        cluster_name: str = "dev",
        credentials: Credentials | None = None,
        tls: SSLContext | None = None,
    ) -> None:
        self.uuid = uuid
        self.host = "127.0.0.1"
        self.version = version
        self.cluster_name = cluster_name
        self.credentials = NameOnly() if credentials is None else credentials
        self.address = Address("127.0.0.1:0")
        """How it names itself: where it listens, unless a test has it say otherwise."""
        self.listens_at = Address("127.0.0.1:0")
        self.members = MembersView(1, ())
        """What it tells of the cluster; itself alone when it starts."""
        self.partitions: PartitionsView | None = None
        self.state: ClusterMetadata = ClusterMetadata("ACTIVE")
        self.join_list: tuple[str, ...] = ()
        self.metrics: dict[str, int | float] = {"partitions.stateStamp": 1, "partitions.migrationQueueSize": 0}
        self.answers: dict[type[Request], Answer | bytes | None] = {}
        """Other answers than a healthy member's: a message, bytes to send instead, or `None` for none at all."""
        self.asked: list[Request | int] = []
        """All requests that came, unknown ones by their number."""
        self.connections = 0
        self.guests: list[Guest] = []
        self.silent = False
        """Frozen: it takes everything and says nothing."""
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, port: int = 0) -> Address:
        """Listen. The address is its own from now on, unless it had one."""
        self._server = await asyncio.start_server(self._serve, self.host, port, ssl=self._tls)
        self.listens_at = make_address(self.host, self._server.sockets[0].getsockname()[1])
        if self.address.endswith(":0"):
            self.address = self.listens_at
        if not self.members.members:
            self.members = MembersView(1, (self.on_list(),))
        return self.address

    def on_list(self, *, lite: bool = False) -> ViewMember:
        """How it stands on a list."""
        return ViewMember(self.uuid, self.address, lite, self.version)

    async def stop(self) -> None:
        """Be gone: nobody listens any more, and all connections end."""
        if self._server is not None:
            self._server.close()
        for guest in self.guests:
            guest.writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def hang_up(self) -> None:
        """End all connections, as a member does that merges."""
        for guest in self.guests:
            guest.writer.close()
        self.guests.clear()

    def tell(self, event: Event) -> None:
        """Tell all who listen. A list or a table is what is told from now on."""
        if isinstance(event, MembersView):
            self.members = event
        elif isinstance(event, PartitionsView):
            self.partitions = event
        for guest in self.guests:
            self._send_event(guest, event)

    def say(self, data: bytes) -> None:
        """Send any bytes to all."""
        for guest in self.guests:
            guest.writer.write(data)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        guest = Guest(writer)
        self.guests.append(guest)
        self.connections += 1
        try:
            with suppress(ConnectionError, BadBytes, asyncio.IncompleteReadError):
                if await reader.readexactly(len(PREAMBLE)) != PREAMBLE:
                    return
                messages = MessageReader(FrameLimits())
                while data := await reader.read(65536):
                    for frames in messages.feed(data):
                        self._take(guest, frames)
        finally:
            if guest in self.guests:
                self.guests.remove(guest)
            writer.close()
            self._tasks.discard(task)

    def _take(self, guest: Guest, frames: Frames) -> None:
        correlation, request = decode_request(frames)
        self.asked.append(request)
        if self.silent or isinstance(request, int):
            return
        answer = self.answers.get(type(request), self._answer(guest, request))
        if isinstance(answer, bytes):
            guest.writer.write(answer)
        elif answer is not None:
            if isinstance(request, AddClusterViewListener | AddMigrationListener | AddPartitionLostListener):
                self._listen(guest, request, correlation)
            guest.writer.write(encode_frames(answer_frames(answer, number_of(request), correlation)))
        if request == AddClusterViewListener() and answer is not None:
            for event in (self.members, self.partitions):
                if event is not None:
                    self._send_event(guest, event)

    def _listen(self, guest: Guest, request: Request, correlation: int) -> None:
        guest.listeners[type(request)] = correlation

    def _answer(self, guest: Guest, request: Request) -> Answer:
        match request:
            case Authenticate():
                return self._introduce(guest, request)
            case GetClusterMetadata():
                return self.state
            case GetMemberConfig():
                return MemberConfig(CONFIG.format("".join(f"<member>{text}</member>" for text in self.join_list)))
            case GetSystemProperties():
                return SystemProperties({"java.version": "17"})
            case ReadMetrics(from_sequence=before):
                named = ((*key.partition("#"), value) for key, value in self.metrics.items())
                samples = tuple(
                    MetricSample(name, value, ("name", of_map) if of_map else None) for name, _, of_map, value in named
                )
                return Metrics(before + 1, (MetricSet(1_700_000_000_000, samples),))
            case AddClusterViewListener():
                return ListenerAdded()
            case AddMigrationListener():
                return ListenerAdded(uuid_of(501))
            case AddPartitionLostListener():
                return ListenerAdded(uuid_of(502))
            case RemoveMigrationListener():
                return ListenerRemoved(guest.listeners.pop(AddMigrationListener, None) is not None)
            case ChangeClusterState(state):
                self.state = ClusterMetadata(state)
                return RequestDone()
            case _:
                return RequestDone()

    def _introduce(self, guest: Guest, request: Authenticate) -> Authenticated:
        fits = request.cluster_name == self.cluster_name and request.credentials == self.credentials
        guest.authenticated = fits
        if not fits:
            return Authenticated("credentials failed", None, None, self.version)
        return Authenticated("authenticated", self.address, self.uuid, self.version)

    def _send_event(self, guest: Guest, event: Event) -> None:
        match event:
            case MembersView() | PartitionsView():
                kind: type[Request] = AddClusterViewListener
            case MigrationProcessEvent() | ReplicaMigrationEvent():
                kind = AddMigrationListener
            case PartitionLostEvent():
                kind = AddPartitionLostListener
        if kind in guest.listeners and not self.silent:
            guest.writer.write(encode_frames(event_frames(event, guest.listeners[kind])))


async def start_cluster(size: int, *, version: str = "5.3.8") -> list[FakeMember]:
    """So many members on one list, the first of which leads; each owns an equal share of six partitions."""
    members = [FakeMember(uuid_of(number), version=version) for number in range(1, size + 1)]
    for member in members:
        await member.start()
    agree(members)
    return members


def agree(members: Sequence[FakeMember], version: int = 1) -> None:
    """All of these tell one list and one table from now on."""
    view = MembersView(version, tuple(member.on_list() for member in members))
    holders = tuple(sorted(member.uuid for member in members))
    table = PartitionsView(holders, tuple(partition % len(holders) for partition in range(6)))
    for member in members:
        member.tell(view)
        member.tell(table)

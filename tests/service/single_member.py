"""A member that is alone in its cluster, with the face that it shows to HTTP: its machine is real, its time is a number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partialmethod
from random import Random
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp

from quarterdeck.backend.commands.links import LinkConditions
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_snapshot import CapturedMember, MemberReport
from quarterdeck.backend.core.commands import (
    Command,
    ExpectMembers,
    KillMember,
    MemberOrder,
    PauseMember,
    ResumeMember,
    SetProperties,
    StopCluster,
    SuspectMember,
)
from quarterdeck.backend.core.effects import Happened, OperationAnswered
from quarterdeck.backend.core.events import Event, MembersExpected, Record
from quarterdeck.backend.core.inputs import START, TICK, Call, Input
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.journal.audit_log import AuditEntry
from quarterdeck.backend.journal.writer import JournalCondition
from quarterdeck.backend.live.security.cluster_secret import ClusterKeyring, ClusterSecret
from quarterdeck.backend.live.transport.peer import WireQueues
from quarterdeck.backend.member_api.beliefs import NodeState
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.service.configuration.process_configuration import ProcessConfiguration, Security, User
from quarterdeck.backend.service.http.face import Caller
from quarterdeck.backend.service.http.http_protocol import BoundedWebSocketProtocol
from quarterdeck.backend.service.meters import Meters
from quarterdeck.backend.service.record_buffer import RecordBuffer
from tests.waiting import until

ADDRESS = Address("127.0.0.1:5701")
OTHER = Address("127.0.0.1:5702")


class SingleMemberFace:
    """A `Face`. `asked` has the commands that it was given."""

    def __init__(
        self,
        *,
        allow_faults: bool = True,
        users: Sequence[User] = (),
        joined: bool = True,
        buffer_records: int = 20_000,
        partition_count: int = 271,
    ) -> None:
        settings = Settings.of({"hazelcast.partition.count": partition_count}, preset="training")
        self.label, self.address, self.run = "n1", ADDRESS, "dev"
        member = MemberConfiguration("dev", "n1", ADDRESS, (ADDRESS,), settings)
        self.configuration = ProcessConfiguration(
            member,
            bind_host="127.0.0.1",
            join_list=(ADDRESS,),
            security=Security(users=tuple(users)),
            allow_faults=allow_faults,
        )
        self.machine = MemberMachine(member, Random(1))
        self.member = self.machine.inspect()
        self.picture = Picture()
        self.connections = 0
        self.meters, self.queues, self.calls_in_flight = Meters(), WireQueues(0, 0, 0, 0, 0), 0
        self.journal_condition: JournalCondition | None = None
        self.asked: list[Command] = []
        self.audit: list[AuditEntry] = []
        self.stopped: list[bool] = []
        self.keyring: ClusterKeyring | None = None
        self.given_up: list[ClusterSecret] = []
        self._now = 1_000
        self.records = RecordBuffer(buffer_records)
        self._links = LinkConditions()
        self._answers: dict[int, Answer] = {}
        self._calls = 0
        self.noted = 0
        if joined:
            self._step(START)
            self.pass_seconds(30)
            assert self.member.members is not None

    @property
    def uuid(self) -> str:
        return self.machine.uuid

    @property
    def node_state(self) -> NodeState:
        return "ACTIVE" if self.member.members else "STARTING"

    @property
    def journal(self) -> JournalCondition | None:
        return self.journal_condition

    @property
    def faults(self) -> Sequence[LinkChanged]:
        return tuple(self._links.conditions.values())

    async def report(self, caller: Caller) -> MemberReport:
        configuration = MemberConfiguration("dev", "n1", ADDRESS, (ADDRESS,), self.member.settings)
        return MemberReport(configuration, CapturedMember(self.machine.snapshot(), self._now), self._now)

    def now_us(self) -> int:
        return self._now

    async def do(self, command: Command, caller: Caller) -> None:
        self.asked.append(command)
        match command:
            case PauseMember() | ResumeMember() | KillMember() | StopCluster() | SuspectMember():
                pass
            case _ if isinstance(command, MemberOrder):
                self._step(command)
            case ExpectMembers(size=size):
                self.note(MembersExpected(size))
            case _:
                for condition in self._links.apply(command):  # type: ignore[arg-type]
                    self.note(condition)

    async def call(self, operation: Operation, caller: Caller) -> Answer:
        self._calls += 1
        self._step(Call(self._calls, operation))
        while self._calls not in self._answers:
            self.pass_seconds(1)
        return self._answers.pop(self._calls)

    def identified(self, host: str) -> None:
        """Nobody else wants to connect."""

    def audited(self, entry: AuditEntry, kind: str) -> None:
        self.audit.append(entry)

    def disconnect_proven(self, secret: ClusterSecret) -> None:
        self.given_up.append(secret)

    async def reconfigure(self, properties: dict[str, Any], caller: Caller) -> None:
        self.member.settings.changed_at_runtime(properties)  # raises `BadProperty`, as the process does
        self._step(SetProperties(self.label, properties))

    def shut_down(self, caller: Caller, *, whole_cluster: bool = False) -> None:
        self.stopped.append(whole_cluster)

    # What tests do to it

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass."""
        until = self._now + int(seconds * SECOND_US)
        while self.machine.next_deadline <= until:
            self._now = max(self._now, self.machine.next_deadline)
            self._step(TICK)
        self._now = until

    def note(self, event: Event, uuid: str = "dev") -> Record:
        """Record something under the name of the cluster."""
        self.noted += 1
        record = Record("dev", "dev", uuid, self.noted, self._now, self._now, event)
        self._record(record)
        return record

    def _step(self, input: Input) -> None:
        for effect in self.machine.step(self._now, input):
            if isinstance(effect, Happened):
                self._record(effect.record)
            elif isinstance(effect, OperationAnswered):
                self._answers[effect.call] = effect.answer

    def _record(self, record: Record) -> None:
        self.records.append(record)
        self.picture.apply(record)


class Client:
    """Asks `app` without a socket, one request at a time."""

    def __init__(self, app: ASGIApp, *, raises: bool = True) -> None:
        """`raises`: what the application raises comes out here, as a server would log it."""
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=raises)

    def request(self, method: str, path: str, **named: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=self._transport, base_url=f"http://{ADDRESS}") as client:
                return await client.request(method, path, **named)

        return asyncio.run(ask())

    get = partialmethod(request, "GET")
    put = partialmethod(request, "PUT")
    post = partialmethod(request, "POST")
    patch = partialmethod(request, "PATCH")
    delete = partialmethod(request, "DELETE")


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """`app` on a free port of this machine: ``host:port``."""
    config = uvicorn.Config(
        app, "127.0.0.1", 0, log_level="warning", ws=BoundedWebSocketProtocol, ws_max_size=4_096, lifespan="off"
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await serving

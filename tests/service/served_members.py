"""Members behind real HTTP servers on free ports: real state machines in a time that runs as fast as it can."""

from __future__ import annotations

import asyncio
import itertools
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

import httpx
import msgspec
import uvicorn

from quarterdeck.backend.core.address import Address, parse_address, parse_join_list
from quarterdeck.backend.core.commands import ChangeState, Command, SearchClusters, SetJoinList, SetProperties
from quarterdeck.backend.core.effects import Halt, Happened, OperationAnswered, Transmit
from quarterdeck.backend.core.inputs import START, TICK, Call, Input, PeerUnreachable, Receive
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.journal.audit_log import AuditEntry
from quarterdeck.backend.journal.writer import JournalCondition
from quarterdeck.backend.live.transport.peer import WireQueues
from quarterdeck.backend.member_api.beliefs import NodeState
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.service.application import application
from quarterdeck.backend.service.configuration.process_configuration import ProcessConfiguration
from quarterdeck.backend.service.http.face import Caller
from quarterdeck.backend.service.http.request_guard import RequestLimits
from quarterdeck.backend.service.meters import Meters
from quarterdeck.backend.service.record_buffer import RecordBuffer
from tests.waiting import until

SETTINGS = Settings.of(preset="training")

ALL_GROUPS: dict[Any, bool] = dict.fromkeys(("CLUSTER_READ", "CLUSTER_WRITE", "HEALTH_CHECK", "DATA"), True)

STEP_US = 20_000

Result = TypeVar("Result")


def configured(label: str = "athens", address: str = "127.0.0.1:5701", **changed: Any) -> ProcessConfiguration:
    """A member that listens to everybody on this machine, with all endpoint groups on."""
    here = parse_address(address)
    of_member = {name: changed.pop(name) for name in ("settings", "lite", "cluster_name") if name in changed}
    made = ProcessConfiguration(
        msgspec.structs.replace(MemberConfiguration("test", label, here, (here,), SETTINGS), **of_member),
        bind_host="127.0.0.1",
        join_list=(address,),
        endpoint_groups=ALL_GROUPS,
    )
    return replace(made, **changed)


class ServedMember:
    """A face of a real state machine. What it sends is brought to the others by `MemberHarness`."""

    def __init__(self, harness: MemberHarness, configuration: ProcessConfiguration, seed: int) -> None:
        self.harness = harness
        self.configuration = configuration
        member = configuration.member
        self.label, self.address, self.run = member.label, member.address, member.run
        member = msgspec.structs.replace(member, join_list=parse_join_list(configuration.join_list))
        self.machine = MemberMachine(member, Random(seed))
        self.member = self.machine.inspect()
        self.picture = Picture()
        self.records = RecordBuffer()
        self.audit: list[AuditEntry] = []
        self.shutdowns: list[tuple[Caller, bool]] = []
        self.connections = 0
        self.faults: Sequence[LinkChanged] = ()
        self.journal: JournalCondition | None = None
        self.meters, self.queues, self.calls_in_flight = Meters(), WireQueues(0, 0, 0, 0, 0), 0
        self.halted = False
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}

    @property
    def uuid(self) -> str:
        return self.machine.uuid

    @property
    def node_state(self) -> NodeState:
        if self.halted:
            return "SHUT_DOWN"
        return "ACTIVE" if self.machine.joined else "STARTING"

    def now_us(self) -> int:
        return self.harness.now_us

    async def do(self, command: Command, caller: Caller) -> None:
        match command:
            case SetJoinList() | ChangeState() | SearchClusters():
                self.step(command)
            case _:
                raise AssertionError(command)

    async def call(self, operation: Operation, caller: Caller) -> Answer:
        number = next(self._numbers)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self.step(Call(number, operation))
        return await future

    def identified(self, host: str) -> None:
        """Nobody else wants to connect."""

    def audited(self, entry: AuditEntry, kind: str) -> None:
        self.audit.append(entry)

    async def reconfigure(self, properties: dict[str, str | int | float | bool], caller: Caller) -> None:
        self.step(SetProperties(self.label, properties))

    def shut_down(self, caller: Caller, *, whole_cluster: bool = False) -> None:
        self.shutdowns.append((caller, whole_cluster))

    def step(self, input: Input) -> None:
        """Give the machine an input, and carry out the effects."""
        for effect in self.machine.step(self.harness.now_us, input):
            match effect:
                case Happened(record):
                    self.records.append(record)
                    self.picture.apply(record)
                case Transmit(deliveries):
                    self.harness.sent += [(self.address, to, message) for to, message in deliveries]
                case OperationAnswered(number, answer):
                    self._waiting.pop(number).set_result(answer)
                case Halt():
                    self.halted = True


class MemberHarness:
    """Members, the messages between them, and their time. Lives on one event loop."""

    def __init__(self) -> None:
        self.now_us = 0
        self.members: dict[Address, ServedMember] = {}
        self.sent: list[tuple[Address, Address, Any]] = []
        self.deaf: set[Address] = set()
        """Members that nothing reaches, and nothing comes from."""
        self.hurries = False
        """Somebody waits for something that takes time; otherwise requests come first."""

    def add(self, configuration: ProcessConfiguration) -> ServedMember:
        member = ServedMember(self, configuration, seed=len(self.members) + 1)
        self.members[member.address] = member
        return member

    async def live(self) -> None:
        while True:
            self.step()
            await asyncio.sleep(0 if self.hurries else 0.005)  # the pace of its time

    def step(self) -> None:
        self.now_us += STEP_US
        for member in list(self.members.values()):
            if not member.halted and member.machine.next_deadline <= self.now_us:
                member.step(TICK)
        sent, self.sent = self.sent, []
        for sender, to, message in sent:
            receiver = self.members.get(to)
            if sender in self.deaf or to in self.deaf:
                continue
            if receiver is None or receiver.halted:
                self.members[sender].step(PeerUnreachable(to, "nobody there"))
            else:
                receiver.step(Receive(sender, message))


class ServedMembers:
    """A stage whose members are served over HTTP from a thread of its own."""

    def __init__(self) -> None:
        self.harness = MemberHarness()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[tuple[uvicorn.Server, asyncio.Task[None]]] = []

    def __enter__(self) -> ServedMembers:
        self._thread.start()

        async def begin() -> asyncio.Task[None]:
            return asyncio.create_task(self.harness.live())

        self._living = self.run(begin)
        return self

    def __exit__(self, *_: object) -> None:
        async def end() -> None:
            self._living.cancel()
            for server, serving in self._servers:
                server.should_exit = server.force_exit = True
                await serving

        self.run(end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, what: Callable[[], Any]) -> Any:
        """Do it on the members' loop."""
        return asyncio.run_coroutine_threadsafe(what(), self._loop).result(60)

    def stop_time(self) -> None:
        """Nothing is due any more, and no message arrives."""
        self.look(self._living.cancel)

    def look(self, what: Callable[[], Result]) -> Result:
        async def looked() -> Result:
            return what()

        result: Result = self.run(looked)
        return result

    def member(self, configuration: ProcessConfiguration, limits: RequestLimits | None = None) -> Client:
        """Start one; what is returned asks it over HTTP."""

        async def begin() -> Client:
            member = self.harness.add(configuration)
            member.step(START)
            listening = socket.socket(proto=socket.IPPROTO_TCP)  # named, or asyncio sets no TCP_NODELAY
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            guard = application(member, limits)
            config = uvicorn.Config(guard, lifespan="off", log_config=None, proxy_headers=False, access_log=False)
            server = uvicorn.Server(config)
            self._servers.append((server, asyncio.create_task(server._serve([listening]))))
            await until(lambda: server.started)
            return Client(self, member, guard, listening.getsockname()[1])

        client: Client = self.run(begin)
        return client

    def joined(self, configuration: ProcessConfiguration, limits: RequestLimits | None = None) -> Client:
        client = self.member(configuration, limits)
        client.until(lambda: client.face.member.joined)
        return client


class Client:
    """Asks one member."""

    def __init__(self, served: ServedMembers, face: ServedMember, guard: Any, port: int) -> None:
        self.guard = guard
        self.served, self.face, self.port = served, face, port
        self.url = f"http://127.0.0.1:{port}"
        self._http = httpx.Client(timeout=30)

    def until(self, holds: Callable[[], object], steps: int = 20_000) -> None:
        """Let the members live until it holds."""
        harness = self.served.harness

        async def lived() -> bool:
            harness.hurries = True
            try:
                for _ in range(steps):
                    if holds():
                        return True
                    await asyncio.sleep(0)
                return False
            finally:
                harness.hurries = False

        assert self.served.run(lived)

    def ask(self, method: str, path: str, body: bytes | str | None = None, **more: Any) -> httpx.Response:
        return self._http.request(method, self.url + path, content=body, **more)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("GET", path, **more)

    def post(self, path: str, body: bytes | str = "dev&", **more: Any) -> httpx.Response:
        return self.ask("POST", path, body, **more)

    def raw(self, request: bytes, timeout: float = 30) -> bytes:
        """Send these bytes and read until the member closes the connection, or says no more for `timeout` seconds."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as connection:
            connection.sendall(request)
            answer = b""
            while chunk := connection.recv(65_536):
                answer += chunk
        return answer

    def curl(self, *arguments: str) -> str:
        """What curl prints, given these arguments; the member's address stands for ADDRESS in them."""
        written = [argument.replace("ADDRESS", f"127.0.0.1:{self.port}") for argument in arguments]
        done = subprocess.run(["curl", "-sS", *written], capture_output=True, text=True, timeout=30, check=True)
        return done.stdout


@contextmanager
def one_member(**changed: Any) -> Iterator[Client]:
    """A joined member that is a cluster by itself."""
    limits = changed.pop("limits", None)
    with ServedMembers() as served:
        yield served.joined(configured(**changed), limits)

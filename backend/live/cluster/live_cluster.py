"""A real cluster on this machine: its members speak TCP on 127.0.0.1, whatever they run in.

A caller never waits for it: commands are handed over to a background thread with an event loop of its own, records
are picked up, as `backend.clusters.cluster` asks.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from random import Random
from typing import Any, Literal, TypedDict, Unpack, get_args
from uuid import uuid4

from quarterdeck.backend.commands.check import Condition, check, refuse_outside_simulation, with_addresses
from quarterdeck.backend.core import commands
from quarterdeck.backend.core.address import Address, make_address
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot, InFlight, MemberSnapshot, SilentMember
from quarterdeck.backend.core.events import (
    MembersExpected,
    ProcessKilled,
    ProcessPaused,
    ProcessResumed,
    Record,
    StrangerRefused,
)
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.live.cluster.addressing import HeldPorts, checked_join_lists, checked_labels
from quarterdeck.backend.live.cluster.background_loop import BackgroundLoop
from quarterdeck.backend.live.cluster.run_recorder import RunRecorder
from quarterdeck.backend.live.member.member_host import Host, RunClock
from quarterdeck.backend.live.transport.limits import DEFAULT_TIMEOUTS, Timeouts
from quarterdeck.backend.live.transport.network import LiveNetwork

HOST = "127.0.0.1"
BASE_PORT = 5701

JOIN_WAIT_SECONDS = 3.0
"""How long the next member's start waits for the one before it to join."""
JOIN_LOOK_SECONDS = 0.01

GOODBYE_TIMEOUT_SECONDS = 10.0
"""How long a member that stops may take for its goodbye, besides the time for giving its data away."""

_LOG = logging.getLogger(__name__)


class MemberOptions(TypedDict, total=False):
    """What is said of the members of a `LiveCluster` besides their labels.

    `join_lists` names, by label, whom a member asks for its cluster, by labels, addresses and hosts; by default all. Who has
    settings or a cluster name of its own keeps them in each incarnation. Who is `late` is started by a command only, who is
    `lite` holds no data; `zones` says where members stand, for groups that are zone-aware.
    """

    settings: Settings | None
    settings_of: Mapping[str, Settings]
    cluster_names: Mapping[str, str]
    join_lists: Mapping[str, Sequence[str]]
    late: Collection[str]
    lite: Collection[str]
    zones: Mapping[str, str]


class LiveCluster(ABC):
    """Members on ports from `base_port` up, started in the order of `labels`, each once the one before it has joined.

    `labels` may be a number: 3 stands for n1, n2, n3. Records go to `drain` and to `journal`, which names the run and stays the
    caller's to close. `seed` determines uuids, losses and duplicates; `options` are those of `MemberOptions`.

    Raises ValueError for labels that cannot be, `PortsExhausted` when there are not enough free ports. `started` is
    done when these members have been started; it fails with OSError when a port was taken in the meantime.
    """

    source: Literal["live"] = "live"
    writable = True

    def __init__(
        self,
        labels: Sequence[str] | int = 3,
        *,
        name: str = "dev",
        journal: JournalWriter | None = None,
        base_port: int = BASE_PORT,
        seed: int | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        **options: Unpack[MemberOptions],
    ) -> None:
        if unknown := options.keys() - MemberOptions.__annotations__.keys():
            raise TypeError(f"there are no such options: {', '.join(sorted(unknown))}")
        self.labels = checked_labels(labels)
        self._options = options
        self._ports = HeldPorts(len(self.labels), base_port, HOST)
        self.addresses: Mapping[str, Address] = {
            label: make_address(HOST, port) for label, port in zip(self.labels, self._ports.ports, strict=True)
        }
        self._settings = options.get("settings") or Settings.of(preset="training")
        tries = self._settings.join_port_try_count
        try:
            self._join_lists = checked_join_lists(options.get("join_lists", {}), self.addresses, tries)
        except ValueError:
            self._ports.release()
            raise
        self.run = uuid4().hex if journal is None else journal.run
        self.journal_path = None if journal is None else journal.directory
        """Where the run is recorded; None when it is not."""
        self.started: Future[None] = Future()
        self.name = name
        self._seed = self.run if seed is None else str(seed)
        self._timeouts = timeouts
        self._clock = RunClock.started_now()
        self._recorder = RunRecorder(self.run, name, self._clock, journal, legacy_lists=self._settings.legacy_list_text)
        self._network = LiveNetwork(self.addresses, Random(f"{self._seed}/network"))
        self._hosts: dict[str, Host] = {}
        self._incarnations: dict[str, int] = dict.fromkeys(self.labels, 0)
        self._kill_points: dict[str, commands.KillAt] = {}
        """Where a member's present incarnation is to end; its next one, while it is down."""
        self._background = BackgroundLoop(f"cluster {name}")
        self._turn = asyncio.Lock()
        """Held by the command that is being carried out; waiting commands get it in their order."""
        self._background.start(lambda: self._background.spawn(self._start_all()))

    @abstractmethod
    def _host(self, configuration: MemberConfiguration, incarnation: int, kill_point: commands.KillAt | None) -> Host:
        """Return what runs the `incarnation`-th incarnation of the member of this configuration; the first is 1.

        It may have to end at a named point.
        """

    # What any thread may call

    def now_us(self) -> int:
        return self._clock.now_us()

    def drain(self) -> list[Record]:
        return self._recorder.drain()

    def execute(self, command: commands.Command) -> Future[None]:
        """Do `command` after those given before it. The future fails with `CommandRefused` when it cannot be done.

        A stop may take long, as the member gives its data away first: its future ends with it, but what is asked meanwhile of
        this and other members does not wait. A command that was given is carried out: to cancel its future does not withdraw it.
        """
        return self._background.ask(partial(self._carry_out_in_order, command), f"the cluster {self.name}")

    def call(self, member: str, operation: Operation, *, watched: bool = False) -> Future[Answer]:
        """Ask `member` for `operation` on a distributed map; calls wait for no commands. A `watched` one is recorded.

        The future fails with `CommandRefused` when the member is not there to be asked. When it dies on the way, its answer
        says so.
        """
        done: Future[Answer] = Future()
        if not self._background.hand_over(self._begin_call, member, operation, watched, done):
            done.set_exception(commands.CommandRefused(f"the cluster {self.name} is closed"))
        return done

    def snapshot(self) -> Future[ClusterSnapshot]:
        """Return the present state of its members. Paused members that are processes are in it without a state."""
        return self._background.ask(self._take_snapshot, f"the cluster {self.name}")

    async def _take_snapshot(self) -> ClusterSnapshot:
        configurations, hosts = {label: self._configuration(label) for label in self.labels}, dict(self._hosts)
        links = tuple(condition for _, condition in sorted(self._network.links.conditions.items()))
        down = tuple(known for label, known in configurations.items() if label not in hosts)
        captured = (host.captured_state() for host in hosts.values())
        answers = await asyncio.gather(*captured, return_exceptions=True)
        at_us = self.now_us()
        members: list[MemberSnapshot] = []
        untold: list[SilentMember] = []
        in_flight: list[InFlight] = []
        for (label, host), answer in zip(hosts.items(), answers, strict=True):
            if isinstance(answer, (commands.CommandRefused, TimeoutError)):
                untold.append(SilentMember(configurations[label], str(answer)))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                number = self._incarnations[label]
                members.append(MemberSnapshot(configurations[label], answer.state, at_us, host.paused, number))
                in_flight += answer.waiting
        states = tuple(members), tuple(untold), down, links, tuple(in_flight)
        return ClusterSnapshot(self.name, at_us, self._clock.utc_origin_us + at_us, *states)

    def close(self) -> None:
        """Stop the members that run, kill the paused ones, flush the journal; returns when the ports are free again.

        Closing twice is harmless. Raises `JournalFailed` when the journal could not be written, now or before.
        """
        try:
            first = self._background.close(self._shut_down)
        finally:
            self._ports.release()
        if first:
            self._recorder.flush()

    # The thread and its tasks

    async def _start_all(self) -> None:
        try:
            for label in self.labels:
                if label in self._options.get("late", ()):
                    continue
                if label not in self._hosts:
                    await self._start(commands.StartMember(label))
                await self._wait_for_join(label)
        except asyncio.CancelledError:
            self.started.cancel()
            raise
        except Exception as problem:  # noqa: BLE001 - belongs to the holder of the future
            self.started.set_exception(problem)
        else:
            self.started.set_result(None)

    async def _wait_for_join(self, label: str) -> None:
        """Wait until the member has joined. Looking costs nothing at this pace, and joining is the machine's affair."""
        loop = self._background.loop
        limit = loop.time() + JOIN_WAIT_SECONDS
        while (host := self._hosts.get(label)) and not host.joined and loop.time() < limit:  # noqa: ASYNC110
            await asyncio.sleep(JOIN_LOOK_SECONDS)

    async def _carry_out_in_order(self, command: commands.Command) -> None:
        async with self._turn:
            if not isinstance(command, commands.StopMember):
                await self._carry_out(command)
                return
        await self._carry_out(command)  # it has begun before the next command does, and may take long

    async def _carry_out(self, command: commands.Command) -> None:
        check(command, self.labels, self._condition_of)
        refuse_outside_simulation(command)
        try:
            await HANDLERS.get(type(command), LiveCluster._ask_member)(self, command)
        except OSError as problem:
            raise commands.CommandRefused(str(problem)) from problem

    def _begin_call(self, member: str, operation: Operation, watched: bool, done: Future[Answer]) -> None:
        if not done.set_running_or_notify_cancel():
            return
        try:
            check(commands.CallMap(member, operation), self.labels, self._condition_of)
        except commands.CommandRefused as refusal:
            done.set_exception(refusal)
        else:
            self._hosts[member].call(operation, watched, done.set_result)

    async def _shut_down(self) -> None:
        hosts = list(self._hosts.values())
        await asyncio.gather(*(self._end(host) for host in reversed(hosts)))
        await asyncio.sleep(0)
        for host in hosts:
            await host.kill()  # cuts off what a stopped one has not got rid of
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        await asyncio.gather(*rest, return_exceptions=True)
        await asyncio.sleep(0)

    async def _end(self, host: Host) -> None:
        if not host.paused:
            try:
                for _ in range(2):  # asked twice, it does not wait to give its data away
                    await host.execute(commands.StopMember(host.label))
                async with asyncio.timeout(GOODBYE_TIMEOUT_SECONDS):
                    await host.wait_ended()
                return
            except TimeoutError as late:
                _LOG.warning("%s is killed, for it does not stop: %s", host.label, late)
            except commands.CommandRefused:  # it ended by itself meanwhile, and that is recorded
                return
        await host.kill()
        self._recorder.record(ProcessKilled(host.label))

    # Commands

    def _condition_of(self, label: str) -> Condition:
        host = self._hosts.get(label)
        if host is None:
            return "down"
        return "paused" if host.paused else "running"

    async def _ask_member(self, command: Any) -> None:
        tries = self._settings.join_port_try_count
        await self._hosts[command.member].execute(with_addresses(command, self.addresses, tries))

    async def _kill(self, command: commands.KillMember) -> None:
        host = self._hosts.pop(command.member, None)
        if host is not None:  # one that stops may have ended in the meantime
            await host.kill()
            self._kill_points.pop(command.member, None)
            self._recorder.record(ProcessKilled(command.member))

    async def _kill_at(self, command: commands.KillAt) -> None:
        self._kill_points[command.member] = command
        if command.member in self._hosts:
            await self._hosts[command.member].execute(command)

    async def _pause(self, command: commands.PauseMember) -> None:
        self._hosts[command.member].pause()
        self._recorder.record(ProcessPaused(command.member))

    async def _resume(self, command: commands.ResumeMember) -> None:
        self._recorder.record(ProcessResumed(command.member))
        self._hosts[command.member].resume()

    async def _stop(self, command: commands.StopMember) -> None:
        """Return when the member has said goodbye. Raises `CommandRefused` when it dies before, or takes too long."""
        host = self._hosts[command.member]
        await host.execute(command)
        settings = self._configuration(host.label).settings
        seconds = settings.graceful_shutdown_us / SECOND_US + GOODBYE_TIMEOUT_SECONDS
        try:
            async with asyncio.timeout(seconds):
                left = await host.wait_ended()
        except TimeoutError as late:
            raise commands.CommandRefused(f"{host.label} has not left within {seconds:g} s; kill it") from late
        if not left:
            raise commands.CommandRefused(f"{host.label} was killed before it had left")

    async def _start(self, command: commands.StartMember) -> None:
        """Start a new incarnation at the member's address. Raises OSError, naming both, when there is no port or no process."""
        label = command.member
        self._incarnations[label] += 1
        configuration = self._configuration(label)
        host = self._hosts[label] = self._host(configuration, self._incarnations[label], self._kill_points.get(label))
        try:
            await host.start()
        except OSError as problem:
            del self._hosts[label]
            reason = problem.strerror or str(problem)
            raise OSError(problem.errno, f"{label} cannot start at {configuration.address}: {reason}") from problem

    def _configuration(self, label: str) -> MemberConfiguration:
        options = self._options
        return MemberConfiguration(
            run=self.run,
            label=label,
            address=self.addresses[label],
            join_list=self._join_lists.get(label, tuple(self.addresses.values())),
            settings=options.get("settings_of", {}).get(label, self._settings),
            utc_origin_us=self._clock.utc_origin_us,
            lite=label in options.get("lite", ()),
            zone=options.get("zones", {}).get(label, ""),
            cluster_name=options.get("cluster_names", {}).get(label, self.name),
        )

    async def _change_links(self, command: commands.LinkCommand) -> None:
        conditions = self._network.links.apply(command)
        for condition in conditions:
            self._recorder.record(condition)
        for host in list(self._hosts.values()):
            host.links_changed(conditions)

    async def _accept_size(self, command: commands.ExpectMembers) -> None:
        self._recorder.record(MembersExpected(command.size))

    # What hosts report

    def recorded(self, record: Record) -> None:
        self._recorder.append(record)

    def stranger_refused(self, refused: StrangerRefused) -> None:
        self._recorder.record(refused)

    def ended(self, host: Host, crashed: bool) -> None:
        """Note that a member has ended; one that crashed counts as killed."""
        if self._hosts.get(host.label) is host:
            del self._hosts[host.label]
            self._kill_points.pop(host.label, None)
        if crashed:
            self._recorder.record(ProcessKilled(host.label))


HANDLERS: dict[type[commands.Command], Callable[[LiveCluster, Any], Awaitable[None]]] = {
    commands.StartMember: LiveCluster._start,
    commands.StopMember: LiveCluster._stop,
    commands.KillMember: LiveCluster._kill,
    commands.KillAt: LiveCluster._kill_at,
    commands.PauseMember: LiveCluster._pause,
    commands.ResumeMember: LiveCluster._resume,
    commands.ExpectMembers: LiveCluster._accept_size,
    **dict.fromkeys(get_args(commands.LinkCommand), LiveCluster._change_links),
}
"""Who carries out each command. The others are for members themselves."""

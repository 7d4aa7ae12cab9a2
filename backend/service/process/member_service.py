"""One running member with all that belongs to it: connections, records, log, journal, picture, and its HTTP interface."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from quarterdeck.backend.commands.catalogue import command_text, description_of
from quarterdeck.backend.commands.check import Condition, check, with_addresses, with_names
from quarterdeck.backend.commands.links import links_of
from quarterdeck.backend.core import commands
from quarterdeck.backend.core.address import BadAddress, parse_address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.cluster_snapshot import MemberReport
from quarterdeck.backend.core.events import (
    FORM,
    Event,
    JournalChanged,
    MembersExpected,
    OperatorAsked,
    ProcessPaused,
    ProcessResumed,
    Record,
    StrangerRefused,
)
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.journal.audit_log import AuditEntry, AuditLog
from quarterdeck.backend.journal.minute_counter import MINUTE_SECONDS, OTHERS, MinuteCounter
from quarterdeck.backend.journal.upkeep import Retention
from quarterdeck.backend.journal.writer import JournalCondition, JournalWriter
from quarterdeck.backend.live.member.member_host import Host, MemberCommand, MemberHost, RunClock
from quarterdeck.backend.live.security.cluster_secret import ClusterSecret
from quarterdeck.backend.live.transport.limits import (
    DEFAULT_LIMITS,
    DEFAULT_TIMEOUTS,
    Timeouts,
    TransportLimits,
    network_of,
)
from quarterdeck.backend.live.transport.network import LiveNetwork
from quarterdeck.backend.live.transport.peer import WireQueues
from quarterdeck.backend.member_api.beliefs import NodeState
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.service.configuration.process_configuration import ProcessConfiguration
from quarterdeck.backend.service.http.audited_requests import request_note
from quarterdeck.backend.service.http.face import Caller
from quarterdeck.backend.service.http.http_server import HttpServer
from quarterdeck.backend.service.meters import Meters
from quarterdeck.backend.service.record_buffer import RecordBuffer

if TYPE_CHECKING:
    from starlette.types import ASGIApp

MOST_LINKS = 5_000
"""Links that one command changes, each way on its own: those of 50 members with 50 others."""
ANSWER_SENT_SECONDS = 0.1
"""A command that ends this member waits so long, until its answer is sent."""


_LOG = logging.getLogger(__name__)


class MemberService:
    """Runs the member of `configuration` on the running loop: a `Face`, and the `HostObserver` of its host.

    `network` knows it by its label, and others as well if commands name them by labels. `record_consumers` get every record
    after it is in the journal, if there is one. Raises `BadCertificate`.
    """

    def __init__(
        self,
        configuration: ProcessConfiguration,
        randomness: Random,
        clock: RunClock,
        network: LiveNetwork,
        *,
        journal: JournalWriter | None = None,
        audit_log: AuditLog | None = None,
        record_consumers: Sequence[Callable[[Record], None]] = (),
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        limits: TransportLimits = DEFAULT_LIMITS,
        kill_point: commands.KillAt | None = None,
    ) -> None:
        self.ended_event = asyncio.Event()
        self.joined = asyncio.Event()
        """Set when the member has its first list."""
        self.leaving = asyncio.Event()
        """Set when it begins to leave."""
        self.crashed = False
        self.meters = Meters()
        self.run, self.label = configuration.member.run, configuration.member.label
        self.configuration = configuration
        self.picture = Picture()
        machine = MemberMachine(configuration.member, randomness)
        self.member = machine.inspect()
        if audit_log is not None:
            audit_log.retention = self._audit_log_retention
        self.network = network
        self.http = HttpServer(self._application)
        self._clock = clock
        self.records = RecordBuffer()
        self._journal, self._audit_log = journal, audit_log
        if journal is not None:
            journal.on_change = self._journal_changed
            journal.retention = self._journal_retention
        self._record_consumers = record_consumers
        self._strangers: MinuteCounter[StrangerRefused] = MinuteCounter()
        self._strangers_due: asyncio.TimerHandle | None = None
        self._own_records_uuid = uuid4().hex
        self._own_records = 0
        self._stopping = False
        self._loop = asyncio.get_running_loop()
        self.host = MemberHost(
            self.label,
            configuration.member.cluster_name,
            machine,
            clock,
            self.network,
            self,
            timeouts,
            kill_point,
            http=self.http.hand_over,
            security=configuration.security.wire,
            limits=limits,
            bind_host=configuration.bind_host,
        )
        self.keyring = self.host.transport.keyring

    async def start(self) -> None:
        """Bind the ports and begin to look for the cluster. After an OSError this service cannot be used."""
        if self.configuration.rest_enabled and self.configuration.rest_port is not None:
            await self.host.transport.listen(self.configuration.rest_port)
        await self.host.start()

    def stop(self) -> None:
        """Stop gracefully: give away what only this member holds, and say goodbye. At the second call, only say goodbye."""
        self._stopping = True
        self.leaving.set()
        self.host.step(commands.StopMember(self.label))

    async def close(self, within_seconds: float) -> None:
        """Return when all connections are closed, or the time is over."""
        if self._strangers_due is not None:
            self._strangers_due.cancel()
            self._record_strangers()
        await asyncio.gather(self.http.close(within_seconds), self.host.transport.until_closed(within_seconds))

    def _application(self) -> ASGIApp:
        from quarterdeck.backend.service.application import application

        return application(self)

    @property
    def node_state(self) -> NodeState:
        if self.host.ended:
            return "SHUT_DOWN"
        if self._stopping or self.member.cluster_state == "PASSIVE":
            return "PASSIVE"
        return "ACTIVE" if self.member.joined else "STARTING"

    @property
    def connections(self) -> int:
        return len(self.host.transport.connected)

    @property
    def journal(self) -> JournalCondition | None:
        return self._journal.condition if self._journal is not None else None

    def disconnect_proven(self, secret: ClusterSecret) -> None:
        self.host.transport.disconnect(proven=secret)

    @property
    def queues(self) -> WireQueues:
        return self.host.transport.queues

    @property
    def calls_in_flight(self) -> int:
        return self.host.calls_in_flight

    @property
    def faults(self) -> Sequence[LinkChanged]:
        conditions = self.network.links.conditions
        return [condition for link, condition in sorted(conditions.items()) if link[0] == self.label]

    async def report(self, caller: Caller) -> MemberReport:
        state = await self.host.captured_state()
        utc_us = self._clock.utc_origin_us + state.clock_us
        return MemberReport(self.configuration.member, state, utc_us, tuple(self.faults))

    def now_us(self) -> int:
        return self._clock.now_us()

    async def do(self, command: commands.Command, caller: Caller) -> None:
        request_note().detail = command_text(command)
        self._check(command)
        await self._carry_out(command, caller)

    async def call(self, operation: Operation, caller: Caller) -> Answer:
        answered: asyncio.Future[Answer] = self._loop.create_future()

        def on_answer(answer: Answer) -> None:
            if not answered.done():
                answered.set_result(answer)

        began = self._loop.time()
        self.host.call(operation, watched=False, on_answer=on_answer)
        answer = await answered
        outcome = "done" if not answer.problem else "refused" if answer.untouched else "open"
        self.meters.calls[str(operation.__struct_config__.tag), outcome].add(self._loop.time() - began)
        return answer

    def identified(self, host: str) -> None:
        self.host.transport.known.add(host)

    def audited(self, entry: AuditEntry, kind: str) -> None:
        if self._audit_log is not None:
            self._audit_log.write(entry, kind)

    async def reconfigure(self, properties: dict[str, str | int | float | bool], caller: Caller) -> None:
        request_note().detail = ", ".join(f"{name}={value}" for name, value in properties.items())
        self.member.settings.changed_at_runtime(properties)
        command = commands.SetProperties(self.label, properties)
        self._record_request(command, caller)
        self.host.step(command)

    def shut_down(self, caller: Caller, *, whole_cluster: bool = False) -> None:
        command = commands.StopCluster(self.label) if whole_cluster else commands.StopMember(self.label)
        asked = self._record_request(command, caller)
        stop = partial(self.host.step, command, asked) if whole_cluster else self._stop_unless_stopping
        self._loop.call_later(ANSWER_SENT_SECONDS, stop)

    def _check(self, command: commands.Command) -> None:
        if self.host.ended:
            raise commands.CommandRefused(f"{self.label} has ended")
        if description_of(command).role == "fault" and not self.configuration.allow_faults:
            raise commands.CommandRefused(f"{self.label} was not started with --allow-faults")
        member = getattr(command, "member", self.label)
        if member not in (self.label, self.member.address):
            raise commands.CommandRefused(f"this is {self.label}, not {member}")

    async def _carry_out(self, command: commands.Command, caller: Caller) -> None:
        if isinstance(command, commands.LinkCommand):
            command = self._named(command)
            self._record_request(command, caller)
            self._change_links(command)
            return
        command = msgspec.structs.replace(command, member=self.label)
        check(command, (self.label,), self._condition_of)
        asked = self._record_request(command, caller)
        handler = HANDLERS.get(type(command))
        if handler is not None:
            handler(self, command)
        elif isinstance(command, MemberCommand):
            tries = self.member.settings.join_port_try_count
            await self.host.execute(with_addresses(command, self.network.addresses, tries), asked)

    def _record_request(self, command: commands.Command, caller: Caller) -> RecordId:
        who = f"{caller.name} at {caller.remote}" if caller.name else caller.remote
        tag = str(command.__struct_config__.tag)
        self.record(OperatorAsked(command_text(command), caller.role, who, True, "", do=tag, target=self.label))
        return RecordId(self._own_records_uuid, self._own_records)

    def _pause(self, _: commands.PauseMember) -> None:
        self.host.pause()
        self.record(ProcessPaused(self.label))

    def _resume(self, _: commands.ResumeMember) -> None:
        self.record(ProcessResumed(self.label))
        self.host.resume()

    def _condition_of(self, label: str) -> Condition:
        return "paused" if self.host.paused else "running"

    def _stop_unless_stopping(self) -> None:
        if not self._stopping and not self.host.ended:
            self.stop()

    def _named(self, command: commands.LinkCommand) -> commands.LinkCommand:
        """Name every member by its label if that is known here, and else by its address. Raises `CommandRefused`."""
        labels = {address: label for label, address in self.network.addresses.items()}
        known = []

        def name(text: str) -> str:
            try:
                address = self.network.addresses.get(text) or parse_address(text)
            except BadAddress as problem:
                raise commands.CommandRefused(f'unknown label "{text}"; name members by their addresses') from problem
            known.append(labels.get(address, address))
            return known[-1]

        command = with_names(command, name)
        named = () if isinstance(command, commands.Heal) else links_of(command)
        if next(islice(named, MOST_LINKS, None), None) is not None:
            raise commands.CommandRefused(f"this names more than {MOST_LINKS} links; name fewer at a time")
        check(command, known, self._condition_of)
        return command

    def _change_links(self, command: commands.LinkCommand) -> None:
        """Change links. Each member applies conditions to what it sends itself, so it records only those."""
        changed = [change for change in self.network.links.apply(command) if change.source == self.label]
        for condition in changed:
            self.record(condition)
        self.host.links_changed(changed)

    def record(self, event: Event) -> None:
        """Record what an operator or the network did, under the name of the cluster."""
        self._own_records += 1
        at = self._clock.now_us()
        utc = self._clock.utc_origin_us + at
        name = self.configuration.member.cluster_name
        self.recorded(Record(self.run, name, self._own_records_uuid, self._own_records, at, utc, event, form=FORM))

    def recorded(self, record: Record) -> None:
        journal = (self._journal.append,) if self._journal is not None else ()
        for consume in (self.records.append, self.picture.apply, *journal, *self._record_consumers):
            try:
                consume(record)
            except Exception:  # noqa: BLE001 - one consumer that fails costs neither the others nor the member
                _LOG.exception("a record of %s is not taken by all", self.label)
        if isinstance(record.event, events.ListInstalled):
            self.joined.set()

    def _journal_retention(self) -> Retention:
        settings = self.member.settings
        return Retention(settings.journal_retention_us / SECOND_US, settings.journal_retention_bytes)

    def _audit_log_retention(self) -> Retention:
        settings = self.member.settings
        return Retention(settings.audit_log_retention_us / SECOND_US, settings.audit_log_retention_bytes)

    def _journal_changed(self, condition: JournalCondition) -> None:
        """Record the change. Called in the thread of the journal, which may outlive the loop."""
        event = JournalChanged(self.label, condition.failure, condition.lost)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.record, event)

    def stranger_refused(self, refused: StrangerRefused) -> None:
        self.meters.refusals[refused.cause] += 1
        network = network_of(refused.remote.rpartition(":")[0].strip("[]"))
        if self._strangers.add((network, refused.cause), refused, own=1):
            self.record(refused)
        if self._strangers_due is None:
            self._strangers_due = self._loop.call_later(MINUTE_SECONDS, self._record_strangers)

    def _record_strangers(self) -> None:
        """Record how many more strangers were refused within the minute."""
        self._strangers_due = None
        for key, event, count in self._strangers.flush():
            who = "other hosts" if key == OTHERS else event.remote.rpartition(":")[0]
            more = f"{event.reason}; {count} more from {who} within a minute"
            self.record(msgspec.structs.replace(event, reason=more))

    def ended(self, host: Host, crashed: bool) -> None:
        self.crashed = crashed
        self.ended_event.set()


HANDLERS: dict[type[commands.Command], Callable[[MemberService, Any], object]] = {
    commands.KillMember: lambda service, _: service._loop.call_later(
        ANSWER_SENT_SECONDS, os.kill, os.getpid(), signal.SIGKILL
    ),
    commands.PauseMember: MemberService._pause,
    commands.ResumeMember: MemberService._resume,
    commands.ExpectMembers: lambda service, command: service.record(MembersExpected(command.size)),
    commands.StopMember: lambda service, _: service._stop_unless_stopping(),
    commands.StopCluster: lambda service, command: service._loop.call_later(
        ANSWER_SENT_SECONDS, service.host.step, command
    ),
}
"""Who carries out each command. The others are for the member itself, or about links."""

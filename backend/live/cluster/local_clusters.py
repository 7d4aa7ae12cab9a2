"""Clusters on this machine: of members inside this process, and of members that are processes of their own.

In one process a cluster is the quickest to start, and the easiest to look into. Processes are killed, frozen and delayed by the
operating system itself; each is commanded and reports over a pipe.

A pipe rather than the member's HTTP interface: what is written to it survives a SIGKILL, while a stream lost the last 40 records
of each killed member in a trial, which are those that explain the kill. A call takes a tenth of the time, too, and a
member can be given links and a kill point before it runs.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from random import Random

import msgspec

from quarterdeck.backend.core.cluster_snapshot import CapturedMember
from quarterdeck.backend.core.commands import CommandRefused, KillAt
from quarterdeck.backend.core.events import Record, StrangerRefused
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.live.cluster import pipe_messages as pipe
from quarterdeck.backend.live.cluster.live_cluster import LiveCluster
from quarterdeck.backend.live.member.member_host import AnswerCallback, Host, HostObserver, MemberCommand, MemberHost


class LocalCluster(LiveCluster):
    """A `LiveCluster` in one process.

    To pause a member here means that its sockets are not read and its clock not looked at; to kill it, that its sockets
    are broken off.
    """

    machine: type[MemberMachine] = MemberMachine

    def _host(self, configuration: MemberConfiguration, incarnation: int, kill_point: KillAt | None) -> Host:
        randomness = Random(f"{self._seed}/{configuration.label}/{incarnation}")
        machine = self.machine(configuration, randomness)
        name, cluster = configuration.label, configuration.cluster_name
        return MemberHost(name, cluster, machine, self._clock, self._network, self, self._timeouts, kill_point)


ROOT = str(Path(str(files("quarterdeck"))).parent)
"""Where a new process finds the code that this one runs."""

MEMBER_MODULE = "quarterdeck.backend.service.process.local_member"
"""What such a process runs. Its name only: this room knows nothing of what serves HTTP."""

ANSWER_TIMEOUT_SECONDS = 10.0
"""How long a process may take to begin, or to carry out a command, before it is given up."""

STATE_TIMEOUT_SECONDS = 2.0
"""How long a process may take to report its state."""

_LOG = logging.getLogger(__name__)


class ProcessHost:
    """A `Host` whose member runs in another process, which ends when this one does."""

    def __init__(self, begin: pipe.StartIncarnation, observer: HostObserver) -> None:
        self.label = begin.configuration.label
        self.paused = False
        self.joined = False
        self._first = begin
        self._observer = observer
        self._process: asyncio.subprocess.Process | None = None
        self._began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Callable[[pipe.Reply], None]] = {}
        """The handlers of the replies to each request."""
        self._following: asyncio.Task[None] | None = None
        self._started = False
        self._killed = False
        self._left = False
        self._last_stderr_line = ""

    async def start(self) -> None:
        """Start the process. Raises OSError when it cannot be started, its member has no port, or nothing is heard of it."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", MEMBER_MODULE),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=pipe.MAX_LINE_BYTES,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))},
            process_group=0,
        )
        self._following = asyncio.create_task(self._follow(self._process))
        self._order(self._first)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
                await self._began
        except TimeoutError as silent:
            await self.kill()
            raise OSError(f"its process said nothing for {ANSWER_TIMEOUT_SECONDS:g} s") from silent

    async def execute(self, command: MemberCommand) -> None:
        """Have it done or begun, and wait until it is; a frozen process only receives it.

        After a TimeoutError it is not known whether it will do it.
        """
        if self._has_ended:
            raise CommandRefused(f"{self.label} has ended")
        number = next(self._numbers)
        if self.paused:
            self._order(pipe.ExecuteCommand(number, command))
            return
        try:
            await self._reply_to(pipe.ExecuteCommand(number, command), ANSWER_TIMEOUT_SECONDS)
        except TimeoutError as silent:
            raise TimeoutError(f"{self.label} did not answer within {ANSWER_TIMEOUT_SECONDS:g} s; kill it") from silent

    def call(self, operation: Operation, watched: bool, on_answer: AnswerCallback) -> None:
        if self._has_ended:
            on_answer(Answer(problem=f"{self.label} has ended", untouched=True))
            return
        number = next(self._numbers)
        self._waiting[number] = lambda reply: on_answer(reply.answer or Answer(problem=reply.refusal))
        self._order(pipe.BeginCall(number, operation, watched))

    async def captured_state(self) -> CapturedMember:
        if self.paused or self._has_ended:
            raise CommandRefused("it is paused" if self.paused else "it has ended")
        try:
            reply = await self._reply_to(pipe.CaptureState(next(self._numbers)), STATE_TIMEOUT_SECONDS)
        except TimeoutError as silent:
            raise TimeoutError(f"it did not answer within {STATE_TIMEOUT_SECONDS:g} s") from silent
        assert reply.captured is not None
        return reply.captured

    async def _reply_to(self, request: pipe.ExecuteCommand | pipe.CaptureState, seconds: float) -> pipe.Reply:
        replied: asyncio.Future[pipe.Reply] = asyncio.get_running_loop().create_future()
        self._waiting[request.number] = lambda reply: None if replied.done() else replied.set_result(reply)
        self._order(request)
        try:
            async with asyncio.timeout(seconds):
                reply = await replied
        finally:
            self._waiting.pop(request.number, None)
        if reply.refusal:
            raise CommandRefused(reply.refusal)
        return reply

    async def wait_ended(self) -> bool:
        if self._following is not None:
            await asyncio.shield(self._following)
        return self._left

    async def kill(self) -> None:
        self._killed = True
        self._signal(signal.SIGKILL)
        if self._following is not None:
            await self._following

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        self._signal(signal.SIGCONT)

    def links_changed(self, conditions: Sequence[LinkChanged]) -> None:
        """Send the new conditions to the process; it applies them to its member's messages."""
        self._order(pipe.SetLinks(tuple(conditions)))

    # The pipes

    @property
    def _has_ended(self) -> bool:
        return self._following is None or self._following.done()

    def _order(self, order: pipe.PipeRequest) -> None:
        process = self._process
        if process is not None and process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(pipe.line_of(order))

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            try:
                self._process.send_signal(number)
            except ProcessLookupError:  # it has just ended by itself, and `_follow` reports it
                return

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        """Hear the process out until it ends, and say how it ended."""
        assert process.stdout is not None and process.stderr is not None
        reading_stderr = asyncio.create_task(self._read_stderr(process.stderr))
        try:
            while line := await process.stdout.readline():
                self._handle_report(pipe.PIPE_REPORT.decode(line))
        except (msgspec.DecodeError, ValueError) as problem:  # cut off in the middle, as a kill may do, or too long
            self._last_stderr_line = f"its process reported what cannot be read: {problem}"
            self._signal(signal.SIGKILL)
        finally:
            # asyncio sees neither the end of a pipe whose reader stands still nor that of its process.
            while await process.stdout.read(pipe.MAX_LINE_BYTES):
                pass
            await process.wait()
            await reading_stderr
            self._on_exit(process)

    async def _read_stderr(self, stderr: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await stderr.readline()
            except ValueError as problem:  # the line is longer than the buffer, which has dropped it
                line = f"a line that is left out: {problem}".encode()
            if not line:
                return
            self._last_stderr_line = line.decode(errors="replace").rstrip()
            _LOG.warning("%s: %s", self.label, self._last_stderr_line)

    def _handle_report(self, report: pipe.PipeReport) -> None:
        match report:
            case pipe.EventRecorded(Record(event=StrangerRefused() as refused)):
                self._observer.stranger_refused(refused)
            case pipe.EventRecorded(record):
                self.joined = self.joined or isinstance(record.event, ListInstalled)
                self._observer.recorded(record)
            case pipe.Reply(number):
                if on_reply := self._waiting.pop(number, None):
                    on_reply(report)
            case pipe.IncarnationStarted(reason, number):
                self._started = not reason
                self._begins(OSError(number, reason) if reason else None)
            case pipe.IncarnationEnded():
                self._left = True

    def _on_exit(self, process: asyncio.subprocess.Process) -> None:
        why = self._last_stderr_line or f"status {process.returncode}"
        self._begins(OSError(f"its process ended at once: {why}"))
        waiting, self._waiting = self._waiting, {}
        for number, on_reply in waiting.items():
            on_reply(pipe.Reply(number, f"{self.label} has ended"))
        if self._started and not self._killed:
            self._observer.ended(self, crashed=not self._left)

    def _begins(self, problem: OSError | None) -> None:
        if self._began.done():
            return
        if problem is None:
            self._began.set_result(None)
        else:
            self._began.set_exception(problem)


class ProcessCluster(LiveCluster):
    """A `LiveCluster` of processes: a kill is a SIGKILL, a pause a SIGSTOP.

    No member outlives the cluster, nor this process, however that ends: a member ends with its stdin, and a frozen one is
    woken for it by the system, because it stands in a process group of its own that has no parent any more.
    """

    def _host(self, configuration: MemberConfiguration, incarnation: int, kill_point: KillAt | None) -> Host:
        links = tuple(condition for _, condition in sorted(self._network.links.conditions.items()))
        seed = f"{self._seed}/{configuration.label}/{incarnation}"
        begin = pipe.StartIncarnation(
            configuration, self._clock, dict(self.addresses), links, seed, self._timeouts, kill_point
        )
        return ProcessHost(begin, self)

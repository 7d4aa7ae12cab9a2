"""The cluster whose members are processes of their own: what kills, freezes and delays them is the operating system itself."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

import quarterdeck
from quarterdeck.backend.core.commands import CommandRefused, KillAt
from quarterdeck.backend.core.data.operations import Answer, Operation
from quarterdeck.backend.core.events import LinkChanged, ListInstalled
from quarterdeck.backend.core.member import Birth
from quarterdeck.backend.live.control import (
    LONGEST_LINE_BYTES,
    REPORT,
    Answered,
    Began,
    Begin,
    Call,
    Do,
    Done,
    Links,
    Order,
    Over,
    Recorded,
    Report,
    Stranger,
    line_of,
)
from quarterdeck.backend.live.host import Host, Keeper, MemberCommand, TakeAnswer
from quarterdeck.backend.live.live_cluster import LiveCluster

ROOT = str(Path(quarterdeck.__file__).parents[1])
"""Where a new process finds the code that this one runs."""

CHILD = "quarterdeck.backend.service.local_member"
"""What such a process runs. Its name only: this room knows nothing of what serves HTTP."""

PATIENCE_SECONDS = 10.0
"""How long a process may take to begin, or to carry out a command, before it is given up."""

_LOG = logging.getLogger(__name__)


class ProcessCluster(LiveCluster):
    """A `LiveCluster` of processes: a kill is a SIGKILL, a pause a SIGSTOP.

    No member outlives the cluster, nor this process, however that ends: a member ends with its stdin, and a frozen one is
    woken for it by the system, because it stands in a process group of its own that nobody looks after any more.
    """

    def _host(self, birth: Birth, life: int, dies_at: KillAt | None) -> Host:
        links = tuple(condition for _, condition in sorted(self._network.links.conditions.items()))
        seed = f"{self._seed}/{birth.label}/{life}"
        begin = Begin(birth, self._clock, dict(self.addresses), links, seed, self._patience, dies_at)
        return ProcessHost(begin, self)


class ProcessHost:
    """The near end of one process: a `Host`."""

    def __init__(self, begin: Begin, keeper: Keeper) -> None:
        self.label = begin.birth.label
        self.paused = False
        self.joined = False
        self._first = begin
        self._keeper = keeper
        self._process: asyncio.subprocess.Process | None = None
        self._began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[None]] = {}
        self._calls: dict[int, TakeAnswer] = {}
        """Who waits for the answer to which call."""
        self._following: asyncio.Task[None] | None = None
        self._leads_life = False
        self._killed = False
        self._said_goodbye = False
        self._complaint = ""

    async def start(self) -> None:
        """Start the process. Raises OSError when it cannot be started, its member has no port, or nothing is heard of it."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", CHILD),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE_BYTES,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))},
            process_group=0,
        )
        self._following = asyncio.create_task(self._follow(self._process))
        self._order(self._first)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._began
        except TimeoutError as silent:
            await self.kill()
            raise OSError(f"its process said nothing for {PATIENCE_SECONDS:g} s") from silent

    async def obey(self, command: MemberCommand) -> None:
        """Have it done or begun, and wait until it is; a frozen process is only told.

        Raises `CommandRefused`, and TimeoutError when the process does not answer: then nobody knows whether it will do it.
        """
        if self._following is None or self._following.done():
            raise CommandRefused(f"{self.label} has ended")
        number = next(self._numbers)
        self._order(Do(number, command))
        if self.paused:
            return
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await answer
        except TimeoutError as silent:
            raise TimeoutError(f"{self.label} did not answer within {PATIENCE_SECONDS:g} s; kill it") from silent

    def call(self, operation: Operation, watched: bool, take: TakeAnswer) -> None:
        """Ask the member for an operation; `take` is given the answer, once, whatever becomes of the process."""
        if self._following is None or self._following.done():
            take(Answer(problem=f"{self.label} has ended", untouched=True))
            return
        number = next(self._numbers)
        self._calls[number] = take
        self._order(Call(number, operation, watched))

    async def over(self) -> bool:
        """Return when the process has ended: whether its member has so decided."""
        if self._following is not None:
            await asyncio.shield(self._following)
        return self._said_goodbye

    async def kill(self) -> None:
        """SIGKILL; returns when the process is gone and all that it had told was handed over."""
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
        self._order(Links(tuple(conditions)))

    # The pipes

    def _order(self, order: Order) -> None:
        process = self._process
        if process is not None and process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(line_of(order))

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            try:
                self._process.send_signal(number)
            except ProcessLookupError:  # it has just ended by itself, and `_follow` tells so
                return

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        """Hear the process out until it ends, and say how it ended."""
        assert process.stdout is not None and process.stderr is not None
        complaining = asyncio.create_task(self._hear_complaints(process.stderr))
        try:
            while line := await process.stdout.readline():
                self._take_in(REPORT.decode(line))
        except msgspec.DecodeError:  # cut off in the middle of a word, as a kill may do
            self._signal(signal.SIGKILL)
        await process.wait()
        await complaining
        self._conclude(process)

    async def _hear_complaints(self, stderr: asyncio.StreamReader) -> None:
        while line := await stderr.readline():
            self._complaint = line.decode(errors="replace").rstrip()
            _LOG.warning("%s: %s", self.label, self._complaint)

    def _take_in(self, report: Report) -> None:
        match report:
            case Recorded(record):
                self.joined = self.joined or isinstance(record.event, ListInstalled)
                self._keeper.recorded(record)
            case Stranger(remote, reason):
                self._keeper.stranger(remote, reason)
            case Done(number, refusal):
                if answer := self._answers.pop(number, None):
                    self._settle(answer, CommandRefused(refusal) if refusal else None)
            case Answered(number, outcome):
                self._calls.pop(number)(outcome)
            case Began(reason, number):
                self._leads_life = not reason
                self._settle(self._began, OSError(number, reason) if reason else None)
            case Over():
                self._said_goodbye = True

    def _conclude(self, process: asyncio.subprocess.Process) -> None:
        why = self._complaint or f"status {process.returncode}"
        self._settle(self._began, OSError(f"its process ended at once: {why}"))
        for answer in self._answers.values():
            self._settle(answer, CommandRefused(f"{self.label} has ended"))
        calls, self._calls = self._calls, {}
        for take in calls.values():
            take(Answer(problem=f"{self.label} has ended"))
        if self._leads_life and not self._killed:
            self._keeper.ended(self, crashed=not self._said_goodbye)

    @staticmethod
    def _settle(waited_for: asyncio.Future[None], problem: Exception | None) -> None:
        """Tell whoever waits, if anybody still does."""
        if waited_for.done():
            return
        if problem is None:
            waited_for.set_result(None)
        else:
            waited_for.set_exception(problem)

"""A member of a cluster on this machine, in a process of its own, which `backend.live.cluster.local_clusters` starts.

Requests come in on stdin and reports go out on stdout (`backend.live.cluster.pipe_messages`); what people should read goes to
stderr. The member's HTTP interface may be used as well, with everything switched on. The process ends with its member, or as
soon as stdin ends, because then nothing is left that could stop it.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from random import Random

import msgspec

from quarterdeck.backend.core.address import host_of
from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.live.cluster import pipe_messages as pipe
from quarterdeck.backend.live.transport.network import LiveNetwork
from quarterdeck.backend.service.configuration.process_configuration import ENDPOINT_GROUPS, ProcessConfiguration
from quarterdeck.backend.service.process.abandonable_threads import run_and_end
from quarterdeck.backend.service.process.member_service import MemberService

CLOSE_TIMEOUT_SECONDS = 1.0
"""How long a member that has stopped waits until its last messages are sent."""
STDIN, STDOUT, STDERR = 0, 1, 2
PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""


class LocalMember:
    """Runs the incarnation that `begin` describes, and reports on it to `reports`, a file descriptor."""

    def __init__(self, begin: pipe.StartIncarnation, reports: int) -> None:
        self._reports = reports
        configuration = begin.configuration
        network = LiveNetwork(begin.addresses, Random(f"{begin.seed}/network"))
        for condition in begin.links:
            network.take(condition)
        self.service = MemberService(
            ProcessConfiguration(
                configuration,
                host_of(configuration.address),
                configuration.join_list,
                endpoint_groups=dict.fromkeys(ENDPOINT_GROUPS, True),
                allow_faults=True,
            ),
            Random(begin.seed),
            begin.clock,
            network,
            record_consumers=(lambda record: self._send_report(pipe.EventRecorded(record)),),
            timeouts=begin.timeouts,
            kill_point=begin.kill_point,
        )

    async def run(self, orders: asyncio.StreamReader) -> None:
        """Run the incarnation, to its end or to that of `orders`."""
        try:
            await self.service.start()
        except OSError as problem:
            self._send_report(pipe.IncarnationStarted(problem.strerror or str(problem), problem.errno))
            return
        self._send_report(pipe.IncarnationStarted())
        running = [asyncio.create_task(self._obey(orders)), asyncio.create_task(self._wait_ended())]
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in running:
            if task.done():
                task.result()
            else:
                task.cancel()

    async def _wait_ended(self) -> None:
        """Return when the incarnation has ended and its last messages are sent."""
        await self.service.ended_event.wait()
        if not self.service.crashed:
            self._send_report(pipe.IncarnationEnded())
        await self.service.close(CLOSE_TIMEOUT_SECONDS)

    async def _obey(self, orders: asyncio.StreamReader) -> None:
        while line := await orders.readline():
            await self._execute(pipe.PIPE_REQUEST.decode(line))

    async def _execute(self, order: pipe.PipeRequest) -> None:
        host = self.service.host
        match order:
            case pipe.SetLinks(conditions):
                for condition in conditions:
                    self.service.network.take(condition)
                host.links_changed(conditions)
            case pipe.CaptureState(number):
                self._send_report(pipe.Reply(number, captured=await host.captured_state()))
            case pipe.BeginCall(number, operation, watched):
                host.call(operation, watched, lambda answer: self._send_report(pipe.Reply(number, answer=answer)))
            case pipe.ExecuteCommand(number, command):
                refusal = ""
                try:
                    await host.execute(command)
                except CommandRefused as refused:
                    refusal = str(refused)
                self._send_report(pipe.Reply(number, refusal))
            case pipe.StartIncarnation():
                raise TypeError("the member has begun already")

    def _send_report(self, report: pipe.PipeReport) -> None:
        """Write a report at once and as a whole, so that a kill of this process loses nothing that has happened before."""
        rest = memoryview(pipe.line_of(report))
        try:
            while rest:
                rest = rest[os.write(self._reports, rest) :]
        except BrokenPipeError:  # the cluster is gone
            os._exit(1)


async def run_local_member(reports: int) -> None:
    """Run one incarnation, from the first request to its end or to that of stdin."""
    orders = asyncio.StreamReader(limit=pipe.MAX_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), os.fdopen(STDIN))
    first = msgspec.json.decode(await orders.readline(), type=pipe.StartIncarnation)
    await LocalMember(first, reports).run(orders)


def end_with_parent() -> None:
    """Have the system kill this process when the thread that started it ends.

    A process that is frozen, or that writes to one that does not read, does not read stdin. Where the system cannot do
    that, the end of stdin must do.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


if __name__ == "__main__":
    own_stdout = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)  # what is printed is for people, not among the reports
    sys.stdout = sys.stderr
    end_with_parent()
    run_and_end(run_local_member(own_stdout))

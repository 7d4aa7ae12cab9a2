"""One member in a process of its own: ``python -m backend.live.member_process``, started by `backend.live.process_cluster`.

Orders come in on stdin, reports go out on stdout (`backend.live.control`), complaints for people on stderr. The process
ends with its member, or as soon as stdin does: nobody is left who could stop it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from random import Random

from backend.core.commands import CommandRefused
from backend.core.data.operations import Answer
from backend.core.events import Record
from backend.core.member import MemberMachine
from backend.live.control import (
    LONGEST_LINE_BYTES,
    ORDER,
    Answered,
    Began,
    Begin,
    Call,
    Do,
    Done,
    Links,
    Over,
    Recorded,
    Report,
    Stranger,
    line_of,
)
from backend.live.host import Host
from backend.live.member_host import MemberHost
from backend.live.network import Network

PARTING_SECONDS = 1.0
"""How long a member that has stopped waits for its last words to be under way."""

STDIN, STDOUT, STDERR = 0, 1, 2


class MemberProcess:
    """Leads the life that `begin` describes, and tells of it on `reports`, a file descriptor."""

    def __init__(self, begin: Begin, reports: int) -> None:
        self.over = asyncio.Event()
        self._reports = reports
        self._network = Network(begin.addresses, Random(f"{begin.seed}/network"))
        for condition in begin.links:
            self._network.take(condition)
        birth = begin.birth
        machine = MemberMachine(birth, Random(begin.seed), begin.clock.now_us)
        self._host = MemberHost(
            birth.label, birth.cluster_name, machine, begin.clock, self._network, self, begin.patience, begin.dies_at
        )

    async def begin(self) -> None:
        try:
            await self._host.start()
        except OSError as problem:
            self._report(Began(problem.strerror or str(problem), problem.errno))
            self.over.set()
        else:
            self._report(Began())

    async def obey(self, order: Do | Call | Links) -> None:
        match order:
            case Links(conditions):
                for condition in conditions:
                    self._network.take(condition)
                self._host.links_changed(conditions)
            case Call(number, operation, watched):
                self._host.call(operation, watched, partial(self._answered, number))
            case Do(number, command):
                try:
                    await self._host.obey(command)
                except CommandRefused as refusal:
                    self._report(Done(number, str(refusal)))
                else:
                    self._report(Done(number))

    async def closed(self) -> None:
        await self._host.closed(PARTING_SECONDS)

    # What the member tells

    def recorded(self, record: Record) -> None:
        self._report(Recorded(record))

    def stranger(self, remote: str, reason: str) -> None:
        self._report(Stranger(remote, reason))

    def ended(self, host: Host, crashed: bool) -> None:
        if not crashed:
            self._report(Over())
        self.over.set()

    def _answered(self, number: int, answer: Answer) -> None:
        self._report(Answered(number, answer))

    def _report(self, report: Report) -> None:
        """Written at once and as a whole, so that a kill of this process loses nothing that has happened before it."""
        rest = memoryview(line_of(report))
        try:
            while rest:
                rest = rest[os.write(self._reports, rest) :]
        except BrokenPipeError:  # the cluster is gone, and with it everybody who wants to know
            os._exit(1)


async def live(reports: int) -> None:
    """Lead one life, from the first order to its end or to that of stdin."""
    orders = asyncio.StreamReader(limit=LONGEST_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), os.fdopen(STDIN))
    first = ORDER.decode(await orders.readline())
    if not isinstance(first, Begin):
        raise TypeError(f"the first order has to be to begin, not {first}")
    member = MemberProcess(first, reports)
    await member.begin()
    obeying = asyncio.create_task(_obey(member, orders))
    ending = asyncio.create_task(member.over.wait())
    await asyncio.wait((obeying, ending), return_when=asyncio.FIRST_COMPLETED)
    if obeying.done():
        obeying.result()
    else:
        await member.closed()
        obeying.cancel()


async def _obey(member: MemberProcess, orders: asyncio.StreamReader) -> None:
    while line := await orders.readline():
        order = ORDER.decode(line)
        if isinstance(order, Begin):
            raise TypeError("the member has begun already")
        await member.obey(order)


if __name__ == "__main__":
    own_stdout = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)  # what anybody prints belongs to the people, not among the reports
    sys.stdout = sys.stderr
    asyncio.run(live(own_stdout))

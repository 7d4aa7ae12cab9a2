"""A member of a cluster on this machine, in a process of its own: ``python -m backend.service.local_member``, started by
`backend.live.process_cluster`.

Orders come in on stdin, reports go out on stdout (`backend.live.control`), complaints for people on stderr; who likes may use
the member's HTTP face as well, with everything switched on. The process ends with its member, or as soon as stdin does:
nobody is left who could stop it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from random import Random

from quarterdeck.backend.core.address import host_of
from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.core.data.operations import Answer
from quarterdeck.backend.core.events import Record, StrangerRefused
from quarterdeck.backend.live.control import (
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
from quarterdeck.backend.live.network import Network
from quarterdeck.backend.service.configuration import ENDPOINT_GROUPS, MemberConfiguration
from quarterdeck.backend.service.member_service import MemberService

PARTING_SECONDS = 1.0
"""How long a member that has stopped waits for its last words to be under way."""

STDIN, STDOUT, STDERR = 0, 1, 2


class LocalMember:
    """Leads the life that `begin` describes, and tells of it on `reports`, a file descriptor."""

    def __init__(self, begin: Begin, reports: int) -> None:
        self._reports = reports
        birth = begin.birth
        network = Network(begin.addresses, Random(f"{begin.seed}/network"))
        for condition in begin.links:
            network.take(condition)
        self.service = MemberService(
            MemberConfiguration(
                cluster_name=birth.cluster_name,
                label=birth.label,
                bind_host=host_of(birth.address),
                address=birth.address,
                join_list=birth.join_list,
                settings=birth.settings,
                lite=birth.lite,
                zone=birth.zone,
                endpoint_groups=dict.fromkeys(ENDPOINT_GROUPS, True),
                allow_faults=True,
            ),
            birth,
            Random(begin.seed),
            begin.clock,
            network,
            takers=(self._recorded,),
            patience=begin.patience,
            dies_at=begin.dies_at,
        )

    async def begin(self) -> bool:
        """Whether the life has begun."""
        try:
            await self.service.start()
        except OSError as problem:
            self._report(Began(problem.strerror or str(problem), problem.errno))
            return False
        self._report(Began())
        return True

    async def over(self) -> None:
        """Return when the life is over and its last words are said."""
        await self.service.over.wait()
        if not self.service.crashed:
            self._report(Over())
        await self.service.closed(PARTING_SECONDS)

    async def obey(self, order: Do | Call | Links) -> None:
        host = self.service.host
        match order:
            case Links(conditions):
                for condition in conditions:
                    self.service.network.take(condition)
                host.links_changed(conditions)
            case Call(number, operation, watched):
                host.call(operation, watched, partial(self._answered, number))
            case Do(number, command):
                try:
                    await host.obey(command)
                except CommandRefused as refusal:
                    self._report(Done(number, str(refusal)))
                else:
                    self._report(Done(number))

    # What the member tells

    def _recorded(self, record: Record) -> None:
        if isinstance(record.event, StrangerRefused):
            self._report(Stranger(record.event.remote, record.event.reason))  # told by the cluster, as all others of it
        else:
            self._report(Recorded(record))

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
    member = LocalMember(first, reports)
    if not await member.begin():
        return
    obeying = asyncio.create_task(_obey(member, orders))
    ending = asyncio.create_task(member.over())
    await asyncio.wait((obeying, ending), return_when=asyncio.FIRST_COMPLETED)
    if obeying.done():
        obeying.result()
    else:
        ending.result()
        obeying.cancel()


async def _obey(member: LocalMember, orders: asyncio.StreamReader) -> None:
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

"""What runs one incarnation of one member, and who observes it: the same inside this process and in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from quarterdeck.backend.core.causes import RefusalCause
from quarterdeck.backend.core.cluster_snapshot import CapturedMember
from quarterdeck.backend.core.commands.commands import CallMap, KillAt, MemberOrder
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.operations import Answer, Operation

MemberCommand = MemberOrder | CallMap | KillAt
"""What a member does when an operator asks for it. In a join list stand addresses only, no labels."""

AnswerCallback = Callable[[Answer], None]


class Host(Protocol):
    """One incarnation, running. It has ended when `HostObserver.ended` was called or `kill` has returned."""

    @property
    def label(self) -> str: ...

    @property
    def paused(self) -> bool: ...

    @property
    def joined(self) -> bool: ...

    async def start(self) -> None:
        """Bind the port and begin. Raises OSError, with nothing begun, when the port is not to be had."""

    async def execute(self, command: MemberCommand) -> None:
        """Do it, or begin to: a member that is to stop may first have to give its data away, and a call is not waited for.

        Raises `CommandRefused`, and then nothing was changed; TimeoutError when nothing is heard of the member.
        """

    def call(self, operation: Operation, watched: bool, on_answer: AnswerCallback) -> None:
        """Ask the member for an operation; `on_answer` is given the answer, once, whatever becomes of the member."""

    async def captured_state(self) -> CapturedMember:
        """All that the member knows. Raises `CommandRefused` when it cannot be asked, TimeoutError when it is not heard."""

    async def wait_ended(self) -> bool:
        """Return when the incarnation has ended and the port is free: whether it ended by its own decision."""

    async def kill(self) -> None:
        """End it without a goodbye. All that it has recorded was handed over before this returns."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def links_changed(self, conditions: Sequence[LinkChanged]) -> None: ...


class HostObserver(Protocol):
    """Receives what happens to hosts: a cluster, which records it."""

    def recorded(self, record: Record) -> None: ...

    def peer_rejected(self, remote: str, reason: str, cause: RefusalCause) -> None: ...

    def ended(self, host: Host, crashed: bool) -> None:
        """Note that the incarnation has ended by its own decision, crashed, or was killed by others."""

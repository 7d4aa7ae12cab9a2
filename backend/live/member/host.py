"""A place where one life of one member runs, and who keeps it: the same for a member inside this process and one of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from quarterdeck.backend.core.commands import CallMap, KillAt
from quarterdeck.backend.core.data.calls.operations import Answer, Operation
from quarterdeck.backend.core.events import LinkChanged, Record
from quarterdeck.backend.core.inputs import MemberOrder

MemberCommand = MemberOrder | CallMap | KillAt
"""What a member does when an operator asks for it. In a join list stand addresses only, no labels."""

AnswerCallback = Callable[[Answer], None]


class Host(Protocol):
    """One life, running. Over when `HostObserver.ended` was called or `kill` has returned."""

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

    async def over(self) -> bool:
        """Return when the life is over and the port is free: whether it ended by its own decision."""

    async def kill(self) -> None:
        """End it without a goodbye. All that it has recorded was handed over before this returns."""

    def pause(self) -> None:
        """Freeze it."""

    def resume(self) -> None:
        """Let it go on."""

    def links_changed(self, conditions: Sequence[LinkChanged]) -> None:
        """These links are now in these conditions."""


class HostObserver(Protocol):
    """Who keeps hosts and writes down what happens to them."""

    def recorded(self, record: Record) -> None:
        """The member made an event."""

    def peer_rejected(self, remote: str, reason: str) -> None:
        """Somebody on the member's port was refused."""

    def ended(self, host: Host, crashed: bool) -> None:
        """The member's life is over by its own decision, or because it crashed or somebody else killed it."""

"""A place where one life of one member runs, and who keeps it: the same for a member inside this process and one of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from backend.core.commands import ChangeState, Operate, SearchClusters, SetJoinList, StopMember
from backend.core.events import LinkChanged, Record

MemberCommand = StopMember | SetJoinList | ChangeState | SearchClusters | Operate
"""What a member does itself when an operator asks for it. In a join list stand addresses only, no labels."""


class Host(Protocol):
    """One life, running. Over when `Keeper.ended` was called or `kill` has returned."""

    @property
    def label(self) -> str: ...

    @property
    def paused(self) -> bool: ...

    @property
    def joined(self) -> bool: ...

    async def start(self) -> None:
        """Bind the port and begin. Raises OSError, with nothing begun, when the port is not to be had."""

    async def obey(self, command: MemberCommand) -> None:
        """Do it; after a stop the port is free. Raises `CommandRefused`, and then nothing was changed; TimeoutError when
        nothing is heard of the member."""

    async def kill(self) -> None:
        """End it without a goodbye. All that it has recorded was handed over before this returns."""

    def pause(self) -> None:
        """Freeze it."""

    def resume(self) -> None:
        """Let it go on."""

    def links_changed(self, conditions: Sequence[LinkChanged]) -> None:
        """These links are now in these conditions."""


class Keeper(Protocol):
    """Who keeps hosts and writes down what happens to them."""

    def recorded(self, record: Record) -> None:
        """The member made an event."""

    def stranger(self, remote: str, reason: str) -> None:
        """Somebody on the member's port was refused."""

    def ended(self, host: Host, crashed: bool) -> None:
        """The member's life is over by its own decision, or because it crashed or somebody else killed it."""

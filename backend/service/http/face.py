"""What the HTTP face of a member knows of it, and what it may ask of it: the contract between the paths and the process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.core.data.calls.operations import Answer, Operation
from quarterdeck.backend.core.events import LinkChanged, Record
from quarterdeck.backend.core.member import MemberMachine
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.service.configuration.process_configuration import ProcessConfiguration

Role = Literal["read", "write", "fault"]
"""What somebody may do: look, change what operators change, or harm on purpose. Each includes the one before."""

NodeState = Literal["STARTING", "ACTIVE", "PASSIVE", "SHUT_DOWN"]


class Caller(Struct, frozen=True):
    """Who asks: where from, and what they have shown to be allowed."""

    remote: str
    """Host and port of the other end."""
    role: Role
    name: str = ""
    """The name under which they have identified themselves, if any."""


class Face(Protocol):
    """One running member, as its HTTP face sees it. All of it belongs to the member's event loop."""

    @property
    def label(self) -> str: ...
    @property
    def address(self) -> Address: ...
    @property
    def uuid(self) -> str: ...
    @property
    def run(self) -> str: ...

    @property
    def configuration(self) -> ProcessConfiguration: ...

    @property
    def machine(self) -> MemberMachine:
        """To read properties of; commands go through `do` and `call`."""
        ...

    @property
    def picture(self) -> Picture:
        """Folded from all that this member has recorded; it knows nothing of what others record."""
        ...

    @property
    def node_state(self) -> NodeState: ...

    @property
    def connections(self) -> int:
        """How many connections to other members are open."""
        ...

    @property
    def faults(self) -> Sequence[LinkChanged]:
        """The link conditions in force here, as this member applies them to what it sends."""
        ...

    def now_us(self) -> int: ...

    def records_after(self, uuid: str, seq: int) -> tuple[bool, Sequence[Record]]:
        """The records since (`uuid`, `seq`), oldest first, and whether none in between is lost; see `RecordBuffer`."""
        ...

    async def do(self, command: Command, caller: Caller) -> None:
        """Have the member do it, and record that it was asked. Raises `CommandRefused`, which is recorded as well.

        Labels in commands about links are labels or addresses of members.
        """
        ...

    async def call(self, operation: Operation, caller: Caller) -> Answer:
        """Ask the member for an operation on a map."""
        ...

    def refused(self, what: str, caller: Caller, reason: str) -> None:
        """Record that somebody was not allowed something."""
        ...

    async def reconfigure(self, properties: dict[str, str | int | float | bool], caller: Caller) -> None:
        """Change properties at runtime. Raises `BadProperty`, and then nothing was changed."""
        ...

    def shut_down(self, caller: Caller, *, whole_cluster: bool = False) -> None:
        """Begin to stop gracefully, this member or all members of its cluster; returns at once."""
        ...

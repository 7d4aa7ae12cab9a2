"""A whole cluster at one moment, as far as its members reported: what a simulated copy of it begins from."""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.core.messages import Message


class InFlight(Struct, frozen=True):
    """A message that was sent and has not arrived. `due_us` is when it arrives, on the clock of the cluster."""

    sender: Address
    receiver: Address
    message: Message
    due_us: int
    because: RecordId | None = None
    """The record of its sender that brought it about."""


class CapturedMember(Struct, frozen=True):
    """What a running member reports of itself: all of it, at one moment."""

    state: bytes
    """What `MemberMachine.snapshot` gave."""
    clock_us: int
    """What its clock showed then."""
    waiting: tuple[InFlight, ...] = ()
    """What it has sent and still holds back, since a link is slow or a connection is just being made; due on its clock."""


class MemberReport(Struct, frozen=True):
    """What a member that runs elsewhere reports of itself, to a client that may change it."""

    configuration: MemberConfiguration
    captured: CapturedMember
    utc_us: int
    """UTC by its machine's clock at that moment."""
    links: tuple[LinkChanged, ...] = ()
    """The conditions that it applies to what it sends."""


class MemberSnapshot(Struct, frozen=True):
    """A member that runs, and what it reported of itself."""

    configuration: MemberConfiguration
    state: bytes
    """What `MemberMachine.snapshot` gave."""
    clock_us: int
    """What its clock showed then."""
    paused: bool = False
    lives: int = 1
    """How many processes of this member were started so far."""


class SilentMember(Struct, frozen=True):
    """A member that runs, as far as is known, and has reported nothing of itself: a copy takes it for silent."""

    configuration: MemberConfiguration
    why: str
    """Why nothing was reported, in words: such as "it is paused"."""


class ClusterSnapshot(Struct, frozen=True):
    """The cluster `name` at `at_us` on the clock of its run, which was `utc_us` in UTC."""

    name: str
    at_us: int
    utc_us: int
    members: tuple[MemberSnapshot, ...]
    untold: tuple[SilentMember, ...] = ()
    down: tuple[MemberConfiguration, ...] = ()
    """Members that do not run, and may be started."""
    links: tuple[LinkChanged, ...] = ()
    """Those that are not plain."""
    in_flight: tuple[InFlight, ...] = ()

    @property
    def configurations(self) -> tuple[MemberConfiguration, ...]:
        """Of all members that may ever run."""
        captured = (member.configuration for member in self.members)
        return (*captured, *(silent.configuration for silent in self.untold), *self.down)

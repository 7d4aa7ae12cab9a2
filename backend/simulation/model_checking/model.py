"""A model: a small cluster, the commands given to it, and the number of possible faults; and the states that it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, get_args

from msgspec import Struct
from pydantic import Field

from quarterdeck.backend.core import commands as do
from quarterdeck.backend.core.properties import PropertyValue
from quarterdeck.backend.scenarios.format.values import ScenarioModel

KNOWN_COMMANDS = (
    *(do.StartMember, do.KillMember, do.CallMap, do.Partition, do.CutLink, do.DropMessages, do.Heal, do.HealLink),
    *get_args(do.MemberOrder),
)
"""The choices that `transitions` carries out."""


Count = Annotated[int, Field(ge=0, strict=True)]


class Bounds(ScenarioModel):
    """The bound of each kind of trouble in one run. A kind without a bound may happen at every moment."""

    drops: Count = 0
    """Messages that get lost."""
    duplicates: Count = 0
    """Messages that arrive twice, the second time at any later moment."""
    crashes: Count = 0
    restarts: Count = 0
    late: Count = 0
    """How often a clock may go on while messages are on their way; each of them may then arrive at any later moment."""
    ticks: Annotated[int, Field(ge=1, strict=True)] = 10
    """How often a member's clock wakes it; then the run ends."""
    steps: Count | None = None
    """The bound of all kinds of trouble together in one run."""


class Model(Struct, frozen=True):
    """A cluster that has formed, and the commands that then come, each at any moment and in this order."""

    name: str
    title: str
    members: tuple[str, ...]
    """The members, in the order in which they are started. They become one cluster before anything is explored."""
    bounds: Bounds = Bounds()
    commands: tuple[do.Command, ...] = ()
    later: tuple[str, ...] = ()
    """Members that run only when a command starts them."""
    properties: Mapping[str, PropertyValue] = {}
    join_lists: Mapping[str, tuple[str, ...]] = {}
    """Whom a member asks for its cluster; all members when it is not named."""
    before: tuple[do.Command, ...] = ()
    """Commands that are carried out, one after the other in a calm cluster, before anything is explored."""
    prompt: tuple[str, ...] = ("heartbeat",)
    """Kinds of messages that arrive at once or, where the link is cut, never: their order is not explored."""

    calm_every: int = 500
    """The first state and one in so many others is followed by calm: all links are healed, the members have to become one
    cluster, and what was written is read."""

    @property
    def labels(self) -> tuple[str, ...]:
        return (*self.members, *self.later)


DOWN = -1

ChoiceKind = Literal["deliver", "drop", "duplicate", "crash", "restart", "tick", "command"]


class Transition(NamedTuple):
    """One possible next event."""

    kind: ChoiceKind
    member: int
    """Place of the member that it happens to; of the receiver, where it happens to a message."""
    sender: int = DOWN
    content: int = DOWN
    """Number of the message, or of the news that a member cannot be reached."""


class MessageInFlight(NamedTuple):
    """A message on its way, or the news that `sender` cannot be reached."""

    sender: int
    receiver: int
    content: int


class Spent(NamedTuple):
    """How much of each bound is used up."""

    drops: int = 0
    duplicates: int = 0
    crashes: int = 0
    restarts: int = 0
    late: int = 0
    ticks: int = 0
    commands: int = 0


class State(NamedTuple):
    """The facts that decide about the possible next events."""

    now_us: int
    members: tuple[int, ...]
    """By place, the number of the member's state; `DOWN` where no process runs."""
    starts: tuple[int, ...]
    in_flight: tuple[MessageInFlight, ...]
    spent: Spent

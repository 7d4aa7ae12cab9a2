"""What a state of a model is made of, and what can happen in it."""

from __future__ import annotations

from typing import Literal, NamedTuple

DOWN = -1

ChoiceKind = Literal["deliver", "drop", "duplicate", "crash", "restart", "tick", "command"]


class Transition(NamedTuple):
    """One thing that can happen next."""

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
    """Everything that decides about what can happen from here."""

    now_us: int
    members: tuple[int, ...]
    """By place, the number of the member's state; `DOWN` where no process runs."""
    lives: tuple[int, ...]
    in_flight: tuple[MessageInFlight, ...]
    spent: Spent

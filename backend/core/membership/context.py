"""What a member works with and is no part of its state: given at birth, and given again to whoever goes on from a snapshot."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.effects import Effect, Transmit
from quarterdeck.backend.core.membership.facts import Fact
from quarterdeck.backend.core.properties import Settings

Stopwatch = Callable[[], int]
"""Microseconds that really pass, from anywhere on."""


CLUSTER_NAME = "dev"
"""The name of a cluster that is given none."""


class MemberConfiguration(Struct, frozen=True):
    """All that a member is born with, besides its randomness.

    `run` and `label` only name it in its records. `utc_origin_us` is the UTC instant of zero on the run's clock.
    """

    run: str
    label: str
    address: Address
    join_list: tuple[Address, ...]
    settings: Settings
    utc_origin_us: int = 0
    lite: bool = False
    cluster_name: str = CLUSTER_NAME
    zone: str = ""


class Context:
    """The surroundings of one member. What changes in it is empty between two steps, or worked out once for many.

    `stopwatch` is the outer guard of computations that might take long when live; simulated members have none.
    """

    __slots__ = (
        "departing_for",
        "effects",
        "facts",
        "heartbeat_round",
        "member_configuration",
        "stopwatch",
    )

    def __init__(self, member_configuration: MemberConfiguration, stopwatch: Stopwatch | None = None) -> None:
        self.member_configuration = member_configuration
        self.stopwatch = stopwatch
        self.effects: list[Effect] = []
        """What the present step wants done; empty between two steps."""
        self.departing_for: Address | None = None
        """When the present step ends, this incarnation does too, and the next one joins that cluster."""
        self.facts: deque[Fact] = deque()
        """What chapters have told, and no chapter has reacted to yet; empty between two steps, too."""
        self.heartbeat_round: Transmit | None = None
        """The messages of a round of heartbeats (chapter `heartbeats`); None when they have to be made again."""

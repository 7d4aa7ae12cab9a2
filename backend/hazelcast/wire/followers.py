"""Follows a whole cluster, or its halves: which addresses there are, and which member is listened to for migrations.

Addresses are those of the settings, those on the lists that members tell, and those in the join lists of their
configuration. None is forgotten while this lives: the other half of a split is on nobody's list. Every member's listener hears
the migrations of its whole lineage, so only the master of each lineage has one.

It is as free of sockets and clocks as `Follower`, and is driven in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire.follower import Connection, Follower, Output
from quarterdeck.backend.hazelcast.wire.requests import Command, Question
from quarterdeck.backend.hazelcast.wire.settings import WatchSettings


class Followers:
    """One follower for each address that was ever found, up to a limit."""

    by_address: Mapping[Address, Follower]
    """By the name that the member gives itself."""
    deadline_us: int

    def __init__(self, settings: WatchSettings, random: Random, now_us: int) -> None:
        raise NotImplementedError

    def tick(self, now_us: int) -> list[Output]:
        """Hand the time to all followers whose deadline has come."""
        raise NotImplementedError

    def opened(self, now_us: int, connection: Connection) -> list[Output]:
        """See `Follower.opened`."""
        raise NotImplementedError

    def received(self, now_us: int, connection: Connection, data: bytes) -> list[Output]:
        """See `Follower.received`. New addresses in what was told are followed from now on."""
        raise NotImplementedError

    def closed(self, now_us: int, connection: Connection, reason: str, *, refused: bool = False) -> list[Output]:
        """See `Follower.closed`."""
        raise NotImplementedError

    def ask(self, now_us: int, address: Address, request: Question | Command, ticket: int) -> list[Output]:
        """Ask the member of that name. `Answered` follows, whatever happens; at once with `None` when it is not connected."""
        raise NotImplementedError

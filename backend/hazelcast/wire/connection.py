"""The sockets of a watch: what `Followers` wants dialled, sent and closed, done with asyncio."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire.follower import Follower
from quarterdeck.backend.hazelcast.wire.messages import Answer
from quarterdeck.backend.hazelcast.wire.observations import Observation
from quarterdeck.backend.hazelcast.wire.requests import Command, Question
from quarterdeck.backend.hazelcast.wire.settings import WatchSettings


class NoAnswer(Exception):
    """The connection ended before the answer came, or there was none. A shutdown is answered so."""


class MemberWatch:
    """Watches real members until `run` is cancelled.

    `hear` is called in the event loop for every observation, in order. `clock_us` is the run's clock, which all their times
    are of.
    """

    def __init__(
        self, settings: WatchSettings, hear: Callable[[Observation], None], clock_us: Callable[[], int], random: Random
    ) -> None:
        raise NotImplementedError

    @property
    def followed(self) -> Mapping[Address, Follower]:
        """Who is followed, and how it stands with each: `Follower.state`, `reason`, `since_us`."""
        raise NotImplementedError

    async def run(self) -> None:
        """Watch until cancelled; then close all connections. It ends by itself for no fault of a member."""
        raise NotImplementedError

    async def ask(self, address: Address, request: Question | Command, seconds: float = 10.0) -> Answer:
        """Ask one member, and wait for its answer. An `ErrorAnswer` is returned, not raised.

        Raises `NoAnswer` when the connection ends first or there is none, `TimeoutError` after `seconds`.
        """
        raise NotImplementedError

"""A watch in a test: everything it hears, and waiting for something to be heard."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire.connection import MemberWatch
from quarterdeck.backend.hazelcast.wire.messages import ConnectionReport, Heard, Message, Observation
from quarterdeck.backend.hazelcast.wire.route import SECOND_US, Pace, WatchSettings
from tests.waiting import LIMIT_SECONDS

QUICK = Pace(
    state_us=SECOND_US // 50,
    metrics_us=SECOND_US // 20,
    config_us=SECOND_US // 10,
    silent_after_us=SECOND_US // 10,
    redial_after_us=SECOND_US // 3,
    first_answer_us=SECOND_US // 5,
    dial_us=SECOND_US,
    first_wait_us=SECOND_US // 100,
    longest_wait_us=SECOND_US // 50,
    merging_wait_us=SECOND_US // 50,
    refused_wait_us=SECOND_US // 20,
    foreign_wait_us=SECOND_US // 20,
    bytes_per_second=1_000_000,
)
"""Hundredths of seconds instead of seconds."""


class Watched:
    """A watch that runs, with all that it heard."""

    def __init__(self, settings: WatchSettings) -> None:
        self.heard: list[Observation] = []
        self._news = asyncio.Event()
        self.watch = MemberWatch(settings, self._hear, lambda: time.monotonic_ns() // 1_000, Random(1))

    def _hear(self, observation: Observation) -> None:
        self.heard.append(observation)
        self._news.set()

    async def until(self, condition: Callable[[], bool], seconds: float = LIMIT_SECONDS) -> None:
        """Wait until `condition` holds, looking whenever something has been heard."""
        async with asyncio.timeout(seconds):
            while not condition():
                self._news.clear()
                await self._news.wait()

    def messages(self, address: Address) -> list[Message]:
        """All that one member told."""
        return [
            observation.message
            for observation in self.heard
            if isinstance(observation, Heard) and observation.address == address
        ]

    def states(self, address: Address) -> list[str]:
        """How it stood with one member, one after the other."""
        return [
            observation.state
            for observation in self.heard
            if isinstance(observation, ConnectionReport) and observation.address == address
        ]

    def reason(self, address: Address) -> str:
        """Why it stands so with a member."""
        return self.watch.followed[address].reason


@asynccontextmanager
async def watching(settings: WatchSettings) -> AsyncIterator[Watched]:
    """Watch for as long as the block lasts."""
    watched = Watched(settings)
    running = asyncio.create_task(watched.watch.run())
    await asyncio.sleep(0)
    try:
        yield watched
    finally:
        if running.done():
            await running
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

"""Members that are none, served by a thread of their own, for tests that are no coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any

from quarterdeck.backend.clusters.follower import Follower
from quarterdeck.backend.clusters.hazelcast.hazelcast_cluster import HazelcastCluster
from quarterdeck.backend.clusters.hazelcast.log_following import LogSource
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.hazelcast.wire.route import WatchSettings
from quarterdeck.backend.judgement.observations.story import LogStory
from quarterdeck.backend.live.cluster.background_loop import BackgroundLoop
from tests.hazelcast.wire.fake_member import FakeMember, start_cluster
from tests.hazelcast.wire.watching import QUICK
from tests.waiting import wait_until


class FakeCluster:
    """So many fake members. Whatever is done to them is done in their thread."""

    def __init__(self, members: list[FakeMember], loop: BackgroundLoop) -> None:
        self.members, self._loop = members, loop

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Of all, the master first."""
        return tuple(member.address for member in self.members)

    def do(self, act: Callable[[], Any]) -> None:
        """Return when `act` was called in the thread of the members."""
        done: Future[None] = Future()

        def acted() -> None:
            act()
            done.set_result(None)

        self._loop.hand_over(acted)
        done.result(10)

    def stop(self, member: FakeMember) -> None:
        """Be gone."""
        asyncio.run_coroutine_threadsafe(member.stop(), self._loop.loop).result(10)


@contextmanager
def fake_cluster(size: int) -> Iterator[FakeCluster]:
    """Fake members for as long as the block lasts."""
    loop = BackgroundLoop("fake members")
    loop.start(lambda: None)
    members = asyncio.run_coroutine_threadsafe(start_cluster(size), loop.loop).result(10)
    found = FakeCluster(members, loop)
    try:
        yield found
    finally:

        async def end() -> None:
            for member in members:
                await member.stop()

        loop.close(end)


class Watching:
    """A cluster that is watched, all its records, and the picture of them."""

    def __init__(self, cluster: HazelcastCluster) -> None:
        self.cluster = cluster
        self.records: list[Record] = []
        self._follower = Follower(cluster)
        self.picture = self._follower.picture

    def drain(self) -> None:
        """Take in what came."""
        self.records += self._follower.follow()

    @property
    def story(self) -> LogStory | None:
        """What is observed in the records so far."""
        return self._follower.story

    def events(self, kind: type[Event], member: str = "") -> list[Any]:
        """All events of a kind so far."""
        return [
            record.event for record in self.records if isinstance(record.event, kind) and member in ("", record.member)
        ]

    def until(self, condition: Callable[[], object]) -> None:
        """Take in records until `condition` holds."""

        def holds() -> object:
            self.drain()
            return condition()

        wait_until(holds, lambda: f"{[(record.member, record.event) for record in self.records]}")


@contextmanager
def watching(
    *addresses: Address, write: bool = False, settings: WatchSettings | None = None, logs: Sequence[LogSource] = ()
) -> Iterator[Watching]:
    """Watch the members that are found from these, for as long as the block lasts."""
    settings = replace(settings or WatchSettings(addresses), addresses=addresses, pace=QUICK)
    cluster = HazelcastCluster(settings, run="try", write=write, operator="hugo@desk", logs=logs, randomness=Random(1))
    try:
        yield Watching(cluster)
    finally:
        cluster.close()

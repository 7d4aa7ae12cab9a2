"""Unmodified members of each version: what is heard of them is what they log, in their splits, merges, deaths and silences.

`make test-hazelcast` brings the jars and runs this. With QUARTERDECK_RECORD=1 what the members send in the great run is kept
for the tests that need no Java.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.hazelcast.wire.codec.frames import PREAMBLE, Frame, MessageReader, encode_frames
from quarterdeck.backend.hazelcast.wire.codec.request_codec import REQUEST_HEAD, encode_request
from quarterdeck.backend.hazelcast.wire.connection import NoAnswer
from quarterdeck.backend.hazelcast.wire.messages import (
    ClusterMetadata,
    ConnectionReport,
    ErrorAnswer,
    Heard,
    MembersView,
    Observation,
    PartitionsView,
    ReplicaMigrationEvent,
    RequestDone,
    TopicRefused,
)
from quarterdeck.backend.hazelcast.wire.requests import (
    Authenticate,
    ChangeClusterState,
    GetClusterMetadata,
    NameOnly,
    PromoteLiteMember,
    ShutDownMember,
)
from quarterdeck.backend.hazelcast.wire.route import SECOND_US, Pace, WatchSettings
from tests.hazelcast.real.member_logs import LOG_FORMAT, lists_in
from tests.hazelcast.real.real_cluster import VERSIONS, RealCluster, why_not
from tests.hazelcast.real.recording import RecordedWatch, write_recording

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

PARTITIONS = 31
"""Fewer than usual, so that recordings are small."""


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Each version whose jar is here."""
    reason = why_not(request.param)
    if reason is not None:
        pytest.skip(reason)
    return str(request.param)


@pytest.fixture
def cluster(version: str, tmp_path: Path) -> Iterator[RealCluster]:
    """Four members that have not been started."""
    with RealCluster(version, tmp_path, 4, properties={"hazelcast.partition.count": str(PARTITIONS)}) as made:
        yield made


class Watching:
    """A watch of real members on the clock of their logs."""

    def __init__(self, settings: WatchSettings) -> None:
        self.heard: list[Observation] = []
        self._news = asyncio.Event()
        self.watch = RecordedWatch(settings, self._hear, lambda: time.time_ns() // 1_000, Random(1))

    async def until(self, what: str, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait for something that real members do in their own time."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            states = {one: (follower.state, follower.reason) for one, follower in self.watch.followed.items()}
            raise AssertionError(f"not within {seconds} s: {what}; {states}; {self.heard[-3:]}") from None

    def _hear(self, observation: Observation) -> None:
        self.heard.append(observation)
        self._news.set()

    def views(self, address: Address) -> list[tuple[str, MembersView]]:
        """All lists that one member told, with the incarnation that told them."""
        return [
            (observation.member_uuid, observation.message)
            for observation in self.heard
            if isinstance(observation, Heard)
            and observation.address == address
            and isinstance(observation.message, MembersView)
        ]

    def sizes(self, *addresses: Address) -> list[int]:
        """How many members each of these has on its latest list."""
        latest = [self.views(address) for address in addresses]
        return [len(views[-1][1].members) if views else 0 for views in latest]

    def states(self, address: Address) -> list[str]:
        """How it stood with a member, one after the other."""
        return [
            observation.state
            for observation in self.heard
            if isinstance(observation, ConnectionReport) and observation.address == address
        ]

    def owners(self, address: Address) -> tuple[str | None, ...]:
        """Who owns what, as one member told last."""
        tables = [
            observation.message
            for observation in self.heard
            if isinstance(observation, Heard)
            and observation.address == address
            and isinstance(observation.message, PartitionsView)
        ]
        if not tables:
            return ()
        return tuple(tables[-1].holders[place] if place >= 0 else None for place in tables[-1].owners)


@asynccontextmanager
async def watching(cluster: RealCluster, *addresses: Address, name: str = "dev") -> AsyncIterator[Watching]:
    """Watch from the members' own network."""
    watched = Watching(WatchSettings(addresses, cluster_name=name, pace=Pace(metrics_us=20 * SECOND_US)))
    with cluster.inside():
        running = asyncio.create_task(watched.watch.run())
        try:
            yield watched
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def arrange_partitions(address: Address) -> None:
    """Have the first arrangement of partitions made, which otherwise waits for the first access to data."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    who = Authenticate("dev", NameOnly(), "00000000-0000-0000-0000-0000000000aa", "arranger", "5.0")
    messages = MessageReader()
    for request in (PREAMBLE + encode_request(who, 1), encode_frames([Frame(0, REQUEST_HEAD.pack(0x001000, 2, -1))])):
        writer.write(request)
        while not messages.feed(data := await reader.read(65536)):
            assert data, "the member hung up"
    writer.close()


def test_all_that_befalls_a_cluster_is_heard_as_its_members_log_it(cluster: RealCluster) -> None:
    asyncio.run(great_run(cluster))


async def great_run(cluster: RealCluster) -> None:
    one, two, three, four = map(cluster.address, cluster.everybody)
    logged = (LOG_FORMAT,)
    cluster.start(1, arguments=logged)
    async with watching(cluster, one) as watched:
        await watched.until("the first member", lambda: watched.sizes(one) == [1])
        assert watched.states(one)[-1] == "connected"
        for number, address in enumerate((two, three, four), start=2):
            cluster.start(number, arguments=logged)
            await watched.until(
                "a member joins", lambda size=number, it=address: watched.sizes(one, it) == [size, size]
            )
        await arrange_partitions(one)
        everybody = (one, two, three, four)
        await watched.until("one table", lambda: settled(watched, everybody))

        cluster.signal(4, signal.SIGKILL)
        await watched.until("the killed one is off the lists", lambda: watched.sizes(one, two, three) == [3, 3, 3])
        assert watched.states(four)[-1] == "gone"
        await watched.until("its partitions have owners", lambda: settled(watched, (one, two, three)))
        cluster.start(4, arguments=logged)
        await watched.until("another incarnation of it", lambda: watched.sizes(*everybody) == [4] * 4)
        await watched.until("migrations end", lambda: settled(watched, everybody))
        assert any(isinstance(it, Heard) and isinstance(it.message, ReplicaMigrationEvent) for it in watched.heard)

        cluster.signal(3, signal.SIGSTOP)
        await watched.until("the frozen one is silent", lambda: watched.states(three)[-1] == "silent")
        await watched.until("the frozen one is off the lists", lambda: watched.sizes(one, two, four) == [3, 3, 3])
        cluster.signal(3, signal.SIGCONT)
        await watched.until("it is back", lambda: watched.sizes(*everybody) == [4] * 4, 90)

        cluster.cut((1, 2), (3, 4))
        await watched.until("both halves", lambda: watched.sizes(*everybody) == [2] * 4, 90)
        cluster.heal()
        await watched.until("the merge", lambda: watched.sizes(*everybody) == [4] * 4, 120)
        assert any("merging" in watched.states(address) for address in everybody)

        await watched.until("migrations end", lambda: settled(watched, everybody))
        await change_state(watched, two, "FROZEN")
        for address in everybody:
            state = await watched.watch.ask(address, GetClusterMetadata())
            assert isinstance(state, ClusterMetadata)
            assert state.state == "FROZEN"
        await change_state(watched, two, "ACTIVE")
        if os.environ.get("QUARTERDECK_RECORD"):
            write_recording(cluster.version, watched.watch.pieces)
    compare_with_logs(cluster, watched)


async def change_state(watched: Watching, address: Address, wanted: ClusterState) -> None:
    """The product refuses while replicas are still being copied; then it is asked again."""
    async with asyncio.timeout(60):
        while True:
            answer = await watched.watch.ask(address, ChangeClusterState(wanted))
            if answer == RequestDone():
                return
            assert isinstance(answer, ErrorAnswer)
            assert "pending migration" in answer.message or "different stamps" in answer.message
            await asyncio.sleep(1)


def settled(watched: Watching, addresses: tuple[Address, ...]) -> bool:
    """Whether all of these tell one table, in which every one owns something."""
    tables = {watched.owners(address) for address in addresses}
    uuids = {watched.watch.followed[address].member_uuid for address in addresses}
    return len(tables) == 1 and set(next(iter(tables))) == uuids


def compare_with_logs(cluster: RealCluster, watched: Watching) -> None:
    """No list is missed while we were connected, none is made up, and it is heard soon."""
    late_ms: list[float] = []
    for number in cluster.everybody:
        address = cluster.address(number)
        heard = {
            (it.member_uuid, it.message.version, tuple(member.uuid for member in it.message.members)): it.at_us
            for it in reversed(watched.heard)
            if isinstance(it, Heard) and it.address == address and isinstance(it.message, MembersView)
        }
        logged = {(it.member_uuid, it.version, it.uuids): it.at_us for it in lists_in(cluster.log(number))}
        assert logged.keys() >= {known for known in heard if known[0] in {uuid for uuid, *_ in logged}}
        connected_us = {uuid: min(at for (who, *_), at in heard.items() if who == uuid) for uuid, *_ in heard}
        for known, at_us in logged.items():
            if known[0] in connected_us and at_us >= connected_us[known[0]]:
                assert known in heard, known
                late_ms.append((heard[known] - at_us) / 1000)
    late_ms.sort()
    print(
        f"{cluster.version}: {len(late_ms)} lists, late by p50 {late_ms[len(late_ms) // 2]:.0f} ms, most {late_ms[-1]:.0f} ms"
    )
    assert late_ms[len(late_ms) // 2] <= 50
    assert late_ms[-1] <= 500


def test_what_is_refused_is_not_told_and_operators_commands_work(version: str, tmp_path: Path) -> None:
    asyncio.run(small_run(version, tmp_path))


async def small_run(version: str, folder: Path) -> None:
    trusted = "<management-center><trusted-interfaces><interface>10.99.0.1</interface></trusted-interfaces></management-center>"
    with RealCluster(version, folder, 2, more=trusted) as cluster:
        cluster.start(1)
        one = cluster.address(1)
        async with watching(cluster, one) as watched:
            await watched.until("the first member", lambda: watched.sizes(one) == [1])
            await watched.until(
                "refusals", lambda: len([it for it in watched.heard if isinstance(it, TopicRefused)]) == 4
            )
            assert {it.topic for it in watched.heard if isinstance(it, TopicRefused)} == {
                "cluster-state",
                "config",
                "properties",
                "metrics",
            }
            await asyncio.sleep(3)
            assert watched.states(one)[-1] == "connected"
        async with watching(cluster, one, name="another") as watched:
            await watched.until("the wrong name", lambda: watched.states(one) == ["refused"])
            assert "not named 'another'" in watched.watch.followed[one].reason
    with RealCluster(version, folder, 2, more="<lite-member enabled='true'/>") as cluster:
        cluster.start(1)
        one = cluster.address(1)
        async with watching(cluster, one) as watched:
            await watched.until("the lite member", lambda: bool(watched.views(one)))
            assert watched.views(one)[-1][1].members[0].lite
            assert await watched.watch.ask(one, PromoteLiteMember()) == RequestDone()
            await watched.until("its promotion", lambda: not watched.views(one)[-1][1].members[0].lite)
            with suppress(NoAnswer):
                await watched.watch.ask(one, ShutDownMember())
            await watched.until("its end", lambda: watched.states(one)[-1] == "gone")

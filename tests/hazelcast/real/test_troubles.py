"""Troubles of unmodified members as the console has them: its cluster, its picture, and what it suggests and does about them."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from signal import Signals

import pytest
import trustme

from quarterdeck.backend.clusters.hazelcast.hazelcast_cluster import HazelcastCluster
from quarterdeck.backend.clusters.hazelcast.log_following import LogSource
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import CommandRefused, Diagnose, StopCluster
from quarterdeck.backend.core.membership.events import (
    HeartbeatLate,
    ListInstalled,
    MemberMerging,
    MemberStarted,
    SuspicionRaised,
)
from quarterdeck.backend.core.witnessed.events import MemberWitnessed
from quarterdeck.backend.hazelcast.wire.requests import Credentials, RequestToken, UserAndPassword
from quarterdeck.backend.hazelcast.wire.route import Pace, TlsOptions, WatchSettings
from quarterdeck.backend.judgement.merging.why_not_merging import why_not_merging
from quarterdeck.backend.live.cluster.background_loop import BackgroundLoop
from tests.clusters.hazelcast.fake_cluster import Watching
from tests.hazelcast.real.member_logs import LOG_FORMAT
from tests.hazelcast.real.real_cluster import RealCluster, wait_for
from tests.hazelcast.real.test_real_members import version

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

__all__ = ["version"]

PACE = Pace(config_us=5_000_000)


class Console(Watching):
    """What a console has of real members."""

    def wait(self, what: str, condition: Callable[[], object], seconds: float = 120) -> None:
        """Take in what is heard until `condition` holds."""

        def holds() -> bool:
            self.drain()
            return bool(condition())

        try:
            wait_for(holds, seconds, what)
        except AssertionError as never:
            state = {
                label: (one.state, one.why, self.sizes(label))
                for label, one in self.cluster.connection_status().items()
            }
            raise AssertionError(f"{never}; {state}") from never

    def sizes(self, *labels: str) -> list[int]:
        """How many members each of these has on its list."""
        beliefs = [self.picture.members.get(label) for label in labels]
        return [0 if belief is None else len(belief.members) for belief in beliefs]

    def lives(self, label: str) -> list[str]:
        """The uuids that a member had, in order."""
        return list(dict.fromkeys(record.uuid for record in self.records if record.member == label))


@contextmanager
def console_on(
    cluster: RealCluster, settings: WatchSettings, *, write: bool = False, logs: Sequence[LogSource] = ()
) -> Iterator[Console]:
    """A console that stands in the members' network: its thread is made there, and stays."""
    with cluster.inside():
        opened = HazelcastCluster(settings, run="try", write=write, operator="hugo", logs=logs, randomness=Random(1))
    try:
        yield Console(opened)
    finally:
        opened.close()


def watched(*addresses: Address) -> WatchSettings:
    return WatchSettings(addresses, pace=PACE)


def test_halves_that_list_only_themselves_are_healed_by_the_edit_that_is_suggested(
    version: str, tmp_path: Path
) -> None:
    lists = {1: [1, 2], 2: [1, 2], 3: [3, 4], 4: [3, 4]}
    with RealCluster(version, tmp_path, 4, rest=True, join_lists=lists) as cluster:
        one, _, three, _ = everybody = [cluster.address(it) for it in cluster.everybody]
        cluster.start(1, 3)
        with console_on(cluster, watched(one, three), write=True) as console:
            console.wait("two masters", lambda: console.sizes(one, three) == [1, 1])
            cluster.start(2, 4)
            console.wait("two halves", lambda: console.sizes(*everybody) == [2] * 4)
            beliefs = console.picture.members
            console.wait("their join lists", lambda: all(beliefs[it].shows("join-list") for it in everybody))
            (pair,) = why_not_merging(console.picture, console.cluster.now_us())
            assert pair.state == "blocked" and pair.unblock is not None
            assert {one, three} == {pair.smaller, pair.greater}
            if version < "5.2":
                with pytest.raises(CommandRefused, match=r"before 5\.2"):
                    console.cluster.execute(pair.unblock.commands[0]).result(30)
                return
            for command in pair.unblock.commands:
                console.cluster.execute(command).result(30)
            console.wait("one cluster", lambda: console.sizes(*everybody) == [4] * 4)
            assert len({beliefs[it].lineage for it in everybody}) == 1
            assert why_not_merging(console.picture, console.cluster.now_us()) == ()
            assert console.events(MemberMerging)


def test_a_rolling_restart_is_three_lives_that_end_and_three_that_begin(version: str, tmp_path: Path) -> None:
    with RealCluster(version, tmp_path, 3) as cluster:
        everybody = [cluster.address(it) for it in cluster.everybody]
        cluster.start(1)
        with console_on(cluster, watched(everybody[0])) as console:
            console.wait("the first member", lambda: console.sizes(everybody[0]) == [1])
            cluster.start(2, 3)
            console.wait("the cluster", lambda: console.sizes(*everybody) == [3] * 3)
            for number, address in enumerate(everybody, start=1):
                before = len(console.lives(address))
                cluster.signal(number, Signals.SIGTERM)
                others = [it for it in everybody if it != address]
                console.wait("it has left", lambda others=others: console.sizes(*others) == [2, 2])
                cluster.processes[number].wait(60)
                cluster.start(number)
                console.wait(
                    "it is back",
                    lambda address=address, before=before: (
                        len(console.lives(address)) > before and console.sizes(*everybody) == [3] * 3
                    ),
                )
            assert [len(console.lives(it)) for it in everybody] == [2, 2, 2]
            assert not console.events(MemberMerging)
            began = console.events(MemberStarted)
            assert len(began) >= 3 and not any(it.merged_from for it in began)
            assert len(console.picture.masters()) == 1
            for address in everybody:
                assert len(console.events(MemberWitnessed, address)) <= 2 * len(console.lives(address)) + 1


def test_a_partial_disconnection_removes_and_readmits_for_as_long_as_it_lasts(version: str, tmp_path: Path) -> None:
    partial = {"hazelcast.partial.member.disconnection.resolution.heartbeat.count": "3"}
    with RealCluster(version, tmp_path, 3, properties=partial) as cluster:
        one, *_ = everybody = [cluster.address(it) for it in cluster.everybody]
        cluster.start(1, arguments=(LOG_FORMAT,))
        logs = [LogSource(cluster.log(it), cluster.address(it)) for it in cluster.everybody]
        for it in cluster.everybody:
            cluster.log(it).touch()
        with console_on(cluster, watched(one), logs=logs) as console:
            console.wait("the first member", lambda: console.sizes(one) == [1])
            cluster.start(2, 3, arguments=(LOG_FORMAT,))
            console.wait("the cluster", lambda: console.sizes(*everybody) == [3] * 3)
            before = len(console.events(ListInstalled, one))
            cluster.cut_links([(2, 3), (3, 2)])

            def sizes_since() -> list[int]:
                return [len(it.members) for it in console.events(ListInstalled, one)[before:]]

            console.wait("two removals", lambda: sizes_since().count(2) >= 2, 180)
            assert 3 in sizes_since()
            assert console.events(SuspicionRaised)
            cluster.heal()
            console.wait("one cluster", lambda: console.sizes(*everybody) == [3] * 3, 180)


def test_the_whole_cluster_is_stopped(version: str, tmp_path: Path) -> None:
    with RealCluster(version, tmp_path, 2) as cluster:
        one, two = (cluster.address(it) for it in cluster.everybody)
        cluster.start(1)
        with console_on(cluster, watched(one), write=True) as console:
            console.wait("the first member", lambda: console.sizes(one) == [1])
            cluster.start(2)
            console.wait("both", lambda: console.sizes(one, two) == [2, 2])
            console.cluster.execute(StopCluster(two)).result(60)
            for process in cluster.processes.values():
                process.wait(60)
            contacts = console.cluster.connection_status
            console.wait("nobody is there", lambda: {it.state for it in contacts().values()} == {"gone"})


def test_over_tls_with_a_terminator_before_the_members(version: str, tmp_path: Path) -> None:
    """The open-source product has no TLS of its own. So this proves our side, not the product's."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    with RealCluster(version, tmp_path, 2) as cluster:
        one, two = (cluster.address(it) for it in cluster.everybody)
        cluster.start(1)
        with terminator(cluster, authority) as mapped:
            settings = WatchSettings(
                (mapped[one],), tls=TlsOptions(tmp_path / "authority.pem"), address_map=mapped, pace=PACE
            )
            with console_on(cluster, settings) as console:
                console.wait("the first member", lambda: console.sizes(one) == [1])
                cluster.start(2)
                console.wait("both", lambda: console.sizes(one, two) == [2, 2])
                beliefs = console.picture.members
                console.wait("their settings", lambda: all(beliefs[it].shows("settings") for it in (one, two)))


@contextmanager
def terminator(cluster: RealCluster, authority: trustme.CA) -> Iterator[dict[Address, Address]]:
    """Where each member is reached over TLS, by its own address."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("10.77.0.254").configure_cert(context)
    mapped = {cluster.address(it): Address(f"10.77.0.254:{5800 + it}") for it in cluster.everybody}
    begun = threading.Event()
    loop = BackgroundLoop("terminator")

    async def serve() -> None:
        for inner, outer in mapped.items():
            host, port = outer.split(":")
            await asyncio.start_server(lambda r, w, to=inner: passed_on(to, r, w), host, int(port), ssl=context)
        begun.set()

    with cluster.inside():
        loop.start(lambda: None)
    asyncio.run_coroutine_threadsafe(serve(), loop.loop).result(10)
    try:
        yield mapped
    finally:

        async def end() -> None:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

        loop.close(end)


async def passed_on(to: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Bytes both ways until one side ends."""
    host, port = to.split(":")
    try:
        inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
    except OSError:
        writer.close()
        return
    try:
        await asyncio.wait(
            [asyncio.create_task(copy(reader, inner_writer)), asyncio.create_task(copy(inner_reader, writer))],
            return_when=asyncio.FIRST_COMPLETED,
        )
    finally:
        inner_writer.close()
        writer.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """All bytes until there are no more."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


@pytest.mark.parametrize(
    "credentials", [UserAndPassword("hugo", "wrong"), RequestToken(b"wrong")], ids=["password", "token"]
)
def test_who_asks_with_a_password_or_a_token(version: str, credentials: Credentials, tmp_path: Path) -> None:
    with RealCluster(version, tmp_path, 1) as cluster:
        one = cluster.address(1)
        cluster.start(1)
        with console_on(cluster, WatchSettings((one,), credentials=credentials, pace=PACE)) as console:
            status = console.cluster.connection_status
            console.wait("an answer", lambda: any(it.state in ("connected", "refused") for it in status().values()))
            (told,) = status().values()
            assert told.state == "refused" and "user and password do not fit" in told.why


def test_diagnostics_are_written_for_a_time_and_read(version: str, tmp_path: Path) -> None:
    with RealCluster(version, tmp_path, 2, properties={"hazelcast.max.no.heartbeat.seconds": "60"}) as cluster:
        one, two = (cluster.address(member) for member in cluster.everybody)
        cluster.start(1, 2)
        logs = [LogSource(cluster.log(member), cluster.address(member)) for member in cluster.everybody]
        with console_on(cluster, watched(one), write=True, logs=logs) as console:
            console.wait("the cluster", lambda: console.sizes(one, two) == [2, 2])
            asked = console.cluster.execute(Diagnose(one, 90_000_000))
            if version < "5.6":
                with pytest.raises(CommandRefused):
                    asked.result(60)
                return
            asked.result(60)
            for member in cluster.everybody:  # one is asked, and all write
                log = cluster.log(member)
                console.wait("an end that is set", lambda log=log: "to be disabled after 2 MINUTES" in log.read_text())
            cluster.signal(2, Signals.SIGSTOP)
            console.wait(
                "late heartbeats", lambda: [it for it in console.events(HeartbeatLate, one) if it.silence > 3e6]
            )
            cluster.signal(2, Signals.SIGCONT)
            console.wait("heartbeats again", lambda: [it for it in console.events(HeartbeatLate, one) if it.over])
            story = console.story
            assert story is not None
            (seen,) = (it for it in story.observations if it.kind == "late-heartbeats" and it.members == (one, two))
            assert not seen.is_open
            console.cluster.execute(Diagnose(one, 0)).result(60)
            console.wait("no more", lambda: "Diagnostics disabled" in cluster.log(2).read_text())

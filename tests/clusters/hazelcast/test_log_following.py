"""Logs beside the connections: what only logs say has the same numbering, and what was there before is not reported as new."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quarterdeck.backend.clusters.hazelcast.log_following import GrowingFile, LogFollowing, LogSource, log_sources
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.events import ListInstalled, SuspicionRaised
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.witnessed.events import OwnersTold
from quarterdeck.backend.hazelcast.wire.route import Route
from quarterdeck.backend.hazelcast.witness.log_witness import LogClocks, Logged
from tests.clusters.hazelcast.fake_cluster import fake_cluster, watching
from tests.hazelcast.wire.fake_member import uuid_of
from tests.waiting import wait_until


def named(address: Address) -> str:
    host, _, port = address.rpartition(":")
    return f"[{host}]:{port}"


def head(writer: Address, at_s: float) -> str:
    stamp = datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    return f"{stamp} [ INFO] [hz.main] [c.h.i.c.ClusterService]: {named(writer)} [dev] [5.3.8] "


def listed(writer: Address, other: Address, at_s: float) -> str:
    entries = f"\tMember {named(writer)} - {uuid_of(1)} this\n\tMember {named(other)} - {uuid_of(2)}\n"
    return f"{head(writer, at_s)}\n\nMembers {{size:2, ver:1}} [\n{entries}]\n"


def suspicion(writer: Address, suspect: Address, at_s: float) -> str:
    text = f"Member {named(suspect)} - {uuid_of(2)} is suspected to be dead for reason: No connection"
    return f"{head(writer, at_s)}{text}\n"


def test_what_is_piped_in_is_a_log_of_whoever_its_lines_name(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as piped, os.fdopen(writing, "wb", 0) as pipe, fake_cluster(2) as members:
        monkeypatch.setattr("sys.stdin", piped)
        a, b = members.addresses
        with watching(a, logs=log_sources(["-"])) as seen:
            seen.until(lambda: len(seen.events(OwnersTold)) >= 2)
            now_s = time.time()
            pipe.write(
                listed(a, b, now_s).encode() + b"a line of the shell, and \xff\n" + suspicion(a, b, now_s).encode()
            )
            seen.until(lambda: seen.events(SuspicionRaised, a))
            seen.until(lambda: seen.picture.members[a].shows("suspicions"))
            assert seen.events(SuspicionRaised)[0].suspect == b
            assert not seen.picture.members[b].shows("suspicions")
        pipe.close()  # so the thread that reads it ends


async def test_a_list_that_was_there_before_shows_nothing_of_clocks(tmp_path: Path) -> None:
    """It is heard when the connection begins, long after it was logged."""
    a, b = Address("10.0.0.1:5701"), Address("10.0.0.2:5701")
    now_s, log, clocks = 1_800_000_000, tmp_path / "a.log", LogClocks()
    log.write_text(listed(a, b, now_s - 900) + suspicion(a, b, now_s - 600))
    members = tuple(Member(member, uuid_of(number), 0) for number, member in enumerate((a, b), start=1))
    clocks.heard(a, ListInstalled(1, uuid_of(1), a, members, a, "unknown"), now_s * 1_000_000)
    read: asyncio.Queue[Logged] = asyncio.Queue()
    sources = [LogSource(log, a)]
    following = asyncio.ensure_future(
        LogFollowing(sources, clocks, lambda: now_s * 1_000_000, read.put_nowait, Route()).run()
    )
    logged = await read.get()
    while not isinstance(logged.event, SuspicionRaised):
        logged = await read.get()
    following.cancel()
    assert logged.utc_us == (now_s - 600) * 1_000_000


def test_a_suspicion_of_now_is_told_and_one_of_long_ago_is_not(tmp_path: Path) -> None:
    with fake_cluster(2) as members:
        a, b = members.addresses
        log = tmp_path / "a.log"
        stranger = Address("10.0.0.9:5701")
        log.write_text(listed(a, b, time.time() - 900) + suspicion(a, stranger, time.time() - 600))
        with watching(a, logs=[LogSource(log, a)]) as seen:
            seen.until(lambda: len(seen.events(OwnersTold)) >= 2)
            assert not seen.events(SuspicionRaised)
            with log.open("a") as file:
                file.write(suspicion(a, b, time.time()))
            seen.until(lambda: seen.events(SuspicionRaised, a))
            seen.until(lambda: seen.picture.members[a].shows("suspicions"))
            assert not seen.picture.members[b].shows("suspicions")
            own = [record for record in seen.records if record.uuid == uuid_of(1)]
            assert [record.seq for record in own] == list(range(1, len(own) + 1))


def test_a_log_counts_before_its_member_suspects_another_one(tmp_path: Path) -> None:
    """The console said `give logs with --logs` to those who had given them, until the first suspicion."""
    with fake_cluster(2) as members:
        a, b = members.addresses
        (tmp_path / "a.log").write_text(listed(a, b, time.time()))
        with watching(a, logs=[LogSource(tmp_path / "a.log", a)]) as seen:
            seen.until(lambda: a in seen.picture.members and seen.picture.members[a].shows("suspicions"))
            seen.until(lambda: b in seen.picture.members)
            assert not seen.picture.members[b].shows("suspicions")


def test_a_file_is_read_on_and_anew_when_it_was_made_anew(tmp_path: Path) -> None:
    file = GrowingFile(tmp_path / "member.log")
    assert file.lines() == []
    (tmp_path / "member.log").write_text("one\ntw")
    assert file.lines() == ["one"]
    with (tmp_path / "member.log").open("a") as more:
        more.write("o\n")
    assert file.lines() == ["two"]
    (tmp_path / "member.log").rename(tmp_path / "member.log.1")
    (tmp_path / "member.log").write_text("three\n")
    assert file.lines() == ["three"]
    with (tmp_path / "member.log").open("a") as more:
        more.write("Members {size:2, ver:2} [\n\tMember a\n")
    (tmp_path / "member.log").rename(tmp_path / "member.log.2")
    (tmp_path / "member.log").write_text("\tMember b\n]\n")
    assert file.lines() == ["Members {size:2, ver:2} [", "\tMember a", "\tMember b", "]"], "rotated inside a list"
    file.close()


def test_how_logs_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    assert log_sources(["-", f"10.0.0.1={tmp_path / 'a.log'}", str(tmp_path)]) == (
        LogSource(None),
        LogSource(tmp_path / "a.log", Address("10.0.0.1:5701")),
        LogSource(tmp_path),
    )
    (later,) = log_sources([f"10.0.0.2={tmp_path / 'b.log'}"])
    assert later.path == tmp_path / "b.log", "its member has not started yet"
    with pytest.raises(ValueError, match="no folder /nowhere/at"):
        log_sources(["/nowhere/at/all"])


def test_what_waits_for_logs_is_among_the_records_when_all_have_answered(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    with fake_cluster(2) as members, watching(members.addresses[0], logs=log_sources([str(tmp_path)])) as seen:
        wait_until(lambda: seen.cluster.is_settled)
        seen.drain()
        assert set(seen.picture.members) == set(members.addresses)
        assert len(seen.events(ListInstalled)) == 2

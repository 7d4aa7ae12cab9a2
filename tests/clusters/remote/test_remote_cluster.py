"""A cluster watched over the net: found, merged, kept when it falls silent, and told what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trustme

from quarterdeck.backend.clusters.cluster import ConnectionStatusSource
from quarterdeck.backend.clusters.remote.access import MemberCredentials
from quarterdeck.backend.clusters.remote.member_client import (
    BadResponse,
    MemberClient,
    RequestRefused,
    Unreachable,
    present_state,
)
from quarterdeck.backend.clusters.remote.member_stream import StreamTimings
from quarterdeck.backend.clusters.remote.remote_cluster import RemoteCluster
from quarterdeck.backend.clusters.remote.remote_commands import PartiallyDone
from quarterdeck.backend.core.commands import (
    CommandRefused,
    CutLink,
    Heal,
    KillMember,
    Partition,
    SetJoinList,
    StartMember,
)
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.operations import Answer, Get, Put
from quarterdeck.backend.core.witnessed.events import ConnectionChanged
from quarterdeck.backend.picture.fold.picture import Picture
from tests.clusters.remote.fake_members import FakeMember, form, serving
from tests.waiting import wait_until

PACE = StreamTimings(dial=5, quiet=0.2, sign_of_life=5, first_retry=0.02, longest_retry=0.1)


@contextmanager
def watching(*urls: str, **options: Any) -> Iterator[tuple[RemoteCluster, list[Record]]]:
    """A remote cluster, and the list into which `pump` puts its records."""
    cluster = RemoteCluster(urls, timings=PACE, randomness=Random(1), **options)
    try:
        yield cluster, []
    finally:
        cluster.close()


def pump(cluster: RemoteCluster, into: list[Record], until: int) -> None:
    """What members record; what the watcher adds is left out."""

    def enough() -> bool:
        into.extend(record for record in cluster.drain() if not isinstance(record.event, ConnectionChanged))
        return len(into) >= until

    wait_until(enough)


def contact(cluster: RemoteCluster, label: str) -> str:
    connection_status = cluster.connection_status().get(label)
    return connection_status.contact if connection_status else ""


@pytest.fixture
def cities() -> Iterator[tuple[FakeMember, FakeMember, FakeMember]]:
    members = FakeMember("athens"), FakeMember("byzantium"), FakeMember("cyrene")
    form(*members)
    with serving(*members):
        yield members


def test_one_url_finds_all_and_tells_everything_once_in_order(cities: tuple[FakeMember, ...]) -> None:
    athens = cities[0]
    with watching(athens.url) as (cluster, records):
        pump(cluster, records, 6)
        assert isinstance(cluster, ConnectionStatusSource)
        assert (cluster.name, cluster.source, cluster.writable) == ("dev", "remote", False)
        assert sorted(cluster.labels) == ["athens", "byzantium", "cyrene"]
        assert [record.utc for record in records] == sorted(record.utc for record in records)
        assert len({(record.uuid, record.seq) for record in records}) == len(records) == 6
        picture = Picture()
        for record in records:
            picture.apply(record)
        assert {label: belief.version for label, belief in picture.members.items()} == dict.fromkeys(cluster.labels, 3)
        athens.happen(events.SuspicionRaised(cities[1].address, cities[1].uuid, "no heartbeat"))
        pump(cluster, records, 7)
        assert records[-1].member == "athens"
        assert 0 <= cluster.now_us() - records[-1].at < 60_000_000
        assert (records[-1].utc - records[-1].at) % 60_000_000 == 0
        wait_until(lambda: all(status.contact == "connected" for status in cluster.connection_status().values()))
        assert not any(status.incomplete for status in cluster.connection_status().values())


def test_links_are_shown_between_members_and_not_between_their_addresses(cities: tuple[FakeMember, ...]) -> None:
    """A split of members that run elsewhere showed all links up, since its faults named addresses."""
    athens, byzantium, _ = cities
    with watching(athens.url) as (cluster, records):
        pump(cluster, records, 6)
        athens.happen(LinkChanged(athens.address, byzantium.address, "blackhole"))
        pump(cluster, records, 7)
        picture = Picture()
        for record in records:
            picture.apply(record)
        assert list(picture.links) == [("athens", "byzantium")]


def test_a_table_with_a_row_that_names_no_holder_is_refused_with_its_member(cities: tuple[FakeMember, ...]) -> None:
    athens = cities[0]
    holders = [{"address": athens.address, "uuid": athens.uuid}]
    table = {"table_version": 7, "digest": "ab", "partitions": 1, "replicas": 1, "holders": holders, "next": None}
    athens.replies["GET", "/table"] = (200, table | {"rows": [[0, 1, 1]]})

    async def ask() -> None:
        async with MemberClient(MemberCredentials()) as client:
            await present_state(client, athens.url, started=True, rows=True)

    with pytest.raises(BadResponse, match=f"^{athens.url}: a row of the table names a holder that is not there$"):
        asyncio.run(ask())


def test_a_silent_member_is_stale_since_it_was_heard_and_comes_back_without_loss(
    cities: tuple[FakeMember, ...],
) -> None:
    athens, byzantium, _ = cities
    with watching(athens.url) as (cluster, records):
        pump(cluster, records, 6)
        wait_until(lambda: contact(cluster, "byzantium") == "connected")
        byzantium.vanish()
        wait_until(lambda: contact(cluster, "byzantium") == "stale")
        connection_status = cluster.connection_status()["byzantium"]
        assert connection_status.since_us <= cluster.now_us()
        assert connection_status.why
        assert "byzantium" in cluster.labels
        byzantium.happen(events.MasterChanged(athens.address, "while nobody looked"))
        athens.happen(events.MasterChanged(athens.address, "somebody else goes on"))
        pump(cluster, records, 7)
        assert records[-1].member == "athens"
        byzantium.serve()
        pump(cluster, records, 8)
        assert (records[-1].member, records[-1].seq) == ("byzantium", 3)
        wait_until(lambda: contact(cluster, "byzantium") == "connected")
        assert cluster.connection_status()["byzantium"].incomplete == ""


def test_who_is_out_of_reach_does_not_take_part_until_it_is_heard_again(cities: tuple[FakeMember, ...]) -> None:
    athens, byzantium, _ = cities
    picture = Picture()

    def running() -> list[str]:
        for record in cluster.drain():
            picture.apply(record)
        return sorted(label for label, belief in picture.members.items() if belief.running)

    with watching(athens.url) as (cluster, _):
        wait_until(lambda: running() == ["athens", "byzantium", "cyrene"])
        wait_until(lambda: contact(cluster, "byzantium") == "connected")
        byzantium.vanish()
        wait_until(lambda: running() == ["athens", "cyrene"])
        told = picture.members["byzantium"].connection
        assert told is not None and told.state == "gone" and told.reason
        assert 0 <= cluster.now_us() - told.since_us < 60_000_000
        byzantium.serve()
        wait_until(lambda: running() == ["athens", "byzantium", "cyrene"])


def test_half_the_members_are_out_of_reach_from_the_start(cities: tuple[FakeMember, ...]) -> None:
    athens, byzantium, cyrene = cities
    byzantium.vanish()
    cyrene.vanish()
    with watching(cyrene.url, athens.url) as (cluster, records):
        pump(cluster, records, 2)
        assert set(cluster.labels) == {"athens", byzantium.address, cyrene.address}
        assert cluster.labels[0] == "athens"
        assert contact(cluster, byzantium.address) == "connecting"
        cyrene.serve()
        pump(cluster, records, 4)
        assert set(cluster.labels) == {"athens", "cyrene", byzantium.address}


def test_two_halves_that_forgot_each_other_are_both_watched() -> None:
    athens, byzantium, stranger = FakeMember("athens"), FakeMember("byzantium"), FakeMember("elsewhere", "prod")
    for alone in (athens, byzantium):
        alone.begin()
        alone.install(1, [alone])
    athens.remembered = [byzantium.address, stranger.address]
    with serving(athens, byzantium, stranger), watching(athens.url) as (cluster, records):
        pump(cluster, records, 4)
        assert sorted(cluster.labels) == ["athens", "byzantium"]


def test_two_urls_of_one_member_are_one_member(cities: tuple[FakeMember, ...]) -> None:
    athens = cities[0]
    with watching(athens.url, f"http://localhost:{athens.port}") as (cluster, records):
        pump(cluster, records, 6)
        wait_until(lambda: len(cluster.connection_status()) == 3)
        assert sorted(cluster.labels) == ["athens", "byzantium", "cyrene"]


def test_members_of_the_same_label_are_told_apart() -> None:
    one, other = FakeMember("member"), FakeMember("member")
    other.uuid = "another-life"
    form(one, other)
    with serving(one, other), watching(one.url) as (cluster, records):
        pump(cluster, records, 4)
        assert sorted(cluster.labels) == ["member", f"member@{other.address}"]
        assert {record.member for record in records} == set(cluster.labels)


def test_a_lost_beginning_is_told_and_nothing_is_made_up(cities: tuple[FakeMember, ...]) -> None:
    cities[0].lost_before = 1
    with watching(cities[0].url) as (cluster, records):
        pump(cluster, records, 5)
        assert cluster.connection_status()["athens"].incomplete == "its beginning"
        assert cluster.connection_status()["byzantium"].incomplete == ""


def test_a_gap_in_the_stream_is_filled_from_the_records(cities: tuple[FakeMember, ...]) -> None:
    athens = cities[0]
    with watching(athens.url) as (cluster, records):
        pump(cluster, records, 6)
        wait_until(lambda: contact(cluster, "athens") == "connected")
        for number in range(3):
            record = events.MasterChanged(athens.address, f"change {number}")
            athens.skipped = [athens.happen(record)] if number == 1 else athens.skipped
            if number != 1:
                athens.happen(record)
        pump(cluster, records, 9)
        assert sorted(record.seq for record in records if record.member == "athens") == [1, 2, 3, 4, 5]
        assert cluster.connection_status()["athens"].incomplete == ""


def test_a_gap_that_cannot_be_filled_is_told(cities: tuple[FakeMember, ...]) -> None:
    athens = cities[0]
    with watching(athens.url) as (cluster, records):
        pump(cluster, records, 6)
        wait_until(lambda: contact(cluster, "athens") == "connected")
        athens.lost_before = 3
        lost = Record(
            athens.run, "athens", athens.uuid, 3, 0, records[0].utc, events.MasterChanged(athens.address, "lost")
        )
        athens.skipped = [lost]
        athens.records.append(lost)
        athens.happen(events.MasterChanged(athens.address, "kept"))
        pump(cluster, records, 7)
        assert records[-1].seq == 4
        wait_until(lambda: cluster.connection_status()["athens"].incomplete != "")
        assert "was not heard" in cluster.connection_status()["athens"].incomplete


def test_a_process_started_anew_begins_a_new_history(cities: tuple[FakeMember, ...]) -> None:
    athens, byzantium, _ = cities
    with watching(athens.url) as (cluster, records):
        pump(cluster, records, 6)
        byzantium.vanish()
        byzantium.began, byzantium.uuid, byzantium.records = "2026-01-01T00:05:00Z", "byzantium-life-2", []
        byzantium.begin()
        byzantium.serve()
        pump(cluster, records, 7)
        assert (records[-1].uuid, records[-1].seq, records[-1].member) == ("byzantium-life-2", 1, "byzantium")
        assert cluster.connection_status()["byzantium"].incomplete == ""


def test_who_asks_is_said_and_nobody_is_told_more(cities: tuple[FakeMember, ...]) -> None:
    for member in cities:
        member.authorization = "Bearer open-sesame"
    with watching(cities[0].url, access=MemberCredentials(token="open-sesame")) as (cluster, records):
        pump(cluster, records, 6)
    with watching(cities[0].url, access=MemberCredentials(user="hugo", password="secret")) as (cluster, _):
        wait_until(lambda: any(status.why for status in cluster.connection_status().values()))
        why = next(iter(cluster.connection_status().values())).why
        assert "who are you?; the name, password or token that was given is not one of this member's" in why
        assert "secret" not in why + repr(MemberCredentials(user="hugo", password="secret"))


def test_members_are_believed_by_their_certificates_only(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "member.pem")
    athens, byzantium = FakeMember("athens"), FakeMember("byzantium")
    form(athens, byzantium)
    url = f"https://{athens.address}"
    try:
        for member in (athens, byzantium):
            member.serve(tmp_path / "member.pem")
        with watching(url, access=MemberCredentials(authority=tmp_path / "authority.pem")) as (cluster, records):
            pump(cluster, records, 4)
            wait_until(lambda: [status.contact for status in cluster.connection_status().values()] == ["connected"] * 2)
        with watching(url) as (cluster, records):
            wait_until(lambda: any(status.why for status in cluster.connection_status().values()))
            assert "certificate" in next(iter(cluster.connection_status().values())).why.lower()
    finally:
        athens.vanish()
        byzantium.vanish()
    with pytest.raises(OSError, match="No such file"):
        RemoteCluster([url], access=MemberCredentials(authority=tmp_path / "none.pem"))


def test_one_to_act_on_only_hears_no_records(cities: tuple[FakeMember, ...]) -> None:
    with watching(cities[0].url, write=True, records=False) as (cluster, _):
        cluster.started.result(20)
        wait_until(lambda: [status.contact for status in cluster.connection_status().values()] == ["connected"] * 3)
        cluster.execute(Heal()).result(20)
        assert not any(member.streams for member in cities)
        assert cluster.drain() == []
        cities[1].vanish()
        wait_until(lambda: contact(cluster, "byzantium") == "stale")


# Commands


def test_without_write_nothing_is_asked(cities: tuple[FakeMember, ...]) -> None:
    with watching(cities[0].url) as (cluster, records):
        pump(cluster, records, 6)
        with pytest.raises(CommandRefused, match="read-only"):
            cluster.execute(Heal()).result(20)
        with pytest.raises(CommandRefused, match="read-only"):
            cluster.call("athens", Put("m", "k", b"v")).result(20)
        assert not any(member.asked for member in cities)


@contextmanager
def commanding(cities: tuple[FakeMember, ...]) -> Iterator[RemoteCluster]:
    with watching(cities[0].url, write=True) as (cluster, _):
        wait_until(lambda: [status.contact for status in cluster.connection_status().values()] == ["connected"] * 3)
        yield cluster


def test_members_are_told_of_the_links_that_begin_at_them(cities: tuple[FakeMember, ...]) -> None:
    athens, byzantium, cyrene = cities
    with commanding(cities) as cluster:
        cluster.execute(Partition((("athens", "byzantium"), ("cyrene",)), "reset")).result(20)

        def cut(sources: list[str], targets: list[str]) -> list[tuple[str, str, Any]]:
            body = {"do": "cut", "sources": sources, "targets": targets, "one_way": True, "mode": "reset"}
            return [("POST", "/faults", body)]

        assert athens.asked == cut([athens.address], [cyrene.address])
        assert byzantium.asked == cut([byzantium.address], [cyrene.address])
        assert cyrene.asked == cut([cyrene.address], [athens.address, byzantium.address])
        cluster.execute(Heal()).result(20)
        assert all(member.asked[1:] == [("DELETE", "/faults", None)] for member in cities)


def test_join_lists_go_to_one_member_by_addresses(cities: tuple[FakeMember, ...]) -> None:
    with commanding(cities) as cluster:
        cluster.execute(SetJoinList("byzantium", ("athens", "10.0.0.7:5701"))).result(20)
    assert cities[1].asked == [("PUT", "/join-list", {"addresses": [cities[0].address, "10.0.0.7:5701"]})]
    assert not cities[0].asked


def test_refusals_are_the_members_own_words(cities: tuple[FakeMember, ...]) -> None:
    cities[1].replies["POST", "/faults/kill"] = (403, {"status": "fail", "message": "no faults here", "hint": "ask"})
    cities[1].replies["POST", "/faults"] = (409, {"status": "fail", "message": "not now", "hint": ""})
    with commanding(cities) as cluster:
        with pytest.raises(RequestRefused, match="no faults here; ask"):
            cluster.execute(KillMember("byzantium")).result(20)
        with pytest.raises(CommandRefused, match="on its own machine"):
            cluster.execute(StartMember("byzantium")).result(20)
        with pytest.raises(PartiallyDone, match="done by athens; not by byzantium: not now"):
            cluster.execute(CutLink(("athens",), ("byzantium",))).result(20)
        cities[2].vanish()
        wait_until(lambda: contact(cluster, "cyrene") == "stale")
        before = len(cities[0].asked)
        with pytest.raises(CommandRefused, match="cyrene is not reached"):
            cluster.execute(CutLink(("athens",), ("cyrene",))).result(20)
        assert len(cities[0].asked) == before
        cluster.execute(Heal()).result(20)


def test_maps_are_used_over_http(cities: tuple[FakeMember, ...]) -> None:
    athens = cities[0]
    path = "/maps/capitals/a/b"
    athens.replies["PUT", path] = (200, {"key": "a/b", "found": True, "value": "old"})
    athens.replies["GET", path] = (200, {"key": "a/b", "found": True, "value_base64": "/w=="})
    athens.replies["DELETE", path] = (409, {"status": "fail", "message": "too few members"})
    with commanding(cities) as cluster:
        assert cluster.call("athens", Put("capitals", "a/b", b"new")).result(20).value == b"old"
        assert cluster.call("athens", Get("capitals", "a/b")).result(20).value == b"\xff"
        athens.replies["GET", path] = (
            404,
            {"status": "fail", "message": "nothing is stored under 'a/b' in 'capitals'"},
        )
        assert cluster.call("athens", Get("capitals", "a/b")).result(20) == Answer(), "nothing is an answer, too"
        with pytest.raises(CommandRefused, match="no member is called that"):
            cluster.call("sparta", Get("capitals", "a/b")).result(20)


def test_closing_ends_what_is_under_way_and_what_comes_later() -> None:
    silent = FakeMember("athens")
    cluster = RemoteCluster([silent.url], write=True, timings=PACE)
    cluster.close()
    cluster.close()
    with pytest.raises(CommandRefused, match="closed"):
        cluster.execute(Heal()).result(20)
    assert not issubclass(PartiallyDone, CommandRefused)
    assert issubclass(Unreachable, CommandRefused)

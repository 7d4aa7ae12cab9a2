"""Watching members that are none, over sockets: what is heard, what becomes of connections, who is asked what."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from random import Random

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire.connection import MemberWatch, NoAnswer
from quarterdeck.backend.hazelcast.wire.followers import Followers
from quarterdeck.backend.hazelcast.wire.messages import (
    ClusterMetadata,
    Forgotten,
    MembersView,
    Metrics,
    MigrationState,
    NotFollowed,
    Observation,
    PartitionsView,
    ReplicaMigrationEvent,
    RequestDone,
    TopicRefused,
)
from quarterdeck.backend.hazelcast.wire.requests import (
    AddMigrationListener,
    ChangeClusterState,
    GetClusterMetadata,
    Ping,
    RemoveMigrationListener,
    RequestToken,
    ShutDownMember,
    UserAndPassword,
)
from quarterdeck.backend.hazelcast.wire.route import WatchSettings
from tests.hazelcast.wire.fake_member import DENIED, NOT_READY, FakeMember, agree, start_cluster, uuid_of
from tests.hazelcast.wire.watching import QUICK, watching


def settings_for(*members: FakeMember, cluster_name: str = "dev") -> WatchSettings:
    """A watch that begins at these members."""
    return WatchSettings(tuple(member.listens_at for member in members), cluster_name=cluster_name, pace=QUICK)


async def test_all_members_of_the_list_are_followed_from_one() -> None:
    members = await start_cluster(3)
    async with watching(settings_for(members[1])) as watched:
        await watched.until(lambda: all(len(watched.messages(member.address)) >= 5 for member in members))
        for member in members:
            told = watched.messages(member.address)
            assert member.members in told
            assert member.partitions in told
            assert member.state in told
            assert any(isinstance(message, Metrics) for message in told)
            assert watched.states(member.address) == ["connected"]
    for member in members:
        await member.stop()


async def test_members_of_the_join_list_are_followed_though_they_are_on_no_list() -> None:
    here, there = FakeMember(uuid_of(1)), FakeMember(uuid_of(2))
    await there.start()
    await here.start()
    here.join_list = (here.address, there.address)
    async with watching(settings_for(here)) as watched:
        await watched.until(lambda: there.members in watched.messages(there.address))
    await here.stop()
    await there.stop()


async def test_migrations_are_heard_of_the_master_alone_and_of_each_half_its_own() -> None:
    members = await start_cluster(3)
    first, second, third = members
    event = ReplicaMigrationEvent(3, 1, None, uuid_of(2), True, 7, MigrationState(2, 1))
    async with watching(settings_for(first)) as watched:
        await watched.until(lambda: AddMigrationListener() in first.asked and len(watched.messages(third.address)) > 4)
        assert AddMigrationListener() not in [*second.asked, *third.asked]
        first.tell(event)
        await watched.until(lambda: event in watched.messages(first.address))

        agree([first], 2)
        agree([second, third], 2)
        await watched.until(lambda: AddMigrationListener() in second.asked)
        second.tell(event)
        await watched.until(lambda: event in watched.messages(second.address))

        agree([first, second, third], 3)
        await watched.until(lambda: any(isinstance(request, RemoveMigrationListener) for request in second.asked))
        assert AddMigrationListener() not in third.asked
    for member in members:
        await member.stop()


async def test_a_merging_member_says_that_it_is_not_ready_and_is_a_new_incarnation_then() -> None:
    member = FakeMember(uuid_of(1))
    await member.start()
    async with watching(settings_for(member)) as watched:
        await watched.until(lambda: watched.states(member.address) == ["connected"])
        member.answers[type(member.asked[0])] = NOT_READY
        member.hang_up()
        await watched.until(lambda: watched.states(member.address)[-1] == "merging")
        assert watched.reason(member.address) == "Hazelcast instance is not ready yet!"
        member.uuid = uuid_of(2)
        member.answers.clear()
        await watched.until(lambda: watched.states(member.address)[-1] == "connected")
        assert watched.watch.followed[member.address].member_uuid == uuid_of(2)
        assert watched.states(member.address) == ["connected", "merging", "connected"]
    await member.stop()


async def test_a_frozen_member_is_silent_and_goes_on_with_its_old_list() -> None:
    member = FakeMember()
    await member.start()
    async with watching(settings_for(member)) as watched:
        await watched.until(lambda: len(watched.messages(member.address)) > 4)
        member.silent = True
        await watched.until(lambda: watched.states(member.address)[-1] == "silent")
        follower = watched.watch.followed[member.address]
        assert follower.since_us <= watched.heard[-1].at_us - QUICK.silent_after_us
        before = member.connections
        await watched.until(lambda: member.connections == before, 1)
        member.silent = False
        await watched.until(lambda: watched.states(member.address)[-1] == "connected")
        assert watched.states(member.address) == ["connected", "silent", "connected"]
    await member.stop()


async def test_a_member_that_vanishes_is_gone_and_dialled_until_it_is_back() -> None:
    member = FakeMember(uuid_of(1))
    await member.start()
    async with watching(settings_for(member)) as watched:
        await watched.until(lambda: watched.states(member.address) == ["connected"])
        await member.stop()
        await watched.until(lambda: watched.states(member.address)[-1] == "gone")
        again = FakeMember(uuid_of(2))
        await again.start(int(member.address.rpartition(":")[2]))
        await watched.until(lambda: watched.states(member.address)[-1] == "connected")
        await again.stop()


async def test_what_a_member_does_not_tell_is_told_as_such_while_views_still_come() -> None:
    member = FakeMember()
    member.answers[GetClusterMetadata] = DENIED
    await member.start()
    async with watching(settings_for(member)) as watched:
        await watched.until(lambda: Ping() in member.asked)
        (untold,) = [observation for observation in watched.heard if isinstance(observation, TopicRefused)]
        assert (untold.topic, untold.address) == ("cluster-state", member.address)
        assert "not trusted" in untold.reason
        view = MembersView(2, (member.on_list(),))
        member.tell(view)
        await watched.until(lambda: view in watched.messages(member.address))
        assert member.asked.count(GetClusterMetadata()) == 1
        member.silent = True  # a ping shows silence as well
        await watched.until(lambda: watched.states(member.address)[-1] == "silent")
    await member.stop()


async def test_an_operator_is_answered_or_told_that_no_answer_comes() -> None:
    member = FakeMember()
    await member.start()
    async with watching(settings_for(member)) as watched:
        await watched.until(lambda: watched.states(member.address) == ["connected"])
        assert await watched.watch.ask(member.address, ChangeClusterState("FROZEN")) == RequestDone()
        state = await watched.watch.ask(member.address, GetClusterMetadata())
        assert isinstance(state, ClusterMetadata)
        assert state.state == "FROZEN"
        member.answers[ShutDownMember] = None
        asking = asyncio.create_task(watched.watch.ask(member.address, ShutDownMember()))
        await watched.until(lambda: ShutDownMember() in member.asked)
        await member.stop()
        with pytest.raises(NoAnswer, match="has not answered"):
            await asking
        await watched.until(lambda: watched.states(member.address)[-1] == "gone")
        with pytest.raises(NoAnswer):
            await watched.watch.ask(member.address, Ping())
        with pytest.raises(NoAnswer):
            await watched.watch.ask(Address("10.0.0.1:5701"), Ping())


async def test_a_member_behind_another_address_is_followed_once_under_its_own_name() -> None:
    member = FakeMember()
    member.address = Address("10.0.0.7:5701")
    await member.start()
    localhost = Address(f"localhost:{member.listens_at.rpartition(':')[2]}")
    async with watching(WatchSettings((member.listens_at, localhost), pace=QUICK)) as watched:
        await watched.until(lambda: list(watched.watch.followed) == [member.address] and member.connections == 2)
        await watched.until(lambda: len(member.guests) == 1 and len(watched.messages(member.address)) > 5)
        assert watched.states(member.address) == ["connected"]
    await member.stop()


async def test_an_address_map_leads_to_members_behind_nat() -> None:
    members = await start_cluster(2)
    mapping = {}
    for number, member in enumerate(members):
        member.address = Address(f"10.0.0.{number}:5701")
        mapping[member.address] = member.listens_at
    agree(members)
    settings = WatchSettings((members[0].listens_at,), address_map=mapping, pace=QUICK)
    async with watching(settings) as watched:
        await watched.until(lambda: all(watched.messages(member.address) for member in members))
        assert sorted(watched.watch.followed) == ["10.0.0.0:5701", "10.0.0.1:5701"]
        members[1].address = Address("10.0.0.9:5701")  # another member answers where this one should
        members[1].hang_up()
        await watched.until(lambda: watched.states(Address("10.0.0.1:5701"))[-1] == "refused")
        assert "10.0.0.9:5701 answers at 127.0.0.1" in watched.reason(Address("10.0.0.1:5701"))
    for member in members:
        await member.stop()


@pytest.mark.parametrize("credentials", [UserAndPassword("ann", "secret"), RequestToken(b"\x01secret")])
async def test_credentials_are_shown_and_wrong_ones_turned_away(credentials: UserAndPassword | RequestToken) -> None:
    member = FakeMember(credentials=credentials)
    await member.start()
    right = WatchSettings((member.address,), credentials=credentials, pace=QUICK)
    async with watching(right) as watched:
        await watched.until(lambda: watched.states(member.address) == ["connected"])
    async with watching(settings_for(member)) as watched:
        await watched.until(lambda: watched.states(member.address) == ["refused"])
        assert "user and password do not fit" in watched.reason(member.address)
    await member.stop()


async def test_the_table_of_the_first_member_is_told_as_it_stands() -> None:
    (member,) = await start_cluster(1)
    async with watching(settings_for(member)) as watched:
        await watched.until(
            lambda: any(isinstance(message, PartitionsView) for message in watched.messages(member.address))
        )
        (view,) = [message for message in watched.messages(member.address) if isinstance(message, PartitionsView)]
        places = dict(enumerate(view.owners))
        owned = [places.get(partition, -1) for partition in (0, 5, 6, -1)]
        assert [None if place < 0 else view.holders[place] for place in owned] == [member.uuid, member.uuid, None, None]
    await member.stop()


async def test_a_name_that_leads_to_another_member_later_loses_neither() -> None:
    """As the name of a service does, whose first member has been replaced."""
    service = FakeMember(uuid_of(1))
    service.address = old = Address("127.0.0.1:1")
    await service.start()
    async with watching(settings_for(service)) as watched:
        await watched.until(lambda: watched.states(old) == ["connected"])
        service.uuid, service.address = uuid_of(2), Address("127.0.0.1:2")
        service.members = MembersView(1, (service.on_list(),))
        service.hang_up()
        await watched.until(lambda: watched.states(service.address)[-1:] == ["connected"])
        await watched.until(lambda: watched.states(old)[-1] == "gone")
        assert sorted(watched.watch.followed) == [old, service.address]
        assert watched.watch.followed[old].endpoint == old, "it is looked for at its own address"
    await service.stop()


async def test_ranges_in_a_join_list_are_dialled_and_what_is_no_address_is_left_out() -> None:
    member = FakeMember()
    await member.start()
    member.join_list = (member.address, "127.0.0.1-2:1", "127.0.0.1:99999", "127.0.0.*:5701")
    async with watching(settings_for(member)) as watched:
        await watched.until(lambda: "127.0.0.2:1" in watched.watch.followed)
        assert sorted(watched.watch.followed) == sorted(["127.0.0.1:1", "127.0.0.2:1", member.address])
    await member.stop()


async def test_a_fault_of_who_hears_ends_the_watch_and_is_told() -> None:
    member = FakeMember()
    await member.start()
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)

    def hear(_: Observation) -> None:
        raise RuntimeError("deaf")

    watch = MemberWatch(settings_for(member), hear, lambda: 0, Random(1))
    with pytest.raises(RuntimeError, match="deaf"):
        await watch.run()
    with pytest.raises(NoAnswer):
        await watch.ask(member.address, Ping())
    await member.stop()


async def test_a_watch_of_nobody_waits() -> None:
    async with watching(WatchSettings(())) as watched:
        await asyncio.sleep(0)
        assert watched.heard == []


async def test_of_an_address_that_only_a_join_list_names_it_is_not_told_that_nobody_is_there() -> None:
    """An entry without a port stands for three, a range for more: most of them are nobody's."""
    member, late = FakeMember(uuid_of(1)), FakeMember(uuid_of(2))
    await member.start()
    await late.start()
    nobody, somebody = Address("127.0.0.1:1"), late.address
    port = somebody.rpartition(":")[2]
    member.join_list = ("127.0.0.1-2:1", f"127.0.0.1-1:{port}")
    await late.stop()
    async with watching(settings_for(member)) as watched:
        await watched.until(
            lambda: nobody in watched.watch.followed and watched.watch.followed[somebody].state == "gone"
        )
        assert watched.states(nobody) == watched.states(somebody) == []
        agree([member, late], 2)
        await watched.until(lambda: watched.states(somebody) == ["gone"])
        again = FakeMember(uuid_of(3))
        await again.start(int(somebody.rpartition(":")[2]))
        await watched.until(lambda: watched.states(somebody) == ["gone", "connected"])
        assert watched.states(nobody) == []
        await again.stop()
    await member.stop()


async def test_an_address_on_no_list_where_nothing_answers_is_forgotten() -> None:
    members = await start_cluster(3)
    pace = replace(QUICK, forgotten_after_us=200_000)
    settings = replace(settings_for(members[0]), pace=pace)
    async with watching(settings) as watched:
        await watched.until(lambda: all(watched.states(member.address) == ["connected"] for member in members))
        gone = members.pop()
        await gone.stop()
        await watched.until(lambda: watched.states(gone.address)[-1] == "gone")
        assert gone.address in watched.watch.followed, "the others still list it"
        agree(members, 2)
        await watched.until(lambda: any(isinstance(observation, Forgotten) for observation in watched.heard))
        assert list(watched.watch.followed) == [member.address for member in members]
    for member in members:
        await member.stop()


async def test_new_addresses_have_room_though_as_many_are_followed_as_allowed() -> None:
    members = await start_cluster(2)
    async with watching(replace(settings_for(members[0]), most_followed=3)) as watched:
        for number in range(10, 15):
            pod = FakeMember(uuid_of(number))
            await pod.start()
            agree([*members, pod], 2 * number)
            await watched.until(lambda pod=pod: "connected" in watched.states(pod.address))
            await pod.stop()
            await watched.until(lambda pod=pod: watched.states(pod.address)[-1] != "connected")
            agree(members, 2 * number + 1)
            latest = MembersView(2 * number + 1, tuple(member.on_list() for member in members))
            await watched.until(
                lambda latest=latest: all(latest in watched.messages(member.address) for member in members)
            )
        assert len(watched.watch.followed) == 3
        assert not any(isinstance(observation, NotFollowed) for observation in watched.heard)
    for member in members:
        await member.stop()


async def test_a_name_with_several_addresses_is_all_of_them_and_is_looked_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two halves on pods behind one headless service: neither has the other on a list."""
    halves = [FakeMember(uuid_of(number)) for number in (1, 2, 3)]
    for number, half in enumerate(halves, start=1):
        half.host = f"127.0.0.{number}"
    port = int((await halves[0].start()).rpartition(":")[2])
    hosts, service = ["127.0.0.1", "127.0.0.2"], Address(f"hz.orders.svc:{port}")

    async def found(*asked: object, **options: object) -> list[tuple[object, ...]]:
        if "hz.orders.svc" not in asked:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (asked[0], port))]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in hosts]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)
    await halves[1].start(port)
    async with watching(WatchSettings((service,), pace=replace(QUICK, resolve_us=20_000))) as watched:
        for half in halves[:2]:
            await watched.until(lambda half=half: "connected" in watched.states(half.address))
        assert sorted(watched.watch.followed) == [halves[0].address, halves[1].address]
        await halves[2].start(port)
        hosts.append("127.0.0.3")
        await watched.until(lambda: "connected" in watched.states(halves[2].address))
    for half in halves:
        await half.stop()


def test_a_certificate_is_checked_against_the_name_of_the_service() -> None:
    service = Address("hz.orders.svc:5701")
    followers = Followers(WatchSettings((service,)), Random(1), 0)
    assert followers.names == {service}
    assert followers.resolved(0, service, ["10.0.0.1"]) == [], "a single address is dialled by name"
    followers.resolved(1, service, ["10.0.0.1", "10.0.0.2"])
    assert list(followers.by_address) == ["10.0.0.1:5701", "10.0.0.2:5701"]
    assert followers.host_name_of(Address("10.0.0.1:5701")) == "hz.orders.svc"
    followers.resolved(2, service, ["10.0.0.7"])
    assert "10.0.0.7:5701" in followers.by_address
    assert followers.resolved(3, service, []) == [], "a name server that is away is no news"


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (socket.EAI_AGAIN, "its name cannot be looked up now: DNS does not answer"),
        (socket.EAI_NONAME, "there is no host of that name"),
    ],
)
async def test_a_name_server_that_is_away_does_not_say_that_there_is_no_such_host(
    number: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(*asked: object, **options: object) -> list[object]:
        raise socket.gaierror(number, "in the words of the C library")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)
    service = Address("hz.orders.svc:5701")
    async with watching(WatchSettings((service,), pace=QUICK)) as watched:
        await watched.until(lambda: "silent" in watched.states(service))
        assert watched.watch.followed[service].reason == why

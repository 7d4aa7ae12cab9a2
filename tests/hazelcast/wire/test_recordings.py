"""Bytes that unmodified members of three versions sent, read without Java: formation, a kill, a silence, a split and a merge.

How they were recorded: `tests/hazelcast/real/test_real_members.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache

import pytest

from quarterdeck.backend.core.address import Address, host_of, port_of
from quarterdeck.backend.hazelcast.wire.codec.answer_codec import decode_message
from quarterdeck.backend.hazelcast.wire.codec.frames import FrameLimits, Frames, MessageReader
from quarterdeck.backend.hazelcast.wire.follower import FollowedConnection
from quarterdeck.backend.hazelcast.wire.messages import (
    Authenticated,
    ClusterMetadata,
    ErrorAnswer,
    MemberConfig,
    MembersView,
    Message,
    Metrics,
    PartitionsView,
    ReplicaMigrationEvent,
    UnknownMessage,
)
from quarterdeck.backend.hazelcast.wire.route import WatchSettings
from quarterdeck.backend.hazelcast.witness.member_metrics import member_measured, member_metrics
from tests.hazelcast.real.recording import RECORDED_VERSIONS, read_recording
from tests.hazelcast.wire.replayed_member import ReplayedMember
from tests.hazelcast.wire.watching import QUICK, watching

ADDRESSES = tuple(Address(f"10.77.0.{number}:5701") for number in range(1, 5))
NOT_UNDERSTOOD = {0x000304, 0x000305}
"""What 5.5 adds to the views: member groups, and the version of the cluster."""


@cache
def recorded(version: str) -> dict[FollowedConnection, list[Frames]]:
    """All messages of each connection, in order."""
    readers: dict[FollowedConnection, MessageReader] = {}
    messages: dict[FollowedConnection, list[Frames]] = {}
    for piece in read_recording(version):
        connection = FollowedConnection(piece.endpoint, piece.number)
        reader = readers.setdefault(connection, MessageReader(FrameLimits()))
        messages.setdefault(connection, []).extend(reader.feed(piece.data))
    return messages


def told(version: str, address: Address | None = None) -> Iterator[Message]:
    """All that was told, by everybody or by one member."""
    for connection, messages in recorded(version).items():
        if address in (None, connection.endpoint):
            yield from (decode_message(frames)[1] for frames in messages)


@pytest.mark.parametrize("version", RECORDED_VERSIONS)
def test_every_message_is_understood_but_those_that_later_versions_add(version: str) -> None:
    unknown = {message.type for message in told(version) if isinstance(message, UnknownMessage)}
    assert unknown == (NOT_UNDERSTOOD if version == "5.5.0" else set())


@pytest.mark.parametrize("version", RECORDED_VERSIONS)
def test_each_member_tells_its_own_lists_through_kill_split_and_merge(version: str) -> None:
    for address in ADDRESSES:
        views = [message for message in told(version, address) if isinstance(message, MembersView)]
        assert {member.version for view in views for member in view.members} == {version}
        assert {member.address for view in views for member in view.members} <= set(ADDRESSES)
        sizes = [len(view.members) for view in views]
        assert {2, 4} <= set(sizes)
        assert sizes[-1] == 4
    halves = [
        {
            frozenset(member.address for member in view.members)
            for view in told(version, address)
            if isinstance(view, MembersView)
        }
        for address in ADDRESSES
    ]
    assert frozenset(ADDRESSES[:2]) in halves[0] & halves[1]
    assert frozenset(ADDRESSES[2:]) in halves[2] & halves[3]
    last = [[view for view in told(version, address) if isinstance(view, MembersView)][-1] for address in ADDRESSES]
    assert all(view == last[0] for view in last)


@pytest.mark.parametrize("version", RECORDED_VERSIONS)
def test_merging_members_are_not_ready_and_come_back_as_others(version: str) -> None:
    errors = [message for message in told(version) if isinstance(message, ErrorAnswer)]
    assert any(error.not_ready for error in errors)
    lives = [
        {message.member_uuid for message in told(version, address) if isinstance(message, Authenticated)} - {None}
        for address in ADDRESSES
    ]
    assert len(lives[3]) >= 2, "it was killed and started again"
    assert sum(map(len, lives)) >= 4 + 1 + 1


@pytest.mark.parametrize("version", RECORDED_VERSIONS)
def test_tables_migrations_state_configuration_and_metrics_are_told(version: str) -> None:
    tables = [
        [message for message in told(version, address) if isinstance(message, PartitionsView)][-1]
        for address in ADDRESSES
    ]
    assert len({tuple(table.holders[owner] for owner in table.owners) for table in tables}) == 1
    assert all(len(table.owners) == 31 and len(table.holders) == 4 for table in tables)
    migrations = [message for message in told(version) if isinstance(message, ReplicaMigrationEvent)]
    assert migrations
    assert all(0 <= migration.partition < 31 and 0 <= migration.replica_index <= 6 for migration in migrations)
    assert {migration.succeeded for migration in migrations} >= {True}
    assert {message.state for message in told(version) if isinstance(message, ClusterMetadata)} >= {"ACTIVE", "FROZEN"}
    configs = [message for message in told(version) if isinstance(message, MemberConfig)]
    assert all(f"<member>{address}</member>" in config.xml for config in configs for address in ADDRESSES)
    metrics = [metric_set for message in told(version) if isinstance(message, Metrics) for metric_set in message.sets]
    assert all(metric.value_of("partitions.stateStamp") is not None for metric in metrics)
    assert {metric.value_of("cluster.size") for metric in metrics} <= {1, 2, 3, 4}
    measured = [found for metric in metrics if (found := member_measured(None, member_metrics(metric))) is not None]
    assert len(measured) == len(metrics)
    assert all(event.heap_used and event.heap_max and event.queued_migrations is not None for event in measured)
    assert all(event.heartbeat_age is None or event.heartbeat_age < 2_000_000 for event in measured), (
        "sent every second"
    )


@pytest.mark.parametrize("version", RECORDED_VERSIONS)
async def test_a_watch_hears_what_the_members_said(version: str) -> None:
    """Over sockets: members that are none play the recorded bytes."""
    members = [ReplayedMember(address, messages_of(version, address)) for address in ADDRESSES]
    address_map = {member.address: await member.start() for member in members}
    settings = WatchSettings(tuple(address_map.values()), address_map=address_map, pace=QUICK)
    async with watching(settings) as watched:
        await watched.until(lambda: all(watched.states(address) == ["connected"] for address in ADDRESSES))
        await watched.until(lambda: all(member.listener is not None for member in members))
        # As of a watch in another process that looks for the member which had this port before.
        strangers = [await asyncio.open_connection(host_of(it), port_of(it)) for it in address_map.values()]
        await asyncio.sleep(0.05)
        for member in members:
            member.play()
        for member in members:
            expected = [
                message
                for message in told(version, member.address)
                if isinstance(message, MembersView | PartitionsView)
            ]
            await watched.until(lambda it=member.address, views=expected: views_of(watched.messages(it)) == views)
        assert sorted(watched.watch.followed) == sorted(ADDRESSES)
        for _, stranger in strangers:
            stranger.close()
    for member in members:
        await member.stop()


def messages_of(version: str, address: Address) -> list[Frames]:
    """All that one member said, over all its connections."""
    return [
        frames
        for connection, all_of_it in recorded(version).items()
        if connection.endpoint == address
        for frames in all_of_it
    ]


def views_of(messages: list[Message]) -> list[Message]:
    """The lists and the tables among what was told."""
    return [message for message in messages if isinstance(message, MembersView | PartitionsView)]

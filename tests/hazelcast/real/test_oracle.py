"""The product's own client beside the watch: the same members, the same owners, the same partition of each key."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.key_partition import partition_of_key
from tests.hazelcast.real.real_cluster import RealCluster
from tests.hazelcast.real.test_real_members import settled, version, watching

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

__all__ = ["version"]

KEYS = ("", "a", "order-4711", "Ünïcödé", "🙂")
PARTITIONS = 271


def seen_by_client(address: Address) -> tuple[dict[str, str], list[str], list[int]]:
    """Members with their addresses, the owner of each partition, and the partition of each key. Its access arranges them."""
    hazelcast = pytest.importorskip("hazelcast")
    client = hazelcast.HazelcastClient(cluster_name="dev", cluster_members=[address])
    try:
        client.get_map("orders").blocking().put("a", "b")
        members = {
            str(member.uuid): f"{member.address.host}:{member.address.port}"
            for member in client.cluster_service.get_members()
        }
        owners: list[UUID | None] = [None]
        while None in owners:
            owners = [client.partition_service.get_partition_owner(partition) for partition in range(PARTITIONS)]
        return members, list(map(str, owners)), [client.partition_service.get_partition_id(key) for key in KEYS]
    finally:
        client.shutdown()


def test_a_client_of_the_product_sees_the_same(version: str, tmp_path: Path) -> None:
    asyncio.run(compare(version, tmp_path))


async def compare(version: str, folder: Path) -> None:
    with RealCluster(version, folder, 2) as cluster:
        cluster.start(1)
        addresses = tuple(map(cluster.address, cluster.everybody))
        async with watching(cluster, addresses[0]) as watched:
            await watched.until("the first member", lambda: watched.sizes(addresses[0]) == [1])
            cluster.start(2)
            await watched.until("both", lambda: watched.sizes(*addresses) == [2, 2])
            members, owners, partitions = await asyncio.to_thread(seen_by_client, addresses[0])
            await watched.until("one table", lambda: settled(watched, addresses))
            view = watched.views(addresses[0])[-1][1]
            assert {member.uuid: member.address for member in view.members} == members
            assert list(watched.owners(addresses[1])) == owners
            assert [partition_of_key(key, "string", PARTITIONS) for key in KEYS] == partitions

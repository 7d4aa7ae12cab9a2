"""Unmodified members are restarted one after the other by the verdict, under a client's writes: nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hazelcast.client import HazelcastClient

from tests.hazelcast.real.real_cluster import RealCluster, why_not
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_200)]
VERSION = "5.3.8"
MEMBERS = 6
ENTRIES = 2_000
MAPS = '<map name="twice"><backup-count>2</backup-count></map><map name="bare"><backup-count>0</backup-count></map>'
GRACEFUL = {"hazelcast.shutdownhook.policy": "GRACEFUL", "hazelcast.partition.migration.interval": "0"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    if (reason := why_not(VERSION)) is not None:
        pytest.skip(reason)
    with RealCluster(VERSION, tmp_path, MEMBERS, properties=GRACEFUL, more=MAPS) as members:
        members.start(*members.everybody)
        yield members


def quarterdeck(cluster: RealCluster, *words: str) -> subprocess.Popen[str]:
    connect = ("--connect", f"hazelcast://{cluster.address(1)},{cluster.address(MEMBERS)}")
    return subprocess.Popen(
        [sys.executable, "-m", "quarterdeck", *words, *connect], cwd=cluster.folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip


def verdict(cluster: RealCluster, member: int, *words: str) -> tuple[int, dict[str, object]]:
    asked = quarterdeck(cluster, "cluster", "may-stop", str(cluster.address(member)), "-o", "json", *words)
    out, error = asked.communicate(timeout=120)
    assert out, error
    return asked.returncode, json.loads(out)


def change_state(cluster: RealCluster, state: str) -> None:
    asked = quarterdeck(cluster, "cluster", "state", state)
    _, error = asked.communicate(timeout=120)
    assert asked.returncode == 0, error


def test_one_after_the_other_under_writes(cluster: RealCluster, tmp_path: Path) -> None:
    with cluster.inside():
        wait_until(
            lambda: all(f"Members {{size:{MEMBERS}," in cluster.log(name).read_text() for name in cluster.everybody),
            limit_seconds=300,
        )
        code, found = verdict(cluster, 2)
        assert (code, found["verdict"]) == (0, "yes"), (found, "no data was ever stored")
        addresses = [str(cluster.address(member)) for member in cluster.everybody]
        client = HazelcastClient(cluster_members=addresses, redo_operation=True)
        orders = client.get_map("orders").blocking()
        orders.put_all({str(number): "x" * 100 for number in range(ENTRIES)})

        client.get_map("twice").blocking().put_all({str(number): "x" for number in range(100)})

        code, found = verdict(cluster, 2)
        assert (code, found["verdict"]) == (0, "yes"), (found, "maps have one backup and two")
        bare = client.get_map("bare").blocking()
        bare.put_all({str(number): "x" for number in range(100)})
        code, found = verdict(cluster, 2)
        assert (code, found["verdict"]) == (1, "no"), found
        assert "entries of maps that have no backup" in str(found["reasons"])
        bare.clear()
        change_state(cluster, "FROZEN")
        code, found = verdict(cluster, 2)
        assert (code, found["verdict"]) == (1, "no"), found
        assert "the cluster is FROZEN" in str(found["reasons"])
        change_state(cluster, "ACTIVE")
        code, found = verdict(cluster, 2, "--minimum", str(MEMBERS))
        assert (code, found["verdict"]) == (1, "no")
        assert "size" in [reason["kind"] for reason in found["reasons"]]  # type: ignore[index, attr-defined]

        ended, acknowledged = threading.Event(), dict[str, str]()

        def write() -> None:
            number = 0
            while not ended.is_set():
                key, number = f"written-{number % 500}", number + 1
                orders.put(key, str(number))
                acknowledged[key] = str(number)

        writing = threading.Thread(target=write)
        writing.start()
        wanted = tmp_path / "wanted"
        restarting = quarterdeck(
            cluster,
            "cluster",
            "rolling-restart",
            "--minimum",
            str(MEMBERS - 1),
            "--timeout",
            "300",
            "--exec",
            f"echo $ADDRESS >> {wanted}",
        )
        restarted: list[int] = []
        while restarting.poll() is None:
            asked = wanted.read_text().split() if wanted.exists() else []
            if len(asked) > len(restarted):
                member = int(asked[-1].split(":")[0].rpartition(".")[2])
                cluster.signal(member, signal.SIGTERM)
                cluster.processes[member].wait(300)
                cluster.start(member)
                restarted.append(member)
            ended.wait(0.2)
        ended.set()
        writing.join(60)
        out, error = restarting.communicate()
        assert restarting.returncode == 0, out + error
        assert sorted(restarted) == [*cluster.everybody], error
        assert len(acknowledged) == 500
        assert orders.size() == ENTRIES + len(acknowledged)
        assert orders.get_all(set(acknowledged)) == acknowledged
        assert not (tmp_path / "rolling-restart.json").exists()
        client.shutdown()

        cluster.signal(3, signal.SIGKILL)
        cluster.processes[3].wait()
        code, found = verdict(cluster, 2, "--wait", "0")
        assert (code, found["verdict"]) != (0, "yes"), "a member is missing"

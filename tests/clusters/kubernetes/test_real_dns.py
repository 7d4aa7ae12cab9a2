"""A headless service in a real DNS, with unmodified members behind it: one that comes back at another address is found."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hazelcast.client import HazelcastClient

from tests.hazelcast.real.real_cluster import RealCluster, why_not
from tests.waiting import wait_until

pytestmark = pytest.mark.long
VERSION = "5.3.8"
SERVICE = "hz.orders.svc"
GRACEFUL = {"hazelcast.shutdownhook.policy": "GRACEFUL", "hazelcast.partition.migration.interval": "0"}
UUID = re.compile(r"Member \[10\.77\.0\.3\]:5701 - ([0-9a-f-]{36}) this")


class NameServer:
    """A dnsmasq in the network of the members, of which processes started with `run` ask."""

    def __init__(self, cluster: RealCluster, folder: Path) -> None:
        self._inside = ("ip", "netns", "exec", cluster._hub)
        self._hosts, self._resolver = folder / "hosts", folder / "resolv.conf"
        self._resolver.write_text("nameserver 10.77.0.254\noptions timeout:1 attempts:1\n")
        self._hosts.touch()
        words = ("--keep-in-foreground", "--no-resolv", "--no-hosts", f"--addn-hosts={self._hosts}", "--local=/svc/")
        where = (
            "--listen-address=10.77.0.254",
            "--bind-interfaces",
            "--pid-file",
            "--user=root",
            "--conf-file=/dev/null",
        )
        self._process = subprocess.Popen([*self._inside, "dnsmasq", *words, *where])
        sockets = Path("/proc") / str(self._process.pid) / "net" / "udp"
        wait_until(lambda: ":0035 " in sockets.read_text(), "it does not listen")  # before that, SIGHUP would end it

    def serve(self, *hosts: int) -> None:
        """Have the service stand for these members from now on."""
        self._hosts.write_text("".join(f"10.77.0.{host} {SERVICE}\n" for host in hosts))
        self._process.send_signal(signal.SIGHUP)

    def serve_pods(self, **hosts: int) -> None:
        """Have the service stand for these pods from now on, each at the address of a member."""
        lines = (f"10.77.0.{host} {pod.replace('_', '-')}.{SERVICE} {SERVICE}\n" for pod, host in hosts.items())
        self._hosts.write_text("".join(lines))
        self._process.send_signal(signal.SIGHUP)

    def run(self, *words: str) -> subprocess.Popen[str]:
        """Start a command of ours that looks names up there."""
        mounted = f'mount --bind {self._resolver} /etc/resolv.conf; exec "$@"'
        ours = (sys.executable, "-m", "quarterdeck", *words, "--connect", f"hazelcast://{SERVICE}")
        return subprocess.Popen(
            [*self._inside, "unshare", "--mount", "sh", "-c", mounted, "sh", *ours], text=True, cwd=self._hosts.parent,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        )  # fmt: skip

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()


@contextmanager
def name_server(cluster: RealCluster, folder: Path) -> Iterator[NameServer]:
    server = NameServer(cluster, folder)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    missing = [tool for tool in ("dnsmasq", "unshare") if shutil.which(tool) is None]
    reason = why_not(VERSION) or (f"{missing[0]} is not installed" if missing else None)
    if reason is not None:
        pytest.skip(reason)
    listed = {member: [1] for member in range(1, 5)}
    with RealCluster(VERSION, tmp_path, 4, join_lists=listed, properties=GRACEFUL) as members:
        yield members


def ask(dns: NameServer, *words: str) -> Any:
    asked = dns.run("cluster", *words, "-o", "json")
    out, error = asked.communicate(timeout=120)
    assert out, error
    return json.loads(out)


def status(dns: NameServer) -> dict[str, object]:
    found: dict[str, object] = ask(dns, "status")
    return found


def test_a_pod_behind_a_name_comes_back_at_another_address(cluster: RealCluster, tmp_path: Path) -> None:
    with name_server(cluster, tmp_path) as dns:
        asked = dns.run("cluster", "status")
        out, error = asked.communicate(timeout=120)
        assert (asked.returncode, out) == (3, ""), error
        assert "hz.orders.svc" in error

        cluster.start(1, 2, 3)
        dns.serve(1, 2, 3)
        wait_until(
            lambda: all("Members {size:3," in cluster.log(member).read_text() for member in (1, 2, 3)), limit_seconds=60
        )
        with cluster.inside():
            client = HazelcastClient(cluster_members=[str(cluster.address(1))])
            client.get_map("orders").blocking().put_all({str(number): "x" for number in range(500)})
            client.shutdown()
        assert status(dns)["whole"] is True

        uuid = UUID.findall(cluster.log(3).read_text())[-1]
        (tmp_path / "plan.json").write_text(json.dumps({"10.77.0.3:5701": uuid}))
        restart = f"touch {tmp_path / 'wanted'}"
        words = ("--state", str(tmp_path / "plan.json"), "--timeout", "150", "--exec", restart)
        restarting = dns.run("cluster", "rolling-restart", *words)
        wait_until(lambda: (tmp_path / "wanted").exists() or restarting.poll() is not None, limit_seconds=160)
        cluster.signal(3, signal.SIGTERM)
        cluster.processes[3].wait(60)
        dns.serve(1, 2)
        cluster.start(4)
        dns.serve(1, 2, 4)
        out, error = restarting.communicate(timeout=160)
        assert restarting.returncode == 0, out + error
        assert "10.77.0.3:5701 is back" in error
        found = status(dns)
        assert found["whole"] is True, found


def test_a_pod_that_comes_back_at_another_address_is_the_same_pod_by_the_name_that_dns_has_for_it(
    cluster: RealCluster, tmp_path: Path
) -> None:
    pod = f"hz-2.{SERVICE}:5701"
    with name_server(cluster, tmp_path) as dns:
        dns.serve_pods(hz_0=1, hz_1=2, hz_2=3)
        cluster.start(1, 2, 3)
        wait_until(
            lambda: all("Members {size:3," in cluster.log(member).read_text() for member in (1, 2, 3)), limit_seconds=60
        )
        before = {row["member"]: row for row in ask(dns, "members")}
        assert sorted(before) == [f"hz-{number}.{SERVICE}:5701" for number in range(3)]
        assert before[pod]["list_size"] == 3 and sorted(before[pod]["members"]) == sorted(before)
        watching = dns.run("cluster", "watch", "--new", "--for", "90", "-o", "jsonl")
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({pod: before[pod]["uuid"]}))
        wanted = tmp_path / "wanted"
        restarting = dns.run("cluster", "rolling-restart", "--state", str(plan), "--exec", f"echo $MEMBER > {wanted}")
        wait_until(lambda: wanted.exists() or restarting.poll() is not None, limit_seconds=160)
        cluster.signal(3, signal.SIGTERM)
        cluster.processes[3].wait(60)
        dns.serve_pods(hz_0=1, hz_1=2)
        cluster.start(4)
        dns.serve_pods(hz_0=1, hz_1=2, hz_2=4)
        out, error = restarting.communicate(timeout=160)
        assert restarting.returncode == 0, out + error
        assert wanted.read_text().strip() == pod and f"{pod} is back" in error
        wait_until(lambda: status(dns)["whole"] is True, limit_seconds=60)
        after = {row["member"]: row for row in ask(dns, "members")}
        assert sorted(after) == sorted(before) and all(row["reached"] for row in after.values())
        assert after[pod]["uuid"] != before[pod]["uuid"]
        out, error = watching.communicate(timeout=120)
        seen = [json.loads(line) for line in out.splitlines()]
        assert {record["uuid"] for record in seen if record["member"] == pod} >= {after[pod]["uuid"]}, error
        assert any(record["member"] == pod and record["event"]["kind"] == "member-started" for record in seen), error

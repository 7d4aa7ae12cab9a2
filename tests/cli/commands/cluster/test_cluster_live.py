"""`quarterdeck cluster` against members that are processes: seen, cut off, healed, killed and missed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quarterdeck.backend.clusters.remote.remote_cluster import RemoteCluster
from quarterdeck.backend.core.commands import CutLink, Heal
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.operations import Get, Put
from tests.cli.conftest import Quarterdeck
from tests.ports import take_ports
from tests.waiting import wait_until

CITIES = ("athens", "byzantium", "cyrene")
PROGRAM = (sys.executable, "-c", "from quarterdeck.cli.main import run; run()")


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, tuple[str, subprocess.Popen[bytes]]]]:
    """URL and process of each member."""
    base_port = take_ports(len(CITIES))
    ports = range(base_port, base_port + len(CITIES))
    joins = [word for port in ports for word in ("--join", f"127.0.0.1:{port}")]
    running: dict[str, tuple[str, subprocess.Popen[bytes]]] = {}
    try:
        for label, port in zip(CITIES, ports, strict=True):
            ready = tmp_path / f"{label}.ready"
            start = ("member", "start", "--name", label, "--port", str(port), "--ready-file", str(ready))
            how = ("--preset", "training", "--allow-faults", *joins)
            with (tmp_path / f"{label}.log").open("wb") as log:
                process = subprocess.Popen([*PROGRAM, *start, *how], stdout=log, stderr=log)
            running[label] = (f"http://127.0.0.1:{port}", process)
            wait_until(ready.exists)
        yield running
    finally:
        for _, process in running.values():
            process.kill()
            process.wait()


def test_a_cluster_is_watched_cut_healed_used_and_mourned(
    quarterdeck: Quarterdeck, members: dict[str, tuple[str, subprocess.Popen[bytes]]]
) -> None:
    url = members["byzantium"][0]
    cluster = RemoteCluster([url], write=True)
    try:
        wait_until(lambda: [status.contact for status in cluster.connection_status().values()] == ["connected"] * 3)
        assert sorted(cluster.labels) == sorted(CITIES)
        assert not any(status.incomplete for status in cluster.connection_status().values())
        wait_until(lambda: quarterdeck("cluster", "status", "--connect", url, "--check").returncode == 0)
        assert cluster.call("cyrene", Put("capitals", "fr", b"paris")).result(60).problem == ""
        assert cluster.call("athens", Get("capitals", "fr")).result(60).value == b"paris"

        cluster.execute(CutLink(("athens", "byzantium"), ("cyrene",))).result(60)

        def masters() -> list[str]:
            done = quarterdeck("cluster", "status", "--connect", url, "-o", "json")
            return sorted(json.loads(done.stdout)["masters"])

        wait_until(lambda: masters() == ["athens", "cyrene"])
        cluster.execute(Heal()).result(60)
        wait_until(lambda: masters() == ["athens"])

        done = quarterdeck("cluster", "kill", "cyrene", "--connect", url)
        assert done.returncode == 0, done.stderr
        assert members["cyrene"][1].wait(60) == -signal.SIGKILL
        wait_until(lambda: cluster.connection_status()["cyrene"].contact == "stale")
        records: list[Record] = []

        def removed() -> bool:
            records.extend(cluster.drain())
            return any(
                getattr(record.event, "kind", type(record.event).__name__) == "MemberRemoved" for record in records
            )

        wait_until(removed)
        identities = [(record.uuid, record.seq) for record in records]
        assert len(identities) == len(set(identities))
    finally:
        cluster.close()

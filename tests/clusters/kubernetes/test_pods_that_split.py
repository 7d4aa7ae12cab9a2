"""Pods of unmodified members that are two clusters or more: found, alerted, explained, and healed by the remedy that is shown."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clusters.kubernetes.real_pods import Pods, monitoring_of, pods_of, why_no_pods
from tests.clusters.kubernetes.test_real_dns import SERVICE, name_server
from tests.hazelcast.real.real_cluster import RealCluster
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
VERSION = "5.5.0"
FORGETFUL = {"hazelcast.tcp.join.previously.joined.member.address.retention.seconds": "0"}
"""Members remember no former ones, as pods that were made anew do not."""
LIST = re.compile(r"Members \{size:(\d+),")


def size(cluster: RealCluster, *members: int) -> set[int]:
    """Return the sizes of the lists that these members logged last."""
    return {int((LIST.findall(cluster.log(member).read_text()) or [0])[-1]) for member in members}


def test_a_split_of_six_pods(tmp_path: Path) -> None:
    if (reason := why_no_pods(VERSION, "prometheus")) is not None:
        pytest.skip(reason)
    small, great = (1, 2), (3, 4, 5, 6)
    lists = {member: [*small] for member in range(1, 7)}
    with (
        RealCluster(VERSION, tmp_path, 6, join_lists=lists, rest=True, properties=FORGETFUL) as cluster,
        pods_of(cluster, tmp_path) as pods,
    ):
        cluster.start(1)
        wait_until(lambda: size(cluster, 1) == {1})
        cluster.start(*range(2, 7))
        wait_until(lambda: size(cluster, *cluster.everybody) == {6}, limit_seconds=300)
        with monitoring_of(pods, tmp_path) as seen:
            wait_until(lambda: seen.value("condition", condition="healthy") == 1)
            cluster.cut(small, great)
            wait_until(lambda: seen.value("masters") == 2)
            wait_until(lambda: "ClusterSplit" in seen.firing(), lambda: str(seen.firing()))
            assert seen.firing()["ClusterSplit"]["runbook"] == "docs/operators/runbooks.md#split"
            cluster.heal()
            time.sleep(15)  # time itself is the subject: three searches for other clusters pass, and change nothing
            found = pods.ask("cluster", "status")
            masters = {int(master.removeprefix("hz-").removesuffix(":5701")) for master in found["masters"]}
            assert found["whole"] is False
            assert (len(masters & {*small}), len(masters & {*great})) == (1, 1)
            assert found["sentence"].startswith("SPLIT")
            for line in remedy_of(pods):
                pods.run(line)
            wait_until(lambda: seen.value("condition", condition="healthy") == 1)
            wait_until(lambda: "ClusterSplit" not in seen.firing())
            assert size(cluster, *cluster.everybody) == {6}
        told = [json.loads(line)["condition"] for line in seen.changes.read_text().splitlines() if line]
        assert "split" in told and told[-1] == "healthy"


def remedy_of(pods: Pods) -> list[str]:
    """Return the lines that the operator is shown, and copies."""
    shown, narrated = pods.start("cluster", "why").communicate(timeout=60)
    lines = [line.strip() for line in narrated.splitlines() if line.startswith("  quarterdeck ")]
    assert lines, shown + narrated
    return lines


KUBERNETES = f'<kubernetes enabled="true"><service-dns>{SERVICE}</service-dns></kubernetes>'


@contextmanager
def resolver_of(cluster: RealCluster) -> Iterator[None]:
    """Let the pods ask a name server in their own network, which need not be there."""
    folders = [Path("/etc/netns") / cluster._namespace(member) for member in cluster.everybody]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "resolv.conf").write_text("nameserver 10.77.0.254\noptions timeout:1 attempts:1\n")
    try:
        yield
    finally:
        for folder in folders:
            (folder / "resolv.conf").unlink()
            folder.rmdir()


def story_in_logs(pods: Pods, folder: Path) -> list[dict[str, Any]]:
    """Return what an audit of the members' logs observes."""
    audited = subprocess.run(
        ["quarterdeck", "audit", *map(str, folder.glob("h*.log")), "-o", "json"], env=pods.environment, cwd=folder,
        capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    return list(json.loads(audited.stdout)["observations"])


def sentence_of(pods: Pods) -> str:
    return str(pods.ask("cluster", "status")["sentence"])


def test_pods_that_found_alone_since_dns_does_not_answer(tmp_path: Path) -> None:
    if (reason := why_no_pods(VERSION, "dnsmasq")) is not None:
        pytest.skip(reason)
    with (
        RealCluster(VERSION, tmp_path, 3, joiner=KUBERNETES) as cluster,
        resolver_of(cluster),
        pods_of(cluster, tmp_path) as pods,
    ):
        cluster.start(*cluster.everybody, arguments=("-Dnetworkaddress.cache.negative.ttl=1",))
        wait_until(lambda: all("is STARTED" in cluster.log(member).read_text() for member in cluster.everybody))
        found = pods.ask("cluster", "status")
        assert (found["whole"], len(found["masters"])) == (False, 3)
        assert found["sentence"].startswith("SPLIT · 1 + 1 + 1, masters ")
        for row in pods.ask("cluster", "why"):
            assert "not a join list, but kubernetes" in row["sentence"]
            assert "publishNotReadyAddresses" in row["remedy"]
        (seen,) = story_in_logs(pods, tmp_path)
        assert (seen["kind"], seen["is_open"]) == ("name-unresolved", True)
        assert seen["headline"].startswith(f"{SERVICE} has no address for 10.77.0.1:5701, ")
        (tmp_path / "hosts").write_text("".join(f"10.77.0.{member} {SERVICE}\n" for member in cluster.everybody))
        with name_server(cluster, tmp_path):
            wait_until(
                lambda: sentence_of(pods).startswith("healthy"),
                lambda: cluster.log(2).read_text()[-3_000:],
                limit_seconds=120,
            )

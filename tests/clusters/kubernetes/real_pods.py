"""Unmodified members in network namespaces as the pods of a service, for the real `kubectl`; and Prometheus beside them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.clusters.kubernetes.api_server import NAMESPACE, SERVICE, ApiServer, RunningPod
from tests.hazelcast.real.real_cluster import RealCluster, why_not

OPERATORS = Path(__file__).parents[3] / "docs" / "operators"
ROLE = OPERATORS / "kubernetes" / "watcher-role.yaml"
RULES = OPERATORS / "monitoring" / "cluster-alerts.yaml"
URL = f"k8s://{NAMESPACE}/{SERVICE}"


def why_no_pods(version: str, *programs: str) -> str | None:
    """Return what is missing on this machine."""
    missing = [program for program in ("kubectl", *programs) if shutil.which(program) is None]
    return why_not(version) or (f"{missing[0]} is not installed" if missing else None)


def pod_of(cluster: RealCluster, name: str, member: int) -> RunningPod:
    """Return a pod in which this member runs."""
    host = cluster.address(member).partition(":")[0]
    return RunningPod(name, f"uid-{member}", host, cluster.log(member))


class Pods:
    """Pods hz-1, hz-2, … with the members 1, 2, …, and the commands of an operator who reaches them by `kubectl` alone."""

    def __init__(self, cluster: RealCluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self.api = ApiServer(ROLE, self._connect)
        (folder / "config").write_text(self.api.kubeconfig)
        program = Path(sys.executable).parent
        self.environment = os.environ | {
            "KUBECONFIG": str(folder / "config"),
            "HOME": str(folder),  # what kubectl keeps of an API
            "PATH": f"{program}{os.pathsep}{os.environ['PATH']}",
        }
        for member in cluster.everybody:
            self.api.run(pod_of(cluster, f"hz-{member}", member))

    def _connect(self, host: str, port: int) -> socket.socket:
        with self._cluster.inside():
            far = socket.create_connection((host, port), 5)
        far.settimeout(None)
        return far

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command on these pods."""
        return subprocess.Popen(
            ["quarterdeck", *words, "--connect", URL], env=self.environment, cwd=self._folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, line: str) -> None:
        """Have a shell do a line that was copied."""
        subprocess.run(line, shell=True, env=self.environment, cwd=self._folder, check=True, timeout=120)

    def ask(self, *words: str) -> Any:
        """Return what a command prints as JSON."""
        out, error = self.start(*words, "-o", "json").communicate(timeout=180)
        assert out, error
        return json.loads(out)


@contextmanager
def pods_of(cluster: RealCluster, folder: Path) -> Iterator[Pods]:
    """Pods for as long as the block lasts."""
    pods = Pods(cluster, folder)
    try:
        yield pods
    finally:
        pods.api.close()


class Monitoring:
    """`quarterdeck export` on pods, and a Prometheus with the rules of the documents that asks it every second."""

    def __init__(self, pods: Pods, folder: Path) -> None:
        self._metrics, self._prometheus = free_port(), free_port()
        self.changes = folder / "changes"
        self.exporter = pods.start(
            *(
                "export",
                "--listen",
                f"127.0.0.1:{self._metrics}",
                "--exec",
                f"cat >> {self.changes}; echo >> {self.changes}",
            )
        )
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [
                {"job_name": "orders-cluster", "static_configs": [{"targets": [f"127.0.0.1:{self._metrics}"]}]}
            ],
        }
        (folder / "prometheus.yml").write_text(json.dumps(configuration))
        self.prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
             f"--web.listen-address=127.0.0.1:{self._prometheus}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def value(self, name: str, **labels: str) -> float | None:
        """Return a metric of the exporter; None where it has no such sample."""
        wanted = "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}" if labels else ""
        try:
            text = httpx.get(f"http://127.0.0.1:{self._metrics}/metrics", timeout=10).text
        except httpx.HTTPError:
            return None
        prefix = f"quarterdeck_cluster_{name}{wanted} "
        return next((float(line.removeprefix(prefix)) for line in text.splitlines() if line.startswith(prefix)), None)

    def firing(self) -> dict[str, dict[str, str]]:
        """Return the annotations of the alerts that fire in Prometheus, by name."""
        try:
            found = httpx.get(f"http://127.0.0.1:{self._prometheus}/api/v1/alerts", timeout=10).json()
        except httpx.HTTPError:
            return {}
        alerts = found["data"]["alerts"]
        return {alert["labels"]["alertname"]: alert["annotations"] for alert in alerts if alert["state"] == "firing"}

    def close(self) -> None:
        """End both."""
        for process in (self.exporter, self.prometheus):
            process.terminate()
        self.exporter.communicate(timeout=60)
        self.prometheus.wait(60)


@contextmanager
def monitoring_of(pods: Pods, folder: Path) -> Iterator[Monitoring]:
    """An exporter and a Prometheus for as long as the block lasts."""
    found = Monitoring(pods, folder)
    try:
        yield found
    finally:
        found.close()


def free_port() -> int:
    """Return a port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

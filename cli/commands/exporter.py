"""Follows a cluster, makes its metrics when they are asked for, and calls a command or a URL at each change of its condition."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import msgspec
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quarterdeck.backend.boards.cluster_metrics import (
    PREFIX,
    ClusterMetric,
    cluster_metrics,
    observed_metrics,
)
from quarterdeck.backend.clusters.cluster import WatchedCluster
from quarterdeck.backend.clusters.follower import Follower
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.cli.exits import in_one_line
from quarterdeck.cli.output import say

HOOK_TRIES = 3
HOOK_TIMEOUT_SECONDS = 30.0
HOOKS_WAITING = 32
"""Changes that wait for a slow hook; then the oldest are left out, and said to be."""


class Hooks:
    """Calls a command and a URL with each change, in a thread of its own: following a cluster never waits for them."""

    def __init__(self, command: str | None, webhook: str | None) -> None:
        self._command, self._webhook = command, webhook
        self._changes: deque[dict[str, object]] = deque(maxlen=HOOKS_WAITING)
        self._came = threading.Condition()
        self._ended = threading.Event()
        self.failed = 0
        self._thread = threading.Thread(target=self._run, name="hooks", daemon=True)
        if command or webhook:
            self._thread.start()

    def send(self, change: dict[str, object]) -> None:
        """Hand over a change. When too many wait, the oldest is left out."""
        if not self._thread.is_alive():
            return
        with self._came:
            if len(self._changes) == HOOKS_WAITING:
                self._count("too many changes wait for the hook; the oldest is left out")
            self._changes.append(change)
            self._came.notify()

    def close(self) -> None:
        """End the thread after the change that is being sent."""
        self._ended.set()
        if self._thread.is_alive():
            with self._came:
                self._came.notify()
            self._thread.join(1)

    def _run(self) -> None:
        while True:
            with self._came:
                self._came.wait_for(lambda: self._changes or self._ended.is_set())
                if self._ended.is_set():
                    return
                body = msgspec.json.encode(self._changes.popleft())
            if self._command:
                self._try("--exec", self._execute, body)
            if self._webhook:
                self._try("--webhook", self._post, body)

    def _execute(self, body: bytes) -> None:
        """Run the command in a process group of its own, which is killed as a whole when time is up."""
        assert self._command is not None
        process = subprocess.Popen(self._command, shell=True, stdin=subprocess.PIPE, start_new_session=True)
        try:
            process.communicate(body, HOOK_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, "the command")

    def _post(self, body: bytes) -> None:
        assert self._webhook is not None
        headers = {"Content-Type": "application/json"}
        answer = httpx.post(self._webhook, content=body, headers=headers, timeout=HOOK_TIMEOUT_SECONDS)
        if not answer.is_success:  # httpx's own message has the URL, and with it what authorizes
            raise httpx.HTTPError(f"it answered {answer.status_code} {answer.reason_phrase}")

    def _try(self, name: str, act: Any, body: bytes) -> None:
        for attempt in range(HOOK_TRIES):
            try:
                act(body)
            except (OSError, subprocess.SubprocessError, httpx.HTTPError, httpx.InvalidURL) as problem:
                if attempt + 1 == HOOK_TRIES:
                    self._count(f"{name}: {in_one_line(problem)}; given up after {HOOK_TRIES} attempts")
                elif self._ended.wait(2**attempt):
                    return
            else:
                return

    def _count(self, problem: str) -> None:
        self.failed += 1
        say(problem)


class ClusterExporter(Collector):
    """Follows a cluster, and makes its metrics when they are asked for."""

    def __init__(
        self, cluster: WatchedCluster, hooks: Hooks, state_file: Path | None = None, expected_members: int | None = None
    ) -> None:
        """`state_file` keeps what was said last: at the next start the hooks learn what has changed meanwhile."""
        self._cluster, self._hooks, self._state_file = cluster, hooks, state_file
        self._followed = Follower(cluster, expected_members=expected_members)
        self._lock = threading.Lock()
        """Metrics are asked for in a thread of the server's."""
        self._last = self._kept()

    def follow(self) -> None:
        """Apply what has come, and hand a change to the hooks."""
        with self._lock:
            self._followed.follow()
            if not self._cluster.is_settled:
                return
            now_us = self._cluster.now_us()
            health = self._followed.judge().health
            fields = health.as_fields(now_us)
            masters = sorted(label for label, belief in self._followed.picture.members.items() if belief.leads)
        lost: Any = fields["data_lost"]
        state = {
            "condition": health.condition,
            "whole": fields["whole"],
            "data_safe": fields["data_safe"],
            "lost_partitions": lost and lost["partitions"],
            "masters": masters,
        }
        if state != self._last:
            before, self._last = self._last, state
            self._keep(state)
            say(health.narrated)
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._hooks.send({"cluster": self._cluster.name, "at": at, **fields, **state, "before": before})

    def _kept(self) -> dict[str, object] | None:
        if self._state_file is None:
            return None
        try:
            return msgspec.json.decode(self._state_file.read_bytes(), type=dict[str, object])
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as problem:
            say(f"--state-file {self._state_file} is begun anew: {in_one_line(problem)}")
            return None

    def _keep(self, state: dict[str, object]) -> None:
        if self._state_file is None:
            return
        unfinished = self._state_file.with_name(f".{self._state_file.name}.new")
        try:
            unfinished.write_bytes(msgspec.json.encode(state) + b"\n")
            unfinished.replace(self._state_file)
        except OSError as problem:
            say(f"--state-file {self._state_file} is not written: {in_one_line(problem)}")

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of this moment."""
        with self._lock:
            connections = self._cluster.connection_status()
            states = {label: status.state or status.contact for label, status in connections.items()}
            now_us = self._cluster.now_us()
            found = [*cluster_metrics(self._followed.judge(), states)]
            story = self._followed.story
            if story is not None:
                seen = ((known.kind, ", ".join(known.members), known.is_open) for known in story.observations)
                found += observed_metrics(seen)
            heard_us = self._followed.picture.at
        yield from map(_family, found)
        age = GaugeMetricFamily("quarterdeck_cluster_last_record_age_seconds", "Since a member reported anything.")
        if heard_us:
            age.add_metric([], max(now_us - heard_us, 0) / SECOND_US)
        yield age
        dropped = CounterMetricFamily("quarterdeck_cluster_hooks_failed", "Changes that a hook did not take.")
        dropped.add_metric([], self._hooks.failed)
        yield dropped


def _family(metric: ClusterMetric) -> Metric:
    kind = CounterMetricFamily if metric.counts_up else GaugeMetricFamily
    family = kind(PREFIX + metric.name, metric.meaning, labels=metric.labels)
    for labels, value in metric.samples.items():
        family.add_metric(labels, value)
    return family

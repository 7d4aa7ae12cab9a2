"""What operators ask in threads: members are brought into the state of the question, and the commands of the page are run.

The page is `docs/operators/questions.md`. Where it takes chance to come into such a state, what was recorded of one is read.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hazelcast.client import HazelcastClient

from tests.hazelcast.real.real_cluster import RealCluster, why_not
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
VERSION = "5.5.0"
ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "tests" / "hazelcast" / "logs" / "data"


ENVIRONMENT = os.environ | {
    "PYTHONPATH": str(ROOT), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
}  # fmt: skip


def observed(*logs: Path) -> dict[str, dict[str, Any]]:
    """Return what the audit of logs observes, by kind."""
    words = ("quarterdeck", "audit", *map(str, logs), "-o", "json")
    audited = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert audited.stdout, audited.stderr
    return {observation["kind"]: observation for observation in json.loads(audited.stdout)["observations"]}


class Operator:
    """Types the commands of the page, in the members' network."""

    def __init__(self, cluster: RealCluster, *through: int) -> None:
        """`through`: the first and the last member, unless others are named."""
        self._cluster = cluster
        first, last = through or (cluster.everybody[0], cluster.everybody[-1])
        self.connect = ("--connect", f"hazelcast://{cluster.address(first)},{cluster.address(last)}")

    def start(self, *words: str) -> subprocess.Popen[str]:
        with self._cluster.inside():
            return subprocess.Popen(
                ["quarterdeck", *words], cwd=self._cluster.folder, text=True, env=ENVIRONMENT,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip

    def ask(self, *words: str) -> Any:
        """Return what a command on the members prints as JSON."""
        out, error = self.start("cluster", *words, *self.connect, "-o", "json").communicate(timeout=180)
        assert out, error
        return json.loads(out)

    def migrations(self) -> str:
        """Return what is said of migrations; of a round nothing before one of it has ended."""
        return self.start("cluster", "migrations", *self.connect).communicate(timeout=60)[1]

    def do(self, *words: str) -> None:
        asked = self.start("cluster", *words, *self.connect)
        _, error = asked.communicate(timeout=180)
        assert asked.returncode == 0, error

    def copies(self, line: str) -> None:
        """Run a line that was shown."""
        with self._cluster.inside():
            subprocess.run(line, shell=True, env=ENVIRONMENT, check=True, timeout=120)

    def audits(self) -> dict[str, dict[str, Any]]:
        """Return what the audit of the members' logs observes, by kind."""
        return observed(*self.logs)

    @property
    def logs(self) -> list[Path]:
        return [self._cluster.log(member) for member in self._cluster.everybody if self._cluster.log(member).exists()]

    def sentence(self) -> str:
        """Return the sentence; empty while no member is reached."""
        asked = self.start("cluster", "status", *self.connect, "-o", "json")
        out, _ = asked.communicate(timeout=180)
        return str(json.loads(out)["sentence"]) if out else ""

    def waits_for(self, what: str, holds: Callable[[], object], seconds: float = 180) -> None:
        wait_until(holds, lambda: f"{what}: {self.sentence()}", limit_seconds=seconds, poll_seconds=1)


@pytest.fixture(autouse=True)
def _is_possible() -> None:
    if (reason := why_not(VERSION)) is not None:
        pytest.skip(reason)


def put(cluster: RealCluster, member: int, entries: int, name: str = "orders") -> None:
    with cluster.inside():
        client = HazelcastClient(cluster_members=[str(cluster.address(member))])
        client.get_map(name).blocking().put_all({str(number): "x" * 100 for number in range(entries)})
        client.shutdown()


FORGETFUL = {"hazelcast.tcp.join.previously.joined.member.address.retention.seconds": "0"}
"""As before 5.2: later members remember the master that has asked them, and merge at their next search."""


def test_we_should_merge_for_ever(tmp_path: Path) -> None:
    """hazelcast 20192, 19144, 25907, 14168, 274: only the greater half looks for the other."""
    lists = {1: [1, 2], 2: [1, 2], 3: [1, 2, 3, 4, 5], 4: [1, 2, 3, 4, 5], 5: [1, 2, 3, 4, 5]}
    with RealCluster(VERSION, tmp_path, 5, rest=True, join_lists=lists, properties=FORGETFUL) as cluster:
        operator = Operator(cluster)
        cluster.cut((1, 2), (3, 4, 5))
        cluster.start(1, 3)
        cluster.start(2, 4, 5)
        operator.waits_for("two halves", lambda: operator.sentence().startswith("SPLIT · 3 + 2"))
        cluster.heal()
        time.sleep(20)  # time itself is the subject: the halves have met, and still do not merge
        assert operator.sentence().startswith("SPLIT")
        assert any("We should merge to" in log.read_text() for log in operator.logs), "it is that question"
        assert {len(row["members"]) for row in operator.ask("lists")} == {2, 3}
        rows = operator.ask("why")
        assert {row["sentence"] for row in rows if "has to begin the merge" in row["sentence"]}, rows
        lines = list(dict.fromkeys(line for row in rows for line in row["remedy_lines"]))
        assert len(lines) == 1, rows
        logged = operator.ask("why", *(word for log in operator.logs for word in ("--logs", str(log))))
        entries = {tuple(line.split()[-3:]) for row in logged for line in row["remedy_lines"]}
        assert entries == {tuple(lines[0].split()[-3:])}, (lines, logged)
        found = operator.audits()
        assert found["halves-apart"]["is_open"]
        operator.copies(lines[0])
        operator.waits_for("one cluster", lambda: operator.sentence().startswith("healthy"), 120)


SLOW = {
    "hazelcast.partition.count": "31",
    "hazelcast.partition.migration.interval": "4",
    "hazelcast.partition.max.parallel.migrations": "1",
    "hazelcast.shutdownhook.policy": "GRACEFUL",
}
"""Migrations take their time."""


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[RealCluster]:
    with RealCluster(VERSION, tmp_path, 5, properties=SLOW) as cluster:
        yield cluster


def test_frozen_stuck_and_waiting(slow: RealCluster) -> None:
    """hazelcast 9972, 963, 474, 497, 14252, 12541."""
    slow.join_lists |= {it: [1, 2, 3, 4] for it in (1, 2, 3, 4)}
    operator = Operator(slow, 1, 4)
    slow.start(1, 2, 3)
    operator.waits_for("three members", lambda: "3 members agree" in operator.sentence())
    put(slow, 1, 1_000)
    operator.do("state", "FROZEN")
    assert {row["cluster_state"] for row in operator.ask("state")} == {"FROZEN"}
    refused = operator.ask("may-stop", str(slow.address(2)))
    assert refused["verdict"] == "no" and "the cluster is FROZEN" in str(refused["reasons"])
    time.sleep(65)  # it is stuck after a minute
    operator.ask("state")  # an audit knows nothing after the last line, and members log that a client has come
    frozen = operator.audits()["frozen"]
    assert frozen["is_open"] and "FROZEN" in frozen["headline"], frozen
    operator.do("state", "ACTIVE")
    slow.start(4)
    operator.waits_for("four members", lambda: "4 members agree" in operator.sentence())
    busy = operator.ask("may-stop", str(slow.address(2)), "--wait", "0")
    assert busy["verdict"] != "yes", busy
    operator.waits_for(
        "a round under way",
        lambda: (said := operator.migrations()) and "of the round done" in said and "in the migration queue" in said,
    )
    leaving = operator.start("cluster", "do", *operator.connect, "stop", str(slow.address(3)))
    wait_until(lambda: "shutdown-waits" in operator.audits(), limit_seconds=200)
    leaving.communicate(timeout=120)
    slow.processes[3].wait(200)
    operator.waits_for("three members", lambda: "3 members agree" in operator.sentence())
    # All join lists name the one that has left: a command that never met it does not know that it leads no cluster of its own.
    missed = operator.ask("may-stop", str(slow.address(2)))
    assert missed["verdict"] != "yes" and f"not seen: {slow.address(3)}" in str(missed["reasons"]), missed
    slow.start(3)
    operator.waits_for("four members", lambda: "4 members agree" in operator.sentence())
    operator.waits_for("a yes", lambda: operator.ask("may-stop", str(slow.address(2)))["verdict"] == "yes", 300)
    slow.properties = slow.properties | {"hazelcast.partition.count": "271"}
    slow.start(5)
    wait_until(lambda: "mismatch" in slow.log(5).read_text(), lambda: slow.log(5).read_text()[-2_000:])
    assert "join-refused" in operator.audits()
    slow.processes[5].kill()
    watching = operator.start("cluster", "watch", *operator.connect, "--new", "--for", "60")
    time.sleep(20)  # as long as the watcher needs to have seen metrics of all
    slow.signal(2, signal.SIGKILL)
    slow.signal(4, signal.SIGKILL)
    _, narrated = watching.communicate(timeout=180)
    assert "DATA LOST" in narrated, narrated


def test_a_merge_that_is_given_up(slow: RealCluster) -> None:
    """hazelcast 13988: the smaller half still migrates, and cannot be frozen."""
    operator = Operator(slow)
    slow.start(*slow.everybody)
    operator.waits_for("five members", lambda: "5 members agree" in operator.sentence())
    put(slow, 1, 1_000)
    slow.cut((1, 2), (3, 4, 5))
    operator.waits_for("two halves", lambda: operator.sentence().startswith("SPLIT"))
    slow.heal()
    wait_until(lambda: any("pending migration tasks" in log.read_text() for log in operator.logs), limit_seconds=120)
    cause = operator.audits()["halves-apart"]["cause"]
    assert cause.startswith(("A merge has begun", "A merge was begun and given up")), cause
    wait_until(lambda: "A merge was begun and given up" in operator.audits()["halves-apart"]["cause"], limit_seconds=60)
    operator.waits_for("one cluster", lambda: operator.sentence().startswith("healthy"), 300)


@pytest.mark.parametrize(
    ("thread", "run", "kind", "words"),
    [
        ("hazelcast 18582", "flapping", "claim-not-accepted", "claims mastership but it is not a member"),
        ("hazelcast 10683", "paused-master", "clock-jump", ""),
        ("hazelcast 6464", "lasting-suspicion", "lasting-suspicion", ""),
        ("hazelcast 26388", "master-alone", "lone-master", ""),
    ],
)
def test_what_was_recorded(thread: str, run: str, kind: str, words: str) -> None:
    found = observed(RECORDED / run)
    assert kind in found, (thread, found.keys())
    assert words in found[kind]["detail"]

"""Scripts of faults against unmodified members: no statement that is made meanwhile is false by the members' own logs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from signal import Signals
from typing import NamedTuple

import pytest

from quarterdeck.backend.clusters.hazelcast.log_tail import LogSource
from tests.hazelcast.real.judges import Statement, judge, statements, table
from tests.hazelcast.real.member_logs import LOG_FORMAT, lists_in
from tests.hazelcast.real.real_cluster import RealCluster, wait_for
from tests.hazelcast.real.test_real_members import version
from tests.hazelcast.real.test_troubles import Console, console_on, watched
from tests.hazelcast.real.truth import DoneStep, StepKind, Truth

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

__all__ = ["version"]

RECENT = 2000


class Step(NamedTuple):
    """What is done to which members, and for how long is watched afterwards."""

    kind: StepKind
    members: tuple[int, ...]
    seconds: int


class FaultScript(NamedTuple):
    """How many members are started, and what is done to them."""

    name: str
    size: int
    steps: tuple[Step, ...]


SCRIPTS = (
    FaultScript("split and heal", 5, (Step("cut", (1, 2), 30), Step("heal", (), 45))),
    FaultScript("two killed at once", 5, (Step("kill", (4, 5), 30),)),
    FaultScript("kill and restart of the master", 3, (Step("kill", (1,), 20), Step("start", (1,), 30))),
    FaultScript("freeze and thaw of the master", 3, (Step("freeze", (1,), 30), Step("thaw", (1,), 40))),
)


class Driver:
    """Does a script, and keeps what it did and what the program said."""

    def __init__(self, cluster: RealCluster, console: Console) -> None:
        self.cluster = cluster
        self.console = console
        self.done: list[DoneStep] = []
        self.said: list[Statement] = []

    def perform(self, step: Step) -> None:
        """Do a step, and keep what is said after it once a second."""
        self.done.append(DoneStep(now_us(), step.kind, tuple(map(self.cluster.address, step.members))))
        self._act(step)
        for _ in range(step.seconds):
            time.sleep(1)
            self.listen()

    def listen(self) -> None:
        """Keep what is said now."""
        console = self.console
        console.drain()
        opened = console.cluster
        status = opened.connection_status()
        self.said += statements(console.picture, status, console.records[-RECENT:], opened.now_us(), now_us())

    def truth(self) -> Truth:
        """Return what was true, by the members' logs and the steps that were done."""
        cluster = self.cluster
        return Truth({cluster.address(it): lists_in(cluster.log(it)) for it in cluster.everybody}, self.done)

    def _act(self, step: Step) -> None:
        signals = {"kill": Signals.SIGKILL, "freeze": Signals.SIGSTOP, "thaw": Signals.SIGCONT}
        if step.kind == "start":
            self.cluster.start(*step.members, arguments=(LOG_FORMAT,))
        elif step.kind == "cut":
            self.cluster.cut(step.members, set(self.cluster.everybody) - set(step.members))
        elif step.kind == "heal":
            self.cluster.heal()
        else:
            for member in step.members:
                self.cluster.signal(member, signals[step.kind])


def now_us() -> int:
    """Return the time on the clock of the members' logs."""
    return time.time_ns() // 1000


@pytest.mark.parametrize("with_logs", [True, False], ids=["with-logs", "without-logs"])
@pytest.mark.parametrize("script", SCRIPTS, ids=[it.name.replace(" ", "-") for it in SCRIPTS])
def test_no_statement_is_false(version: str, script: FaultScript, with_logs: bool, tmp_path: Path) -> None:
    with RealCluster(version, tmp_path, script.size) as cluster:
        everybody = [cluster.address(it) for it in cluster.everybody]
        for it in cluster.everybody:
            cluster.log(it).touch()
        logs = [LogSource(cluster.log(it), cluster.address(it)) for it in cluster.everybody] if with_logs else []
        with console_on(cluster, watched(*everybody), logs=logs) as console:
            driver = Driver(cluster, console)
            for number in cluster.everybody:  # one after the other, so that the first leads
                driver.perform(Step("start", (number,), 0))
                wait_for(lambda number=number: bool(lists_in(cluster.log(number))), 120, "its first list")
            console.wait("the cluster", lambda: console.sizes(*everybody) == [script.size] * script.size, 180)
            for step in script.steps:
                driver.perform(step)
            report(script, driver, version, with_logs)


def report(script: FaultScript, driver: Driver, version: str, with_logs: bool) -> None:
    """Print the table, and fail with what was false."""
    truth = driver.truth()
    judged = [(said, judge(said, truth)) for said in driver.said]
    print(f"\n{script.name}, {version}, {'with' if with_logs else 'without'} logs", *table(judged), sep="\n")
    assert judged
    wrong = [said for said, verdict in judged if verdict == "false"]
    assert not wrong, "\n".join(described(wrong, driver.done[-len(script.steps)].at_us))


def described(wrong: Sequence[Statement], began_us: int) -> list[str]:
    """Return a line for each false statement, with its second of the script."""
    return [f"{(it.at_us - began_us) / 1e6:.1f} s {it.kind} {it.about}: {it.value} {it.text}" for it in wrong]

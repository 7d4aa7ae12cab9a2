"""Scripts of faults against unmodified members: no statement that is made meanwhile is false by the members' own logs.

Two consoles watch each script, one of them with the members' logs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals
from typing import Any, Literal, NamedTuple

import pytest
from hazelcast.client import HazelcastClient

from quarterdeck.backend.clusters.hazelcast.log_following import LogSource
from quarterdeck.backend.core.address import Address
from tests.hazelcast.real.kept_run import KeptConsole, Look, RunFacts, keep, report
from tests.hazelcast.real.member_logs import LOG_FORMAT, lists_in
from tests.hazelcast.real.real_cluster import RealCluster, wait_for
from tests.hazelcast.real.test_real_members import version
from tests.hazelcast.real.test_troubles import Console, console_on, watched
from tests.hazelcast.real.truth import DoneStep, EntryLoss, Link

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

__all__ = ["version"]

END_SECONDS = 60
ENTRIES = 5_000
GRACEFUL = {"hazelcast.shutdownhook.policy": "GRACEFUL", "hazelcast.partition.migration.interval": "0"}
WHOLE, LOOKED = "with-logs", "without-logs"

Action = Literal["start", "kill", "stop", "freeze", "thaw", "cut", "cut-link", "cut-one-way", "heal"]


class Step(NamedTuple):
    """What is done to which members, and for how long is watched afterwards."""

    action: Action
    members: tuple[int, ...] = ()
    seconds: int = 0


def restarts(*members: int) -> tuple[Step, ...]:
    """Return the steps that stop and start each of these members in turn."""
    return tuple(step for member in members for step in (Step("stop", (member,), 1), Step("start", (member,), 8)))


@dataclass(frozen=True)
class FaultScript:
    """How many members are started, and what is done to them."""

    name: str
    size: int
    steps: tuple[Step, ...]
    apart: tuple[int, ...] = ()
    """Members that are cut off from the others before they start."""
    join_lists: Mapping[int, list[int]] = field(default_factory=dict)
    entries: int = 0
    """So many are put into a map at the beginning."""
    is_written: bool = False
    """Whether a client writes all the time."""


ONE_SIDED = {**{number: [1, 2, 3] for number in (1, 2, 3)}, **{number: [4, 5] for number in (4, 5)}}
"""Neither side finds the other, with or without a cut."""

SCRIPTS = (
    FaultScript("split and heal", 7, (Step("cut", (1, 2, 3), 40), Step("heal", (), 45))),
    FaultScript("kill and restart of the master", 3, (Step("kill", (1,), 20), Step("start", (1,), 30))),
    FaultScript("freeze and thaw of the master", 3, (Step("freeze", (1,), 30), Step("thaw", (1,), 40))),
    FaultScript("a link cut both ways", 4, (Step("cut-link", (3, 4), 40), Step("heal", (), 40))),
    FaultScript("a link cut one way", 4, (Step("cut-one-way", (3, 4), 40), Step("heal", (), 40))),
    FaultScript("rolling restart of seven", 7, (*restarts(2, 3, 4, 5, 6, 7, 1), Step("heal", (), 20))),
    FaultScript("two killed at once", 5, (Step("kill", (4, 5), 40),), entries=ENTRIES),
    FaultScript("two stopped gracefully", 5, (Step("stop", (4, 5), 30),), entries=ENTRIES),
    FaultScript("all stopped and started", 3, (Step("stop", (1, 2, 3), 10), Step("start", (1, 2, 3), 40))),
    FaultScript("one-sided join lists", 5, (Step("heal", (), 40),), apart=(4, 5), join_lists=ONE_SIDED),
    FaultScript(
        "rolling restart under writes", 4, (*restarts(2, 3, 4, 1), Step("heal", (), 20)), entries=ENTRIES,
        is_written=True,
    ),
)  # fmt: skip


class Watcher:
    """A console, and when it was read."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.looks: list[Look] = []

    def listen(self) -> None:
        """Take in what came, and keep the moment."""
        console, opened = self.console, self.console.cluster
        console.drain()
        connections = dict(opened.connection_status())
        self.looks.append(Look(now_us(), opened.now_us(), len(console.records), connections))

    def wait_for_one_list(self, members: Sequence[Address]) -> None:
        """Wait until it is known of all these members that they are together."""
        console = self.console
        console.wait("one list", lambda: console.sizes(*members) == [len(members)] * len(members), 180)

    def kept(self, name: str) -> KeptConsole:
        """Return what it recorded."""
        return KeptConsole(name, self.console.records, self.looks)


class Driver:
    """Does a script, and keeps what it did."""

    def __init__(self, script: FaultScript, cluster: RealCluster, watchers: Sequence[Watcher]) -> None:
        self.script, self.cluster, self.watchers = script, cluster, watchers
        self.done: list[DoneStep] = []

    def begin(self) -> None:
        """Start all members, the first one first; those that are to be apart find only each other."""
        apart = self.script.apart
        if apart:
            self.perform(Step("cut", apart))
        together = [it for it in self.cluster.everybody if it not in apart]
        for group in filter(None, (together, apart)):
            for number in group:
                self.perform(Step("start", (number,)))
                wait_for(lambda number=number: bool(lists_in(self.cluster.log(number))), 120, "its first list")
            labels = [self.cluster.address(it) for it in group]
            for watcher in self.watchers:
                watcher.wait_for_one_list(labels)

    def perform(self, step: Step) -> None:
        """Do a step, and keep what is said after it once a second."""
        self._act(step)
        for _ in range(step.seconds):
            self.listen()

    def listen(self) -> None:
        """Wait for a second and keep what is said then."""
        time.sleep(1)  # time is the subject
        for watcher in self.watchers:
            watcher.listen()

    def _act(self, step: Step) -> None:
        cluster, members = self.cluster, step.members
        signals = {"kill": Signals.SIGKILL, "freeze": Signals.SIGSTOP, "thaw": Signals.SIGCONT, "stop": Signals.SIGTERM}
        if step.action in ("cut", "cut-link", "cut-one-way", "heal"):
            links = self._links(step)
            self.done.append(DoneStep(now_us(), "cut" if links else "heal", links=frozenset(links)))
            if links:
                cluster.cut_links((self._number(source), self._number(target)) for source, target in links)
            else:
                cluster.heal()
            return
        self.done.append(DoneStep(now_us(), step.action, tuple(map(cluster.address, members))))  # type: ignore[arg-type]
        if step.action == "start":
            cluster.start(*members, arguments=(LOG_FORMAT,))
            return
        for member in members:
            cluster.signal(member, signals[step.action])
        if step.action == "stop":
            self._wait_for_ends(members)

    def _wait_for_ends(self, members: Sequence[int]) -> None:
        """Listen until their processes have ended, and keep the moment of each end."""

        def wait(member: int) -> None:
            self.cluster.processes[member].wait()
            self.done.append(DoneStep(now_us(), "end", (self.cluster.address(member),)))

        waiting = [threading.Thread(target=wait, args=(member,), daemon=True) for member in members]
        for thread in waiting:
            thread.start()
        limit = time.monotonic() + END_SECONDS
        while any(thread.is_alive() for thread in waiting):
            self.listen()
            assert time.monotonic() < limit, f"{members} do not all end"

    def _links(self, step: Step) -> set[Link]:
        address = self.cluster.address
        if step.action == "cut":
            side, others = step.members, set(self.cluster.everybody) - set(step.members)
            pairs = [(member, other) for member in side for other in others]
            return {(address(a), address(b)) for one, other in pairs for a, b in ((one, other), (other, one))}
        if step.action == "heal":
            return set()
        one, other = map(address, step.members)
        return {(one, other)} if step.action == "cut-one-way" else {(one, other), (other, one)}

    def _number(self, address: Address) -> int:
        return next(it for it in self.cluster.everybody if self.cluster.address(it) == address)


class Client:
    """The product's client: it puts entries, writes on and on, and counts at the end."""

    def __init__(self, cluster: RealCluster, entries: int) -> None:
        addresses = [str(cluster.address(member)) for member in cluster.everybody]
        self._client = HazelcastClient(cluster_members=addresses, redo_operation=True)
        self._map: Any = self._client.get_map("orders").blocking()
        self._map.put_all({str(number): "x" * 100 for number in range(entries)})
        self.entries = entries
        self._ended = threading.Event()
        self._writing = threading.Thread(target=self._write)

    def begin_to_write(self) -> None:
        self._writing.start()

    def count_at_the_end(self) -> int:
        """Return how many of the first entries are there."""
        self._ended.set()
        if self._writing.is_alive():
            self._writing.join(60)
        found = len(self._map.get_all({str(number) for number in range(self.entries)}))
        self._client.shutdown()
        return found

    def _write(self) -> None:
        number = 0
        while not self._ended.is_set():
            number += 1
            self._map.put(f"written-{number % 500}", str(number))


def now_us() -> int:
    """Return the time on the clock of the members' logs."""
    return time.time_ns() // 1000


@contextmanager
def client_of(script: FaultScript, cluster: RealCluster) -> Iterator[Client | None]:
    """Yield a client that stands in the members' network, where the script has entries."""
    if not script.entries:
        yield None
        return
    with cluster.inside():
        client = Client(cluster, script.entries)
        if script.is_written:
            client.begin_to_write()
    yield client


@pytest.mark.parametrize("script", SCRIPTS, ids=[it.name.replace(" ", "-") for it in SCRIPTS])
def test_no_statement_is_false(version: str, script: FaultScript, tmp_path: Path) -> None:
    folder = Path(os.environ.get("QUARTERDECK_LAB", tmp_path)) / f"{script.name} {version}".replace(" ", "-")
    with ExitStack() as stack:
        made = RealCluster(version, tmp_path, script.size, properties=GRACEFUL, join_lists={**script.join_lists})
        cluster = stack.enter_context(made)
        everybody = [cluster.address(it) for it in cluster.everybody]
        for it in cluster.everybody:
            cluster.log(it).touch()
        logs = [LogSource(cluster.log(it), cluster.address(it)) for it in cluster.everybody]
        watchers = [
            Watcher(stack.enter_context(console_on(cluster, watched(*everybody), logs=given))) for given in (logs, ())
        ]
        driver = Driver(script, cluster, watchers)
        loss, failed = None, "it did not come to its end"
        try:
            loss = run(driver, stack)
            failed = ""
        finally:
            facts = RunFacts(script.name, version, driver.done, loss, bool(script.join_lists), failed, 0)
            consoles = [watcher.kept(name) for watcher, name in zip(watchers, (WHOLE, LOOKED), strict=True)]
            keep(folder, facts, {cluster.address(it): cluster.log(it) for it in cluster.everybody}, consoles)
    wrong = report(folder)
    assert not wrong, "\n".join(wrong)


def run(driver: Driver, stack: ExitStack) -> EntryLoss | None:
    """Do a script from its beginning to its end, and return what was lost."""
    script, cluster = driver.script, driver.cluster
    driver.begin()
    client = stack.enter_context(client_of(script, cluster))
    for _ in range(8 if script.entries else 2):  # the metrics come every five seconds
        driver.listen()
    for step in script.steps:
        driver.perform(step)
    if client is None:
        return None
    killed = [step.at_us for step in driver.done if step.kind == "kill"]
    lost = client.entries - client.count_at_the_end()
    assert bool(lost) == bool(killed), f"{lost} entries are lost"
    return EntryLoss(killed[0], lost) if lost else None

"""Does a script of faults to unmodified members, while consoles watch and a client of the product counts entries."""

from __future__ import annotations

import http.client
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals
from typing import Any, Literal, NamedTuple

from hazelcast.client import HazelcastClient

from quarterdeck.backend.clusters.hazelcast.log_following import LogSource
from quarterdeck.backend.core.address import Address
from tests.hazelcast.real.kept_run import KeptConsole, Look, RunFacts, keep, report
from tests.hazelcast.real.member_logs import LOG_FORMAT, lists_in
from tests.hazelcast.real.real_cluster import RealCluster, wait_for
from tests.hazelcast.real.test_troubles import Console, console_on, watched
from tests.hazelcast.real.truth import DoneStep, EntryCount, EntryLoss, Link

END_SECONDS = 60
GRACEFUL = {"hazelcast.shutdownhook.policy": "GRACEFUL", "hazelcast.partition.migration.interval": "0"}
WHOLE, LOOKED = "with-logs", "without-logs"

Action = Literal[
    "start", "kill", "stop", "freeze", "thaw", "cut", "cut-link", "cut-one-way", "heal", "cut-three", "blind", "see",
    "latency", "state", "clock",
]  # fmt: skip


class Step(NamedTuple):
    """An action on members, and for how long the members are watched afterwards.

    `cut-three` cuts the members into pairs and a rest; `blind` cuts the watchers off from members, `see` heals that alone.
    """

    action: Action
    members: tuple[int, ...] = ()
    seconds: int = 0
    value: str = ""
    """The state of the cluster that is asked for, the delay as `tc` writes it, or the seconds by which a clock is set."""


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
    maps: Mapping[str, int] = field(default_factory=dict)
    """Maps with so many entries each, whose entries a client counts every other second; `MAPS` says their backups."""
    more: str = ""
    """Elements of the configuration of every member."""
    lite: tuple[int, ...] = ()
    heap: Mapping[int, str] = field(default_factory=dict)
    """The heap of members that have another one than usual."""
    late: tuple[int, ...] = ()
    """Members that a step starts, and not the beginning."""
    clocks: tuple[int, ...] = ()
    """Members whose clocks are set."""
    versions: tuple[str, ...] = ("5.5.0", "5.7.0")
    """The versions on which a situation is tried."""


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
        self.counts: list[EntryCount] = []
        """What a client of the product counted."""

    def begin(self) -> None:
        """Start all members, the first one first; those that are to be apart find only each other."""
        apart = self.script.apart
        if apart:
            self.perform(Step("cut", apart))
        together = [it for it in self.cluster.everybody if it not in (*apart, *self.script.late)]
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
        if step.action in ("blind", "see", "latency", "state", "clock"):
            self.done.append(DoneStep(now_us(), step.action, tuple(map(cluster.address, members)), value=step.value))
            self._disturb(step)
            return
        if step.action in ("cut", "cut-three", "cut-link", "cut-one-way", "heal"):
            links = self._links(step)
            self.done.append(DoneStep(now_us(), "cut" if links else "heal", links=frozenset(links)))
            cluster.heal()
            if links:
                cluster.cut_links((self._number(source), self._number(target)) for source, target in links)
            return
        self.done.append(DoneStep(now_us(), step.action, tuple(map(cluster.address, members))))  # type: ignore[arg-type]
        if step.action == "start":
            cluster.start(*members, arguments=(LOG_FORMAT,))
            return
        for member in members:
            cluster.signal(member, signals[step.action])
        if step.action == "stop":
            self._wait_for_ends(members)

    def _disturb(self, step: Step) -> None:
        """Do to watchers, links, states and clocks what does not stop or cut a member."""
        cluster = self.cluster
        if step.action in ("blind", "see"):
            cluster.hide_from_watchers(step.members, hidden=step.action == "blind")
        elif step.action == "latency":
            for member in step.members:
                cluster.delay(member, step.value)
        elif step.action == "clock":
            for member in step.members:
                cluster.set_clock(member, step.value)
        else:
            asked = http.client.HTTPConnection(cluster.address(step.members[0]).split(":")[0], 5701, timeout=60)
            with cluster.inside():
                body = f"{cluster.name}&dev-pass&{step.value}"
                asked.request("POST", "/hazelcast/rest/management/cluster/changeState", body)
                answer = asked.getresponse().read().decode()
            asked.close()
            assert "success" in answer, answer

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
        if step.action == "cut-three":
            rest = [it for it in self.cluster.everybody if it not in step.members]
            sides = [step.members[:2], step.members[2:], rest]
            pairs = [(a, b) for one in sides for two in sides if one is not two for a in one for b in two]
            return {(address(a), address(b)) for a, b in pairs}
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


MAPS = {"nobackup": (0, 0), "async": (0, 1), "orders": (1, 0), "two": (2, 0)}
"""Synchronous and asynchronous backups of the maps that are counted."""

MAP_CONFIGURATION = "".join(
    f'<map name="{name}"><backup-count>{backups}</backup-count><async-backup-count>{more}</async-backup-count></map>'
    for name, (backups, more) in MAPS.items()
)
COUNTED_SECONDS = 2.0


class Counter:
    """A client of the product that puts entries into maps, and counts them from then on in a thread of its own."""

    def __init__(self, cluster: RealCluster, maps: Mapping[str, int]) -> None:
        addresses = [str(cluster.address(member)) for member in cluster.everybody]
        self._client = HazelcastClient(cluster_members=addresses, invocation_timeout=4.0, cluster_connect_timeout=-1)
        self._maps: dict[str, Any] = {name: self._client.get_map(name) for name in maps}
        for name, entries in maps.items():
            self._maps[name].put_all({str(number): "x" * 100 for number in range(entries)}).result()
        self.counts: list[EntryCount] = []
        self._ended = threading.Event()
        self._counting = threading.Thread(target=self._count, daemon=True)
        self._counting.start()

    def end(self) -> None:
        self._ended.set()
        self._counting.join(30)
        self._client.shutdown()

    def _count(self) -> None:
        while not self._ended.wait(COUNTED_SECONDS):
            began_us = now_us()
            found: dict[str, int | None] = {}
            for name, counted in self._maps.items():
                try:
                    found[name] = counted.size().result()
                except Exception:  # noqa: BLE001 - what a client raises while its cluster is divided is no subject here
                    found[name] = None
            self.counts.append(EntryCount(began_us, now_us(), found))


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


def judge_script(script: FaultScript, version: str, tmp_path: Path) -> list[str]:
    """Do a script, keep the run, and return a line for each false statement."""
    folder = Path(os.environ.get("QUARTERDECK_LAB", tmp_path)) / f"{script.name} {version}".replace(" ", "-")
    with ExitStack() as stack:
        more = script.more + (MAP_CONFIGURATION if script.maps else "")
        made = RealCluster(
            version, tmp_path, script.size, properties=GRACEFUL, join_lists={**script.join_lists}, more=more,
            rest=bool(script.maps), lite=script.lite, heap=script.heap, clocks=script.clocks,
        )  # fmt: skip
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
            facts = RunFacts(
                script.name,
                version,
                driver.done,
                loss,
                bool(script.join_lists),
                failed,
                0,
                driver.counts,
                dict(script.maps),
            )
            consoles = [watcher.kept(name) for watcher, name in zip(watchers, (WHOLE, LOOKED), strict=True)]
            keep(folder, facts, {cluster.address(it): cluster.log(it) for it in cluster.everybody}, consoles)
    return report(folder)


def run(driver: Driver, stack: ExitStack) -> EntryLoss | None:
    """Do a script from its beginning to its end, and return what was lost."""
    script, cluster = driver.script, driver.cluster
    driver.begin()
    client = stack.enter_context(client_of(script, cluster))
    if script.maps:
        with cluster.inside():
            counter = Counter(cluster, script.maps)
        stack.callback(counter.end)
        driver.counts = counter.counts
    for _ in range(40 if script.maps else 8 if script.entries else 2):  # the metrics come every five seconds
        driver.listen()
    for step in script.steps:
        driver.perform(step)
    if client is None:
        return None
    killed = [step.at_us for step in driver.done if step.kind == "kill"]
    lost = client.entries - client.count_at_the_end()
    assert bool(lost) == bool(killed), f"{lost} entries are lost"
    return EntryLoss(killed[0], lost) if lost else None

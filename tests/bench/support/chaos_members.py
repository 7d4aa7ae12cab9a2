"""The member processes of `tests.bench.chaos`: starting, killing, freezing and cutting them, and what they say."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from random import Random

import httpx

from quarterdeck.backend.service.configuration.process_configuration import OPEN_TO_ALL
from tests.bench.support.chaos_hosts import PORT, Hosts
from tests.bench.support.chaos_writers import ANSWER_SECONDS, API
from tests.service.member_processes import MemberProcess, end

MEMBERS = 5
SETTLED_SECONDS = 90.0
"""Until then all members have to be one cluster again."""
QUIET_SECONDS = 6.0
"""Longer than the timeout below and an interval."""
MERGED_SECONDS = 30.0
"""Until then members that have merged have offered what they brought; the cluster is one before that."""
MERGES, HAS_MERGED, STARTS = "goes on after the merge", "entries into the merge", "runs as process"
"""What their logs say."""
ARGUMENTS = (
    "--property=hazelcast.heartbeat.interval.seconds=1",  # the training preset's own, where these tests are quicker
    "--property=hazelcast.max.no.heartbeat.seconds=4",
    "--property=quarterdeck.partition.arrange.at.once=true",
    "--property=quarterdeck.backup.count=1",
    "--allow-faults",
)


class NeverSettled(Exception):
    """The members did not become one cluster with one safe table in time. The message says what each believes."""


@dataclass(frozen=True)
class Seen:
    """What one member says of itself."""

    members: tuple[str, ...]
    list_version: int
    lineage: str
    table_digest: str
    master: str
    safe: bool
    untroubled: bool
    """It suspects nobody: nothing is left that may divide the members later. Reports of others are no measure: a master
    goes on showing one whose suspect it has removed."""


class Crew:
    """The member processes, by label. None is left after `close`."""

    def __init__(self, folder: Path, base_port: int, *, hosts: bool = False) -> None:
        """On this host from `base_port` on, or each on a host of its own."""
        self.journal = folder / "journal"
        self._folder = folder
        labels = [f"n{number + 1}" for number in range(MEMBERS)]
        self.hosts = Hosts(labels, self.journal) if hosts else None
        self._ports = {label: PORT if hosts else base_port + number for number, label in enumerate(labels)}
        self._hosts = self.hosts.hosts if self.hosts is not None else dict.fromkeys(labels, "127.0.0.1")
        self.addresses = {label: f"{self._hosts[label]}:{self._ports[label]}" for label in labels}
        self.members: dict[str, MemberProcess] = {}
        self.frozen: set[str] = set()
        self._http = httpx.Client(timeout=5, trust_env=False)

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(f"http://{address}" for address in self.addresses.values())

    def start(self, label: str) -> None:
        joins = [f"--join={address}" for address in self.addresses.values()]
        recorded = (f"--journal={self.journal}", "--run=chaos")
        host, port = self._hosts[label], self._ports[label]
        within = self.hosts.within(label) if self.hosts is not None else ()
        listens = (f"--bind={host}", f"--open-to-all={OPEN_TO_ALL}") if within else ()
        words = (*joins, *recorded, *ARGUMENTS, *listens)
        self.members[label] = MemberProcess(self._folder, label, *words, port=port, host=host, within=within)
        self.members[label].ready()

    def kill(self, label: str) -> None:
        end(self.members.pop(label))

    def leave(self, label: str, *, in_a_hurry: bool = False) -> None:
        """Stop gracefully; what it alone holds is given away first, unless it is told a second time."""
        member = self.members.pop(label)
        member.signal(signal.SIGTERM)
        if in_a_hurry:
            time.sleep(0.1)
            member.signal(signal.SIGTERM)
        try:
            code = member.ends_with()
            assert code == 0, f"{label} has left with exit code {code}:\n{member.log}"
        finally:
            end(member)

    def cut(
        self, sources: Sequence[str], targets: Sequence[str], *, one_way: bool = False, mode: str = "blackhole"
    ) -> None:
        """Nothing comes from the sources to the targets any more, and unless it is `one_way`, nothing the other way."""
        if self.hosts is not None:
            self.hosts.cut(sources, targets)
            if not one_way:
                self.hosts.cut(targets, sources)
            return
        ends = {
            "sources": [self.addresses[source] for source in sources],
            "targets": [self.addresses[target] for target in targets],
        }
        command = {"do": "cut", **ends, "one_way": one_way, "mode": mode}
        for member in self.members.values():
            self._http.post(f"{member.url}{API}/faults", json=command).raise_for_status()

    def heal(self) -> None:
        """All links are plain again."""
        if self.hosts is not None:
            self.hosts.heal()
            return
        for member in self.members.values():
            self._http.delete(f"{member.url}{API}/faults").raise_for_status()

    def freeze(self, label: str) -> None:
        self.members[label].signal(signal.SIGSTOP)
        self.frozen.add(label)

    def thaw(self, label: str) -> None:
        self.members[label].signal(signal.SIGCONT)
        self.frozen.discard(label)

    def master(self) -> str:
        """The label of the one whom all follow, once they are settled."""
        leading = self.settle().master
        return next(label for label, address in self.addresses.items() if address == leading)

    def settle(self) -> Seen:
        """Wait until the running members are one cluster with one safe table; what they all say then. Raises `NeverSettled`."""
        limit = time.monotonic() + SETTLED_SECONDS
        while True:
            seen = {label: self._look(member) for label, member in self.members.items()}
            first = next(iter(seen.values()))
            if isinstance(first, Seen) and self._are_one(first, list(seen.values())):
                return first
            if time.monotonic() > limit:
                raise NeverSettled("\n".join(f"{label}: {one}" for label, one in seen.items()))
            time.sleep(0.1)

    def stay_settled(self) -> None:
        """Wait until nothing has changed for as long as silence that is over by now may still lead to a removal."""
        last, since = self.settle(), time.monotonic()
        while time.monotonic() < since + QUIET_SECONDS:
            now = self.settle()
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.2)

    def wait_merged(self) -> None:
        """Wait until what members bring from a cluster that has merged into this one is where it belongs, or was dropped."""
        limit = time.monotonic() + MERGED_SECONDS
        while time.monotonic() < limit:
            since = [member.log.rpartition(MERGES) for member in self.members.values()]
            if all(not merges or HAS_MERGED in said or STARTS in said for _, merges, said in since):
                return
            time.sleep(0.1)

    def read(self, name: str, key: str, random: Random) -> str | None:
        """The value under `key`, through any member. Raises `httpx.HTTPError` when there is no clear answer."""
        url = random.choice(sorted(member.url for member in self.members.values()))
        answer = self._http.get(f"{url}{API}/maps/{name}/{key}", timeout=ANSWER_SECONDS)
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return None
        value: str = answer.raise_for_status().json()["value"]
        return value

    def tracebacks(self) -> int:
        """How many stand in the logs of all incarnations."""
        return sum(log.read_text().count("Traceback") for log in sorted(self._folder.glob("*.log")))

    def close(self) -> None:
        for label in list(self.members):
            self.kill(label)
        self._http.close()

    def _look(self, member: MemberProcess) -> Seen | str:
        try:
            told = self._http.get(f"{member.url}{API}/member").raise_for_status().json()
            safe = self._http.get(f"{member.url}/hazelcast/health").raise_for_status().json()["clusterSafe"]
            suspicions = self._http.get(f"{member.url}{API}/suspicions").raise_for_status().json()
        except httpx.HTTPError as problem:
            return repr(problem)
        members = tuple(member["address"] for member in told["members"])
        words = (told["list_version"], told["lineage"], told["table_digest"], told["master"] or "")
        return Seen(members, *words, safe, not suspicions["suspicions"])

    def are_divided(self) -> bool:
        """Whether somebody's list lacks somebody. A frozen member is not asked."""
        seen = [self._look(member) for label, member in self.members.items() if label not in self.frozen]
        return any(isinstance(event, Seen) and len(event.members) < MEMBERS for event in seen)

    def _are_one(self, first: Seen, seen: Sequence[Seen | str]) -> bool:
        return (
            sorted(first.members) == sorted(self.addresses[label] for label in self.members)
            and first.safe
            and first.untroubled
            and all(event == first for event in seen)
        )

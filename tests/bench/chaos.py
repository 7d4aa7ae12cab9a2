"""Five member processes that are killed, frozen and cut off from one another while clients write: as one line of JSON.

Run as ``python -m tests.bench.chaos [MINUTES] [SEED]``. The seed fixes what is done to whom and for how long, not when the
machine gets to it. Time goes in phases, one injected fault each; a phase ends when all members are one cluster with one
safe table again, so that two members are never lost before the one backup is replaced. Every phase has keys of its own.
What was acknowledged in a phase that left the members together has to be found, at its end and at the very end; what
was written while they were divided may be lost, and is only counted.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import httpx

from quarterdeck.backend.core.events import SuspicionRaised
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.journal.reader import read_journal
from tests.service.member_processes import MemberProcess, end

MINUTES = 3.0
SEED = 1
MEMBERS = 5
BASE_PORT = 28_701
WRITERS = 3
WRITES_PER_SECOND = 40
"""Of each writer, at most."""
WRITES_PER_KEY = 5
GONE = "gone"
SETTLED_SECONDS = 90.0
"""Until then all members have to be one cluster again."""
READINGS = 10
"""After so many the members should have come to rest."""
ANSWER_SECONDS = 40.0
"""Longer than a member tries for a client."""

ARGUMENTS = (
    "--property=hazelcast.heartbeat.interval.seconds=1",  # the training preset's own, where these tests are quicker
    "--property=hazelcast.max.no.heartbeat.seconds=4",
    "--property=quarterdeck.partition.arrange.at.once=true",
    "--property=quarterdeck.backup.count=1",
    "--allow-faults",
)
HARMLESS_SECONDS = (0.5, 2.0)
"""Of silence: well below the timeout."""
DIVIDING_SECONDS = (5.5, 8.0)
"""Well above it."""

API = "/quarterdeck/v1"

TOGETHER = ("kill", "kill the master", "kill beside a pause", "pause", "short cut", "leave")
DIVIDING = ("long pause", "split", "cut of one link")
KINDS = TOGETHER + DIVIDING

FAILURE_COUNTS = ("problems", "problems_later", "partitions_lost", "journal_problems", "tracebacks")
"""What has to be empty in a result."""


class NeverSettled(Exception):
    """The members did not become one cluster with one safe table in time. The message says what each believes."""


# The workload


@dataclass
class Register:
    """What became of the writes to one key. Only its last write can be open: nobody writes it again after that."""

    phase: int
    acknowledged: str | None = None
    open: str | None = None
    """A write of which nobody said whether it was done."""
    refused: set[str] = field(default_factory=set)
    """Writes that were said not to be done, ever."""

    def problem_with(self, found: str | None) -> str:
        """Why this value is none that may be read now; empty when it may be."""
        if self.open is not None and found == self.open:
            self.acknowledged, self.open = self.open, None
        if found == self.acknowledged:
            return ""
        kind = "refused, but there" if found in self.refused else GONE if found is None else "replaced"
        return f"{kind}: {found!r} instead of {self.acknowledged!r}"


class Writer:
    """A client that writes values it never wrote before, through any member. `turn` is held while it does."""

    def __init__(self, number: int, urls: Sequence[str], seed: int) -> None:
        self.turn = threading.Lock()
        self.phase = 0
        self.keys: dict[str, Register] = {}
        self.counts: Counter[str] = Counter()
        self._number = number
        self._urls = urls
        self._random = Random(f"{seed} writer {number}")
        self._key = ""
        self._writes = 0

    def write_until(self, over: threading.Event) -> None:
        with httpx.Client(timeout=ANSWER_SECONDS, trust_env=False) as http:
            while not over.wait(1 / WRITES_PER_SECOND):
                with self.turn:
                    self._write(http)

    def begin_phase(self, phase: int) -> None:
        """From now on write keys of this phase. To be called with the writer's turn."""
        self.phase = phase
        self._key = ""

    def _write(self, http: httpx.Client) -> None:
        if not self._key or self._writes % WRITES_PER_KEY == 0:
            self._key = f"w{self._number}-{self._writes}"
            self.keys[self._key] = Register(self.phase)
        register = self.keys[self._key]
        value = f"{self._key}:{self._writes}"
        self._writes += 1
        outcome = self._put(http, self._key, value)
        self.counts[outcome] += 1
        if outcome == "acknowledged":
            register.acknowledged = value
        elif outcome == "refused":
            register.refused.add(value)
        elif outcome != "nobody there":
            register.open = value
            self._key = ""

    def _put(self, http: httpx.Client, key: str, value: str) -> str:
        url = f"{self._random.choice(self._urls)}{API}/maps/{map_of(self.phase)}/{key}"
        try:
            answer = http.put(url, json={"value": value})
        except httpx.ConnectError:
            return "nobody there"
        except httpx.TransportError:
            return "open"
        if answer.is_success:
            return "acknowledged"
        if answer.status_code in (HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE):
            return "refused"
        return "open" if answer.status_code == HTTPStatus.GATEWAY_TIMEOUT else f"answered {answer.status_code}"


def map_of(phase: int) -> str:
    return f"phase-{phase}"


# The members


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

    def __init__(self, folder: Path, base_port: int) -> None:
        self.journal = folder / "journal"
        self._folder = folder
        self._ports = {f"n{number + 1}": base_port + number for number in range(MEMBERS)}
        self.addresses = {label: f"127.0.0.1:{port}" for label, port in self._ports.items()}
        self.members: dict[str, MemberProcess] = {}
        self.frozen: set[str] = set()
        self._http = httpx.Client(timeout=5, trust_env=False)

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(f"http://{address}" for address in self.addresses.values())

    def start(self, label: str) -> None:
        joins = [f"--join={address}" for address in self.addresses.values()]
        recorded = (f"--journal={self.journal}", "--run=chaos")
        port = self._ports[label]
        self.members[label] = MemberProcess(self._folder, label, *joins, *recorded, *ARGUMENTS, port=port)
        self.members[label].ready()

    def kill(self, label: str) -> None:
        end(self.members.pop(label))

    def leave(self, label: str) -> None:
        """Stop gracefully; what it alone holds is given away first."""
        member = self.members.pop(label)
        member.signal(signal.SIGTERM)
        try:
            code = member.ends_with()
            assert code == 0, f"{label} has left with exit code {code}:\n{member.log}"
        finally:
            end(member)

    def command_links(self, command: Mapping[str, object]) -> None:
        for member in self.members.values():
            self._http.post(f"{member.url}{API}/faults", json=command).raise_for_status()

    def heal(self) -> None:
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

    def read(self, name: str, key: str, random: Random) -> str | None:
        """The value under `key`, through any member. Raises `httpx.HTTPError` when there is no clear answer."""
        url = random.choice(sorted(member.url for member in self.members.values()))
        answer = self._http.get(f"{url}{API}/maps/{name}/{key}", timeout=ANSWER_SECONDS)
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return None
        value: str = answer.raise_for_status().json()["value"]
        return value

    def tracebacks(self) -> int:
        """In the logs of all lives."""
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
        members = tuple(one["address"] for one in told["members"])
        words = (told["list_version"], told["lineage"], told["table_digest"], told["master"] or "")
        return Seen(members, *words, safe, not suspicions["suspicions"])

    def are_divided(self) -> bool:
        """Whether somebody's list lacks somebody. A frozen member is not asked."""
        seen = [self._look(member) for label, member in self.members.items() if label not in self.frozen]
        return any(isinstance(one, Seen) and len(one.members) < MEMBERS for one in seen)

    def _are_one(self, first: Seen, seen: Sequence[Seen | str]) -> bool:
        return (
            sorted(first.members) == sorted(self.addresses[label] for label in self.members)
            and first.safe
            and first.untroubled
            and all(one == first for one in seen)
        )


# The injected faults


@dataclass
class Phase:
    number: int
    kind: str
    began_us: int
    """Since 1970, as journals have it."""
    ended_us: int = 0
    ended_members: tuple[str, ...] = ()
    """The addresses of those whose process ended: the only ones that somebody may suspect while all are together."""
    settled_seconds: list[float] = field(default_factory=list)
    keys: int = 0
    problems: list[str] = field(default_factory=list)
    """Of keys at the end of the phase."""
    problems_later: list[str] = field(default_factory=list)
    """Of keys at the very end, after all that came later."""
    suspected: str = ""
    """Somebody who was suspected although nothing was done that should lead to it: then they were divided, too."""


class Chaos:
    """One run. `play` goes through injected faults; `judge` says what has become of everything."""

    def __init__(self, crew: Crew, seed: int) -> None:
        self.phases: list[Phase] = []
        self._crew = crew
        self._random = Random(seed)
        self._writers = [Writer(number, crew.urls, seed) for number in range(WRITERS)]
        self._over = threading.Event()
        self._journal_problems: list[str] = []
        self._faults: dict[str, Callable[[], Sequence[str]]] = {
            "kill": lambda: self._lose(self._anybody()),
            "kill the master": lambda: self._lose(crew.master()),
            "kill beside a pause": self._kill_beside_a_pause,
            "leave": self._leave,
            "pause": lambda: self._pause(HARMLESS_SECONDS),
            "long pause": lambda: self._pause(DIVIDING_SECONDS),
            "short cut": lambda: self._cut(HARMLESS_SECONDS, self._two_sides()),
            "split": lambda: self._cut(DIVIDING_SECONDS, self._two_sides()),
            "cut of one link": lambda: self._cut(DIVIDING_SECONDS, self._two_members()),
        }

    def play(self, seconds: float, kinds: Sequence[str] = KINDS) -> None:
        """Injected faults of these kinds, each once before any comes again, until the time is over."""
        for label in self._crew.addresses:
            self._crew.start(label)
        self._crew.settle()
        with ThreadPoolExecutor(WRITERS) as pool:
            writing: list[Future[None]] = [pool.submit(writer.write_until, self._over) for writer in self._writers]
            try:
                limit = time.monotonic() + seconds
                deck: list[str] = []
                while time.monotonic() < limit and not any(one.done() for one in writing):
                    deck = deck or self._random.sample(kinds, len(kinds))
                    self._play_phase(deck.pop())
            finally:
                self._over.set()
        for one in writing:
            one.result()
        for phase in self.phases:
            phase.problems_later = self._problems_of(phase)

    def judge(self) -> dict[str, Any]:
        """To be called after `play`."""
        lost_partitions = self._read_journals()
        judged = [phase for phase in self.phases if phase.kind in TOGETHER and not phase.suspected]
        divided = [phase for phase in self.phases if phase not in judged]
        settled: dict[str, list[float]] = defaultdict(list)
        for phase in self.phases:
            settled[phase.kind] += phase.settled_seconds
        writes = sum((writer.counts for writer in self._writers), Counter[str]())
        return {
            "phases": dict(sorted(Counter(phase.kind for phase in self.phases).items())),
            "settled_seconds": {
                kind: {"median": round(median(all_of), 1), "most": round(max(all_of), 1)}
                for kind, all_of in sorted(settled.items())
            },
            "writes": dict(sorted(writes.items())),
            "judged": {"phases": len(judged), "keys": sum(phase.keys for phase in judged)},
            "problems": [text for phase in judged for text in phase.problems],
            "problems_later": [text for phase in judged for text in phase.problems_later],
            "partitions_lost": [text for phase in judged for text in lost_partitions.get(phase.number, ())],
            "divided": {
                "phases": len(self.phases) - len(judged),
                "keys": sum(phase.keys for phase in divided),
                "last_value_not_kept": sum(len(phase.problems) for phase in divided),
                "keys_gone": sum(f": {GONE}:" in text for phase in divided for text in phase.problems),
            },
            "suspected_without_cause": [f"{one.kind}: {one.suspected}" for one in self.phases if one.suspected],
            "journal_problems": self._journal_problems,
            "tracebacks": self._crew.tracebacks(),
        }

    def _play_phase(self, kind: str) -> None:
        phase = Phase(len(self.phases) + 1, kind, time.time_ns() // 1_000)
        self.phases.append(phase)
        self._each_writer(lambda writer: writer.begin_phase(phase.number))
        time.sleep(0.5)  # something is written before, too
        phase.ended_members = tuple(self._crew.addresses[label] for label in self._faults[kind]())
        self._settle(phase)
        for label in sorted(self._crew.addresses.keys() - self._crew.members.keys()):
            self._crew.start(label)
            self._settle(phase)
        phase.ended_us = time.time_ns() // 1_000
        self._each_writer(lambda writer: writer.begin_phase(0))
        phase.problems = self._problems_of(phase)
        phase.keys = sum(
            register.phase == phase.number for writer in self._writers for register in writer.keys.values()
        )

    def _settle(self, phase: Phase) -> None:
        began = time.monotonic()
        self._crew.settle()
        phase.settled_seconds.append(time.monotonic() - began)

    def _each_writer(self, do: Callable[[Writer], None]) -> None:
        for writer in self._writers:
            with writer.turn:
                do(writer)

    def _problems_of(self, phase: Phase) -> list[str]:
        """What is wrong with the keys of a phase whose writers are done, read while all members were one cluster."""
        registers = {
            key: one for writer in self._writers for key, one in writer.keys.items() if one.phase == phase.number
        }
        for _ in range(READINGS):
            before = self._crew.settle()
            problems = {key: self._problem_of(phase, key, register) for key, register in registers.items()}
            if self._crew.settle() == before:
                return [f"phase {phase.number} ({phase.kind}), {key}: {text}" for key, text in problems.items() if text]
        raise NeverSettled(f"the list or the table changed in each of {READINGS} readings, although nothing was done")

    def _problem_of(self, phase: Phase, key: str, register: Register) -> str:
        try:
            return register.problem_with(self._crew.read(map_of(phase.number), key, self._random))
        except httpx.HTTPError as unreadable:
            return f"unreadable: {unreadable!r}"

    def _read_journals(self) -> dict[int, list[str]]:
        """The partitions lost in each phase; notes who was suspected without a cause."""
        lost: dict[int, list[str]] = defaultdict(list)
        journal = read_journal(self._crew.journal)
        records = [record for record in journal if isinstance(record.event, SuspicionRaised | PartitionLost)]
        self._journal_problems = [str(one) for one in journal.problems if not one.torn]
        for phase in self.phases:
            for record in records:
                event = record.event
                if not phase.began_us <= record.at <= phase.ended_us:
                    continue
                if isinstance(event, PartitionLost) and event.lost_backups:  # not only the owner, which has a backup
                    lost[phase.number].append(f"phase {phase.number} ({phase.kind}), {record.member}: {event}")
                elif isinstance(event, SuspicionRaised) and phase.kind in TOGETHER:
                    if event.suspect not in phase.ended_members:
                        phase.suspected = phase.suspected or f"{record.member}: {event}"
        return lost

    # What is done; each returns whose process it has ended

    def _lose(self, label: str) -> Sequence[str]:
        self._crew.kill(label)
        return [label]

    def _kill_beside_a_pause(self) -> Sequence[str]:
        paused, killed = self._random.sample(sorted(self._crew.members), 2)
        seconds = self._random.uniform(*HARMLESS_SECONDS)
        self._crew.freeze(paused)
        time.sleep(seconds / 2)
        self._crew.kill(killed)
        time.sleep(seconds / 2)
        self._crew.thaw(paused)
        return [killed]

    def _leave(self) -> Sequence[str]:
        label = self._anybody()
        self._crew.leave(label)
        return [label]

    def _pause(self, seconds: tuple[float, float]) -> Sequence[str]:
        label = self._anybody()
        self._crew.freeze(label)
        self._last(seconds)
        self._crew.thaw(label)
        return []

    def _cut(self, seconds: tuple[float, float], sides: Sequence[Sequence[str]]) -> Sequence[str]:
        groups = [[self._crew.addresses[label] for label in side] for side in sides]
        mode = "blackhole" if seconds == HARMLESS_SECONDS else self._random.choice(("blackhole", "reset"))
        self._crew.command_links({"do": "partition", "groups": groups, "mode": mode})
        self._last(seconds)
        self._crew.heal()
        return []

    def _last(self, seconds: tuple[float, float]) -> None:
        """Let a injected fault last so long; one that is to divide the members at least until it has."""
        time.sleep(self._random.uniform(*seconds))
        limit = time.monotonic() + SETTLED_SECONDS
        while seconds == DIVIDING_SECONDS and not self._crew.are_divided():
            if time.monotonic() > limit:
                raise NeverSettled("a injected fault that should have divided the members did not")
            time.sleep(0.1)

    def _anybody(self) -> str:
        return self._random.choice(sorted(self._crew.members))

    def _two_sides(self) -> Sequence[Sequence[str]]:
        labels = self._random.sample(sorted(self._crew.members), MEMBERS)
        return labels[:2], labels[2:]

    def _two_members(self) -> Sequence[Sequence[str]]:
        first, second = self._random.sample(sorted(self._crew.members), 2)
        return [first], [second]


def run(
    folder: Path, seconds: float, seed: int, *, base_port: int = BASE_PORT, kinds: Sequence[str] = KINDS
) -> dict[str, Any]:
    """Play for so long and judge. Raises `NeverSettled`; the folder has the logs and the journal."""
    crew = Crew(folder, base_port)
    try:
        chaos = Chaos(crew, seed)
        chaos.play(seconds, kinds)
        last = crew.settle()
        together = {"members": len(last.members), "list_version": last.list_version, "table_digest": last.table_digest}
        return {**chaos.judge(), "at_the_end": together}
    finally:
        crew.close()


if __name__ == "__main__":
    minutes = float(sys.argv[1]) if sys.argv[1:] else MINUTES
    seed = int(sys.argv[2]) if sys.argv[2:] else SEED
    place = Path(tempfile.mkdtemp(prefix="chaos-"))
    try:
        found = run(place, 60 * minutes, seed)
    except BaseException:
        print(f"logs and journal are in {place}", file=sys.stderr)
        raise
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(
        json.dumps(
            {"bench": "chaos", "members": MEMBERS, "minutes": minutes, "seed": seed, **found, "machine": machine}
        )
    )
    if any(found[trouble] for trouble in FAILURE_COUNTS):
        sys.exit(f"logs and journal are in {place}")
    shutil.rmtree(place)

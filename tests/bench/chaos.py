"""Five member processes that are killed, frozen and cut off from one another while clients write: as one line of JSON.

Run as ``python -m tests.bench.chaos [MINUTES] [SEED] [hosts]``. The seed fixes what is done to whom and for how long,
not when the machine gets to it. With ``hosts``, which takes root, each member has a network of its own, nftables cuts
them, and their disk runs full. Time goes in phases, one injected fault each; a phase ends when all members are one
cluster with one safe table again, so that two members are never lost before the one backup is replaced. Every phase
has keys of its own. What was acknowledged in a phase that left the members together has to be found, at its end and
at the very end. So has, of every phase, what was acknowledged before its fault and not written again: both sides of a
division have it, and the merge policy keeps it. What was written while they were divided may be lost, and is only counted.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import httpx

from quarterdeck.backend.core.membership.events import ListInstalled, SuspicionRaised
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.journal.reader import list_runs, read_journal
from tests.bench.support.chaos_hosts import Hosts, enter, obstacle
from tests.bench.support.chaos_judgement import KINDS, TOGETHER, TROUBLE, Phase, Problem, judgement
from tests.bench.support.chaos_members import MEMBERS, SETTLED_SECONDS, Crew, NeverSettled
from tests.bench.support.chaos_writers import Register, Writer, map_of

MINUTES = 3.0
SEED = 1
BASE_PORT = 28_701
WRITERS = 3
READINGS = 10
"""After so many the members should have come to rest."""

HARMLESS_SECONDS = (0.5, 2.0)
"""Of silence: well below the timeout."""
SHORT_CUT_SECONDS = (0.3, 1.2)
"""Shorter, for TCP sends again only after twice the time that it has waited already."""
DIVIDING_SECONDS = (5.5, 8.0)
"""Well above it."""
FULL_DISK_SECONDS = (2.0, 5.0)
BEFORE_SECONDS = 1.0
"""Something is written before each fault."""
FLAPS = 6
"""So many times links are cut."""
FLAP_SECONDS = ((0.1, 0.35), (0.9, 1.5))
"""How long they are cut, and how long they are not: TCP sends again 0.2 and 0.6 s after a loss, so each time something
gets through before the next cut."""
LONG_FLAP_SECONDS = ((0.3, 0.9), (0.3, 0.9))
"""What TCP sends again is often lost, too, so that nothing may get through for longer than the timeout."""


# The injected faults


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
            "leave in a hurry": lambda: self._leave(in_a_hurry=True),
            "pause": lambda: self._pause(HARMLESS_SECONDS),
            "long pause": lambda: self._pause(DIVIDING_SECONDS),
            "short cut": lambda: self._cut(SHORT_CUT_SECONDS, self._two_sides()),
            "short one-way cut": lambda: self._cut(SHORT_CUT_SECONDS, self._two_sides(), one_way=True),
            "split": lambda: self._cut(DIVIDING_SECONDS, self._two_sides()),
            "cut of one link": lambda: self._cut(DIVIDING_SECONDS, self._two_members()),
            "one-way cut": lambda: self._cut(DIVIDING_SECONDS, self._two_sides(), one_way=True),
            "flapping": lambda: self._flap(FLAP_SECONDS),
            "long flapping": lambda: self._flap(LONG_FLAP_SECONDS),
        }
        if crew.hosts is not None:
            self._faults["kill on a full disk"] = lambda: self._fill_disk(crew.hosts)

    def play(self, seconds: float, kinds: Sequence[str] = KINDS) -> None:
        """Injected faults of these kinds, each once before any comes again, until the time is over."""
        kinds = [kind for kind in kinds if kind in self._faults]
        for label in self._crew.addresses:
            self._crew.start(label)
        self._crew.settle()
        with ThreadPoolExecutor(WRITERS) as pool:
            writing: list[Future[None]] = [pool.submit(writer.write_until, self._over) for writer in self._writers]
            try:
                limit = time.monotonic() + seconds
                deck: list[str] = []
                while time.monotonic() < limit and not any(task.done() for task in writing):
                    deck = deck or self._random.sample(kinds, len(kinds))
                    self._play_phase(deck.pop())
            finally:
                self._over.set()
        for task in writing:
            task.result()
        for phase in self.phases:
            phase.problems_later = self._problems_of(phase)

    def judge(self) -> dict[str, Any]:
        """To be called after `play`."""
        lost_partitions = self._read_journals()
        writes = sum((writer.counts for writer in self._writers), Counter[str]())
        return judgement(self.phases, writes, lost_partitions, self._journal_problems, self._crew.tracebacks())

    def _play_phase(self, kind: str) -> None:
        phase = Phase(len(self.phases) + 1, kind, time.time_ns() // 1_000)
        self.phases.append(phase)
        self._each_writer(lambda writer: writer.begin_phase(phase.number))
        time.sleep(BEFORE_SECONDS)
        self._each_writer(Writer.rest)
        phase.fault_us = time.time_ns() // 1_000
        phase.ended_members = tuple(self._crew.addresses[label] for label in self._faults[kind]())
        self._settle(phase)
        for label in sorted(self._crew.addresses.keys() - self._crew.members.keys()):
            self._crew.start(label)
            self._settle(phase)
        if kind not in TOGETHER:
            self._crew.stay_settled()
        self._crew.wait_merged()
        phase.ended_us = time.time_ns() // 1_000
        self._each_writer(lambda writer: writer.begin_phase(0))
        phase.problems = self._problems_of(phase)
        written = [one for writer in self._writers for _, one in writer.written() if one.phase == phase.number]
        phase.keys = len(written)
        phase.rested_keys = sum(register.rested for register in written)

    def _settle(self, phase: Phase) -> None:
        began = time.monotonic()
        self._crew.settle()
        phase.settled_seconds.append(time.monotonic() - began)

    def _each_writer(self, do: Callable[[Writer], None]) -> None:
        for writer in self._writers:
            with writer.turn:
                do(writer)

    def _problems_of(self, phase: Phase) -> list[Problem]:
        """What is wrong with the keys of a phase whose writers are done, read while all members were one cluster."""
        registers = {key: one for writer in self._writers for key, one in writer.written() if one.phase == phase.number}
        for _ in range(READINGS):
            before = self._crew.settle()
            problems = {key: self._problem_of(phase, key, register) for key, register in registers.items()}
            if self._crew.settle() == before:
                return [
                    Problem(f"phase {phase.number} ({phase.kind}), {key}: {text}", registers[key].rested)
                    for key, text in problems.items()
                    if text
                ]
        raise NeverSettled(f"the list or the table changed in each of {READINGS} readings, although nothing was done")

    def _problem_of(self, phase: Phase, key: str, register: Register) -> str:
        try:
            return register.problem_with(self._crew.read(map_of(phase.number), key, self._random))
        except httpx.HTTPError as unreadable:
            return f"unreadable: {unreadable!r}"

    def _read_journals(self) -> dict[int, list[str]]:
        """The partitions lost in each phase; notes which phases divided the members."""
        lost: dict[int, list[str]] = defaultdict(list)
        journal = read_journal(self._crew.journal)
        kinds = SuspicionRaised | ListInstalled | PartitionLost
        records = [record for record in journal if isinstance(record.event, kinds)]
        self._journal_problems = [str(problem) for problem in journal.problems if not problem.torn]
        missing = sum(listing.missing for listing in list_runs(self._crew.journal))
        self._journal_problems += [f"{missing} records are missing"] * bool(missing)
        for phase in self.phases:
            of_phase = [record for record in records if phase.began_us <= record.at <= phase.ended_us]
            phase.note_division(of_phase, self._crew.addresses.values())
            for record in of_phase:
                event = record.event
                if isinstance(event, PartitionLost) and event.lost_backups:  # not only the owner, which has a backup
                    lost[phase.number].append(f"phase {phase.number} ({phase.kind}), {record.member}: {event}")
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

    def _leave(self, *, in_a_hurry: bool = False) -> Sequence[str]:
        label = self._anybody()
        self._crew.leave(label, in_a_hurry=in_a_hurry)
        return [label]

    def _pause(self, seconds: tuple[float, float]) -> Sequence[str]:
        label = self._anybody()
        self._crew.freeze(label)
        self._last(seconds)
        self._crew.thaw(label)
        return []

    def _cut(
        self, seconds: tuple[float, float], sides: Sequence[Sequence[str]], *, one_way: bool = False
    ) -> Sequence[str]:
        mode = "blackhole" if seconds == SHORT_CUT_SECONDS else self._random.choice(("blackhole", "reset"))
        self._crew.cut(*sides, one_way=one_way, mode=mode)
        self._last(seconds)
        self._crew.heal()
        return []

    def _flap(self, seconds: tuple[tuple[float, float], tuple[float, float]]) -> Sequence[str]:
        sides = self._two_sides()
        for _ in range(FLAPS):
            self._crew.cut(*sides)
            time.sleep(self._random.uniform(*seconds[0]))
            self._crew.heal()
            time.sleep(self._random.uniform(*seconds[1]))
        return []

    def _fill_disk(self, hosts: Hosts) -> Sequence[str]:
        """All have something to record meanwhile, for one of them is killed."""
        hosts.fill_disk()
        time.sleep(self._random.uniform(*FULL_DISK_SECONDS))
        label = self._anybody()
        self._crew.kill(label)
        time.sleep(self._random.uniform(*FULL_DISK_SECONDS))
        hosts.free_disk()
        return [label]

    def _last(self, seconds: tuple[float, float]) -> None:
        """Let a fault last so long; one that is to divide the members lasts at least until it has."""
        time.sleep(self._random.uniform(*seconds))
        limit = time.monotonic() + SETTLED_SECONDS
        while seconds == DIVIDING_SECONDS and not self._crew.are_divided():
            if time.monotonic() > limit:
                raise NeverSettled("an injected fault that should have divided the members did not")
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
    folder: Path,
    seconds: float,
    seed: int,
    *,
    base_port: int = BASE_PORT,
    kinds: Sequence[str] = KINDS,
    hosts: bool = False,
) -> dict[str, Any]:
    """Play for so long and judge. Raises `NeverSettled`; the folder has the logs and the journal."""
    crew = Crew(folder, base_port, hosts=hosts)
    try:
        chaos = Chaos(crew, seed)
        chaos.play(seconds, kinds)
        last = crew.settle()
        together = {"members": len(last.members), "list_version": last.list_version, "table_digest": last.table_digest}
        journal_bytes = sum(listing.size_bytes for listing in list_runs(crew.journal))
        return {**chaos.judge(), "journal_bytes": journal_bytes, "at_the_end": together}
    finally:
        crew.close()


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if word != "hosts"]
    on_hosts = "hosts" in sys.argv[1:]
    if on_hosts:
        if obstacle():
            sys.exit(obstacle())
        enter()
    minutes = float(arguments[0]) if arguments else MINUTES
    seed = int(arguments[1]) if arguments[1:] else SEED
    place = Path(tempfile.mkdtemp(prefix="chaos-"))
    try:
        found = run(place, 60 * minutes, seed, hosts=on_hosts)
    except BaseException:
        print(f"logs and journal are in {place}", file=sys.stderr)
        raise
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    what = {"bench": "chaos", "members": MEMBERS, "minutes": minutes, "seed": seed, "hosts": on_hosts}
    print(json.dumps({**what, **found, "machine": machine}))
    if any(found[trouble] for trouble in TROUBLE):
        sys.exit(f"logs are in {place}")
    if not on_hosts:  # whose journal is on a disk that ends with this process
        shutil.rmtree(place)

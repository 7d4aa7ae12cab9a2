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
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import httpx

from quarterdeck.backend.core.events import SuspicionRaised
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.journal.reader import read_journal
from tests.bench.support.chaos_members import MEMBERS, SETTLED_SECONDS, Crew, NeverSettled
from tests.bench.support.chaos_writers import GONE, Register, Writer, map_of

MINUTES = 3.0
SEED = 1
BASE_PORT = 28_701
WRITERS = 3
READINGS = 10
"""After so many the members should have come to rest."""

HARMLESS_SECONDS = (0.5, 2.0)
"""Of silence: well below the timeout."""
DIVIDING_SECONDS = (5.5, 8.0)
"""Well above it."""

TOGETHER = ("kill", "kill the master", "kill beside a pause", "pause", "short cut", "leave")
DIVIDING = ("long pause", "split", "cut of one link")
KINDS = TOGETHER + DIVIDING

FAILURE_COUNTS = ("problems", "problems_later", "partitions_lost", "journal_problems", "tracebacks")
"""What has to be empty in a result."""


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
        """Let a fault last so long; one that is to divide the members lasts at least until it has."""
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

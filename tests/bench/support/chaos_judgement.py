"""What a run of `tests.bench.chaos` proves: which phases can be judged, what was lost or wrong in them, and if that will do."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled, SuspicionRaised
from tests.bench.support.chaos_writers import GONE

TOGETHER = (
    *("kill", "kill the master", "kill beside a pause", "pause", "leave", "leave in a hurry"),
    *("short cut", "short one-way cut", "flapping", "kill on a full disk"),
)
"""Faults that leave the members together: nothing acknowledged may be lost."""

DIVIDING = ("long pause", "split", "cut of one link", "one-way cut")
"""Faults that divide them: what is written meanwhile may be lost in a merge, and is only counted."""

UNCLEAR = ("long flapping",)
"""Faults that may divide them or not. They are judged as those that leave them together when they did."""

KINDS = TOGETHER + DIVIDING + UNCLEAR

TROUBLE = ("problems", "problems_later", "partitions_lost", "journal_problems", "tracebacks", "too_little_judged")
"""What has to be empty in a result."""


class Problem(NamedTuple):
    """What is wrong with a key."""

    text: str
    rested: bool = False
    """Whether it was not written from before the fault until after it: then no division excuses it."""


@dataclass
class Phase:
    """One injected fault, and what became of what was written around it."""

    number: int
    kind: str
    began_us: int
    """Since 1970, as journals have it."""
    fault_us: int = 0
    ended_us: int = 0
    ended_members: tuple[str, ...] = ()
    """The addresses of those whose process ended: the only ones that somebody may suspect while all are together."""
    settled_seconds: list[float] = field(default_factory=list)
    keys: int = 0
    rested_keys: int = 0
    """Those of them that were not written from before the fault until after it."""
    problems: list[Problem] = field(default_factory=list)
    """Of keys at the end of the phase."""
    problems_later: list[Problem] = field(default_factory=list)
    """Of keys at the very end, after all that came later."""
    divided: str = ""
    """Which member was suspected, and which list was then installed without it, although its process ran: only that
    divides members. A suspicion that is withdrawn excuses nothing, nor does a removal without any."""

    divided_early: bool = False
    """Whether that was before the fault, so that not even what rested was written while they were together."""

    def note_division(self, records: Iterable[Record], addresses: Iterable[Address]) -> None:
        """Find out from the records of the phase, in order of time, whether it divided the members at these addresses."""
        running = set(addresses).difference(self.ended_members)
        suspicions: dict[Address, str] = {}
        for record in records:
            event = record.event
            if isinstance(event, SuspicionRaised):
                suspicions.setdefault(event.suspect, f"{record.member}: {event}")
            elif isinstance(event, ListInstalled):
                without = running.difference(member.address for member in event.members) & suspicions.keys()
                if without:
                    self.divided_early |= record.at < self.fault_us
                    if self.kind not in DIVIDING and not self.divided:
                        self.divided = f"{suspicions[min(without)]}; {record.member} installs list {event.version}"

    @property
    def judged(self) -> bool:
        """Whether whatever was lost in it is a fault. Otherwise only what has happened to rested keys is."""
        return self.kind not in DIVIDING and not self.divided

    def faults(self, problems: Sequence[Problem]) -> list[str]:
        """Those of the problems that nothing excuses."""
        return [problem.text for problem in problems if self.judged or (problem.rested and not self.divided_early)]


def judgement(
    phases: Sequence[Phase],
    writes: Mapping[str, int],
    partitions_lost: Mapping[int, Sequence[str]],
    journal_problems: Sequence[str],
    tracebacks: int,
) -> dict[str, Any]:
    """The result of a run. A run proves something only when at least half of the phases that should be judged were."""
    judged = [phase for phase in phases if phase.judged]
    divided = [phase for phase in phases if not phase.judged]
    settled: dict[str, list[float]] = defaultdict(list)
    for phase in phases:
        settled[phase.kind] += phase.settled_seconds
    problems = [text for phase in phases for text in phase.faults(phase.problems)]
    later = [text for phase in phases for text in phase.faults(phase.problems_later)]
    return {
        "phases": dict(sorted(Counter(phase.kind for phase in phases).items())),
        "settled_seconds": {
            kind: {"median": round(median(all_of), 1), "most": round(max(all_of), 1)}
            for kind, all_of in sorted(settled.items())
            if all_of
        },
        "writes": dict(sorted(writes.items())),
        "judged": {"phases": len(judged), "keys": sum(phase.keys for phase in judged)},
        "lost": _number_of(GONE, (*problems, *later)),
        "wrong": len({*problems, *later}) - _number_of(GONE, (*problems, *later)),
        "problems": problems,
        "problems_later": later,
        "partitions_lost": [text for phase in judged for text in partitions_lost.get(phase.number, ())],
        "too_little_judged": _too_little(phases),
        "divided": {
            "phases": len(divided),
            "keys": sum(phase.keys for phase in divided),
            "rested_keys_judged": sum(phase.rested_keys for phase in divided if not phase.divided_early),
            "last_value_not_kept": sum(len(phase.problems) for phase in divided),
            "keys_gone": _number_of(GONE, [problem.text for phase in divided for problem in phase.problems]),
        },
        "flapping_judged": _flapping(phases),
        "divided_without_cause": [f"{phase.kind}: {phase.divided}" for phase in phases if phase.divided],
        "journal_problems": list(journal_problems),
        "tracebacks": tracebacks,
    }


def _flapping(phases: Sequence[Phase]) -> dict[str, str]:
    """How many phases of each kind of flapping were judged whole; of the others the rested keys are."""
    kinds = [kind for kind in KINDS if kind.endswith("flapping")]
    of_kind = {kind: [phase.judged for phase in phases if phase.kind == kind] for kind in kinds}
    return {kind: f"{sum(judged)} of {len(judged)}" for kind, judged in of_kind.items()}


def _number_of(problem: str, texts: Iterable[str]) -> int:
    """Of how many keys this is said; a key that is wrong twice counts once."""
    return len({text for text in texts if f": {problem}:" in text})


def _too_little(phases: Sequence[Phase]) -> list[str]:
    """Why the run proves nothing, if so: a division without a cause excuses what was lost, so it may not happen often."""
    meant = [phase for phase in phases if phase.kind in TOGETHER]
    judged = [phase for phase in meant if phase.judged and phase.keys]
    if 2 * len(judged) >= len(meant) and judged:
        return []
    return [
        f"{len(judged)} of {len(meant)} phases were judged that leave the members together; at least half have to be"
    ]

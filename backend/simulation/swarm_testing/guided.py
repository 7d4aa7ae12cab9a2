"""Chance that learns: runs that reached an abstract state which few others did are varied, beside fresh ones.

For each state the shortest run that reached it is kept. The next run varies one that reached a rare state: a fault more or less,
another time, another pair of members. What a run is follows from its `Origin` alone, so each can be repeated without the others.

An abstract state is what members believe of each other, without who and how often: a set of bits. Members count by rank: the
oldest of a list, the one after it, and any other. The bits say what each rank is doing, between which ranks lists differ, which
rank suspects which, and how far claims, merges, migrations and repairs are. Two runs in which the same goes on among other
members are in one state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any, NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import BackupInStep, BackupOutOfStep
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import (
    DrainStarted,
    MigrationAccepted,
    MigrationCommitting,
    MigrationFinished,
    MigrationStarted,
    TableRecovered,
    TableRecoveryStarted,
)
from quarterdeck.backend.picture.fold.picture import MemberBelief, Picture
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.format.values import parse_duration
from quarterdeck.backend.scenarios.format.writing import scenario_of_tree, scenario_tree
from quarterdeck.backend.scenarios.run_state import RecordSink, RunState
from quarterdeck.backend.simulation.swarm_testing.drawing import draw_scenario
from quarterdeck.backend.simulation.swarm_testing.fault_kinds import FAULTS, FaultContext
from quarterdeck.backend.simulation.swarm_testing.fault_timeline import StepTree, wait

OLDEST, NEXT, OTHER = range(3)
RANKS = 3
ROLES = ("joining", "following", "claiming", "leading", "merging", "paused", "gone")
PHASES = (
    *("reports", "held back", "migration copying", "migration committing", "source", "destination"),
    *("table recovery", "draining", "backup out of step", "not ACTIVE", "not operating"),
)

CHANGES: frozenset[type] = frozenset(
    {
        *(events.MemberStarted, events.MemberStopped, ProcessKilled, ProcessPaused, ProcessResumed),
        *(events.ListInstalled, events.MasterChanged, events.SuspicionRaised, events.SuspicionCleared),
        *(events.ClaimStarted, events.ClaimFinished, events.ClaimAbandoned, events.MemberMerging),
        *(events.MergeStarted, events.MergeAbandoned, events.DisconnectionReported, events.DisconnectionResolved),
        *(events.MemberHeldBack, events.ClusterStateChanged, events.ProtectionChanged),
        *(MigrationStarted, MigrationAccepted, MigrationCommitting, MigrationFinished, DrainStarted),
        *(TableRecoveryStarted, TableRecovered, BackupOutOfStep, BackupInStep),
    }
)
"""The kinds of events after which another state may be reached."""


class WatchedRun(RunState):
    """What a run has shown so far, and the abstract states that it has been in."""

    def __init__(self, journal: RecordSink | None = None) -> None:
        super().__init__(journal)
        self.reached: set[int] = set()

    def observe(self, record: Record) -> None:
        super().observe(record)
        if type(record.event) in CHANGES:
            self.reached.add(abstract_state(self.picture))


def abstract_state(picture: Picture) -> int:
    """Return the bits of the state that the members are in."""
    bits = 0
    lists: list[set[tuple[str, int]]] = [set() for _ in range(RANKS)]
    for belief in picture.members.values():
        rank = _rank(belief.members, belief.address)
        bits |= 1 << rank * len(ROLES) + ROLES.index(_role(belief))
        if belief.status != "member":
            continue
        lists[rank].add((belief.lineage, belief.version))
        for suspect in belief.suspicions:
            bits |= 1 << _SUSPICIONS + rank * RANKS + _rank(belief.members, suspect)
        for phase in _phases(belief):
            bits |= 1 << _PHASES + phase
    for number, (one, other) in enumerate(_PAIRS):
        if len(lists[one] | lists[other]) > 1:
            bits |= 1 << _LISTS + number
    return bits


_PAIRS = [(rank, other) for rank in range(RANKS) for other in range(rank, RANKS)]
_SUSPICIONS = RANKS * len(ROLES)
_PHASES = _SUSPICIONS + RANKS * RANKS
_LISTS = _PHASES + len(PHASES)


def _rank(members: tuple[Member, ...], address: Address) -> int:
    return next((place for place, member in enumerate(members[:OTHER]) if member.address == address), OTHER)


def _role(belief: MemberBelief) -> str:
    match belief.status:
        case "paused":
            return "paused"
        case "stopped" | "killed":
            return "gone"
        case "joining":
            return "merging" if belief.merged_from or belief.merging else "joining"
        case "member":
            if belief.claiming:
                return "claiming"
            return "following" if not belief.is_master else "merging" if belief.merging else "leading"


def _phases(belief: MemberBelief) -> Iterator[int]:
    """Yield the places in `PHASES` of what goes on at a member."""
    led = belief.leading
    running = {migration.phase for migration in led.running.values()} if led.running else ()
    ends = {accepted.endpoint for accepted in belief.taking_part.values()} if belief.taking_part else ()
    going_on = (
        *(belief.reports, belief.held_back, "copying" in running, "committing" in running),
        *("source" in ends, "destination" in ends, led.recovering, led.draining),
        *(belief.out_of_step, belief.cluster_state != "ACTIVE", not belief.operating),
    )
    return (place for place, is_on in enumerate(going_on) if is_on)


GENERATION = 16
"""Runs that are chosen at a time, however many processes carry them out: so the same ones are chosen."""
FRESH_PROBABILITY = 0.25
CANDIDATES = 8
"""States that are drawn before a run is varied; the one that the fewest runs reached is followed."""
MOST_VARIATIONS = 12
"""Variations of variations: a scenario does not grow without end."""
SHIFT_US = 2_000_000
FAULTS_LAST_US = 15_000_000

TimedStep = tuple[int, StepTree]


class Origin(NamedTuple):
    """Where the scenario of a run comes from: the seed that draws it, and the number of each variation of it."""

    seed: int
    variations: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The origin as commands write it: 7, or 7+120+3."""
        return "+".join(map(str, (self.seed, *self.variations)))

    @staticmethod
    def of(text: str) -> Origin | None:
        """Return the origin that is written so; None where that is none."""
        if not re.fullmatch(r"\d+(\+\d+)*", text):
            return None
        seed, *variations = map(int, text.split("+"))
        return Origin(seed, tuple(variations))

    def scenario(self, sizes: tuple[int, int]) -> Scenario:
        scenario = draw_scenario(self.seed, sizes).scenario
        for place in range(len(self.variations)):
            upto = Origin(self.seed, self.variations[: place + 1])
            scenario = varied(scenario, Random(f"{upto.text}/swarm/variation"), f"Swarm run {upto.text}")
        return scenario


class Corpus:
    """The runs that are worth varying: for each abstract state how many runs reached it, and the shortest of them."""

    def __init__(self) -> None:
        self._runs: dict[int, int] = {}
        self._shortest: dict[int, tuple[int, Origin]] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, origin: Origin, events: int, reached: frozenset[int]) -> None:
        for state in sorted(reached):
            self._runs[state] = self._runs.get(state, 0) + 1
            if len(origin.variations) < MOST_VARIATIONS:
                shortest = self._shortest.get(state)
                if shortest is None or events < shortest[0]:
                    self._shortest[state] = events, origin

    def rare(self, draws: Random) -> Origin | None:
        """Draw a run that reached a state which few others did; None where there is none yet."""
        if not self._shortest:
            return None
        states = draws.choices(tuple(self._shortest), k=CANDIDATES)
        return self._shortest[min(states, key=lambda state: (self._runs[state], self._shortest[state][0]))][1]


class GuidedSearch:
    """Chooses what is run next. Its choices follow from `seeds` and from what the runs before have reached."""

    def __init__(self, seeds: range, runs: int | None = None, generation: int = GENERATION) -> None:
        """Choose as many runs as there are `seeds`, or so many `runs`: when no seed is left, all vary others."""
        self.corpus = Corpus()
        self.varied = 0
        """How many of the chosen runs vary others."""
        self._draws = Random(f"{seeds[0]}/swarm/guided")
        self._fresh = iter(seeds)
        self._left, self._chosen = len(seeds) if runs is None else runs, 0
        self._generation = generation

    def generation(self) -> list[Origin]:
        """Choose the next runs; none when all were chosen."""
        size = min(self._generation, self._left)
        self._left -= size
        return [self._next() for _ in range(size)]

    def _next(self) -> Origin:
        self._chosen += 1
        parent = None if self._draws.random() < FRESH_PROBABILITY else self.corpus.rare(self._draws)
        if parent is None and (seed := next(self._fresh, None)) is not None:
            return Origin(seed)
        parent = parent or self.corpus.rare(self._draws)
        assert parent is not None, "no run has reached anything"
        self.varied += 1
        return Origin(parent.seed, (*parent.variations, self._chosen))


# Variations


def varied(scenario: Scenario, draws: Random, title: str) -> Scenario:
    """Return the scenario with one to three changes: a fault more or less, another time, other members."""
    tree = scenario_tree(scenario)
    labels, steps = tree["members"], _timeline(tree["steps"])
    for _ in range(draws.randint(1, 3)):
        # None stands for one fault more, the only change that needs no step to begin with.
        change = draws.choice((None, None, _move, _move, _exchange, _repeat, _leave_out))
        if change is None:
            _add_fault(steps, draws, labels, scenario)
        elif (place := _changeable(steps, draws)) is not None:
            change(steps, place, draws, labels)
    return scenario_of_tree({**tree, "title": title, "summary": "", "steps": list(_with_waits(steps))})


def _timeline(steps: list[StepTree]) -> list[TimedStep]:
    """Return the actions, each with its time as far as waits say it."""
    now_us, timed = 0, []
    for step in steps:
        action = step.get("do")
        if action is not None and "wait" in action:
            now_us += parse_duration(action["wait"])
        elif action is not None:
            timed.append((now_us, step))
    return timed


def _with_waits(timed: list[TimedStep]) -> Iterator[StepTree]:
    now_us = 0
    for at_us, step in sorted(timed, key=lambda one: one[0]):
        if at_us > now_us:
            yield wait(at_us - now_us)
            now_us = at_us
        yield step


def _changeable(steps: list[TimedStep], draws: Random) -> int | None:
    """Draw the place of an action; the workload, which the judges need, and the first arrangement stay as they are."""
    places = [place for place, (_, step) in enumerate(steps) if not {"load", "arrange"} & step["do"].keys()]
    return draws.choice(places) if places else None


def _add_fault(steps: list[TimedStep], draws: Random, labels: list[str], scenario: Scenario) -> None:
    ends_us = max((at_us for at_us, _ in steps), default=0)
    begins_us = int(draws.random() * ends_us)
    context = FaultContext(draws, tuple(labels), scenario.timing(), FAULTS_LAST_US)
    plan = FAULTS[draws.choice(tuple(FAULTS))](context)
    steps += [((begins_us + min(at_us, FAULTS_LAST_US)) // 1000 * 1000, {"do": action}) for at_us, action in plan]


def _move(steps: list[TimedStep], place: int, draws: Random, labels: list[str]) -> None:
    """Let an action happen somewhat earlier or later, or right after another one."""
    at_us, step = steps[place]
    if draws.random() < 0.5:
        at_us = max(0, at_us + int(draws.gauss(0, SHIFT_US)))
    else:
        at_us = draws.choice(steps)[0] + int(draws.random() ** 3 * SHIFT_US)
    steps[place] = at_us // 1000 * 1000, step


def _exchange(steps: list[TimedStep], place: int, draws: Random, labels: list[str]) -> None:
    """Let an action be about another member: two members exchange their places in it."""
    one, other = draws.sample(labels, 2)
    at_us, step = steps[place]
    steps[place] = at_us, _exchanged(step, {one: other, other: one})


def _repeat(steps: list[TimedStep], place: int, draws: Random, labels: list[str]) -> None:
    at_us, step = steps[place]
    steps.append(((at_us + int(draws.random() * FAULTS_LAST_US)) // 1000 * 1000, deepcopy(step)))


def _leave_out(steps: list[TimedStep], place: int, draws: Random, labels: list[str]) -> None:
    del steps[place]


def _exchanged(node: Any, names: dict[str, str]) -> Any:
    match node:
        case dict():
            return {names.get(key, key): _exchanged(value, names) for key, value in node.items()}
        case list():
            return [_exchanged(part, names) for part in node]
        case str():
            return names.get(node, node)
    return node

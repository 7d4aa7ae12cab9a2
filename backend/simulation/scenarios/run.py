"""Running a scenario: the one interpreter of its steps, and the simulated stage for it (design 5.1 and 5.2).

A stage is a cluster on which commands are carried out and time passes. The simulated one is here; the live one is the
training room's. Both are led through the same steps and judged by the same expectations and invariants.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.commands import CallMap, Command, CommandRefused, StartMember
from quarterdeck.backend.core.data.calls.operations import Answer, Get
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.fold.picture import Belief, Picture
from quarterdeck.backend.simulation.invariants import InvariantChecker, Violation
from quarterdeck.backend.simulation.scenarios.actions import Action
from quarterdeck.backend.simulation.scenarios.answers import OpenQuestion, RightAnswer, opened_question
from quarterdeck.backend.simulation.scenarios.data_expectations import data_missing, why_not_balanced, writes_missing
from quarterdeck.backend.simulation.scenarios.expectations import (
    evaluate,
    forbidden_event,
    list_labels,
    running,
    suspect_labels,
)
from quarterdeck.backend.simulation.scenarios.scenario import Expect, Question, Scenario, Step
from quarterdeck.backend.simulation.scenarios.workload import Workloads
from quarterdeck.backend.simulation.virtual_time.world import World

SECOND_US = 1_000_000
JOIN_TIMEOUT_US = 3 * SECOND_US
"""How long the start of the next member waits for the one before it to join."""
JOIN_POLL_US = 10_000
"""How often a start looks whether the member before it has joined."""
READ_POLL_US = 10_000
"""How often it is looked whether all keys are read."""

ONE_CLUSTER = Expect.model_validate({"one-cluster": True})


class StepOutcome(Struct, frozen=True):
    """How one step ended. `at_seconds`: the run's time when it was met or given up. `missing`: empty when met."""

    step: int
    """Place in the file, from 1."""
    text: str
    met: bool
    at_seconds: float
    missing: str


class MemberOutcome(Struct, frozen=True):
    """What one running member believes at the end, in labels."""

    master: str | None
    version: int
    members: tuple[str, ...]
    suspected: tuple[str, ...]


class TableOutcome(Struct, frozen=True):
    """`version` is the greatest table version that a running member has; 0 while there is no table."""

    version: int = 0


class Outcome(Struct, frozen=True):
    """The result of a run, in the JSON shape of design 5.2. `members` holds those that still run at the end."""

    passed: bool
    expectations: tuple[StepOutcome, ...]
    violations: tuple[Violation, ...]
    members: dict[str, MemberOutcome]
    table: TableOutcome
    virtual_seconds: float
    events: int
    messages: int | None
    """Sent by all members, whether they arrived or not; None for a live run, in which nobody counts them."""
    fingerprint: str
    """Equal for equal seeds; empty for a live run, which nothing can repeat."""
    source: Literal["simulated", "live"]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON types."""
        plain: dict[str, Any] = json.loads(msgspec.json.encode(self))
        return plain


class Journal(Protocol):
    """Where the records of a run are written, if anywhere."""

    def append(self, record: Record) -> None: ...


class ScenarioDriver(Protocol):
    """A cluster to act on. It hands every record to the `RunState` it was made with, before `advance` returns."""

    def start_members(self) -> None:
        """Start all members but the late ones in order, each when the one before it has joined or had time enough to."""
        ...

    def now_us(self) -> int:
        """Now on the run's clock, in microseconds."""
        ...

    def execute(self, command: Command) -> None:
        """Do `command`. Raises `CommandRefused`."""
        ...

    def advance(self, by_us: int) -> None:
        """Let so much time pass."""
        ...


class RunState:
    """What a run has shown so far: the picture, the invariants that were broken, the records since the last action."""

    def __init__(self, journal: Journal | None = None) -> None:
        self.picture = Picture()
        self.refusal: str | None = None
        """Why the last command was refused; None when it was done."""
        self.invariant_checker = InvariantChecker()
        self.recent: list[Record] = []
        self.records = 0
        self._journal = journal

    def observe(self, record: Record) -> None:
        self.records += 1
        self.picture.apply(record)
        self.invariant_checker.observe(record)
        self.recent.append(record)
        if self._journal is not None:
            self._journal.append(record)

    def has_joined(self, label: str) -> bool:
        belief = self.picture.members.get(label)
        return belief is not None and belief.status == "member"

    def is_running(self, label: str) -> bool:
        """Whether its process lives, frozen or not."""
        belief = self.picture.members.get(label)
        return belief is not None and belief.status not in ("stopped", "killed")

    def begin_action(self) -> None:
        """From now on `recent` and `refusal` are those of the next action."""
        self.recent.clear()
        self.refusal = None

    def missing(self, expect: Expect) -> str:
        """What of `expect` does not hold now, in words; empty when all of it does. Reads no keys: see `writes_missing`."""
        of_members = evaluate(expect, self.picture, self.recent, self.refusal).missing
        return "; ".join(
            filter(None, (of_members, data_missing(expect, self.picture, self.invariant_checker, self.recent)))
        )

    def is_violated(self, expect: Expect) -> bool:
        """Whether something happened that `expect` forbids: waiting longer cannot mend it."""
        return bool(expect.never and forbidden_event(expect, self.picture, self.recent))

    def asked(self, ask: Question) -> OpenQuestion:
        """A question of a scenario, asked now."""
        return opened_question(ask, self.picture)

    def answer(self, question: OpenQuestion) -> RightAnswer:
        """The right answer to a question that was asked before, as things stand."""
        return question.truth(self.picture, self.invariant_checker, self.recent)

    def writes_missing(self) -> str:
        """Why it cannot be said that no acknowledged write is lost, after every key was read; empty when none is."""
        return writes_missing(self.invariant_checker)

    def reader(self) -> Belief | None:
        """The life to read everything through; None while nobody can be asked."""
        return next((belief for belief in running(self.picture).values() if belief.status == "member"), None)

    def reads_of_everything(self, reader: Belief) -> list[CallMap]:
        """Calls that read every key that was ever written."""
        return [CallMap(reader.label, Get(name, key)) for name, key in self.invariant_checker.writes.written()]

    def is_reading(self, reader: Belief) -> bool:
        """Whether calls through this life have not ended yet."""
        return bool(self.invariant_checker.writes.reads_under_way(reader.uuid))

    def is_settled(self) -> bool:
        """Whether the members are one cluster whose data is safe and evenly spread."""
        tables = self.invariant_checker.tables
        return (
            evaluate(ONE_CLUSTER, self.picture, ()).met
            and not tables.why_not_safe()
            and (not tables.in_use or not why_not_balanced(tables, leniently=True))
        )

    def beliefs(self) -> dict[str, MemberOutcome]:
        """What each running member believes now."""
        return {
            label: MemberOutcome(
                self.picture.label_of(belief.master) if belief.master else None,
                belief.version,
                list_labels(self.picture, belief),
                suspect_labels(self.picture, belief),
            )
            for label, belief in running(self.picture).items()
        }


class StepObserver(Protocol):
    """Told of each step as it begins and as it ends; `outcome` is None for what cannot fail."""

    def begins(self, number: int, step: Step) -> None: ...

    def ends(self, number: int, step: Step, outcome: StepOutcome | None) -> None: ...


class Interpreter:
    """Leads a stage through the steps of a scenario."""

    def __init__(
        self,
        scenario: Scenario,
        driver: ScenarioDriver,
        run_state: RunState,
        observer: StepObserver | None = None,
        *,
        seed: int = 0,
    ) -> None:
        """Workloads are drawn from `seed`."""
        self._scenario = scenario
        self._driver = driver
        self._run_state = run_state
        self._observer = observer
        self._settings = scenario.timing()
        self._poll_interval_us = max(1, self._settings.heartbeat_interval_us // 4)
        self._workloads = Workloads(seed)
        self.outcomes: list[StepOutcome] = []

    def play(self) -> tuple[StepOutcome, ...]:
        """Start all members in order, then take every step; an unmet expectation does not end the run."""
        self._driver.start_members()
        for number, step in enumerate(self._scenario.steps, start=1):
            if self._observer:
                self._observer.begins(number, step)
            outcome = self._take(number, step)
            if outcome is not None:
                self.outcomes.append(outcome)
            if self._observer:
                self._observer.ends(number, step, outcome)
        return tuple(self.outcomes)

    def _take(self, number: int, step: Step) -> StepOutcome | None:
        if step.do is not None:
            outcome = self._do(number, step.do)
            return None if self._scenario.refusal_is_expected(number) else outcome
        if step.expect is not None:
            return self._expect(number, step.expect)
        return None

    def _do(self, number: int, action: Action) -> StepOutcome | None:
        """Carry out an action; an outcome only when the cluster refused it: scenarios expect their actions to work."""
        match action.name:
            case "wait":
                self._advance(action.wait)
                return None
            case "wait_until_safe":
                assert action.wait_until_safe is not None
                self._wait_until(self._run_state.is_settled, action.wait_until_safe.within_us)
                return None
            case "load":
                assert action.load is not None
                self._workloads.begin(action.load, self._driver.now_us())
                return None
        self._advance(0)
        self._run_state.begin_action()
        for command in action.commands(self._run_state.is_running):
            refused = self._refusal(command)
            if refused:
                self._run_state.refusal = refused
                return self._outcome(number, f"do {action.text()}", f"refused: {refused}")
        return None

    def _advance(self, by_us: int) -> None:
        """Let so much time pass, and the workloads go on in it. Members that cannot be asked then are not asked."""
        driver = self._driver
        until_us = driver.now_us() + by_us
        while (planned := self._workloads.due(until_us)) is not None:
            at_us, call = planned
            if (ahead_us := at_us - driver.now_us()) > 0:
                driver.advance(ahead_us)
            self._refusal(call)
        if not by_us or until_us > driver.now_us():
            driver.advance(max(0, until_us - driver.now_us()))

    def _refusal(self, command: Command) -> str:
        try:
            self._driver.execute(command)
        except CommandRefused as refusal:
            return str(refusal)
        return ""

    def _expect(self, number: int, expect: Expect) -> StepOutcome:
        run_state = self._run_state
        self._advance(0)

        def settled() -> bool:
            return run_state.is_violated(expect) if expect.never else not run_state.missing(expect)

        if expect.within_us is not None:
            self._wait_until(settled, expect.within_us)
        if expect.no_lost_writes:
            self._read_everything()
            missing = "; ".join(filter(None, (run_state.missing(expect), run_state.writes_missing())))
            return self._outcome(number, expect.text(), missing)
        return self._outcome(number, expect.text(), run_state.missing(expect))

    def _read_everything(self) -> None:
        """Read every key that was ever written through one member, and wait for the answers."""
        read_everything(self._driver, self._run_state, self._settings.call_timeout_us, self._advance)

    def _wait_until(self, reached: Callable[[], bool], timeout_us: int) -> None:
        until = self._driver.now_us() + timeout_us
        while not reached() and (left_us := until - self._driver.now_us()) > 0:
            self._advance(min(self._poll_interval_us, left_us))

    def _outcome(self, number: int, text: str, missing: str) -> StepOutcome:
        return StepOutcome(number, text, not missing, round(self._driver.now_us() / SECOND_US, 6), missing)


def read_everything(
    driver: ScenarioDriver, run_state: RunState, timeout_us: int, advance: Callable[[int], None] | None = None
) -> None:
    """Read every key that was ever written through one member, which the invariants judge; wait `timeout_us` at most."""
    reader = run_state.reader()
    if reader is None:
        return
    advance = advance or driver.advance
    until_us = driver.now_us() + timeout_us
    for call in run_state.reads_of_everything(reader):
        try:
            driver.execute(call)
        except CommandRefused:
            break  # it died just now: what was not read is not judged
    while run_state.is_reading(reader) and (left_us := until_us - driver.now_us()) > 0:
        advance(min(READ_POLL_US, left_us))


def conclude(
    steps: tuple[StepOutcome, ...],
    run_state: RunState,
    *,
    now_us: int,
    events: int,
    messages: int | None = None,
    fingerprint: str,
    source: Literal["simulated", "live"],
) -> Outcome:
    """The outcome of a run that is over."""
    violations = tuple(run_state.invariant_checker.violations)
    return Outcome(
        passed=all(step.met for step in steps) and not violations,
        expectations=steps,
        violations=violations,
        members=run_state.beliefs(),
        table=TableOutcome(_table_version(run_state)),
        virtual_seconds=round(now_us / SECOND_US, 6),
        events=events,
        messages=messages,
        fingerprint=fingerprint,
        source=source,
    )


def _table_version(run_state: RunState) -> int:
    return run_state.invariant_checker.tables.greatest_version(
        belief.uuid for belief in running(run_state.picture).values()
    )


class SimulatedDriver:
    """A `World` as a stage: time passes as fast as it can be computed.

    With `elide_heartbeats` those that say nothing new are left out: the records are the same, the count of events is not.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        run_state: RunState,
        run: str | None = None,
        *,
        on_answer: Callable[[int, Answer], None] | None = None,
        elide_heartbeats: bool = False,
    ) -> None:
        self._run_state = run_state
        self.world = World(
            scenario.members,
            seed=seed,
            settings=scenario.timing(),
            join_lists=scenario.join_lists,
            lite=scenario.lite,
            zones=scenario.zones,
            run=run,
            on_record=run_state.observe,
            on_answer=on_answer,
            latency=scenario.latency.latency(),
            clocks={label: clock.clock() for label, clock in scenario.clocks.items()},
            elide_heartbeats=elide_heartbeats,
        )
        self._prompt = tuple(label for label in scenario.members if label not in scenario.late)

    def start_members(self) -> None:
        for label in self._prompt:
            if self.world.machine(label) is None:  # else an operator was quicker
                self.world.execute(StartMember(label))
            until = self.world.now_us + JOIN_TIMEOUT_US
            while not self._run_state.has_joined(label) and self.world.now_us < until:
                self.advance(JOIN_POLL_US)

    def now_us(self) -> int:
        return self.world.now_us

    def execute(self, command: Command) -> None:
        self.world.execute(command)

    def advance(self, by_us: int) -> None:
        self.world.run_until(self.world.now_us + by_us)


def simulate(scenario: Scenario, seed: int, journal: Journal | None = None, *, run: str | None = None) -> Outcome:
    """Run `scenario` in virtual time under `seed`; equal scenarios and seeds give equal outcomes, fingerprint included.

    `run` names the run in its records, which go to `journal` when there is one.
    """
    run_state = RunState(journal)
    driver = SimulatedDriver(scenario, seed, run_state, run)
    steps = Interpreter(scenario, driver, run_state, seed=seed).play()
    world = driver.world
    return conclude(
        steps,
        run_state,
        now_us=world.now_us,
        events=world.events,
        messages=world.messages,
        fingerprint=world.fingerprint(),
        source="simulated",
    )

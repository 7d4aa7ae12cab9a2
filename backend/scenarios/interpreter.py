"""The one interpreter of a scenario's steps. The cluster that it acts on is simulated or live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from quarterdeck.backend.core.commands import Command, CommandRefused
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.scenarios.format.actions import ScenarioAction
from quarterdeck.backend.scenarios.format.scenario import (
    Expect,
    Scenario,
    ScenarioStep,
    ScheduledChoice,
    ScheduleDoesNotFit,
)
from quarterdeck.backend.scenarios.outcome import Outcome, StepOutcome, TableOutcome
from quarterdeck.backend.scenarios.run_state import RunState
from quarterdeck.backend.scenarios.workload import Workloads

READ_POLL_US = 10_000
"""How often it is looked whether all keys are read."""


class ScenarioDriver(Protocol):
    """A cluster to act on. It hands every record to the `RunState` it was made with, before `advance` returns."""

    def start_members(self) -> None:
        """Start all members but the late ones in order, each when the one before it has joined or had time enough to."""

    def now_us(self) -> int: ...

    def execute(self, command: Command) -> None:
        """Do `command`. Raises `CommandRefused`."""

    def advance(self, by_us: int) -> None: ...


class StepObserver(Protocol):
    """Is called as each step begins and as it ends; `outcome` is None for a step that cannot fail."""

    def begins(self, number: int, step: ScenarioStep) -> None: ...

    def ends(self, number: int, step: ScenarioStep, outcome: StepOutcome | None) -> None: ...


class Interpreter:
    """Takes the steps of a scenario on a cluster, one after another."""

    def __init__(
        self,
        scenario: Scenario,
        driver: ScenarioDriver,
        run_state: RunState,
        observer: StepObserver | None = None,
        *,
        seed: int = 0,
        take_scheduled: Callable[[ScheduledChoice], None] | None = None,
    ) -> None:
        """Workloads are drawn from `seed`. `take_scheduled` lets happen what a schedule says next; most drivers cannot."""
        self._take_scheduled = take_scheduled
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

    def take(self, step: ScenarioStep) -> StepOutcome | None:
        return self._take(len(self._scenario.steps) + 1, step)

    def _take(self, number: int, step: ScenarioStep) -> StepOutcome | None:
        if step.do is not None:
            outcome = self._do(number, step.do)
            return None if self._scenario.refusal_is_expected(number) else outcome
        if step.schedule is not None:
            return self._schedule(number, step.schedule)
        if step.expect is not None:
            return self._expect(number, step.expect)
        return None

    def _schedule(self, number: int, schedule: Sequence[ScheduledChoice]) -> StepOutcome | None:
        """Carry out the scheduled event; return an outcome only when that is impossible."""
        for place, choice in enumerate(schedule, start=1):
            try:
                if self._take_scheduled is None:
                    raise ScheduleDoesNotFit("this cluster follows no schedule")
                self._take_scheduled(choice)
            except ScheduleDoesNotFit as problem:
                return self._outcome(number, f"schedule {place}: {choice.text()}", str(problem))
        return None

    def _do(self, number: int, action: ScenarioAction) -> StepOutcome | None:
        """Carry out an action; an outcome only when it did not work: scenarios expect their actions to work."""
        match action.name:
            case "wait":
                self._advance(action.wait)
                return None
            case "wait_until_safe":
                assert action.wait_until_safe is not None
                self._wait_until(self._run_state.is_settled, action.wait_until_safe.within_us)
                if unsettled := self._run_state.why_not_settled():
                    return self._outcome(number, f"do {action.text()}", unsettled)
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
        """Let this time pass, with the workloads going on in it. Members that cannot be asked then are not asked."""
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
        run_state.begin_expectation(expect)

        def settled() -> bool:
            return run_state.is_violated(expect) if expect.never else not run_state.missing(expect)

        if expect.within_us is not None:
            self._wait_until(settled, expect.within_us)
        if expect.no_lost_writes:
            read_everything(self._driver, self._run_state, self._settings.call_timeout_us, self._advance)
            missing = "; ".join(filter(None, (run_state.missing(expect), run_state.writes_missing())))
            return self._outcome(number, expect.text(), missing)
        return self._outcome(number, expect.text(), run_state.missing(expect))

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
            break  # it died just now: what was not read is not checked
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
    """Make the outcome of a run that is over."""
    violations = tuple(run_state.invariant_checker.violations)
    return Outcome(
        passed=all(step.met for step in steps) and not violations,
        expectations=steps,
        violations=violations,
        members=run_state.beliefs(),
        table=TableOutcome(run_state.table_version()),
        virtual_seconds=round(now_us / SECOND_US, 6),
        events=events,
        messages=messages,
        fingerprint=fingerprint,
        source=source,
    )

"""A cluster in simulated time: a scenario plays in it, an operator may interfere, and any moment of it can be forked.

The scenario is led by the interpreter that runs all scenarios, in turns with the caller that drains it. One file, one
seed and the same commands at the same moments are the same run, byte for byte.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from quarterdeck.backend.clusters.cluster import Source, refused
from quarterdeck.backend.clusters.simulated.lockstep_thread import LockstepThread
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.commands import CallMap, Command, CommandRefused
from quarterdeck.backend.core.events import ProcessKilled, Record
from quarterdeck.backend.core.membership.events import MemberStopped
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.picture.replay.tape import checked_speed
from quarterdeck.backend.picture.text.formatting import counted
from quarterdeck.backend.scenarios.format.scenario import Scenario, ScenarioStep, paragraphs
from quarterdeck.backend.scenarios.interpreter import Interpreter
from quarterdeck.backend.scenarios.outcome import StepOutcome
from quarterdeck.backend.scenarios.run_state import RecordSink, RunState
from quarterdeck.backend.simulation.simulated_driver import SimulatedDriver
from quarterdeck.backend.simulation.virtual_time.forked_world import snapshot_of

MISSES_TOLD = 3


class ScenarioProgress:
    """Hears of each step as it begins and ends."""

    def __init__(self, scenario: Scenario) -> None:
        self.finished = False
        self._steps = len(scenario.steps)
        self._doing = "the members start"
        self._said = scenario.summary
        self._met = 0
        self._missed: list[StepOutcome] = []

    def begins(self, number: int, step: ScenarioStep) -> None:
        if step.say is not None:
            self._said = step.say
        elif step.do is not None:
            self._doing = f"step {number} of {self._steps}: {step.do.text()}"
        elif step.expect is not None:
            self._doing = f"step {number} of {self._steps}: expecting {step.expect.text()}"

    def ends(self, number: int, step: ScenarioStep, outcome: StepOutcome | None) -> None:
        if outcome is not None and outcome.met:
            self._met += 1
        elif outcome is not None:
            self._missed.append(outcome)

    def lines(self) -> Sequence[str]:
        """Return the texts of the scenario, its actions, and its missed expectations."""
        met = f"{counted(self._met, 'expectation')} met" + (f", {len(self._missed)} missed" if self._missed else "")
        doing = f"the scenario is over: {met}" if self.finished else f"{self._doing} ({met})"
        missed = [f"✕ missed: step {step.step}, {step.text}: {step.missing}" for step in self._missed[-MISSES_TOLD:]]
        return [doing, *missed, *filter(None, [" ".join(paragraphs(self._said))])]


BUDGET_US = 15_000
"""How long one turn may compute, so that keys are never kept waiting."""

CATCH_UP_BUDGET_US = 50_000
"""The same while a fork is computed up to its moment: it shows nothing yet."""

SLICE_EVENTS = 200
"""The number of events computed between two looks at the clock, about a millisecond's worth."""

LONGEST_SEARCH_US = 60_000_000
"""Where nothing is recorded for so long, the search for the next event ends."""

FOREVER_US = 1 << 60


def monotonic_us() -> int:
    """Return the time by which simulated clusters are paced, from any origin."""
    return time.monotonic_ns() // 1_000


class ScheduledCommand(NamedTuple):
    """A command that was carried out, and when. `watched` is about operations on maps: whether they are recorded."""

    at_us: int
    command: Command
    watched: bool = True


class _PendingCommand(NamedTuple):
    """A caller's request. `for_answer`: the future is for the answer to the operation, not for its beginning."""

    command: Command
    watched: bool
    for_answer: bool
    done: Future[Any]


class SimulatedCluster:
    """`scenario` under `seed`. Its time goes on while it is drained, `speed` times as fast as `clock_us` shows.

    `scheduled` are carried out at their moments, as if an operator asked for them then. Until `catch_up_us` time goes
    as fast as it can be computed. With `begin` it goes on from that snapshot.
    """

    source: Source = "simulated"
    """That of a fork is the same."""
    writable = True

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        *,
        name: str = "simulation",
        speed: float = 1.0,
        scheduled: Sequence[ScheduledCommand] = (),
        catch_up_us: int = 0,
        begin: ClusterSnapshot | None = None,
        clock_us: Callable[[], int] = monotonic_us,
    ) -> None:
        self.name = name
        self.started: Future[None] = Future()
        """Done when all `scheduled` are carried out; fails when the cluster refuses one."""
        self.commands: list[ScheduledCommand] = []
        """The commands carried out, in order."""
        self.speed = checked_speed(speed)
        self.paused = False
        self._scenario, self._seed, self._begin, self._clock_us = scenario, seed, begin, clock_us
        self._scheduled = deque(scheduled)
        self._forks = 0
        self._began_us = begin.at_us if begin is not None else 0
        self._due_us = self._catch_up_us = max(catch_up_us, self._began_us)
        """Up to when time may pass in this turn; up to when it is not looked at the clock for that."""
        self._lagging = self._to_next_event = self._closed = False
        self._closed_text = f"the cluster {name} is closed"
        self._drained_us: int | None = None
        self._deadline_us = 0
        self._fresh: list[Record] = []
        self._pending_commands: deque[_PendingCommand] = deque()
        self._calls: dict[int, tuple[str, Future[Any]]] = {}
        """By number: the operations that have no answer yet, and who was asked."""
        self._early: dict[int, Answer] | None = None
        """The answers that come while an operation is being begun, whose number is not known before."""
        self._settled: list[tuple[Future[Any], Answer | BaseException | None]] = []
        """Futures and their ends, which they receive when the turn is over."""
        self._progress = ScenarioProgress(scenario)
        self._run_state = ObservedLedger(self._take_record)
        self._stage = _TimeControlledStage(
            scenario, seed, self._run_state, f"{name}-seed-{seed}", self._answered, self._let_pass, begin
        )
        self._world = self._stage.world
        if not scheduled:
            self.started.set_result(None)
        self._lockstep = LockstepThread(self._play, f"simulation {name}")

    # What every caller may do

    @property
    def labels(self) -> Sequence[str]:
        return self._world.labels

    def now_us(self) -> int:
        return self._world.now_us

    def fingerprint(self) -> str:
        """Return the running hash of all that happened so far, equal for equal runs."""
        return self._world.fingerprint()

    def drain(self) -> list[Record]:
        """Let the due time pass, as far as it can be computed in one turn; return its records."""
        now_us = self._clock_us()
        passed_us = 0 if self._drained_us is None else now_us - self._drained_us
        self._drained_us = now_us
        catching_up = self.now_us() < self._catch_up_us
        if not self.paused and not catching_up:
            self._due_us += round(passed_us * self.speed)
        if (self._due_us > self.now_us() or self._pending_commands) and not self._closed:
            self._deadline_us = now_us + (CATCH_UP_BUDGET_US if catching_up else BUDGET_US)
            self._lockstep.run_slice()
        self._lagging = self._due_us > self.now_us()
        if self._lagging and not catching_up and not self.paused:
            self._due_us = self.now_us()  # what was not computed in time is not made up for
        fresh, self._fresh = self._fresh, []
        self._settle()
        return fresh

    def execute(self, command: Command) -> Future[None]:
        """Do `command` at the moment that is reached when time goes on, or now while it stands still."""
        return self._enqueue(command, watched=True)

    def call(self, member: str, operation: Operation, *, watched: bool = False) -> Future[Answer]:
        return self._enqueue(CallMap(member, operation), watched=watched, for_answer=True)

    def snapshot(self) -> Future[ClusterSnapshot]:
        done: Future[ClusterSnapshot] = Future()
        done.set_result(snapshot_of(self._world))
        return done

    def close(self) -> None:
        """End it; requests that are not done are refused."""
        if not self._closed:
            self._closed = True
            self._lockstep.end()
            waiting = [pending.done for pending in self._pending_commands]
            waiting += [done for _, done in self._calls.values()]
            self._settled += [(done, CommandRefused(self._closed_text)) for done in waiting]
            self._settle()

    def notes(self) -> Sequence[str]:
        """Return the course of its time, the progress of the scenario, and its last text."""
        if self.now_us() < self._catch_up_us:
            return [f"computing the run up to the fork: {self.now_us() * 100 // self._catch_up_us} %"]
        slower = ", slower than asked for: more is going on than can be computed" if self._lagging else ""
        pace = "simulated time stands still" if self.paused else f"simulated time at speed {self.speed:g}{slower}"
        return [pace, *self._progress.lines()]

    # Time

    def set_speed(self, speed: float) -> None:
        self.speed = checked_speed(speed)

    def pause(self) -> None:
        self.paused, self._to_next_event = True, False
        self._due_us = max(self.now_us(), self._catch_up_us)

    def resume(self) -> None:
        self.paused, self._to_next_event = False, False
        self._due_us = max(self.now_us(), self._catch_up_us)

    def run_on(self, by_us: int) -> None:
        self.pause()
        self._due_us += by_us

    def run_to_next_event(self) -> None:
        """At most a minute is searched through."""
        self.run_on(LONGEST_SEARCH_US)
        self._to_next_event = True

    def fork(self, at_us: int, command: Command | None = None) -> SimulatedCluster:
        """Return the same run up to a moment, with `command` at that moment; the scenario goes on in it as it does here.

        The future `started` of the fork says whether `command` is done. Raises `ValueError` when the moment has not come yet.
        """
        if not self._began_us <= at_us <= self.now_us():
            reached = f"{self.now_us() / 1e6:.3f} s"
            raise ValueError(f"{at_us / 1e6:.3f} s is not a moment of this run, which is at {reached}")
        self._forks += 1
        scheduled = [known for known in (*self.commands, *self._scheduled) if known.at_us <= at_us]
        fork = SimulatedCluster(
            self._scenario,
            self._seed,
            name=f"{self.name}-fork-{self._forks}",
            speed=self.speed,
            scheduled=scheduled if command is None else [*scheduled, ScheduledCommand(at_us, command)],
            catch_up_us=at_us,
            begin=self._begin,
            clock_us=self._clock_us,
        )
        fork.writable, fork.source = self.writable, self.source
        return fork

    # The scenario's turn

    def _play(self) -> None:
        """All steps of the scenario; after them, time goes on and nothing is judged any more."""
        Interpreter(self._scenario, self._stage, self._run_state, self._progress, seed=self._seed).play()
        self._run_state.judging = False
        self._run_state.recent.clear()
        self._progress.finished = True
        while True:
            self._let_pass(FOREVER_US)

    def _let_pass(self, until_us: int) -> None:
        """Compute up to a moment of the scenario, in as many turns as it takes until that is due.

        What an operator asks for is done at a moment before that one, after all else that happens then and before the scenario
        goes on. So a command's time alone gives its place in the run.
        """
        while True:
            if self._pending_commands and self.now_us() < until_us:
                self._world.run_until(self.now_us())
                while self._pending_commands:
                    self._execute_pending(self._pending_commands.popleft())
            scripted_us = self._scheduled[0].at_us if self._scheduled else FOREVER_US
            if self._compute(min(until_us, scripted_us)):
                if scripted_us >= until_us:
                    return
                self._execute_scheduled(self._scheduled.popleft())
            else:
                self._lockstep.yield_slice()

    def _compute(self, stop_us: int) -> bool:
        """Let time pass until then if it is due and the turn is long enough; whether it has."""
        world = self._world
        limit_us = min(stop_us, max(self._due_us, world.now_us))
        while True:
            if self._to_next_event and self._fresh:
                self.pause()
                limit_us = world.now_us
            elif world.now_us < limit_us and self._clock_us() >= self._deadline_us:
                return False
            world.run_until(limit_us, world.events + (0 if self._to_next_event else SLICE_EVENTS))
            if world.now_us == limit_us:
                world.run_until(limit_us)  # it may have stopped in the middle of what happens then
                return limit_us == stop_us

    def _execute_pending(self, pending: _PendingCommand) -> None:
        answer = pending.done if pending.for_answer else None
        try:
            self._do(ScheduledCommand(self.now_us(), pending.command, pending.watched), answer)
        except CommandRefused as refusal:
            self._settled.append((pending.done, refusal))
        else:
            if answer is None:
                self._settled.append((pending.done, None))

    def _execute_scheduled(self, scheduled_command: ScheduledCommand) -> None:
        end: BaseException | None = None
        try:
            self._do(scheduled_command)
        except CommandRefused as refusal:
            end = refusal
        if end is not None or not self._scheduled:
            self._settled.append((self.started, end))

    def _do(self, scheduled: ScheduledCommand, answer: Future[Answer] | None = None) -> None:
        """Carry out a command; `answer` gets the answer to an operation on a map. Raises `CommandRefused`."""
        if isinstance(call := scheduled.command, CallMap):
            early: dict[int, Answer] = {}
            self._early = early
            try:
                number = self._world.call(call.member, call.operation, watched=scheduled.watched)
            finally:
                self._early = None
            if answer is not None and number in early:
                self._settled.append((answer, early[number]))
            elif answer is not None:
                self._calls[number] = call.member, answer
        else:
            self._world.execute(scheduled.command)
        self.commands.append(scheduled)

    # What it hears, and what it reports when the turn is over

    def _take_record(self, record: Record) -> None:
        self._fresh.append(record)
        if self._calls and isinstance(record.event, ProcessKilled | MemberStopped):
            gone = record.event.target if isinstance(record.event, ProcessKilled) else record.member
            for number in [number for number, (asked, _) in self._calls.items() if asked == gone]:
                self._answered(number, Answer(problem=f"{gone} has ended"))

    def _answered(self, number: int, answer: Answer) -> None:
        if self._early is not None:
            self._early[number] = answer
        _, done = self._calls.pop(number, ("", None))
        if done is not None:
            self._settled.append((done, answer))

    def _enqueue(self, command: Command, *, watched: bool, for_answer: bool = False) -> Future[Any]:
        if self._closed:
            return refused(self._closed_text)
        done: Future[Any] = Future()
        self._pending_commands.append(_PendingCommand(command, watched, for_answer, done))
        return done

    def _settle(self) -> None:
        settled, self._settled = self._settled, []
        for done, end in settled:
            if isinstance(end, BaseException):
                done.set_exception(end)
            else:
                done.set_result(end)


class ObservedLedger(RunState):
    """Hands out every record, and folds and judges them as long as a scenario goes by that."""

    def __init__(self, on_record: Callable[[Record], None], journal: RecordSink | None = None) -> None:
        super().__init__(journal)
        self.judging = True
        self._on_record = on_record

    def observe(self, record: Record) -> None:
        self._on_record(record)
        if self.judging:
            super().observe(record)


class _TimeControlledStage(SimulatedDriver):
    """A simulated stage whose time passes when its caller lets it."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        run_state: RunState,
        run: str,
        on_answer: Callable[[int, Answer], None],
        let_pass: Callable[[int], None],
        begin: ClusterSnapshot | None,
    ) -> None:
        super().__init__(scenario, seed, run_state, run, on_answer=on_answer, begin=begin)
        self._let_pass = let_pass

    def advance(self, by_us: int) -> None:
        self._let_pass(self.now_us() + by_us)

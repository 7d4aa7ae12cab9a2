"""Carries out one run of a campaign on an executor, from its seed to its row.

It does so in a child process, which may do anything: loop for ever, exit, or crash. The parent receives the result of each run
separately, so losing one costs that run and nothing else. POSIX only, like Spark's own workers, in which this runs.
"""

from __future__ import annotations

import os
import re
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Literal, NamedTuple, TypeVar

import msgspec

from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.properties import SECOND_US, BadProperty
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.pipeline.campaign.plan import (
    Campaign,
    PlannedRun,
    RunVerdict,
    TimesReached,
    VerdictRow,
    scenario_of,
)
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.outcome import Outcome
from quarterdeck.backend.scenarios.run_state import RecordSink
from quarterdeck.backend.simulation.simulated_driver import simulate
from quarterdeck.backend.simulation.swarm_testing.reached_rules import ReachedRules
from quarterdeck.backend.simulation.swarm_testing.shrinking import failure_signature
from quarterdeck.backend.simulation.swarm_testing.trial import FAILURES, Trial, run_trial

MAX_ERROR_TEXT = 4_000
"""How many characters of an error are kept, counted from its end, which says what it was."""

_PLACE = re.compile(r'File ".*?((?:backend|tests)/[^"]+)", line (\d+), in (.*)')


def attempt(campaign: Campaign, planned_run: PlannedRun) -> VerdictRow:
    """Carry out a planned run. Whatever it raises and however long it takes becomes a row."""
    began = time.process_time()
    try:
        with at_most(campaign.cpu_seconds):
            row = _judged(campaign, planned_run)
    except OutOfTime:
        row = _failed_row(planned_run, "timeout", "timeout", traceback.format_exc())
    except Exception:  # noqa: BLE001 - a seed of which nothing can be made is a row like any other
        text = traceback.format_exc()
        row = _failed_row(planned_run, "crash", crash_signature(text), text)
    return msgspec.structs.replace(row, cpu_seconds=round(time.process_time() - began, 4))


def lost_row(planned_run: PlannedRun, loss: LostRun) -> VerdictRow:
    """Return the row of a run that did not come back."""
    signature = "timeout" if loss.verdict == "timeout" else f"died: {loss.how}"
    return _failed_row(planned_run, loss.verdict, signature, loss.how)


def run_name(campaign: Campaign, planned_run: PlannedRun) -> str:
    """Return the name of the run in journals."""
    return f"variant-{planned_run.variant}-seed-{planned_run.seed}" if campaign.is_sweep else f"seed-{planned_run.seed}"


def record(campaign: Campaign, planned_run: PlannedRun, writer: JournalWriter) -> None:
    """Carry out a planned run once more and record it. Raises what the run raises, in the end."""
    with at_most(campaign.cpu_seconds):
        _run(campaign, scenario_of(campaign, planned_run), planned_run, writer, run=writer.run)


def failure_of(outcome: Outcome) -> dict[str, str]:
    """Return the verdict, signature, invariant and error of an outcome's row; nothing when the run passed."""
    for violation in outcome.violations:
        what = {"invariant": violation.invariant, "error": _shortened(violation.text)}
        return {"verdict": "violation", "signature": f"violation {violation.invariant}", **what}
    for step in outcome.expectations:
        if not step.met:
            error = _shortened(f"step {step.step}: {step.text}: {step.missing}")
            return {"verdict": "expectation", "signature": f"expectation {step.text}", "error": error}
    return {}


def crash_signature(text: str) -> str:
    """Return the kind of error and the last place of our own in its traceback, wherever the package was imported from."""
    kind = text.strip().splitlines()[-1].partition(":")[0]
    places = _PLACE.findall(text)
    return f"crash {kind} at {places[-1][0]}:{places[-1][1]} in {places[-1][2]}" if places else f"crash {kind}"


def _failed_row(planned_run: PlannedRun, verdict: RunVerdict, signature: str, error: str) -> VerdictRow:
    return VerdictRow(planned_run.variant, planned_run.seed, 0, verdict, signature, error=_shortened(error))


def _judged(campaign: Campaign, planned_run: PlannedRun) -> VerdictRow:
    scenario = scenario_of(campaign, planned_run)
    members = len(scenario.members)
    try:
        scenario.timing()
    except BadProperty as problem:  # two settings that each are possible, but not together
        return VerdictRow(planned_run.variant, planned_run.seed, members, "unknown", error=f"cannot be run: {problem}")
    reached = ReachedRules() if campaign.counts_reached else None
    detection = DetectionTimes(reached)
    with reached.counting() if reached else nullcontext():
        ended = _run(campaign, scenario, planned_run, detection)
    common = VerdictRow(
        variant=planned_run.variant,
        seed=planned_run.seed,
        members=members,
        verdict="ok",
        virtual_seconds=ended.virtual_seconds,
        events=ended.events,
        messages=ended.messages,
        detections=tuple(detection.seconds),
        reached=tuple(TimesReached(*each) for each in sorted(reached.counts.items())) if reached else (),
        fingerprint=ended.fingerprint,
    )
    if isinstance(ended, Trial):
        return _row_of_trial(common, ended)
    return msgspec.structs.replace(common, converged_seconds=detection.settled_seconds, **failure_of(ended))


def _run(
    campaign: Campaign, scenario: Scenario, planned_run: PlannedRun, journal: RecordSink, run: str | None = None
) -> Trial | Outcome:
    if campaign.scenario:
        return simulate(scenario, planned_run.seed, journal, run=run)
    return run_trial(scenario, planned_run.seed, journal, run=run, elide_heartbeats=not campaign.is_sweep)


def _row_of_trial(row: VerdictRow, trial: Trial) -> VerdictRow:
    signature = ""
    if trial.verdict in FAILURES:
        is_crash = trial.verdict == "crash"
        signature = crash_signature(trial.text) if is_crash else " ".join(filter(None, failure_signature(trial)))
    return msgspec.structs.replace(
        row,
        members=trial.members,
        verdict=trial.verdict,
        signature=signature,
        invariant=trial.invariant,
        error=_shortened(trial.text),
        converged_seconds=trial.converged_seconds,
        bound_seconds=trial.bound_seconds,
        writes=trial.writes,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_ERROR_TEXT else f"… {text[-MAX_ERROR_TEXT:]}"


class DetectionTimes:
    """Measures detection from the records of a run, like a journal.

    `seconds` holds, for each incarnation that was killed or paused, the time until a member suspected or removed it. One that
    resumed before is not counted.
    """

    def __init__(self, then: RecordSink | None = None) -> None:
        """`then`: is given each record too."""
        self.seconds: list[float] = []
        self._then = then
        self._incarnations: dict[str, str] = {}
        self._since: dict[str, int] = {}
        self._disturbed_us: int | None = None
        self._listed_us = 0

    @property
    def settled_seconds(self) -> float | None:
        """Time from the last fault or repair to the last change of a member list; None for a cluster without faults."""
        if self._disturbed_us is None:
            return None
        return max(0, self._listed_us - self._disturbed_us) / SECOND_US

    def append(self, record: Record) -> None:
        if self._then is not None:
            self._then.append(record)
        match record.event:
            case events.ListInstalled():
                self._listed_us = record.at
            case events.SuspicionRaised(suspect_uuid=uuid) | events.MemberRemoved(removed_uuid=uuid):
                since_us = self._since.pop(uuid, None)
                if since_us is not None:
                    self.seconds.append((record.at - since_us) / SECOND_US)
            case events.MemberStarted():
                self._incarnations[record.member] = record.uuid
            case ProcessKilled(target) | ProcessPaused(target):
                self._disturbed_us = record.at
                if target in self._incarnations:
                    self._since.setdefault(self._incarnations[target], record.at)
            case ProcessResumed(target):
                self._disturbed_us = record.at
                self._since.pop(self._incarnations.get(target, ""), None)
            case LinkChanged():
                self._disturbed_us = record.at


T = TypeVar("T")

WALL_TIMES_CPU = 5
"""A run that waits uses no CPU time: it may last so many times its budget, because machines are busy."""


class OutOfTime(BaseException):
    """Raised when a run has used up its CPU time.

    It is no `Exception`, so that code which catches all errors of a run does not catch it.
    """


@contextmanager
def at_most(cpu_seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` in the block once this process has spent so much CPU time in it. Main thread only."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise OutOfTime(f"{cpu_seconds:g} s of CPU time were not enough")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class LostRun(NamedTuple):
    """A run that did not come back: it was too slow (`timeout`) or its process ended (`died`), and how."""

    verdict: Literal["timeout", "died"]
    how: str


def run_in_child(
    planned_runs: Sequence[T], run: Callable[[T], bytes], lost_row: Callable[[T, LostRun], bytes], wall_seconds: float
) -> Iterator[bytes]:
    """Yield what `run` makes of each planned run in a child process, in order, or `lost_row` where it does not come back."""
    fork, place = get_context("fork"), 0
    while place < len(planned_runs):
        here, there = fork.Pipe(duplex=False)
        child = fork.Process(target=_work, args=(planned_runs[place:], run, there), daemon=True)
        child.start()
        there.close()
        try:
            while place < len(planned_runs):
                answer = _answer(here, child, wall_seconds)
                place += 1
                if isinstance(answer, LostRun):
                    yield lost_row(planned_runs[place - 1], answer)
                    break
                yield answer
        finally:
            child.kill()
            child.join()
            here.close()


def _answer(connection: Connection, child: BaseProcess, wall_seconds: float) -> bytes | LostRun:
    """Return the next answer, or how the child was lost."""
    if not connection.poll(wall_seconds):
        return LostRun("timeout", f"no answer within {wall_seconds:g} s")
    try:
        return connection.recv_bytes()
    except EOFError:
        child.join()
        code = child.exitcode or 0
        return LostRun("died", f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}")


def _work(planned_runs: Sequence[T], run: Callable[[T], bytes], connection: Connection) -> None:
    """Run everything in the child. It exits without the parent's cleanup, because files and sockets are the parent's."""
    code = 1
    try:
        for planned_run in planned_runs:
            connection.send_bytes(run(planned_run))
        code = 0
    finally:
        os._exit(code)

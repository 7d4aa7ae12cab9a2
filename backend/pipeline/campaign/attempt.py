"""One run of a campaign, from its seed to its row. This is what executors do."""

from __future__ import annotations

import re
import time
import traceback

import msgspec

from quarterdeck.backend.core.properties import BadProperty
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.pipeline.campaign.child_process import LostRun, OutOfTime, at_most
from quarterdeck.backend.pipeline.campaign.detection_times import DetectionTimes
from quarterdeck.backend.pipeline.campaign.plan import Campaign, PlannedRun, scenario_of
from quarterdeck.backend.pipeline.campaign.verdicts import VerdictRow
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.outcome import Outcome
from quarterdeck.backend.scenarios.run_state import RecordSink
from quarterdeck.backend.simulation.simulated_driver import simulate
from quarterdeck.backend.simulation.swarm_testing.shrinking import failure_signature
from quarterdeck.backend.simulation.swarm_testing.trial import FAILURES, Trial, run_trial

MAX_ERROR_TEXT = 4_000
"""Letters of an error that are kept: the end says what it was."""

_PLACE = re.compile(r'File ".*?((?:backend|tests)/[^"]+)", line (\d+), in (.*)')


def attempt(campaign: Campaign, planned_run: PlannedRun) -> VerdictRow:
    """Carry out a planned run. Whatever it raises and however long it takes becomes a row."""
    began = time.process_time()
    try:
        with at_most(campaign.cpu_seconds):
            row = _judged(campaign, planned_run)
    except OutOfTime:
        row = VerdictRow(
            planned_run.variant, planned_run.seed, 0, "timeout", "timeout", error=_shortened(traceback.format_exc())
        )
    except Exception:  # noqa: BLE001 - a seed of which nothing can be made is a row like any other
        text = traceback.format_exc()
        row = VerdictRow(
            planned_run.variant, planned_run.seed, 0, "crash", crash_signature(text), error=_shortened(text)
        )
    return msgspec.structs.replace(row, cpu_seconds=round(time.process_time() - began, 4))


def lost_row(planned_run: PlannedRun, loss: LostRun) -> VerdictRow:
    """The row of a run that did not come back."""
    signature = "timeout" if loss.verdict == "timeout" else f"died: {loss.how}"
    return VerdictRow(planned_run.variant, planned_run.seed, 0, loss.verdict, signature, error=loss.how)


def run_name(campaign: Campaign, planned_run: PlannedRun) -> str:
    """What the run is called in journals."""
    return f"variant-{planned_run.variant}-seed-{planned_run.seed}" if campaign.is_sweep else f"seed-{planned_run.seed}"


def record(campaign: Campaign, planned_run: PlannedRun, writer: JournalWriter) -> None:
    """Carry out a planned run once more and write down what happens. Raises whatever it raises, in the end."""
    with at_most(campaign.cpu_seconds):
        _run(campaign, scenario_of(campaign, planned_run), planned_run, writer, run=writer.run)


def outcome_signature(outcome: Outcome) -> str:
    """As `VerdictRow.signature`; empty when the run passed."""
    if outcome.violations:
        return f"violation {outcome.violations[0].invariant}"
    missed = next((step for step in outcome.expectations if not step.met), None)
    return f"expectation {missed.text}" if missed else ""


def trial_signature(trial: Trial) -> str:
    """As `VerdictRow.signature`; empty unless the trial failed."""
    if trial.verdict not in FAILURES:
        return ""
    return crash_signature(trial.text) if trial.verdict == "crash" else " ".join(filter(None, failure_signature(trial)))


def crash_signature(text: str) -> str:
    """The kind of error and the last place of our own that its traceback names, wherever the package was imported from."""
    kind = text.strip().splitlines()[-1].partition(":")[0]
    places = _PLACE.findall(text)
    return f"crash {kind} at {places[-1][0]}:{places[-1][1]} in {places[-1][2]}" if places else f"crash {kind}"


def _judged(campaign: Campaign, planned_run: PlannedRun) -> VerdictRow:
    scenario = scenario_of(campaign, planned_run)
    try:
        scenario.timing()
    except BadProperty as problem:  # two settings that each are possible, but not together
        members = len(scenario.members)
        return VerdictRow(planned_run.variant, planned_run.seed, members, "unknown", error=f"cannot be run: {problem}")
    detection = DetectionTimes()
    ended = _run(campaign, scenario, planned_run, detection)
    if isinstance(ended, Trial):
        return _row_of_trial(planned_run, ended, detection)
    return _row_of_outcome(planned_run, ended, detection, len(scenario.members))


def _run(
    campaign: Campaign, scenario: Scenario, planned_run: PlannedRun, journal: RecordSink, run: str | None = None
) -> Trial | Outcome:
    if campaign.scenario:
        return simulate(scenario, planned_run.seed, journal, run=run)
    return run_trial(scenario, planned_run.seed, journal, run=run, elide_heartbeats=not campaign.is_sweep)


def _row_of_trial(planned_run: PlannedRun, trial: Trial, detection: DetectionTimes) -> VerdictRow:
    return VerdictRow(
        variant=planned_run.variant,
        seed=planned_run.seed,
        members=trial.members,
        verdict=trial.verdict,
        signature=trial_signature(trial),
        invariant=trial.invariant,
        error=_shortened(trial.text),
        virtual_seconds=trial.virtual_seconds,
        events=trial.events,
        messages=trial.messages,
        converged_seconds=trial.converged_seconds,
        bound_seconds=trial.bound_seconds,
        detections=tuple(detection.seconds),
        writes=trial.writes,
        fingerprint=trial.fingerprint,
    )


def _row_of_outcome(planned_run: PlannedRun, outcome: Outcome, detection: DetectionTimes, members: int) -> VerdictRow:
    row = VerdictRow(
        variant=planned_run.variant,
        seed=planned_run.seed,
        members=members,
        verdict="ok",
        signature=outcome_signature(outcome),
        virtual_seconds=outcome.virtual_seconds,
        events=outcome.events,
        messages=outcome.messages,
        converged_seconds=detection.settled_seconds,
        detections=tuple(detection.seconds),
        fingerprint=outcome.fingerprint,
    )
    if outcome.violations:
        first = outcome.violations[0]
        return msgspec.structs.replace(
            row, verdict="violation", invariant=first.invariant, error=_shortened(first.text)
        )
    missed = next((step for step in outcome.expectations if not step.met), None)
    if missed is not None:
        said = f"step {missed.step}: {missed.text}: {missed.missing}"
        return msgspec.structs.replace(row, verdict="expectation", error=_shortened(said))
    return row


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_ERROR_TEXT else f"… {text[-MAX_ERROR_TEXT:]}"

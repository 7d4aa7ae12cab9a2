"""One run of a campaign, from its seed to its row. This is what executors do."""

from __future__ import annotations

import re
import time
import traceback

import msgspec

from quarterdeck.backend.core.properties import BadProperty
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.pipeline.campaign.detection import Detection
from quarterdeck.backend.pipeline.campaign.guard import Loss, OutOfTime, at_most
from quarterdeck.backend.pipeline.campaign.plan import Campaign, Errand, scenario_of
from quarterdeck.backend.pipeline.campaign.verdicts import VerdictRow
from quarterdeck.backend.simulation.run import Journal, Outcome, simulate
from quarterdeck.backend.simulation.scenario import Scenario
from quarterdeck.backend.simulation.shrink import way_of_failing
from quarterdeck.backend.simulation.trial import FAILURES, Trial, try_out

MOST_ERROR_TEXT = 4_000
"""Letters of an error that are kept: the end says what it was."""

_PLACE = re.compile(r'File ".*?((?:backend|tests)/[^"]+)", line (\d+), in (.*)')


def attempt(campaign: Campaign, errand: Errand) -> VerdictRow:
    """Run the errand. Whatever it raises and however long it takes becomes a row."""
    began = time.process_time()
    try:
        with at_most(campaign.cpu_seconds):
            row = _judged(campaign, errand)
    except OutOfTime:
        row = VerdictRow(errand.variant, errand.seed, 0, "timeout", "timeout", error=_shortened(traceback.format_exc()))
    except Exception:  # noqa: BLE001 - a seed of which nothing can be made is a row like any other
        text = traceback.format_exc()
        row = VerdictRow(errand.variant, errand.seed, 0, "crash", crash_signature(text), error=_shortened(text))
    return msgspec.structs.replace(row, cpu_seconds=round(time.process_time() - began, 4))


def lost(errand: Errand, loss: Loss) -> VerdictRow:
    """The row of a run that did not come back."""
    signature = "timeout" if loss.verdict == "timeout" else f"died: {loss.how}"
    return VerdictRow(errand.variant, errand.seed, 0, loss.verdict, signature, error=loss.how)


def run_name(campaign: Campaign, errand: Errand) -> str:
    """What the run is called in journals."""
    return f"variant-{errand.variant}-seed-{errand.seed}" if campaign.is_sweep else f"seed-{errand.seed}"


def record(campaign: Campaign, errand: Errand, writer: JournalWriter) -> None:
    """Run the errand once more and write down what happens. Raises whatever it raises, in the end."""
    with at_most(campaign.cpu_seconds):
        _run(campaign, scenario_of(campaign, errand), errand, writer, run=writer.run)


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
    return crash_signature(trial.text) if trial.verdict == "crash" else " ".join(filter(None, way_of_failing(trial)))


def crash_signature(text: str) -> str:
    """The kind of error and the last place of our own that its traceback names, wherever the package was imported from."""
    kind = text.strip().splitlines()[-1].partition(":")[0]
    places = _PLACE.findall(text)
    return f"crash {kind} at {places[-1][0]}:{places[-1][1]} in {places[-1][2]}" if places else f"crash {kind}"


def _judged(campaign: Campaign, errand: Errand) -> VerdictRow:
    scenario = scenario_of(campaign, errand)
    try:
        scenario.timing()
    except BadProperty as problem:  # two settings that each are possible, but not together
        members = len(scenario.members)
        return VerdictRow(errand.variant, errand.seed, members, "unknown", error=f"cannot be run: {problem}")
    detection = Detection()
    ended = _run(campaign, scenario, errand, detection)
    if isinstance(ended, Trial):
        return _row_of_trial(errand, ended, detection)
    return _row_of_outcome(errand, ended, detection, len(scenario.members))


def _run(
    campaign: Campaign, scenario: Scenario, errand: Errand, journal: Journal, run: str | None = None
) -> Trial | Outcome:
    if campaign.scenario:
        return simulate(scenario, errand.seed, journal, run=run)
    return try_out(scenario, errand.seed, journal, run=run, elide_heartbeats=not campaign.is_sweep)


def _row_of_trial(errand: Errand, trial: Trial, detection: Detection) -> VerdictRow:
    return VerdictRow(
        variant=errand.variant,
        seed=errand.seed,
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
        fingerprint=trial.fingerprint,
    )


def _row_of_outcome(errand: Errand, outcome: Outcome, detection: Detection, members: int) -> VerdictRow:
    row = VerdictRow(
        variant=errand.variant,
        seed=errand.seed,
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
    return text if len(text) <= MOST_ERROR_TEXT else f"… {text[-MOST_ERROR_TEXT:]}"

"""Chance judges the judge: what is compared, and that the comparison changes nothing of a run."""

from __future__ import annotations

from collections import Counter

import pytest

from quarterdeck.backend.conclusion_testing.conclusion_trial import judge_seed
from quarterdeck.backend.conclusion_testing.entries import EntryLedger
from quarterdeck.backend.conclusion_testing.floors import FLOORS, MOMENTS, below_floors
from quarterdeck.backend.conclusion_testing.situations import judged_scenario
from quarterdeck.backend.core.data.events import CallFinished, CallStarted
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.scenarios.format.writing import scenario_text
from quarterdeck.backend.simulation.swarm_testing.trial import run_seed

SIZES = (3, 9)


def test_a_watched_run_is_the_run_that_nobody_watches() -> None:
    trial = judge_seed(2, SIZES)
    assert trial.fingerprint == run_seed(2, SIZES).fingerprint
    assert trial == judge_seed(2, SIZES)


def record(event: Event, at: int) -> Record:
    return Record("r", "a", "uuid-a", at, at, at, event)


def write(ledger: EntryLedger, call: int, value: str, at: int, *, problem: str = "", ends: bool = True) -> None:
    """Put `value`, or remove the key where it is empty."""
    operation = "put" if value else "remove"
    ledger.observe(record(CallStarted(call, operation, "m", "k", value), at))
    if ends:
        ledger.observe(record(CallFinished(call, operation, "m", "k", 0, "", False, 1, problem, False), at + 1))


@pytest.mark.long
@pytest.mark.parametrize("sizes", [SIZES, (1, 9)])
def test_questions_stay_answered(sizes: tuple[int, int]) -> None:
    """Chance alone would be satisfied with a judge that knows nothing."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for seed in range(1, 121):
        counts.update(judge_seed(seed, sizes).counts)
    assert not list(below_floors(counts))


@pytest.mark.parametrize("seed", range(1, 41))
def test_a_situation_is_a_scenario_that_can_be_written_and_read(seed: int) -> None:
    scenario = judged_scenario(seed, (1, 9))
    assert scenario == judged_scenario(seed, (1, 9))
    assert scenario_text(read_scenario(scenario_text(scenario), "drawn.yaml")) == scenario_text(scenario)


def test_a_judge_that_knows_nothing_is_below_the_floors() -> None:
    counts = {(watcher, question, "unknown"): MOMENTS for watcher, question in FLOORS}
    assert {(watcher, question) for watcher, question, _ in below_floors(counts)} == {*FLOORS}
    assert not list(below_floors(dict.fromkeys(counts, MOMENTS - 1)))


HELD = {("m", "k"): {"1"}}


def test_an_acknowledged_entry_in_no_process_is_lost_for_certain() -> None:
    ledger = EntryLedger(1)
    write(ledger, 1, "1", 10)
    ledger.look(HELD, 20, is_meant=False)
    ledger.look({}, 30, is_meant=False)
    assert [(loss.at_us, loss.certain) for loss in ledger.losses] == [(30, True)]
    write(ledger, 2, "2", 40)
    assert ledger.losses[0].is_rewritten


def test_an_entry_that_a_client_may_have_removed_is_not_lost_for_certain() -> None:
    ledger = EntryLedger(1)
    write(ledger, 1, "1", 10)
    ledger.look(HELD, 20, is_meant=False)
    write(ledger, 2, "", 25, ends=False)
    ledger.look({}, 30, is_meant=False)
    assert [loss.certain for loss in ledger.losses] == [False]
    ledger.observe(record(CallFinished(2, "remove", "m", "k", 0, "1", True, 1, "", False), 40))
    assert not ledger.losses


def test_a_write_that_is_acknowledged_after_a_remove_may_have_been_done_before_it() -> None:
    ledger = EntryLedger(1)
    write(ledger, 1, "1", 10, ends=False)
    write(ledger, 2, "", 20)
    ledger.observe(record(CallFinished(1, "put", "m", "k", 0, "", False, 1, "", False), 30))
    ledger.look({}, 40, is_meant=False)
    assert not ledger.losses


def test_a_lost_entry_stays_lost_when_a_write_under_way_is_done_after_it() -> None:
    ledger = EntryLedger(1)
    write(ledger, 1, "1", 10)
    ledger.look(HELD, 15, is_meant=False)
    write(ledger, 2, "2", 20, ends=False)
    ledger.look({}, 30, is_meant=False)
    ledger.look({("m", "k"): {"2"}}, 40, is_meant=False)
    assert [(loss.at_us, loss.certain, loss.is_rewritten) for loss in ledger.losses] == [(30, True, True)]


def test_a_copy_that_was_on_its_way_is_no_loss() -> None:
    ledger = EntryLedger(1)
    write(ledger, 1, "1", 10)
    ledger.look(HELD, 15, is_meant=False)
    ledger.look({}, 30, is_meant=False)
    ledger.look(HELD, 31, is_meant=False)
    assert not ledger.losses


def test_an_older_value_elsewhere_is_a_possible_loss_only() -> None:
    ledger = EntryLedger(1)
    write(ledger, 1, "1", 10)
    ledger.look(HELD, 15, is_meant=False)
    write(ledger, 2, "2", 20)
    ledger.look({("m", "k"): {"1", "2"}}, 25, is_meant=False)
    ledger.look(HELD, 30, is_meant=False)
    assert [loss.certain for loss in ledger.losses] == [False]


def test_a_value_of_a_write_under_way_is_no_loss_of_the_value_before() -> None:
    ledger = EntryLedger(1)
    write(ledger, 1, "1", 10)
    ledger.look(HELD, 15, is_meant=False)
    write(ledger, 2, "2", 20, ends=False)
    ledger.look({("m", "k"): {"2"}}, 25, is_meant=False)
    assert not ledger.losses


def test_a_write_that_was_never_acknowledged_is_no_promise() -> None:
    ledger = EntryLedger(1)
    write(ledger, 1, "1", 10, problem="no answer")
    ledger.look({}, 20, is_meant=False)
    assert not ledger.losses and not list(ledger.promised())


@pytest.mark.parametrize(
    ("seed", "question"),
    [
        (15, "split"),
        *(
            pytest.param(seed, question, marks=pytest.mark.long)
            for seed, question in (
                (2, "metric lists_agree"),
                (5, "metric masters"),
                (3, "absent: gone"),
                (3, "may-stop"),
                (10, "data-lost"),
                (23, "data-lost"),
                (27, "data-lost"),
                (25, "data-safe"),
                (35, "data-safe"),
                (30, "healthy: partitions without an owner"),
                (18, "healthy: calls are refused"),
                (6, "absent: gone"),
                (14, "metric map_entries"),
                (24, "metric map_entries"),
                (1, "metric tables_agree"),
            )
        ),
    ],
)
def test_what_was_false_once_is_true_now(seed: int, question: str) -> None:
    trial = judge_seed(seed, SIZES)
    assert not [false for false in trial.false if false.statement.question == question]

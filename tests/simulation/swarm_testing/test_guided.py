"""Chance that learns: which runs are varied, what a variation is, and what a run has reached."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from quarterdeck.backend.core.membership.handlers import MESSAGE_RULES
from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.scenarios.format.writing import scenario_text
from quarterdeck.backend.simulation.swarm_testing.guided import ROLES, Corpus, GuidedSearch, Origin
from quarterdeck.backend.simulation.swarm_testing.parallel_trials import guided_runs, swarm_run
from quarterdeck.backend.simulation.swarm_testing.reached_rules import (
    CANNOT_BE_REACHED,
    ReachedRules,
    ReachedSummary,
    rule_and_branch_names,
)
from quarterdeck.backend.simulation.swarm_testing.trial import run_seed
from tests.thoroughness import examples

SMALL = (3, 3)


def test_an_origin_is_written_and_read_back() -> None:
    for origin in (Origin(7), Origin(7, (120, 3))):
        assert Origin.of(origin.text) == origin
    assert Origin(7, (120, 3)).text == "7+120+3"
    assert Origin.of("1:2000") is Origin.of("7+") is Origin.of("") is None


def test_a_variation_is_another_scenario_that_can_be_written_and_follows_from_its_origin() -> None:
    for seed in range(1, 1 + examples(24)):
        origin = Origin(seed, (seed, 2))
        scenario = origin.scenario((3, 7))
        assert scenario != Origin(seed).scenario((3, 7))
        assert scenario == origin.scenario((3, 7)) == read_scenario(scenario_text(scenario), "t.yaml")
        assert any(step.do and step.do.load for step in scenario.steps)


def test_the_shortest_run_that_reached_a_rare_state_is_varied() -> None:
    corpus = Corpus()
    corpus.add(Origin(1), 100, frozenset({1, 2}))
    corpus.add(Origin(2), 50, frozenset({1}))
    corpus.add(Origin(3), 70, frozenset({1, 3}))
    corpus.add(Origin(4), 10, frozenset({1}))
    drawn = {corpus.rare(Random(draw)) for draw in range(30)}
    assert drawn == {Origin(1), Origin(3)}
    assert Corpus().rare(Random(1)) is None


def test_a_search_goes_through_its_seeds_and_varies_what_reached_something_new() -> None:
    search = GuidedSearch(range(5, 12), generation=4)
    runs = list(guided_runs(search, SMALL, 1))
    assert [run.origin for run in runs[:4]] == [Origin(seed) for seed in range(5, 9)]
    varied = [run.origin for run in runs if run.origin.variations]
    assert len(varied) == search.varied > 0
    assert len(search.corpus) == len(frozenset().union(*(run.states for run in runs)))
    assert swarm_run(varied[0], SMALL).trial == next(run.trial for run in runs if run.origin == varied[0])


def test_watching_and_counting_change_nothing() -> None:
    rules = {kind: dict(by_doing) for kind, by_doing in MESSAGE_RULES.items()}
    run = swarm_run(Origin(3), SMALL, counts=True, watches=True)
    assert rules == MESSAGE_RULES
    assert run.trial == run_seed(3, SMALL)
    leading = 1 << ROLES.index("leading")
    assert any(state & leading for state in run.states)
    assert run.reached["heartbeat while leading"] > 0
    assert run.reached["list-installed: cause formed"] > 0
    assert "heartbeat while leading" not in ReachedSummary.of(run.reached).never


def test_all_that_is_counted_has_a_name_of_a_table() -> None:
    names = rule_and_branch_names()
    assert len(set(names)) == len(names)
    assert {"claim-refused while claiming", "merge-verdict: rule address", "claim-started"} <= {*names}
    assert ReachedSummary.of({}).never == names
    assert ReachedSummary.of({"claim-started": 3}).text.startswith(f"1 of {len(names)} rules")
    assert not any(name.startswith(("member-witnessed", "stranger-refused")) or "unknown" in name for name in names)
    page = (Path(__file__).parents[3] / "docs" / "reference" / "swarm.md").read_text(encoding="utf-8")
    for why, left_out in CANNOT_BE_REACHED.items():
        assert not {*left_out} & {*names}
        kind, _, _ = left_out[0].partition(" ")
        assert f"| {why} |" in page and f"| `{kind.strip(':')}" in page


@pytest.mark.parametrize("seed", [3001357, 3006607])
def test_a_run_whose_first_proofs_prove_nothing_is_judged_all_the_same(seed: int) -> None:
    assert run_seed(seed).verdict == "ok"


def test_a_loss_that_a_master_recorded_counts_when_it_has_left() -> None:
    """A guided search found this run: a judge asked those who had followed that master for what was lost."""
    origin = Origin.of("3300065+227+349+496+510")
    assert origin is not None and swarm_run(origin, (3, 20)).trial.verdict == "ok"


def test_counting_ends_with_an_error() -> None:
    rules = {kind: dict(by_doing) for kind, by_doing in MESSAGE_RULES.items()}
    with pytest.raises(KeyError), ReachedRules().counting():
        raise KeyError
    assert rules == MESSAGE_RULES

"""Runs of the lab that are kept: what was false in them once is said no more, and nothing else that is said is false."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hazelcast.real.kept_run import LOGS_ALONE, described, judge_run, run_facts

KEPT = Path(__file__).parent / "kept"
RUNS = sorted(KEPT.iterdir())


@pytest.mark.parametrize("folder", RUNS, ids=[it.name for it in RUNS])
def test_nothing_is_false_in_a_kept_run(folder: Path) -> None:
    for name, judged in judge_run(folder):
        assert name == LOGS_ALONE or sum(verdict == "true" for _, verdict in judged) > 100
        wrong = [said for said, verdict in judged if verdict in ("false", "no rule")]
        assert not wrong, "\n".join(described(name, wrong, run_facts(folder).done))

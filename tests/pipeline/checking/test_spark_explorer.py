"""The search on Spark: states, transitions, histories and calm are those of one process, also after an interruption."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.pipeline.checking.level import MEMBER, REPORT, STATE, Learnt, LevelShare, Row, look_at_rows
from quarterdeck.backend.pipeline.checking.spark_explorer import SparkExplorer
from quarterdeck.backend.simulation.model_checking.checkpoint import BadCheckpoint
from quarterdeck.backend.simulation.model_checking.exploration import Exploration, Explorer
from quarterdeck.backend.simulation.model_checking.model import Bounds, Model
from quarterdeck.backend.simulation.model_checking.share import Broken, ShareReport, ShareSettings

A_CRASH = Model("crash", "The master may crash.", ("a", "b", "c"), Bounds(crashes=1, ticks=6), calm_every=100)
FEW_STEPS = msgspec.structs.replace(A_CRASH, bounds=Bounds(crashes=1, ticks=6, steps=5))
TASKS = 2
MANY = 1_000_000


def one_process(model: Model) -> Exploration:
    return Explorer(model, most_states=MANY).explore()


def level_after_level(model: Model) -> tuple[int, int, list[Broken]]:
    """Search as Spark does, without Spark: in workers that know nothing of each other, each with another part of every level."""
    settings = ShareSettings(model)
    learnt: Learnt = ({}, {}, {})
    members: dict[int, Row] = {}
    met: set[bytes] = set()
    transitions, broken = 0, list[Broken]()
    workers = [LevelShare(settings) for _ in range(TASKS)]
    workers[0].first()
    rows = list(look_at_rows(workers[0], learnt, iter(()), "expand", begins=False))
    for depth in itertools.count():
        level: dict[bytes, Row] = {}
        for row in rows:
            holds, number, code, way, _, payload = row
            if holds == MEMBER:
                assert number is not None
                members[number] = row
            elif holds == STATE:
                assert code is not None and way is not None
                known = level.get(code)
                if code not in met and (known is None or way < (known[3] or b"")):
                    level[code] = row
            elif holds == REPORT:
                report: ShareReport = pickle.loads(payload)
                transitions += report.transitions
                broken += [report.broken] if report.broken is not None else []
            else:
                for known_ones, more in zip(learnt, pickle.loads(payload), strict=True):
                    known_ones.update(more)
        met |= level.keys()
        if not level or broken:
            break
        rows = []
        for task in range(TASKS):
            states = [row for code, row in sorted(level.items()) if code[0] % TASKS == task]
            needed = dict.fromkeys(itertools.chain.from_iterable(row[4] or () for row in states))
            given = [(holds, number, code, payload) for holds, number, code, _, _, payload in
                     (*(members[number] for number in needed), *states)]  # fmt: skip
            rows += look_at_rows(workers[(task + depth) % TASKS], learnt, iter(given), "expand")
    return len(met), transitions, broken


def test_workers_that_know_nothing_of_each_other_find_the_states_of_one_process() -> None:
    model = msgspec.structs.replace(A_CRASH, bounds=Bounds(crashes=1, ticks=3))
    expected = one_process(model)
    states, transitions, broken = level_after_level(model)
    assert (states, transitions) == (expected.progress.states, expected.progress.transitions)
    assert not broken


@pytest.mark.long
def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal does not bump the version of the list."""
    sound = MemberList.without
    monkeypatch.setattr(
        MemberList, "without", lambda self, gone: msgspec.structs.replace(sound(self, gone), version=self.version)
    )
    expected = one_process(A_CRASH).found
    _, _, broken = level_after_level(A_CRASH)
    assert expected is not None and broken
    assert min(len(violation.way) for violation in broken) == 2 * len(expected.steps)  # two bytes a choice


@pytest.mark.long
def test_spark_finds_what_one_process_finds_and_goes_on_after_an_interruption(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected = one_process(FEW_STEPS)
    looks = itertools.count()
    interrupted = SparkExplorer(spark, FEW_STEPS, tmp_path / "search", most_states=MANY).explore(
        is_stopped=lambda: next(looks) >= 3
    )
    assert interrupted.interrupted and not interrupted.exhausted
    with pytest.raises(BadCheckpoint, match="is of another model"):
        SparkExplorer(spark, A_CRASH, tmp_path / "search", most_states=MANY)
    found = SparkExplorer(spark, FEW_STEPS, tmp_path / "search", most_states=MANY).explore()
    assert found.exhausted and not (tmp_path / "search").exists()
    for name in ("histories", "converged", "seen", "found", "exhausted"):
        assert getattr(found, name) == getattr(expected, name), name
    for name in ("states", "transitions", "depth", "frontier"):
        assert getattr(found.progress, name) == getattr(expected.progress, name), name

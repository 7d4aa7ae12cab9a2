"""The search on Spark: states, transitions, histories and calm are those of one process, also after an interruption."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.pipeline.checking import level as levels
from quarterdeck.backend.pipeline.checking import spark_explorer
from quarterdeck.backend.pipeline.checking.level import LevelShare, LevelWork, learnt_of, read_learnt
from quarterdeck.backend.pipeline.checking.spark_explorer import SparkExplorer
from quarterdeck.backend.simulation.model_checking.checkpoint import BadCheckpoint
from quarterdeck.backend.simulation.model_checking.exploration import Exploration, Explorer
from quarterdeck.backend.simulation.model_checking.model import Bounds, Model
from quarterdeck.backend.simulation.model_checking.share import Broken, ShareSettings

A_CRASH = Model("crash", "The master may crash.", ("a", "b", "c"), Bounds(crashes=1, ticks=6), calm_every=100)
FEW_STEPS = msgspec.structs.replace(A_CRASH, bounds=Bounds(crashes=1, ticks=6, steps=5))
MANY = 1_000_000


def one_process(model: Model) -> Exploration:
    return Explorer(model, most_states=MANY).explore()


def level_after_level(
    model: Model, folder: Path, monkeypatch: pytest.MonkeyPatch, *, twice: bool = False
) -> tuple[int, int, list[Broken]]:
    """Search as Spark does, without Spark: in workers that know each other by files, each with another part of every level.

    `twice`: each task is done by both workers, as where one of them was lost with what it had not passed on.
    """
    workers: list[dict[str, LevelShare]] = [{}, {}]

    def work_at(level: int) -> LevelWork:
        return LevelWork("search", ShareSettings(model), folder, level, parts=2)

    def kept(level: int, rows: list[pa.RecordBatch]) -> int:
        return sum(batch["states"][0].as_py() for batch in work_at(level).keep(rows))

    monkeypatch.setattr(levels, "_shares", workers[0])
    first = levels.share_of("search", ShareSettings(model))
    first.begin_task(folder)
    first.begin()
    first.end_task(learnt_of(folder, 0, 0))
    states = new = kept(0, list(work_at(0).rows_of(first)))
    transitions, broken, level = 0, list[Broken](), 0
    while new and not broken:
        level += 1
        rows = []
        for number, file in enumerate(sorted((folder / "states" / f"level={level - 1:04}").iterdir())):
            task = pa.RecordBatch.from_pylist([{"task": pickle.dumps((number, file))}])
            for worker in (0, 1) if twice else ((number + level) % 2,):
                monkeypatch.setattr(levels, "_shares", workers[worker])
                found = list(work_at(level).look(iter([task])))
            rows += found
            report, _ = read_learnt(learnt_of(folder, level, number))
            transitions += report.transitions
            broken += [report.broken] if report.broken is not None else []
        new = kept(level, rows)
        states += new
    return states, transitions, broken


@pytest.mark.parametrize("twice", [pytest.param(False, marks=pytest.mark.long), True])
def test_workers_that_know_nothing_of_each_other_find_the_states_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, twice: bool
) -> None:
    model = msgspec.structs.replace(A_CRASH, bounds=Bounds(crashes=1, ticks=3))
    expected = one_process(model)
    states, transitions, broken = level_after_level(model, tmp_path, monkeypatch, twice=twice)
    assert (states, transitions) == (expected.progress.states, expected.progress.transitions)
    assert not broken


def test_a_worker_whose_task_was_broken_off_begins_anew() -> None:
    settings = ShareSettings(A_CRASH)
    share = levels.share_of("one search", settings)
    share.is_busy = True
    begun = levels.share_of("one search", settings)
    assert begun is not share
    assert levels.share_of("one search", settings) is begun


def test_a_part_is_compared_with_all_files_that_may_have_states_of_it(tmp_path: Path) -> None:
    for level, parts in enumerate((1, 4, 2)):
        for part in range(parts):
            levels.write_states(levels.file_of(tmp_path, level, part, parts), pa.table({"code": [b""]}))
    found = levels.met_files(tmp_path, 2, 1, 2)
    assert {f"{file.parent.name[-1]} {file.stem}" for file in found} == {"0 0-of-1", "1 2-of-4", "1 3-of-4"}


@pytest.mark.long
def test_a_planted_fault_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal does not bump the version of the list."""
    sound = MemberList.without
    monkeypatch.setattr(
        MemberList, "without", lambda self, gone: msgspec.structs.replace(sound(self, gone), version=self.version)
    )
    expected = one_process(A_CRASH).found
    _, _, broken = level_after_level(A_CRASH, tmp_path, monkeypatch)
    assert expected is not None and broken
    assert min(len(violation.way) for violation in broken) == 2 * len(expected.steps)  # two bytes a choice


@pytest.mark.long
@pytest.mark.parametrize("few_states", [0, 20, MANY])
def test_spark_finds_what_one_process_finds_and_goes_on_after_an_interruption(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_states: int
) -> None:
    """All levels in tasks of Spark's, the larger ones, and none."""
    monkeypatch.setattr(spark_explorer, "FEW_STATES", few_states)
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

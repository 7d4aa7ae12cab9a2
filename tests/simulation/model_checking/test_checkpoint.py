"""A search that was interrupted goes on from its checkpoint, to the same end."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec
import pytest

from quarterdeck.backend.simulation.model_checking import exploration
from quarterdeck.backend.simulation.model_checking.checkpoint import MANIFEST, BadCheckpoint
from quarterdeck.backend.simulation.model_checking.exploration import Exploration, Explorer
from quarterdeck.backend.simulation.model_checking.model import Bounds, Model

MODEL = Model("crash", "The master may crash.", ("a", "b", "c"), Bounds(crashes=1, ticks=6), calm_every=100)


def explored(
    folder: Path | None, *, is_stopped: Callable[[], bool] = lambda: False, processes: int = 1, model: Model = MODEL
) -> Exploration:
    explorer = Explorer(model, most_states=100_000, processes=processes, folder=folder)
    return explorer.explore(is_stopped=is_stopped)


@cache
def whole() -> Exploration:
    return explored(None)


def after_so_many_looks(looks: int) -> Callable[[], bool]:
    asked = iter(range(10_000))
    stopped = False

    def is_stopped() -> bool:
        nonlocal stopped
        stopped = stopped or next(asked) >= looks
        return stopped

    return is_stopped


@pytest.fixture(autouse=True)
def _short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploration, "LOOK", 50)


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupted_search_goes_on_to_the_same_end_with_as_many_processes_as_it_had(
    tmp_path: Path, processes: int
) -> None:
    folder = tmp_path / "crash"
    states = 0
    for asked_for in (processes, 1):
        part = explored(folder, is_stopped=after_so_many_looks(8), processes=asked_for)
        assert part.interrupted and not part.exhausted
        assert states < part.progress.states < whole().progress.states
        states = part.progress.states
        assert (folder / MANIFEST).exists()
        assert len(list(folder.glob("*/share-*.met"))) == processes
    end = explored(folder)
    assert end.exhausted and end.found is None
    ends = [(search.progress.states, search.progress.transitions, search.seen) for search in (whole(), end)]
    assert ends[0] == ends[1]
    assert end.converged == whole().converged + processes - 1  # each has a last state
    assert not folder.exists()


def test_who_gave_up_after_so_many_states_may_go_on(tmp_path: Path) -> None:
    few = Explorer(MODEL, most_states=300, folder=tmp_path / "crash").explore()
    assert not few.exhausted and not few.interrupted
    more = explored(tmp_path / "crash")
    assert more.exhausted and more.progress.states == whole().progress.states


def test_checkpoints_are_made_while_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploration, "LEAST_CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(exploration, "CHECKPOINT_SHARE", 1.0)
    looks = after_so_many_looks(10)

    def killed() -> bool:
        if looks():
            raise RuntimeError("power cut")
        return False

    with pytest.raises(RuntimeError, match="power cut"):
        explored(tmp_path / "crash", is_stopped=killed)
    assert len(list((tmp_path / "crash").glob("generation-*"))) == 1
    assert explored(tmp_path / "crash").progress.states == whole().progress.states


def test_a_checkpoint_of_another_search_is_refused(tmp_path: Path) -> None:
    explored(tmp_path, is_stopped=after_so_many_looks(3))
    other = msgspec.structs.replace(MODEL, bounds=Bounds(crashes=1, ticks=5))
    with pytest.raises(BadCheckpoint, match=r"checkpoint\.json: is of another model, of other bounds"):
        explored(tmp_path, model=other)


def test_a_damaged_checkpoint_is_one_clear_error(tmp_path: Path) -> None:
    explored(tmp_path, is_stopped=after_so_many_looks(3))
    manifest = (tmp_path / MANIFEST).read_bytes()
    met = next(tmp_path.glob("*/share-0.met"))
    met.write_bytes(met.read_bytes()[:-1])
    with pytest.raises(BadCheckpoint, match=r"share-0\.met: is damaged or missing; delete the folder"):
        explored(tmp_path)
    (tmp_path / MANIFEST).write_bytes(manifest[: len(manifest) // 2])
    with pytest.raises(BadCheckpoint, match=r"checkpoint\.json: .*; delete the folder to begin anew"):
        explored(tmp_path)

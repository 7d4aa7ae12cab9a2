"""Seeds of the swarm, compared with the stores of their members: a loss that is confirmed happened, and none is passed over."""

from __future__ import annotations

import pytest

from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.simulation.virtual_time.world import World
from tests.judgement.losses.stores import Acknowledged, watch_seed

WITHOUT_LOSS = (10, 19, 34, 45, 94, 138)
"""Seeds in which no acknowledged key was ever without a holder: a member turns lite, members stop, or merge without entries,
others bring the entries of killed ones, lost partitions were empty."""
WITH_LOSS = (36, 178)
"""Holders are killed one after the other, and a new cluster begins empty; frozen holders are on the list before."""


@pytest.mark.parametrize("seed", [*WITHOUT_LOSS, *WITH_LOSS])
def test_losses_are_those_of_the_stores(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lost: set[int] = set()
    problems: list[str] = []

    def look(state: Acknowledged, world: World) -> None:
        now = state.lost(world)
        lost.update(now)
        losses = Judge(state.picture, now_us=world.now_us).losses
        feared = set[int]().union(*(loss.lost for loss in losses if loss.stands))
        invented = [loss for loss in losses if loss.is_confirmed and lost.isdisjoint(loss.lost)]
        problems.extend(f"{world.now_us}: {loss.text(world.now_us)}" for loss in invented)
        if not now <= feared:
            problems.append(f"{world.now_us}: {now - feared} not said")

    watch_seed(seed, look, monkeypatch)
    assert problems == []
    assert bool(lost) == (seed in WITH_LOSS)

"""How the first screen looks, as text, in a small and in a large terminal."""

from __future__ import annotations

import asyncio

import pytest
from syrupy.assertion import SnapshotAssertion

from app.console import Console
from backend.core.events import LinkChanged, ProcessKilled, ProcessPaused
from tests.app.fake_cluster import FakeCluster
from tests.app.screen_text import screen_text, settle

FIVE = ("athens", "byzantium", "cyrene", "delphi", "euphesus")
SIZES = {"80x24": (80, 24), "160x50": (160, 50)}


def split_cluster() -> FakeCluster:
    cluster = FakeCluster(FIVE)
    cluster.form()
    cluster.suspect("athens", "byzantium")
    cluster.split(["athens", "byzantium", "cyrene"], ["delphi", "euphesus"])
    cluster.suspect("athens", "cyrene")
    cluster.happen("dev", LinkChanged("athens", "delphi", blocked="blackhole"))
    cluster.happen("dev", ProcessKilled("euphesus"))
    cluster.happen("dev", ProcessPaused("cyrene"))
    return cluster


def look_at(cluster: FakeCluster, size: tuple[int, int], *keys: str) -> str:
    async def scenario() -> str:
        app = Console(cluster)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await pilot.press(*keys)
            await settle(pilot)
            return screen_text(app)

    return asyncio.run(scenario())


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_agreement(size: tuple[int, int], snapshot: SnapshotAssertion) -> None:
    cluster = FakeCluster(("n1", "n2", "n3", "n4", "n5"))
    cluster.form()
    assert look_at(cluster, size) == snapshot


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_split(size: tuple[int, int], snapshot: SnapshotAssertion) -> None:
    assert look_at(split_cluster(), size, "j", "space") == snapshot


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_help(size: tuple[int, int], snapshot: SnapshotAssertion) -> None:
    assert look_at(split_cluster(), size, "question_mark") == snapshot


def test_without_colour_every_state_still_reads(monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    coloured = look_at(split_cluster(), (160, 50))
    monkeypatch.setenv("NO_COLOR", "1")
    assert look_at(split_cluster(), (160, 50)) == coloured

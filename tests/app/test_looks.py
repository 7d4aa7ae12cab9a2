"""How the console looks, as text and in which colours.

A picture shows one view or dialog, without the bar of all views and the footer: a new view or key changes no picture of another.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.actions.views import VIEW_NAMES
from quarterdeck.app.console import Console
from quarterdeck.app.views.demos import DemosScreen
from quarterdeck.backend.core.data.events import BackupOutOfStep, CallFinished
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import (
    DrainStarted,
    MigrationAccepted,
    MigrationCommitting,
    MigrationCopied,
    MigrationDecided,
    MigrationsPlanned,
    PartitionLost,
    PlannedMigration,
)
from quarterdeck.widgets.line_table import LineTable
from tests.app.fakes.fake_cluster import FakeCluster, formed
from tests.app.fakes.long_run_cluster import LongRunCluster
from tests.app.fakes.screen_text import screen_text, screen_tones, settle, until

FIVE = ("athens", "byzantium", "cyrene", "delphi", "euphesus")
SMALL, LARGE = (80, 24), (160, 50)


def split_cluster() -> FakeCluster:
    cluster = formed(FIVE)
    cluster.suspect("athens", "byzantium")
    cluster.split(["athens", "byzantium", "cyrene"], ["delphi", "euphesus"])
    cluster.suspect("athens", "cyrene")
    cluster.happen("dev", LinkChanged("athens", "delphi", blocked="blackhole"))
    cluster.happen("dev", ProcessKilled("euphesus"))
    cluster.happen("dev", ProcessPaused("cyrene"))
    return cluster


def cropped(app: Console, screen: str) -> str:
    """Leave out the lines of the bar of views and of the footer: what they say is true of all views."""
    lists = [widget.region.y for widget in (app.top.views_line, app.top.hints) if widget.display]
    return "\n".join(line for place, line in enumerate(screen.split("\n")) if place not in lists)


def look_at(cluster: FakeCluster, size: tuple[int, int], *keys: str) -> str:
    async def scenario() -> str:
        app = Console(cluster)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await pilot.press(*keys)
            await settle(pilot)
            return cropped(app, screen_text(app))

    return asyncio.run(scenario())


def test_agreement(snapshot: SnapshotAssertion) -> None:
    cluster = formed()
    assert look_at(cluster, SMALL) == snapshot


def test_split(snapshot: SnapshotAssertion) -> None:
    assert look_at(split_cluster(), LARGE, "j", "space") == snapshot


def test_help(snapshot: SnapshotAssertion) -> None:
    assert look_at(split_cluster(), SMALL, "question_mark") == snapshot


def healing_cluster() -> FakeCluster:
    """Two halves, of which one is on its way into the other, and a member that is held back."""
    cluster = formed((*FIVE, "fez"))
    at = {label: cluster.address(label) for label in cluster.labels}
    cluster.happen("athens", events.DisconnectionReported(at["cyrene"], (at["fez"],)))
    cluster.happen("athens", events.DisconnectionReported(at["fez"], (at["cyrene"], at["byzantium"])))
    why = f"{at['cyrene']} and {at['fez']} cannot reach each other"
    cluster.happen("athens", events.DisconnectionResolved((at["athens"], at["cyrene"]), (at["fez"],), True, why))
    cluster.split(["athens", "byzantium", "cyrene"], ["delphi", "euphesus"])
    cluster.happen("athens", events.MemberHeldBack(at["fez"], (at["cyrene"],)))
    cluster.happen("athens", events.JoinListChanged((at["athens"], at["delphi"]), 2, at["cyrene"]))
    decided = (
        f"{at['athens']} has 3 data members and {at['delphi']} has 2, so {at['delphi']} merges into {at['athens']}"
    )
    cluster.happen("athens", events.MergeVerdict(at["delphi"], "remote-merges", "data-members", decided))
    cluster.happen("athens", events.NotMerging(decided))
    cluster.suspect("athens", "byzantium")
    cluster.happen("delphi", events.MergeStarted(at["athens"], (at["delphi"], at["euphesus"])))
    for label in ("delphi", "euphesus"):
        cluster.happen(label, events.ClusterStateChanged("FROZEN", "the master decided it"))
    cluster.start("fez", life=2)
    cluster.happen("fez", events.JoinDelayed(at["athens"], (at["cyrene"],), 2_000_000), life=2)
    return cluster


def test_healing(snapshot: SnapshotAssertion) -> None:
    assert look_at(healing_cluster(), LARGE) == snapshot


def test_detail_of_a_master(snapshot: SnapshotAssertion) -> None:
    assert look_at(healing_cluster(), SMALL, "i") == snapshot


def test_detail_of_one_that_is_held_back(snapshot: SnapshotAssertion) -> None:
    assert look_at(healing_cluster(), SMALL, "G", "i") == snapshot


def test_what_is_asked_before_a_search(snapshot: SnapshotAssertion) -> None:
    assert look_at(healing_cluster(), SMALL, "m") == snapshot


def migrating_cluster() -> FakeCluster:
    """The fifth member has come: athens moves partitions to it, cyrene wants to leave, and not all tables are alike."""
    cluster = formed(FIVE)
    at = {label: cluster.address(label) for label in cluster.labels}
    rows = {partition: [FIVE[partition % 4], FIVE[(partition + 1) % 4]] for partition in range(12)}
    cluster.change_table("athens", 12, rows, "arranged")
    for label in FIVE[1:4]:
        cluster.change_table(label, 12, rows)
    why = f"{at['euphesus']} joined"
    planned = [PlannedMigration(place, "MOVE", at[rows[place][0]], at["euphesus"], 0) for place in range(7)]
    planned += [PlannedMigration(place, "SHIFT DOWN", at[rows[place][0]], at["euphesus"], 0, True) for place in (7, 8)]
    cluster.happen("athens", MigrationsPlanned(tuple(planned), 9, 8, why))
    for place in range(5):
        cluster.begin("athens", f"m{place}", place, rows[place][0], "euphesus")
    cluster.happen("athens", MigrationCopied("m0", 0, 3, 2_500_000, 12_345))
    cluster.happen("athens", MigrationCommitting("m0", 0))
    cluster.happen("athens", MigrationDecided("m0", 0, True, 2, ""))
    for label in FIVE[:3]:
        cluster.change_table(
            label, 13, {0: ["euphesus", rows[0][1]]}, "migration" if label == "athens" else "published"
        )
    cluster.happen("athens", MigrationDecided("m1", 1, False, 3, f"{at['byzantium']} did not answer for 30 s"))
    cluster.happen("athens", MigrationCommitting("m2", 2))
    cluster.happen("athens", DrainStarted(at["cyrene"]))
    cluster.happen("athens", PartitionLost(11, 6))
    cluster.happen("delphi", BackupOutOfStep(2, at["cyrene"], "a write is missing"))
    cluster.happen("euphesus", MigrationAccepted("m2", 2, "destination", -1, 0))
    cluster.happen("byzantium", CallFinished(1, "put", "orders", "k1", 3, "v1", True, 1_500, "", False))
    return cluster


@pytest.mark.parametrize(
    "keys", [(), ("v", "j", "j", "j"), ("G", "k", "i"), ("j", "K")], ids=["overview", "a-row", "detail", "kill"]
)
def test_migrating(keys: tuple[str, ...], snapshot: SnapshotAssertion) -> None:
    assert look_at(migrating_cluster(), SMALL, *keys) == snapshot


def test_without_colour_every_state_still_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = look_at(split_cluster(), LARGE)
    monkeypatch.setenv("NO_COLOR", "1")
    assert look_at(split_cluster(), LARGE) == coloured


# Every view, in the middle of a long story


async def open_view(app: Console, pilot: Pilot[None], view: ViewName) -> None:
    """From the first view, and with the list of demos read."""
    while app.top.view != "overview":
        app.back()
    if view != "overview":
        app.goto(view, member="cyrene" if view == "member" else "")
    await settle(pilot)
    await until(pilot, lambda: not isinstance(app.top, DemosScreen) or app.top._whole)
    await pilot.pause()


def each_view(size: tuple[int, int], look: Callable[[Console], str]) -> dict[ViewName, str]:
    """What `look` makes of every view, in one console."""

    async def scenario() -> dict[ViewName, str]:
        app = Console(LongRunCluster())
        looks: dict[ViewName, str] = {}
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            for table in app.screen.query(LineTable):  # cursors stay with what was painted first, whenever that was
                table.action_edge(0)
            for view in VIEW_NAMES:
                await open_view(app, pilot, view)
                looks[view] = cropped(app, look(app))
        return looks

    return asyncio.run(scenario())


def look_at_every_view(size: tuple[int, int], snapshot: SnapshotAssertion) -> None:
    for view, text in each_view(size, screen_text).items():
        assert text == snapshot(name=view)
        assert all(cell_len(line) <= size[0] for line in text.splitlines())


def test_every_view(snapshot: SnapshotAssertion) -> None:
    look_at_every_view(SMALL, snapshot)


@pytest.mark.long
def test_every_view_in_a_wider_terminal(snapshot: SnapshotAssertion) -> None:
    """The detail of the row under the cursor stands beside the tables."""
    look_at_every_view(LARGE, snapshot)


def test_colours_of_every_view(snapshot: SnapshotAssertion) -> None:
    """Those of other themes are judged in `test_themes`."""
    for view, tones in each_view((100, 30), screen_tones).items():
        assert tones == snapshot(name=view)


@pytest.mark.long
def test_every_view_reads_the_same_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = each_view((100, 30), screen_text)
    monkeypatch.setenv("NO_COLOR", "1")
    assert each_view((100, 30), screen_text) == coloured
    tones = each_view((100, 30), screen_tones).values()
    assert not any(re.search(r"#[0-9a-f]{6}", shown) for shown in tones)


PICTURES = Path(__file__).parent / "__snapshots__" / "test_looks.ambr"


def test_no_picture_is_left_over() -> None:
    """Pictures of tests that are gone. Those that a test of today does not look at any more fail the run as it is."""
    names = re.findall(r"^# name: (\w+)", PICTURES.read_text(encoding="utf-8"), re.MULTILINE)
    assert names and set(names) <= globals().keys()

"""Names, reasons, keys and values that look like markup, escapes or worse: everywhere they are only text."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from textual.pilot import Pilot

from quarterdeck.app.actions.views import VIEW_NAMES
from quarterdeck.app.commands.confirmation import ConfirmScreen
from quarterdeck.app.console import Console
from quarterdeck.app.help_screen import HelpScreen
from quarterdeck.backend.core.commands import KillMember
from quarterdeck.backend.core.data.events import CallFinished
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import MigrationDecided, PartitionLost
from tests.app.fakes.console_driver import MEMBERS_LISTED
from tests.app.fakes.fake_cluster import FakeCluster, formed
from tests.app.fakes.screen_text import screen_text, settle, until
from tests.thoroughness import long_after

HOSTILE = (
    "[/]x",
    "[b]",
    "[@click=app.quit]y[/]",
    "\x1b[2J\x1b]0;title\x07esc",
    "\u202ertl\u202c\u200f",
    "多播成员\t\n\r",
    "n" * 300,
)
REASON = "[/] [red]no\x1b[31m heartbeat\u202e [@click=app.quit]x " + "y" * 300
SIZES = {"80x24": (80, 24), "160x50": (160, 50)}


TYPED = (
    *("preset isolate [/]x", "preset halves", "story [b]", "because", "space-time", "table-of [/]x", "sort [b]"),
    *("bookmark [/]mark\x1b[2J", "mark [/]", "filter [/", "at [/]x", "theme [/]", "cluster [/]"),
)


def hostile_cluster() -> FakeCluster:
    """Everybody has a name that is none, and everything that is told is full of such."""
    cluster = formed(HOSTILE, name="[b]dev[/\x1b[0m")
    one, two, three = HOSTILE[:3]
    cluster.change_table(
        one, 9, {place: [HOSTILE[place % 7], HOSTILE[(place + 1) % 7]] for place in range(21)}, "arranged"
    )
    cluster.suspect(one, two, REASON)
    cluster.suspect(two, one, REASON)
    cluster.happen(one, events.DisconnectionReported(cluster.address(two), (cluster.address(one),)))
    cluster.split(HOSTILE[:4], HOSTILE[4:])
    cluster.happen(one, events.NotMerging(REASON))
    cluster.happen(HOSTILE[4], events.NotMerging(REASON))
    cluster.happen(one, events.ClusterStateChanged("FROZEN", REASON))
    for place, name in enumerate(HOSTILE[:6]):
        cluster.begin(one, f"[/]{place}", place, name, HOSTILE[place + 1])
    cluster.happen(one, MigrationDecided("[/]1", 1, False, 3, REASON))
    cluster.happen(one, PartitionLost(3, 6))
    cluster.happen(
        two, CallFinished(1, "get", "[b]map", "[/]key\x1b", 3, "[@click=app.quit]v", True, 1_500, REASON, False)
    )
    cluster.happen("dev", LinkChanged(one, two, blocked="blackhole"))
    cluster.happen("dev", LinkChanged(two, three, delay=7_000))
    return cluster


def only_text(text: str) -> None:
    """Nothing but what can be printed, so that a terminal does nothing else."""
    for sign in text:
        assert sign == "\n" or unicodedata.category(sign) not in ("Cc", "Cf"), (
            ascii(sign),
            [line for line in text.split("\n") if sign in line],
        )


async def look(pilot: Pilot[None]) -> str:
    await settle(pilot)
    text = screen_text(pilot.app)
    only_text(text)
    return text


@pytest.mark.parametrize("size", long_after(1, SIZES.values()), ids=SIZES)
async def test_in_every_view_and_with_every_member_under_the_cursor(size: tuple[int, int]) -> None:
    app = Console(hostile_cluster())
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for view in VIEW_NAMES:
            app.goto(view, member=HOSTILE[0] if view == "member" else "")
            text = await look(pilot)
            for name in HOSTILE if view in ("overview", *MEMBERS_LISTED) else ():
                app.top.point_at(name)
                await pilot.pause()
                only_text(screen_text(app))
            if view not in ("audit", "demos", "time", "migrations", "partitions"):
                assert "[/]x" in text, view
            while app.top.view != "overview":
                app.back()


async def test_in_panes_sheets_plans_and_editors(tmp_path: Path) -> None:
    cluster = hostile_cluster()
    app = Console(cluster)
    async with app.run_test(size=(160, 50)) as pilot:
        await settle(pilot)
        for line in TYPED:
            app.answered(":", line)
            await look(pilot)
        app.answered(":", "edit-all-lists")
        await look(pilot)
        await pilot.press("[", "/", "]", "escape")
        for view in VIEW_NAMES:
            app.goto(view, member=HOSTILE[0] if view == "member" else "")
            for suffix in ("csv", "json"):
                app.answered(":", f"export {tmp_path / f'{view}.{suffix}'}!")
                await pilot.pause()
                assert (tmp_path / f"{view}.{suffix}").exists(), app.top.message.text
        app.answered(":", f"screenshot {tmp_path / 'screen.svg'}")
        app.answered(":", f"screenshot {tmp_path / 'screen.txt'}")
        await until(pilot, (tmp_path / "screen.txt").exists)
        only_text((tmp_path / "screen.txt").read_text(encoding="utf-8"))
        svg = (tmp_path / "screen.svg").read_text(encoding="utf-8")
        assert "\x1b" not in svg and "<script" not in svg
        assert app.is_running and not cluster.commands


@pytest.mark.long
async def test_in_questions_help_palette_and_prompt() -> None:
    cluster = hostile_cluster()
    app = Console(cluster)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        for name in HOSTILE:
            app.home.table.point_at(name)
            app.action_act("kill")
            await look(pilot)
            assert isinstance(app.screen, ConfirmScreen)
            app.screen.dismiss(True)
            await pilot.pause()
            assert cluster.commands.pop() == KillMember(name)
            await look(pilot)
        app.action_act("help")
        await look(pilot)
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape", "ctrl+p", "[", "/")
        await look(pilot)
        await pilot.press("escape", "escape")
        for name in HOSTILE:
            assert app.screen is app.top
            app.type_line(f"stop {name[:2]}")
            await look(pilot)
            await pilot.press("tab", "escape")
        app.answered(":", "[/]x [b]")
        assert "there is no command '[/]x'" in await look(pilot)
        app.answered("/", "[/]x")
        app.action_act("cli")
        await look(pilot)
        assert app.is_running

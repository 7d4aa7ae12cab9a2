"""A console under test: opened on a cluster that formed, driven by keys and lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.events import Key
from textual.keys import key_to_character
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.console import Console
from tests.app.fakes.fake_cluster import FakeCluster
from tests.app.fakes.long_run_cluster import SIX, LongRunCluster
from tests.app.fakes.screen_text import settle

MEMBERS_LISTED = ("member", "members", "suspicions", "network", "join-lists")


async def type_line(pilot: Pilot[None], line: str) -> None:
    names = {" ": "space", ",": "comma", "|": "vertical_line", "-": "minus", "/": "slash", ".": "full_stop"}
    await pilot.press("colon", *(names.get(letter, letter) for letter in line), "enter")
    await pilot.pause()


class ConsoleDriver:
    """A console on the story, in one of its views, with the cursor on a member that runs."""

    def __init__(self, app: Console, cluster: FakeCluster, pilot: Pilot[None]) -> None:
        self.app, self.cluster, self.pilot = app, cluster, pilot

    async def press(self, *keys: str) -> None:
        """Without the pilot's waiting for the screen to be painted."""
        for key in keys:
            self.app.post_message(Key(key, key_to_character(key)))
        await self.idle()

    async def idle(self) -> None:
        await asyncio.sleep(0)
        await self.pilot.pause()

    async def open(self, view: ViewName) -> None:
        """That view above the first one, and nothing above it."""
        while isinstance(self.app.screen, ModalScreen):
            self.app.screen.dismiss(None)
            await self.idle()
        if self.app.top.prompt.sign:
            self.app.top.prompt.dismiss()
        self.app.session.playhead.follow()
        while self.app.top.view not in ("overview", view):
            self.app.action_act("back")  # closes what is open in the view itself, then the view
            await self.idle()
        self.app.home.table.point_at("byzantium")
        self.app.goto(view, member="byzantium" if view in MEMBERS_LISTED else "")
        await self.idle()
        self.app.top.message.show()
        self.cluster.commands.clear()

    @property
    def said(self) -> str:
        return self.app.top.message.text

    @property
    def typed(self) -> str:
        """What stands at the prompt, with its sign."""
        prompt = self.app.top.prompt
        return f"{prompt.sign}{prompt.query_one('#prompt-input', Input).value}" if prompt.sign else ""


@asynccontextmanager
async def console(
    *, writable: bool = True, size: tuple[int, int] = (120, 40), story: bool = True
) -> AsyncIterator[ConsoleDriver]:
    """Open a console on the long story, or without a `story` on a cluster of the same members that has only formed."""
    cluster = LongRunCluster(writable=writable) if story else FakeCluster(SIX, writable=writable)
    if not story:
        cluster.form()
    app = Console(cluster)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app.do_quit = lambda _: app.show_message("the console would end here")
        yield ConsoleDriver(app, cluster, pilot)
    app.close_owned()

"""Lines typed at the prompt, their completion and their errors; and the palette."""

from __future__ import annotations

from textual.command import CommandList

from quarterdeck.app.commands.confirmation import ConfirmScreen
from quarterdeck.app.console import Console
from quarterdeck.app.help_screen import HelpScreen
from quarterdeck.backend.core.commands import (
    CutLink,
    DuplicateOnLink,
    Heal,
    Partition,
    StartMember,
    StopMember,
)
from tests.app.fakes.console_driver import type_line
from tests.app.fakes.fake_cluster import formed
from tests.app.fakes.screen_text import settle, until


async def test_typed_commands_and_their_errors() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await type_line(pilot, "partition n1,n2|n3,n4")
        await type_line(pilot, "cut n1 n2 one-way")
        assert cluster.commands == [
            Partition((("n1", "n2"), ("n3", "n4"))),
            CutLink(("n1",), ("n2",), one_way=True),
        ]
        await type_line(pilot, "duplicate n1 n2 1")
        assert cluster.commands.pop() == DuplicateOnLink(("n1",), ("n2",), 1.0)
        await type_line(pilot, "stop n9")
        assert "there is no member 'n9'" in app.home.message.text
        assert len(cluster.commands) == 2
        await type_line(pilot, "kill n2")
        assert isinstance(app.screen, ConfirmScreen)
        await pilot.press("escape")
        await type_line(pilot, "help")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("q")
        assert app.screen is app.home
        app.home.point_at("n3")
        await type_line(pilot, "next-member")
        await settle(pilot)
        assert app.top.view == "member" and app.top.targets() == ("n4",), "of the one under the cursor"
        await type_line(pilot, "quit")
        assert not app.is_running or app._exit


async def test_prompt_completes_and_remembers() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("colon", *"star")
        await settle(pilot)
        await pilot.press("tab", "space")
        await settle(pilot)
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert cluster.commands == [StartMember("n1")]
        await pilot.press("colon", "up", "enter")
        await pilot.pause()
        assert cluster.commands == [StartMember("n1")] * 2
        await pilot.press("colon", "x", "escape", "x")
        assert cluster.commands[2:] == [StopMember("n1")]


async def test_the_prompt_may_be_asked_before_it_is_there() -> None:
    class TypedAhead(Console):
        def on_mount(self) -> None:
            assert not self.home.is_mounted
            self.home.prompt.ask(":", "stop ")
            self.home.prompt.type_in("n")

    cluster = formed()
    app = TypedAhead(cluster)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("2", "enter")
        await pilot.pause()
        assert cluster.commands == [StopMember("n2")]


def found_first(app: Console) -> str:
    """The first that the palette offers, in small letters."""
    listed = app.screen.query_one(CommandList)
    return str(listed.get_option_at_index(0).prompt).lower() if listed.option_count else ""


async def test_palette_runs_actions() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(100, 40)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p")
        await settle(pilot)
        await pilot.press(*"heal")
        await until(pilot, lambda: found_first(app).startswith("heal"))
        await pilot.press("enter")
        await settle(pilot)
        assert cluster.commands == [Heal()]

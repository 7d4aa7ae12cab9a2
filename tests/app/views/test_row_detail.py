"""The detail of the row under the cursor stands beside the tables where there is room, and nowhere else."""

from __future__ import annotations

import pytest

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.screen import view_screen
from quarterdeck.widgets.fact_sheet import FactSheet
from tests.app.fakes.console_driver import ConsoleDriver, console
from tests.app.fakes.screen_text import screen_text, until_shown
from tests.thoroughness import long_after

DETAILED: dict[ViewName, str] = {
    "members": "holds back",
    "partitions": "version 7",
    "migrations": "in words",
    "network": "join list",
    "join-lists": "remembers  ",
    "events": "what  ",
    "time": "incarnation",
    "demos": "chapter   ",
}
"""What a detail of a row says, and nothing else in that view."""


async def shown(driver: ConsoleDriver, said: str) -> None:
    await until_shown(driver.pilot, lambda text: said in text)


async def test_every_table_has_its_detail_in_a_wide_terminal() -> None:
    async with console(size=(200, 50)) as driver:
        for view, said in DETAILED.items():
            await driver.open(view)
            if view == "events":
                await driver.press("k")
            await shown(driver, said)
            assert driver.app.top.row_detail.display, view


async def test_the_detail_follows_the_cursor() -> None:
    async with console(size=(160, 40)) as driver:
        await driver.open("join-lists")
        for member in ("byzantium", "cyrene"):
            driver.app.top.point_at(member)
            await shown(driver, f"│ member       {member}")


@pytest.mark.parametrize("view", ["overview", "join-lists"])
async def test_the_detail_waits_for_the_cursor_to_rest(view: ViewName, monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs more than all else that a key changes: one who passes by rows is not kept waiting by it."""
    now = [1_000.0]
    monkeypatch.setattr(view_screen, "REST_SECONDS", 0.3)
    monkeypatch.setattr(view_screen, "monotonic", lambda: now[0])

    async with console(size=(200, 50)) as driver:
        await driver.open(view)
        now[0] += 0.5
        sheet = driver.app.top.query_one("#overview-detail" if view == "overview" else "#row-detail", FactSheet)
        await until_shown(driver.pilot, lambda _: bool(sheet._facts))
        laid_out: list[object] = []
        monkeypatch.setattr(sheet, "show", laid_out.append)
        await driver.press("j")
        laid_out.clear()  # what was due before
        for _ in range(2):
            await driver.press("j")
            driver.app._tick()
        assert not laid_out
        now[0] += 0.5
        await until_shown(driver.pilot, lambda _: bool(laid_out))


@pytest.mark.parametrize("size", long_after(1, [(149, 35), (80, 24)]), ids=["149x35", "80x24"])
async def test_there_is_none_without_room(size: tuple[int, int]) -> None:
    async with console(size=size) as driver:
        for view in DETAILED:
            await driver.open(view)
            assert not driver.app.top.row_detail.display, view
        assert "chapter   " not in screen_text(driver.app)

"""Draw the pictures of the documentation: the console itself, on live clusters that are cut, exports them.

Run it with `make screenshots`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path

from app.console import Console
from backend.core.commands import CutLink, Partition
from backend.core.properties import Settings
from backend.live.local_cluster import LocalCluster
from backend.picture.picture import Picture

FOLDER = Path(__file__).parent / "screenshots"
OLDER = ("athens", "byzantium", "cyrene")
YOUNGER = ("delphi", "euphesus")
SIZE = (130, 36)
PATIENCE_SECONDS = 60


async def export_split() -> None:
    """Two halves, and why each of them is not merging."""
    cluster = LocalCluster((*OLDER, *YOUNGER), settings=Settings.of(preset="training"))
    try:
        console = Console(cluster)
        async with console.run_test(size=SIZE) as pilot:
            await until(lambda: everybody_sees(console.picture, 5))
            cluster.execute(Partition((OLDER, YOUNGER)))
            members = console.picture.members
            await until(
                lambda: set(console.picture.masters()) == {OLDER[0], YOUNGER[0]} and is_settled(console.picture)
            )
            await until(lambda: all("nobody answers" in members[one].not_merging for one in (OLDER[0], YOUNGER[0])))
            await pilot.pause(1.0)
            save(console, "split")
    finally:
        cluster.close()


async def export_detail() -> None:
    """The master after a partial disconnection: whom it removed, why, and what that one has to prove."""
    cluster = LocalCluster((*OLDER, *YOUNGER), settings=Settings.of(preset="training"))
    try:
        console = Console(cluster)
        async with console.run_test(size=SIZE) as pilot:
            await until(lambda: everybody_sees(console.picture, 5))
            cluster.execute(CutLink((OLDER[1],), YOUNGER))
            await until(lambda: bool(console.picture.members[OLDER[0]].verdicts))
            await pilot.press("i")
            await pilot.pause(2.0)
            save(console, "detail")
    finally:
        cluster.close()


def save(console: Console, name: str) -> None:
    (FOLDER / f"{name}.svg").write_text(without_fonts(console.export_screenshot()), encoding="utf-8")


def without_fonts(svg: str) -> str:
    """The picture without references to fonts on the net: it names a monospaced one that every viewer has."""
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def everybody_sees(picture: Picture, size: int) -> bool:
    beliefs = picture.members.values()
    return len(beliefs) == size and all(len(belief.members) == size for belief in beliefs)


def is_settled(picture: Picture) -> bool:
    sizes = {label: len(belief.members) for label, belief in picture.members.items()}
    return all(sizes[label] == len(OLDER) for label in OLDER) and all(sizes[label] == len(YOUNGER) for label in YOUNGER)


async def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not reached():
        if time.monotonic() > deadline:
            raise SystemExit(f"not reached within {PATIENCE_SECONDS} s: no picture was made")
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    asyncio.run(export_split())
    asyncio.run(export_detail())

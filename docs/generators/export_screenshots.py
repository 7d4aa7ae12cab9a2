"""Draw the pictures of the documentation: the console itself, on simulated clusters, exports them.

Run it with `make screenshots`. The clusters are demos in simulated time whose clock goes on only here, so the same code draws the
same pictures, byte for byte.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from docs.generators.film import TICK_SECONDS, Moment, film_of, until_shown
from quarterdeck.app.actions.views import VIEW_NAMES, VIEWS, View
from quarterdeck.app.console import Console
from quarterdeck.app.console_state import ConsoleSettings
from quarterdeck.app.export import Target, export_screen
from quarterdeck.backend.clusters.recorded.recorded_cluster import RecordedCluster
from quarterdeck.backend.clusters.recorded.recorded_run import LogCluster
from quarterdeck.backend.clusters.simulated.simulated_cluster import SimulatedCluster
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.simulation.simulated_driver import simulate
from quarterdeck.backend.training.demos import load_demo

FOLDER = Path(__file__).parents[1] / "screenshots"
LOGS = Path(__file__).parents[2] / "tests" / "hazelcast" / "logs" / "data"
"""Recordings of real members."""
SIZE = (130, 36)
STEP_US = 250_000
LONGEST_RUN_US = 120_000_000
TICKS_TO_SETTLE = 4
"""What comes late is waited for before it is told, and not everything is painted in each tick."""


class Shot(NamedTuple):
    """A picture: `keys` are pressed in the `demo` as soon as its picture `reached` something."""

    name: str
    demo: str
    reached: Callable[[Picture], bool]
    keys: tuple[str, ...] = ()
    theme: str = "dark"
    size: tuple[int, int] = SIZE


def two_masters(picture: Picture) -> bool:
    """Each side has a list of its own, without those of the other."""
    sizes = [len(belief.members) for belief in picture.members.values()]
    return len(picture.masters()) == 2 and sorted(sizes) == [2, 2, 3, 3, 3]


def cut(picture: Picture) -> bool:
    return bool(picture.links)


def suspected(picture: Picture) -> bool:
    return sum(len(belief.suspicions) for belief in picture.members.values()) >= 2


def migrating(picture: Picture) -> bool:
    return picture.history.done_count >= 3


STORIES: dict[str, tuple[str, Callable[[Picture], bool]]] = {
    "overview": ("migration", migrating),
    "member": ("partial", suspected),
    "suspicions": ("partial", suspected),
    "partitions": ("migration", migrating),
    "migrations": ("migration", migrating),
    "network": ("split", cut),
    "traffic": ("kill-during-migration", migrating),
}
"""Demos, and moments of them, that have more to show in a view than a split has."""

PAGES = {"member": "detail", "traffic": "data"}
"""Names of pictures that are not the name of their view."""

NOT_DRAWN = ("audit", "questions")
"""The audit has a run of its own below; the walk shows the questions."""


def keys(view: View) -> tuple[str, ...]:
    """Return the keys that open a view from the first one."""
    return () if view is VIEWS[0] else (view.key or "i",)


SHOTS = (
    Shot("themes/split", "split", two_masters),
    Shot("themes/split-light", "split", two_masters, theme="light"),
    Shot("themes/split-high-contrast", "split", two_masters, theme="high-contrast"),
    Shot("themes/split-80x24", "split", two_masters, size=(80, 24)),
    *(
        Shot(
            f"views/{PAGES.get(view.name, view.name)}",
            *STORIES.get(view.name, ("split", two_masters)),
            keys(view),
            size=(160, 50) if view is VIEWS[0] else SIZE,
        )
        for view in VIEWS
        if view.name not in NOT_DRAWN
    ),
    Shot("views/help", "split", two_masters, ("question_mark",)),
    Shot("views/confirm", "split", two_masters, ("K",)),
)


class LogShot(NamedTuple):
    """A picture of recorded logs: `keys` are pressed at a moment of them."""

    name: str
    logs: str
    at_us: int
    keys: tuple[str, ...] = ()
    size: tuple[int, int] = SIZE


LOG_SHOTS = (
    LogShot("logs/split", "split-and-merge", 34_000_000),
    LogShot("logs/flapping", "flapping", 0, ("9",)),
    LogShot("logs/events", "flapping", 0, ("8", "up", "enter")),
    LogShot("logs/line", "flapping", 0, ("8", "up", "enter", "enter")),
)


async def draw_logs(shot: LogShot) -> None:
    """A moment of 0 stands for the end of the logs."""
    cluster = LogCluster(LOGS / shot.logs)
    console = Console(cluster)
    async with console.run_test(size=shot.size) as pilot:
        while not cluster.complete:
            await pilot.pause(TICK_SECONDS)
        if shot.at_us:
            console.session.playhead.go(shot.at_us)
        for key in ("", *shot.keys):
            await pilot.press(*([key] if key else []))
            await until_shown(pilot, cluster, 0)
        export_screen(console, Target(FOLDER / f"{shot.name}.svg", overwrite=True))
    cluster.close()


AUDIT, AUDITED_DEMO = "views/audit", "split"
"""The findings in a recorded run. The core breaks no rule, so one event of the record is changed before it is read."""


def broken_run(scenario: Scenario, name: str) -> list[Record]:
    """What happens in `scenario`, but its last list gets the version of an earlier one."""
    records: list[Record] = []
    simulate(scenario, 1, records, run=f"{name}-seed-1")
    place, record, event = [
        (place, one, one.event) for place, one in enumerate(records) if isinstance(one.event, ListInstalled)
    ][-1]
    records[place] = msgspec.structs.replace(record, event=msgspec.structs.replace(event, version=2))
    return records


async def draw_audit(records: list[Record], file: Path, size: tuple[int, int] = SIZE) -> None:
    with TemporaryDirectory() as folder, chdir(folder):  # the screen names the journal
        with JournalWriter(Path("journals"), records[0].run, "simulation") as journal:
            for record in records:
                journal.append(record)
        cluster = RecordedCluster(Path("journals"))
        console = Console(cluster)
        async with console.run_test(size=size) as pilot:
            for _ in range(TICKS_TO_SETTLE):
                await pilot.pause(TICK_SECONDS)
            await pilot.press("0")
            for _ in range(TICKS_TO_SETTLE):
                await until_shown(pilot, cluster, 0)
            export_screen(console, Target(file, overwrite=True))
        cluster.close()


@asynccontextmanager
async def at_moment(
    scenario: Scenario, name: str, reached: Callable[[Picture], bool], size: tuple[int, int], theme: str = "dark"
) -> AsyncIterator[tuple[Console, Callable[..., Awaitable[None]]]]:
    """A console whose cluster stands still since its picture `reached` something; and how to press a key, or none, and wait.

    Raises `SystemExit` when that moment does not come.
    """
    passed_us = 0
    cluster = SimulatedCluster(scenario, 1, name=name, clock_us=lambda: passed_us)
    console = Console(cluster, settings=ConsoleSettings(theme=theme))
    async with console.run_test(size=size) as pilot:
        await until_shown(pilot, cluster, 0)
        while not reached(console.picture):
            passed_us += STEP_US
            if passed_us > LONGEST_RUN_US:
                raise SystemExit(f"{name}: not reached within {LONGEST_RUN_US // 1_000_000} s")
            await until_shown(pilot, cluster, passed_us)

        async def press(key: str = "") -> None:
            await pilot.press(*([key] if key else []))
            await console.workers.wait_for_complete()  # such as what reads the lessons
            await until_shown(pilot, cluster, passed_us)

        yield console, press
    cluster.close()


async def draw(shot: Shot, folder: Path = FOLDER) -> None:
    async with at_moment(load_demo(shot.demo), shot.demo, shot.reached, shot.size, shot.theme) as (console, press):
        for key in (*shot.keys, *[""] * TICKS_TO_SETTLE):
            await press(key)
        export_screen(console, Target(folder / f"{shot.name}.svg", overwrite=True))


WALK, WALK_SIZES, WALK_MEMBER = "walk", ((80, 24), (120, 36), (160, 50)), "byzantium"
"""All views at one moment of one story, in each of the sizes. The view of one member shows that one."""

STORY = Path(__file__).with_name("walk.yaml")


def in_the_middle_of_trouble(picture: Picture) -> bool:
    """Two masters, suspicions that stay, and backups that are made again."""
    return len(picture.masters()) == 2 and suspected(picture) and picture.history.done_count >= 4


def draw_walk() -> None:
    story = read_scenario(STORY.read_text(encoding="utf-8"), STORY.name)
    broken = broken_run(story, WALK)
    for size in WALK_SIZES:
        folder = FOLDER / WALK / f"{size[0]}x{size[1]}"
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(draw_views(story, size, folder))
        asyncio.run(draw_audit(broken, folder / "audit.svg", size))


async def draw_views(story: Scenario, size: tuple[int, int], folder: Path) -> None:
    """All of them but that of the audit, which has nothing to show of a run that breaks no rule."""
    async with at_moment(story, WALK, in_the_middle_of_trouble, size) as (console, press):
        for view in VIEW_NAMES:
            if view == "audit":
                continue
            while console.top.view != "overview":
                await press("escape")
            console.goto(view, member=WALK_MEMBER if view == "member" else "")
            for _ in range(TICKS_TO_SETTLE):
                await press()
            export_screen(console, Target(folder / f"{view}.svg", overwrite=True))


FILM, FILM_STORY = "film", Path(__file__).with_name("film.yaml")
"""The film that the README begins with: a cluster with data, a split, why, its healing, and all copies there again."""

FILM_SECONDS, FILM_SIZE = 20.0, (110, 28)
FILM_MOMENTS = (
    *(Moment(5.0), Moment(8.5), Moment(12.5)),
    Moment(12.5, ("down", "down", "down", "b")),
    Moment(13.0, ("escape", "escape")),
    *(Moment(14.5), Moment(16.0), Moment(20.0)),
)


def draw_film() -> None:
    story = read_scenario(FILM_STORY.read_text(encoding="utf-8"), FILM_STORY.name)
    drawn = asyncio.run(film_of(story, FILM, 1, FILM_SECONDS, FILM_MOMENTS, size=FILM_SIZE))
    (FOLDER / f"{FILM}.svg").write_text(drawn, encoding="utf-8")


def draw_light(folder: Path) -> None:
    """Draw the pictures of views in the light theme, for readers of the site who read it so."""
    (folder / "views").mkdir(parents=True, exist_ok=True)
    for shot in SHOTS:
        if shot.name.startswith("views/"):
            asyncio.run(draw(shot._replace(theme="light"), folder))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="*", help="draw only these")
    arguments.add_argument(
        "--light", type=Path, metavar="FOLDER", help="draw those of views, in the light theme, into FOLDER"
    )
    options = arguments.parse_args()
    if options.light:
        draw_light(options.light)
        return
    wanted = options.names
    for shot in SHOTS:
        if not wanted or shot.name in wanted:
            asyncio.run(draw(shot))
    if not wanted or AUDIT in wanted:
        asyncio.run(draw_audit(broken_run(load_demo(AUDITED_DEMO), AUDITED_DEMO), FOLDER / f"{AUDIT}.svg"))
    if not wanted or FILM in wanted:
        draw_film()
    for of_logs in LOG_SHOTS:
        if not wanted or of_logs.name in wanted:
            asyncio.run(draw_logs(of_logs))
    if not wanted or WALK in wanted:
        draw_walk()


if __name__ == "__main__":
    main()

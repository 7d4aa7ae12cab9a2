"""Logs of real members in the console: what is seen of them, the log behind an event, and what is not reported."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from quarterdeck.app.console import Console
from quarterdeck.app.views.events.log_screen import LogScreen
from quarterdeck.backend.clusters.recorded.recorded_run import LogCluster
from tests.app.fakes.screen_text import screen_text, settle, until, until_shown

DATA = Path(__file__).parents[2] / "hazelcast" / "logs" / "data"
CLAIMS_OF_HEALTH = ("in time", "every replica", "as configured", "● up", "0 done", "no answer from h", "served")


def opened(
    run: str, look: Callable[[Console, Pilot[None]], Awaitable[None]], size: tuple[int, int] = (140, 40)
) -> None:
    async def scenario() -> None:
        cluster = LogCluster(DATA / run)
        app = Console(cluster)
        try:
            async with app.run_test(size=size) as pilot:
                await until(pilot, lambda: cluster.complete and len(app.session.picture.members) > 2)
                await settle(pilot)
                await look(app, pilot)
        finally:
            cluster.close()

    asyncio.run(scenario())


def test_no_view_says_that_all_is_well_of_what_is_not_told() -> None:
    async def look(app: Console, pilot: Pilot[None]) -> None:
        for key, said in (("2", 3), ("4", 3), ("5", 2), ("6", 3), ("7", 3)):
            await pilot.press(key)
            await settle(pilot)
            text = screen_text(app)
            assert text.count("not reported") >= said, (key, text)
            assert not [claim for claim in CLAIMS_OF_HEALTH if claim in text], text

    opened("split-and-merge", look)


def test_the_split_is_seen_at_its_moment_and_the_strip_has_what_is_observed() -> None:
    async def look(app: Console, pilot: Pilot[None]) -> None:
        assert "from logs" in screen_text(app) and "1 list: v9 of 5 members" in screen_text(app)
        await pilot.press("9")
        text = await until_shown(pilot, lambda shown: "observed" in shown)
        strip = next(line for line in text.splitlines() if line.startswith("observed"))
        assert "O" in strip and "were apart: 3.0 s" in text and "faults" not in text
        app.session.playhead.go(34_000_000)
        await pilot.press("1")
        text = await until_shown(pilot, lambda shown: "2 lineages" in shown)
        assert "masters 10.77.0.1:5701, 10.77.0.4:5701" in text
        await pilot.press("I", "G")
        text = await until_shown(pilot, lambda shown: "what was observed" in shown)
        assert "10.77.0.4:5701 (2 members) were apart: 3.0 s" in text and "What helps:" in text

    opened("split-and-merge", look)


def test_an_event_leads_to_its_line_and_because_names_lines() -> None:
    async def look(app: Console, pilot: Pilot[None]) -> None:
        await pilot.press("8", "up", "b")
        await until_shown(pilot, lambda shown: "[h1.log:" in shown)
        await pilot.press("escape", "enter")
        await settle(pilot)
        if not isinstance(app.screen, LogScreen):  # the line stood for several events, which are unfolded now
            await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LogScreen))
        text = await until_shown(pilot, lambda shown: "▶" in shown)
        assert ".log:" in text.splitlines()[0] and "[10.77.0." in text
        await pilot.press("j", "G", "g", "escape")
        await until(pilot, lambda: app.screen is app.top)

    opened("split-and-merge", look)


def test_rounds_of_migrations_and_a_member_whose_log_ends() -> None:
    async def look(app: Console, pilot: Pilot[None]) -> None:
        await pilot.press("5")
        text = await until_shown(pilot, lambda shown: "of migrations in the logs" in shown)
        assert "planned" in text and "single migrations are not reported" in text
        await pilot.press("2")
        await until_shown(pilot, lambda shown: "silent" in shown)

    opened("migrations", look)


def test_a_member_at_length_and_the_audit_of_logs_on_a_small_screen() -> None:
    async def look(app: Console, pilot: Pilot[None]) -> None:
        await pilot.press("2", "i")
        text = await until_shown(pilot, lambda shown: "join list" in shown or "links" in shown)
        assert "not reported" in text
        await pilot.press("escape", "0")
        await settle(pilot)
        assert "violation" not in screen_text(app).splitlines()[0]

    opened("flapping", look, (80, 24))

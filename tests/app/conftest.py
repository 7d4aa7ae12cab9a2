"""What all tests of the console share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from heapq import heapify
from time import monotonic
from typing import Any

import pytest
from textual import app, pilot, strip
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.screen import Screen

from quarterdeck.app.screen import view_screen


@pytest.fixture(scope="session", autouse=True)
def style_sheets_parsed_once() -> Iterator[None]:
    """Let consoles share what is parsed: each would parse some seventy style sheets anew, a quarter of its start."""
    parsed: dict[object, list[RuleSet]] = {}
    parse = Stylesheet._parse_rules

    def parse_once(sheet: Stylesheet, css: str, *place: object, **how: object) -> list[RuleSet]:
        key = (css, place, tuple(how.items()), tuple(sheet._variables.items()))
        if key not in parsed:
            parsed[key] = parse(sheet, css, *place, **how)  # type: ignore[arg-type]
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield


DRAW = Screen._compositor_refresh


@pytest.fixture(autouse=True)
def screens_drawn_when_a_pilot_pauses() -> Iterator[None]:
    """Let a screen that has no terminal be drawn whenever a pilot pauses, and not at each step between two pauses.

    Every state at which a test looks is drawn, so a widget that cannot paint it fails the test. Drawing was half of the CPU.
    """
    pause = Pilot.pause

    def note(screen: Screen[object]) -> None:
        if screen is not screen.app.screen or not screen.app.is_headless:
            DRAW(screen)
            return
        screen._dirty_widgets.clear()  # what of them is to be drawn is known to the compositor
        screen.app._update_mouse_over(screen)

    async def pause_and_draw(controller: Pilot[object], delay: float | None = None) -> None:
        await pause(controller, delay)
        with controller.app._context():
            DRAW(controller.app.screen)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Screen, "_compositor_refresh", note)
        patch.setattr(Pilot, "pause", pause_and_draw)
        patch.setattr(strip, "FIFOCache", lambda _: FORGETFUL)
        yield


@pytest.fixture
def drawn_at_every_step(screens_drawn_when_a_pilot_pauses: None) -> Iterator[None]:
    """Let screens be drawn as for people: for tests of when something is drawn, and how often.

    It has a context of its own: pytest's `monkeypatch` may have begun before the other fixture, and would end after it, with what
    that one had put in place.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Screen, "_compositor_refresh", DRAW)
        yield


@pytest.fixture(autouse=True)
def details_follow_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test wait for the cursor to rest; but for the one that is about that."""
    monkeypatch.setattr(view_screen, "REST_SECONDS", 0.0)


class ForgetfulCache:
    """A cache that keeps nothing. Each line on a screen comes with seven caches, which cost more than they save."""

    def get(self, _: object, default: object = None) -> object:
        """Return `default`: nothing is kept."""
        return default

    def __setitem__(self, _: object, value: object) -> None:
        pass


FORGETFUL = ForgetfulCache()

MOST_HASTENED = 3
"""So often timers are hastened in one pause; a timer that comes again and again, as that of a movement, then takes its time."""

SOON_SECONDS = 1 / 50
"""A timer that is due so soon belongs to what a key has begun, such as painting the screen."""


@pytest.fixture(autouse=True)
def pauses_end_when_the_loop_is_idle() -> Iterator[None]:
    """Let a pilot's pause end when nothing is ready to run, and not when this process has used little CPU for a while.

    So a pause takes as long as there is something to do, on a machine that is busy with other things, too.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pilot, "wait_for_idle", _wait_for_idle_loop)
        patch.setattr(app, "wait_for_idle", _wait_for_idle_loop)  # after each key
        yield


async def _wait_for_idle_loop(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Wait until the loop has nothing to run, now or soon; at most `max_sleep` seconds.

    The first timers that are due soon are not waited for: they are due now.
    """
    loop: Any = asyncio.get_running_loop()
    limit = monotonic() + max_sleep
    await asyncio.sleep(min_sleep)
    hastened = 0
    while monotonic() < limit:
        await asyncio.sleep(0)
        if loop._ready:
            continue
        soon = [
            timer for timer in loop._scheduled if not timer.cancelled() and timer.when() - loop.time() <= SOON_SECONDS
        ]
        if not soon:
            return
        if hastened < MOST_HASTENED:
            hastened += 1
            _make_due(loop, soon)
        else:
            await asyncio.sleep(max(min(timer.when() for timer in soon) - loop.time(), 0))


def _make_due(loop: Any, timers: list[Any]) -> None:
    for timer in timers:
        timer._when = loop.time()
    heapify(loop._scheduled)

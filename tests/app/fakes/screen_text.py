"""What stands on the screen, as text: glyphs and words, without styles."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import groupby

from textual.app import App
from textual.pilot import Pilot

from quarterdeck.app.console import Console
from tests.waiting import LIMIT_SECONDS

LOOK_SECONDS = 0.05

TICKS = 3
"""Records of one tick are listed at the next, and a view that opens then is painted at the third."""


def screen_text(app: App[None]) -> str:
    """Every line of the screen, without blanks at the right."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def screen_tones(app: App[None]) -> str:
    """Line by line, in which styles what stands there is painted: for each run of one style its length and the style."""
    lines = []
    for strip in app.screen._compositor.render_strips():
        runs = [
            (style, sum(segment.cell_length for segment in run))
            for style, run in groupby(strip, key=lambda segment: str(segment.style))
        ]
        lines.append("  ".join(f"{cells}:{style}" for style, cells in runs))
    return "\n".join(lines)


async def settle(pilot: Pilot[None]) -> None:
    """Let the console's clock tick and the screen be painted: what comes at one tick is shown at the next."""
    assert isinstance(pilot.app, Console)
    for _ in range(TICKS):
        pilot.app._tick()
        await pilot.pause()


async def until(pilot: Pilot[None], reached: Callable[[], object]) -> None:
    """Let the console go on until that is so. Raises AssertionError with what stands on the screen when it never is."""
    limit = time.monotonic() + LIMIT_SECONDS
    while not reached():
        assert time.monotonic() < limit, screen_text(pilot.app)
        await pilot.pause(LOOK_SECONDS)


async def until_shown(pilot: Pilot[None], shown: Callable[[str], object]) -> str:
    """What stands on the screen as soon as it is that."""
    await until(pilot, lambda: shown(screen_text(pilot.app)))
    return screen_text(pilot.app)

"""What all tests of the console share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest
from textual import pilot
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet


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


SOON_SECONDS = 1 / 50
"""A timer that is due so soon belongs to what a key has begun, such as painting the screen."""


@pytest.fixture(scope="session", autouse=True)
def pauses_end_when_the_loop_is_idle() -> Iterator[None]:
    """Let a pilot's pause end when nothing is ready to run, and not when this process has used little CPU for a while.

    So a pause takes as long as there is something to do, on a machine that is busy with other things, too.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pilot, "wait_for_idle", _wait_for_idle_loop)
        yield


async def _wait_for_idle_loop(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Wait until the loop has nothing to run, now or soon; at most `max_sleep` seconds."""
    loop: Any = asyncio.get_running_loop()
    limit = monotonic() + max_sleep
    await asyncio.sleep(min_sleep)
    while monotonic() < limit:
        await asyncio.sleep(0)
        if loop._ready:
            continue
        soon = [timer.when() for timer in loop._scheduled if not timer.cancelled()]
        due_seconds = min(soon, default=float("inf")) - loop.time()
        if due_seconds > SOON_SECONDS:
            return
        await asyncio.sleep(max(due_seconds, 0))

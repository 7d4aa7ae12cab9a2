"""How far the migrations are, how fast they go, and how long they will take, in words."""

from __future__ import annotations

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.amounts import age_text, bytes_text
from quarterdeck.backend.picture.migration_pace import WINDOW_S, Pace
from quarterdeck.backend.picture.migrations import Leading
from quarterdeck.backend.picture.picture import Picture

BAR_LENGTH = 10

FULL, EMPTY = "▰", "▱"


def plan_text(leading: Leading, picture: Picture, now_us: int) -> str:
    """What a master that has something to migrate has done of its plan, the pace, and the time left; else empty."""
    left = leading.waiting + len(leading.running)
    if not left:
        return ""
    parts = [pace_text(picture, now_us), left_text(picture, now_us)]
    if leading.planned_count:
        ended = max(0, leading.planned_count - left)
        full = BAR_LENGTH * ended // leading.planned_count
        bar = FULL * full + EMPTY * (BAR_LENGTH - full)
        parts.insert(0, f"{bar} {100 * ended // leading.planned_count} % of {leading.planned_count} migrations")
    return ", ".join(filter(None, parts))


def pace_text(picture: Picture, now_us: int) -> str:
    """How many migrations ended in a second, and how much was copied; empty when nothing was in the last seconds."""
    pace = picture.history.paces.at(now_us)
    if not pace.migrations and not pace.bytes:
        return ""
    copied = f", {bytes_text(round(pace.bytes))}/s" if pace.bytes else ""
    return f"{pace.migrations:.3g} migrations/s{copied} over the last {WINDOW_S} s"


def left_text(picture: Picture, now_us: int) -> str:
    """How long all that is planned and running will take, if it goes on as in the last seconds."""
    leading = [picture.members[label].leading for label in picture.masters()]
    left = sum(one.waiting + len(one.running) for one in leading)
    pace: Pace = picture.history.paces.at(now_us)
    if not left:
        return ""
    if pace.migrations:
        return f"about {age_text(max(SECOND_US, round(left / pace.migrations * SECOND_US)))} left"
    oldest_us = min((running.since_us for one in leading for running in one.running.values()), default=now_us)
    if now_us - oldest_us < WINDOW_S * SECOND_US:
        return "just begun, so there is no telling how long it will take"
    return f"nothing has ended for {WINDOW_S} s, so there is no telling how long it will take"

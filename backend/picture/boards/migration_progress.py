"""How far the migrations are, how fast they go, and how long they will take, in words."""

from __future__ import annotations

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.migration_rate import WINDOW_S, MigrationRate
from quarterdeck.backend.picture.fold.migrations import MigrationsLed
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import age_text, bytes_text

BAR_LENGTH = 10

FULL, EMPTY = "▰", "▱"


def plan_text(leading: MigrationsLed, picture: Picture, now_us: int) -> str:
    """Return what a master that has something to migrate has done of its plan, the pace, and the time left; else empty."""
    left = leading.waiting + len(leading.running)
    if not left:
        return ""
    parts = [rate_text(picture, now_us), left_text(picture, now_us)]
    if leading.planned_count:
        ended = max(0, leading.planned_count - left)
        full = BAR_LENGTH * ended // leading.planned_count
        bar = FULL * full + EMPTY * (BAR_LENGTH - full)
        parts.insert(0, f"{bar} {100 * ended // leading.planned_count} % of {leading.planned_count} migrations")
    return ", ".join(filter(None, parts))


def rate_text(picture: Picture, now_us: int) -> str:
    """How many migrations ended in a second, and how much was copied; empty when nothing was in the last seconds."""
    rate = picture.history.rates.at(now_us)
    if not rate.migrations and not rate.bytes:
        return ""
    copied = f", {bytes_text(round(rate.bytes))}/s" if rate.bytes else ""
    return f"{rate.migrations:.3g} migrations/s{copied} over the last {WINDOW_S} s"


def left_text(picture: Picture, now_us: int) -> str:
    """How long all that is planned and running will take, if it goes on as in the last seconds."""
    leading = [picture.members[label].leading for label in picture.masters()]
    left = sum(one.waiting + len(one.running) for one in leading)
    rate: MigrationRate = picture.history.rates.at(now_us)
    if not left:
        return ""
    if rate.migrations:
        return f"about {age_text(max(SECOND_US, round(left / rate.migrations * SECOND_US)))} left"
    oldest_us = min((running.since_us for one in leading for running in one.running.values()), default=now_us)
    if now_us - oldest_us < WINDOW_S * SECOND_US:
        return "just begun, so there is no telling how long it will take"
    return f"nothing has ended for {WINDOW_S} s, so there is no telling how long it will take"

"""Waiting for something to come true: as long as a busy machine needs for it, and no longer than it takes.

A test sleeps for a fixed time only where time itself is its subject, and says so there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LIMIT_SECONDS = 60.0
"""Longer than anything takes on any machine."""

POLL_SECONDS = 0.01

LOOK_SHARE = 4
"""After a look that took long, such as a command of its own, the next one waits so many times as long."""


def wait_until(
    condition: Callable[[], object],
    otherwise: str | Callable[[], str] = "",
    *,
    poll_seconds: float = POLL_SECONDS,
    limit_seconds: float = LIMIT_SECONDS,
    progress: Callable[[], object] = lambda: None,
) -> None:
    """Return as soon as `condition()` is true. Raises AssertionError, which says `otherwise`, when that never happens.

    Where `progress()` changes, it goes on: the limit begins anew.
    """
    limit, known = time.monotonic() + limit_seconds, progress()
    while True:
        began = time.monotonic()
        if condition():
            return
        ended = time.monotonic()
        if (now := progress()) != known:
            limit, known = ended + limit_seconds, now
        assert ended < limit, _said(otherwise)
        time.sleep(max(poll_seconds, LOOK_SHARE * (ended - began)))


async def until(condition: Callable[[], object], otherwise: str | Callable[[], str] = "") -> None:
    """The same on an event loop, which goes on meanwhile."""
    limit = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < limit, _said(otherwise)
        await asyncio.sleep(POLL_SECONDS / 2)


def _said(otherwise: str | Callable[[], str]) -> str:
    return (otherwise if isinstance(otherwise, str) else otherwise()) or "it never came to that"

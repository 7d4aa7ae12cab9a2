"""How observations are worded: messages, lengths of time, counts and names."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage

MAX_QUOTED = 200
"""Characters of a message that are quoted."""


def quoted(message: InterpretedMessage) -> str:
    """Return the beginning of a message, in one line."""
    return " ".join(message.place.text.split())[:MAX_QUOTED]


def times(count: int) -> str:
    """Say how often: once, twice, 3 times."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def lasted(us: int) -> str:
    """Say how long, in two units at most."""
    if us < 10 * SECOND_US:
        return f"{us / SECOND_US:.1f} s"
    seconds = round(us / SECOND_US)
    if seconds < 120:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 120:
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def listed(names: Sequence[str], most: int = 6) -> str:
    """List names in words: all of them, or the first and how many more."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

"""How observations are told: what belongs together as one, and lengths of time, counts and names in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage

MAX_QUOTED = 200
"""Characters of a message that are quoted."""
_Item = TypeVar("_Item")


def consecutive_groups(items: Iterable[_Item], belongs: Callable[[list[_Item], _Item], bool]) -> list[list[_Item]]:
    """Split items, in their order, into groups: each item joins the last group if it belongs there."""
    groups: list[list[_Item]] = []
    for item in items:
        if groups and belongs(groups[-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


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

"""Counts what many clients do within a minute: the first of each has a place of its own, the others are only counted."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

MINUTE_SECONDS = 60
MOST_KEYS = 400
"""Within a minute; all others are counted together."""
OTHERS = "others"

Item = TypeVar("Item")


@dataclass
class _CountOfKey(Generic[Item]):
    own: int = 0
    counted: Item | None = None
    """The last of those that have no place of their own."""
    count: int = 0


class MinuteCounter(Generic[Item]):
    """Counts items by key. Times are in seconds since any moment."""

    def __init__(self) -> None:
        self._minute = 0
        self._counts: dict[Hashable, _CountOfKey[Item]] = {}

    def add(self, key: Hashable, item: Item, own: int) -> bool:
        """Return whether the item is among the first `own` of its key; otherwise it is counted."""
        if key not in self._counts and len(self._counts) >= MOST_KEYS:
            key = OTHERS
        count = self._counts.setdefault(key, _CountOfKey())
        if count.own < own:
            count.own += 1
            return True
        count.counted, count.count = item, count.count + 1
        return False

    def due(self, now_s: float) -> Iterator[tuple[Hashable, Item, int]]:
        """Yield what `flush` does once the minute of what was counted is over."""
        minute = int(now_s // MINUTE_SECONDS)
        if minute != self._minute:
            yield from self.flush()
            self._minute = minute

    def flush(self) -> Iterator[tuple[Hashable, Item, int]]:
        """Yield each key of which something was counted, the last item, and how many they were; begin anew."""
        counts, self._counts = self._counts, {}
        for key, count in counts.items():
            if count.counted is not None:
                yield key, count.counted, count.count

    @property
    def counts(self) -> bool:
        return any(count.count for count in self._counts.values())

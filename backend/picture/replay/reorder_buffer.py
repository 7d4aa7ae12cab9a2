"""Records of many members put into the order of time, as they come: each of them may be a moment late."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from quarterdeck.backend.core.events import Record


class ReorderBuffer:
    """Holds records back from one turn to the next, so that those that were overtaken can still be put before the others.

    What happened in the same microsecond stays in the order in which it came: that is the order of causes.
    """

    def __init__(self, most: int) -> None:
        """`most` records are held until they are drained; the oldest are dropped."""
        self._most = most
        self._held: list[Record] = []
        self._latest_us = -1
        """Time of the latest record that was there at the last turn."""

    def take(self, records: Iterable[Record]) -> None:
        """Take in `records`."""
        self._held += records
        if len(self._held) > 2 * self._most:
            del self._held[: -self._most]

    def release(self) -> Sequence[Record]:
        """Return the records that were there at the turn before, and those that happened before the latest of them, in order."""
        if not self._held:
            return ()
        self._held.sort(key=attrgetter("at"))
        until_us, self._latest_us = self._latest_us, self._held[-1].at
        settled = next((place for place, one in enumerate(self._held) if one.at > until_us), len(self._held))
        ready = self._held[:settled]
        del self._held[:settled]
        return ready

    def clear(self) -> None:
        """Forget what is held."""
        self._held.clear()
        self._latest_us = -1

"""What many members report, late and out of order, in the order of time: streams merged into one, and events numbered.

Members disagree, and their clocks do a little too: this puts side by side what they said, and judges nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import Generic, TypeVar

from quarterdeck.backend.core.events import WITNESSED_FORM, Event, Record
from quarterdeck.backend.core.membership.events import MemberMerging, MemberStopped

HOLD_US = 150_000
"""How long a record waits for those of other members that happened before it and arrive after it."""

HISTORY_HOLD_US = 3_000_000
"""How long the records of some wait for the history of others that is on its way."""

ONCE: tuple[type, ...] = (MemberMerging, MemberStopped)
"""An incarnation ends once, though both its log and the connection may report it."""

MOST_NUMBERED = 10_000
"""Incarnations whose latest numbers are remembered."""

Held = TypeVar("Held")


class HeldInOrder(Generic[Held]):
    """Holds new entries until they have waited long enough for earlier ones that come later."""

    def __init__(self) -> None:
        self._held: list[tuple[int, int, Held]] = []
        """When each happened, and until when it waits."""

    def add(self, at_us: int, due_us: int, held: Held) -> None:
        """Hold an entry of the time `at_us` until `due_us`."""
        self._held.append((at_us, due_us, held))

    def release(self, now_us: int) -> list[tuple[int, Held]]:
        """Return the entries that have waited long enough, each with its time, after all earlier entries."""
        latest_us = max((at_us for at_us, due_us, _ in self._held if due_us <= now_us), default=None)
        if latest_us is None:
            return []
        self._held.sort(key=itemgetter(0))
        count = bisect_right(self._held, latest_us, key=itemgetter(0))
        released, self._held = self._held[:count], self._held[count:]
        return [(at_us, held) for at_us, _, held in released]


class RecordMerge:
    """Takes in records by source, gives out each once, in the order of UTC as far as holding them for a moment allows.

    Of one uuid the numbers only grow: a record that was seen, or was passed over by a gap, is not given out later.
    """

    def __init__(self, hold_us: int = HOLD_US, history_hold_us: int = HISTORY_HOLD_US) -> None:
        self._hold_us, self._history_hold_us = hold_us, history_hold_us
        self._held: HeldInOrder[Record] = HeldInOrder()
        self._highest: dict[str, int] = {}
        """By uuid: the number of the latest record taken in."""
        self._latest_utc: dict[str, int] = {}
        """By source: no record is before an earlier one of it, so that sorting keeps the order of each."""
        self._history_sources: dict[str, int] = {}
        """Sources that are sending their history, and since when."""

    def begin_history(self, source: str, now_us: int) -> None:
        """Note that further entries of `source` are long past: others wait for them."""
        self._history_sources[source] = now_us

    def end_history(self, source: str) -> None:
        """Note that further entries of `source` have just happened: others need not wait for them."""
        self._history_sources.pop(source, None)

    def add(self, source: str, record: Record, now_us: int) -> bool:
        """Take in one record, at `now_us` by any steady clock; whether it was new."""
        if record.seq <= self._highest.get(record.uuid, 0):
            return False
        self._highest[record.uuid] = record.seq
        utc_us = self._latest_utc[source] = max(record.utc, self._latest_utc.get(source, record.utc))
        self._held.add(utc_us, now_us + self._hold_us, record)
        return True

    def release(self, now_us: int) -> list[Record]:
        """Return the records that have waited long enough, with all that happened before them."""
        if any(now_us - since_us < self._history_hold_us for since_us in self._history_sources.values()):
            return []
        return [record for _, record in self._held.release(now_us)]


class RecordNumbering:
    """Takes events with their times on the run's clock, gives records of each incarnation, numbered in the order of time."""

    def __init__(self, run: str, began_utc_us: int, hold_us: int = 0) -> None:
        """`began_utc_us` is UTC when the run's clock shows 0; each event waits for `hold_us`."""
        self.run = run
        self.hold_us, self._began_utc_us = hold_us, began_utc_us
        self._held: HeldInOrder[tuple[str, str, Event]] = HeldInOrder()
        self._latest: dict[str, tuple[int, int]] = {}
        """By uuid, the number and the time of its latest record."""
        self._ended: dict[str, None] = {}

    def add(self, at_us: int, member: str, uuid: str, event: Event, now_us: int) -> None:
        """Something happened to the incarnation `uuid`, and was heard now."""
        self._held.add(at_us, now_us + self.hold_us, (member, uuid, event))

    def release(self, now_us: int) -> list[Record]:
        """Return the records of the entries that have waited long enough, with all earlier ones."""
        numbered = (self._numbered(at_us, *heard) for at_us, heard in self._held.release(now_us))
        return [record for record in numbered if record is not None]

    def _numbered(self, at_us: int, member: str, uuid: str, event: Event) -> Record | None:
        if isinstance(event, ONCE):
            if uuid in self._ended:
                return None
            self._ended[uuid] = None
        number, latest_us = self._latest.pop(uuid, (0, 0))
        at_us = max(at_us, latest_us)
        self._latest[uuid] = (number + 1, at_us)
        for known in (self._latest, self._ended):
            if len(known) > MOST_NUMBERED:
                del known[next(iter(known))]  # long since nothing was heard of it
        utc_us = self._began_utc_us + at_us
        return Record(self.run, member, uuid, number + 1, at_us, utc_us, event, form=WITNESSED_FORM)

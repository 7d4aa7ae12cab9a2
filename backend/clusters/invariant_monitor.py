"""The invariants of the simulator, watched while a cluster runs; for readers that reach clusters only through this room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quarterdeck.backend.clusters.record_order import HeldInOrder
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.witnessed.events import MemberWitnessed
from quarterdeck.backend.invariants import PROVEN_BY_WITNESSES, InvariantChecker, Violation

__all__ = ["InvariantMonitor", "Violation"]

HOLD_US = 100_000
"""How late a record of one member may come behind those of others: processes share a clock but not a queue."""

NEVER_US = 1 << 62


class InvariantMonitor:
    """Judges the records of one run in the order of their times, as causes come before effects there."""

    def __init__(self, hold_us: int = HOLD_US) -> None:
        """`hold_us`: how late a record may come; 0 where they come in order."""
        self._checker = InvariantChecker()
        self._hold_us = hold_us
        self._held: HeldInOrder[Record] = HeldInOrder()
        self._is_witnessed = False

    @property
    def violations(self) -> Sequence[Violation]:
        """The findings so far, the first one first."""
        return self._checker.violations

    def take(self, records: Iterable[Record], now_us: int) -> None:
        """Take in `records`, in any order; those of the last moment before `now_us` wait for the next call."""
        for record in records:
            self._held.add(record.at, record.at + self._hold_us, record)
        for _, record in self._held.release(now_us):
            if isinstance(record.event, MemberWitnessed) and not self._is_witnessed:
                # Its members keep no journal, so most of what is never said did happen.
                self._is_witnessed, self._checker = True, InvariantChecker(PROVEN_BY_WITNESSES)
            self._checker.observe(record)

    def finish(self) -> None:
        """Judge the waiting records: no more records come."""
        self.take((), NEVER_US)

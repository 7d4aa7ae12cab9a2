"""In an undivided cluster the operations on a key are linearizable, and what a division does not touch is still there after it.

How much of a run that proves is counted: acknowledged writes are judged when a later operation has looked at what they left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec import Struct

from quarterdeck.backend.core.data.events import CallFinished, CallStarted, EntriesEvicted
from quarterdeck.backend.core.events import ProcessKilled, Record
from quarterdeck.backend.core.membership.events import MemberMerging, MemberStopped
from quarterdeck.backend.invariants.data.acknowledged_writes import Key
from quarterdeck.backend.invariants.data.holder_losses import HolderLosses
from quarterdeck.backend.invariants.data.key_history import Contradiction, KeyHistory
from quarterdeck.backend.invariants.data.undivided_clusters import UndividedClusters
from quarterdeck.backend.invariants.invariant import Invariant, Violation


@dataclass(eq=False)
class Linearizability(Invariant):
    """In an undivided cluster, operations on one key look as if done one by one, each between its call and its answer.

    A cluster is undivided while all members are one, and so is each side of a division that has settled. What a division leaves
    untouched is still there after it, if no member ended and no merge policy discards it.
    """

    name = "linearizability"

    _losses: HolderLosses
    _clusters: UndividedClusters
    _histories: dict[Key, KeyHistory] = field(default_factory=lambda: defaultdict(KeyHistory))

    def acknowledged(self) -> int:
        return sum(history.acknowledged for history in self._histories.values())

    def judged(self) -> int:
        """Return the number of acknowledged writes that are judged: a later operation has looked at their result."""
        return sum(history.judged for history in self._histories.values())

    def found(self) -> int:
        """How many of the others a later operation has found all the same."""
        return sum(history.found for history in self._histories.values())

    def given_up(self) -> int:
        return sum(history.given_up for history in self._histories.values())

    def _begin(self, record: Record, event: CallStarted) -> Violation | None:
        stretch = self._clusters.of(record.uuid)
        history = self._histories[event.map, event.key]
        excused_at = self._losses.excused_at(history.partition)
        contradiction = history.begin(record, event, self._losses.clock, stretch, excused_at)
        return None if contradiction is None else _violation(contradiction)

    def _finish(self, record: Record, event: CallFinished) -> Violation | None:
        stretch = self._clusters.of(record.uuid)
        excused_at = self._losses.excused_at(event.partition)
        history = self._histories[event.map, event.key]
        contradiction = history.finish(record, event, self._losses.clock, stretch, excused_at)
        return None if contradiction is None else _violation(contradiction)

    def _evict(self, record: Record, event: EntriesEvicted) -> None:
        for key in event.keys:
            if (history := self._histories.get((event.map, key))) is not None:
                history.evict(self._losses.clock)

    def _lose(self, record: Record, event: ProcessKilled | MemberStopped | MemberMerging) -> None:
        uuid = self._incarnations.ended_by(record)
        for history in self._histories.values():
            history.lose_caller(uuid)


class JudgedWrites(Struct, frozen=True):
    """The result of judging the writes of a run."""

    acknowledged: int
    survived: int
    """The writes that could have been lost, as a holder of their partition went or the partition moved, and were found again."""
    unjudged: int
    """Those of which the run does not show whether they survived: members were divided, too many were lost, or nothing looked."""


def together(judged: Iterable[JudgedWrites]) -> JudgedWrites:
    """Add up the judged writes of several runs."""
    counts = [(writes.acknowledged, writes.survived, writes.unjudged) for writes in judged]
    return JudgedWrites(*map(sum, zip(*counts, strict=True))) if counts else JudgedWrites(0, 0, 0)


def _violation(contradiction: Contradiction) -> Violation:
    record, before = contradiction.record, contradiction.before
    event = record.event
    assert isinstance(event, CallFinished)
    held = " or ".join("nothing" if value is None else repr(value) for value in contradiction.held)
    found = repr(event.value) if event.found else "nothing"
    text = f"{record.member} found {found} for {event.key} of {event.map}, where there can only have been {held}"
    return Violation(Linearizability.name, text, (record,) if before is None else (before, record))

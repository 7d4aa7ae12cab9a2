"""Lines that are not judged: no records, or records that are there already."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.pipeline.audit_result import QuarantinedLine

MAX_QUARANTINED = 1_000
CONTRADICTS = "contradicts another event with the same identity"


class SetAside(Struct):
    """How many lines were read, which of them are not judged, and why."""

    lines: int = 0
    duplicates: int = 0
    contradicting: int = 0
    quarantined: int = 0
    """Lines that are no records, and those that contradict one."""
    problems: list[QuarantinedLine] = []
    """The first of these."""

    def no_record(self, place: str, number: int, raw: bytes, reason: str) -> None:
        """The line of this number is no record."""
        self.quarantined += 1
        if len(self.problems) < MAX_QUARANTINED:
            listed = place.partition("\0")[2]
            self.problems.append(QuarantinedLine(listed, raw.decode(errors="replace"), reason, number))

    def repeats(self, place: str, number: int, record: Record, raw: bytes, *, is_same: bool) -> None:
        """The record is there already, or another one of its identity."""
        if is_same:
            self.duplicates += 1
            return
        self.contradicting += 1
        self.no_record(place, number, raw, f"{CONTRADICTS}, uuid {record.uuid} seq {record.seq}")

    def add(self, others: Iterable[SetAside]) -> None:
        """Count those of others too."""
        for other in others:
            self.lines += other.lines
            self.duplicates += other.duplicates
            self.contradicting += other.contradicting
            self.quarantined += other.quarantined
            self.problems += other.problems
        self.problems = sorted(self.problems, key=lambda one: (one.file, one.number))[:MAX_QUARANTINED]

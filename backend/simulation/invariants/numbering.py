"""The numbering of records: whatever else is checked relies on having seen all of them, in order (design section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.simulation.invariants.checker import Checker, Rule, Violation


class Numbering(Checker):
    """The records of a life count from 1 without gaps, and its time never goes back."""

    name = "numbering"

    def __init__(self) -> None:
        self._latest: dict[str, Record] = {}

    def rules(self) -> Mapping[type, Rule]:
        return dict.fromkeys(get_args(Event), self._follow)

    def _follow(self, record: Record, _: Event) -> Violation | None:
        latest = self._latest.get(record.uuid)
        self._latest[record.uuid] = record
        if latest is None:
            if record.seq == 1:
                return None
            return Violation(self.name, f"{record.member} begins with record {record.seq}, not 1", (record,))
        if record.seq == latest.seq + 1 and record.at >= latest.at:
            return None
        if record.seq != latest.seq + 1:
            text = f"record {record.seq} of {record.member} follows record {latest.seq}"
        else:
            text = f"the time of {record.member} went back from {latest.at} to {record.at} µs"
        return Violation(self.name, text, (latest, record))

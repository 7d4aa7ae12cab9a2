"""The records on the way into a state, and whether the invariants hold for them.

Few ways differ in what is recorded, so each history is shown to the invariants once, whatever else lies between its records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.invariants import InvariantChecker, Violation
from quarterdeck.backend.invariants.invariant_checker import Numbering
from quarterdeck.backend.simulation.model_checking.incarnations import KnownRecords, number_of

INVARIANTS = tuple(invariant.name for invariant in InvariantChecker().invariants if invariant.name != Numbering.name)
"""All invariants but the one that reads the numbers of records: a state reached in two ways has the numbers of one of them."""

BEGINNING = 0
"""The number of the history in which nothing has happened since the search began."""


class History(NamedTuple):
    """A history: the former history and the records after it, by number."""

    before: int
    records: tuple[int, ...]


class Histories:
    """All histories that a search has met, by number, each judged when it was met first."""

    def __init__(self, records: KnownRecords, forming: Iterable[Record]) -> None:
        """`forming`: the records before the search began."""
        self.known: dict[int, History] = {}
        self._records = records
        self._forming = tuple(forming)
        self._after: dict[History, int] = {}
        self._violations: dict[int, Violation] = {}

    def after(self, before: int, records: Iterable[int]) -> int:
        """Return the history that goes on from the one `before` with these records."""
        relevant = tuple(filter(self._records.is_relevant, records))
        if not relevant:
            return before
        history = History(before, relevant)
        number = self._after.get(history)
        if number is None:
            number = self._after[history] = number_of(repr(history))
            self.known[number] = history
            if checker_violations := self.shown(number).violations:
                self._violations[number] = checker_violations[0]
        return number

    def violation(self, number: int) -> Violation | None:
        return self._violations.get(number)

    def shown(self, number: int) -> InvariantChecker:
        """Return the invariants after all records of a history, including the records before the search."""
        parts = []
        while number != BEGINNING:
            number, records = self.known[number]
            parts.append(records)
        checker = InvariantChecker(INVARIANTS)
        for record in self._forming:
            checker.observe(record)
        for records in reversed(parts):
            for index in records:
                checker.observe(self._records.known[index])
        return checker

    def adopt(self, number: int, history: History) -> None:
        """Know a history by the number that another process has given it; that process has judged it."""
        if number not in self.known:
            self.known[number] = history
            self._after[history] = number

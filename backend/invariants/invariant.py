"""The parts of an invariant: rules over events, and the obligations that are open when the records end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import getdoc
from typing import Any, ClassVar

from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.invariants.event_rules import EventRules
from quarterdeck.backend.invariants.incarnations import IncarnationHistory
from quarterdeck.backend.invariants.partition_tables import PartitionTables


class Violation(Struct, frozen=True):
    """An invariant that does not hold, in words, and the records that show it."""

    invariant: str
    text: str
    witnesses: tuple[Record, ...]


Rule = Callable[[Record, Any], Violation | None]
"""Looks at one record and its event, in the order of the run."""


@dataclass(frozen=True, slots=True)
class PendingObligation:
    """Something owed that has not come. It is a `violation` if nothing kept the `parties` from it for long enough."""

    violation: Violation
    since_us: int
    parties: tuple[IncarnationHistory, ...]
    bound_us: int | None = None
    """How long it may be owed, where the invariant knows that better than the caller. The sentence then says it."""


@dataclass(eq=False)
class Invariant(EventRules):
    """One invariant. The tables that it reads must observe each record before the invariant does."""

    name: ClassVar[str]
    _tables: PartitionTables

    def __post_init__(self) -> None:
        self._incarnations = self._tables.incarnations

    @classmethod
    def statement(cls) -> str:
        """Return the invariant in words, for readers of an audit: the first paragraph of its class's docstring."""
        return " ".join((getdoc(cls) or cls.name).partition("\n\n")[0].split())

    def violated(self, text: str, *witnesses: Record | None) -> Violation:
        """Return how it is violated, in words, with those of the witnesses that are known."""
        return Violation(self.name, text, tuple(filter(None, witnesses)))

    def pending_obligations(self) -> Iterable[PendingObligation]:
        """Return the obligations that are open at this moment; none for an invariant that is settled record by record."""
        return ()

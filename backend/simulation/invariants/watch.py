"""All invariants of a run at once, record by record, and their verdict when the records end."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.simulation.invariants.agreement import ViewAgreement
from quarterdeck.backend.simulation.invariants.checker import Checker, Rule, Violation
from quarterdeck.backend.simulation.invariants.disconnections import FullyConnected, NoFlapping
from quarterdeck.backend.simulation.invariants.lives import Lives
from quarterdeck.backend.simulation.invariants.mastership import (
    ClaimSoundness,
    LineageChange,
    MergedVersion,
    OldestLeads,
)
from quarterdeck.backend.simulation.invariants.migrations import CommitOrder, Eviction, OneAtATime, OneDecision
from quarterdeck.backend.simulation.invariants.numbering import Numbering
from quarterdeck.backend.simulation.invariants.table_watch import Tables
from quarterdeck.backend.simulation.invariants.tables import (
    LatestTable,
    Replicas,
    RowSanity,
    TableAuthor,
    TableContent,
    TableMonotone,
    TableSteps,
)
from quarterdeck.backend.simulation.invariants.turnover import AdmissionTold, ClosedDoors, RemovalReason
from quarterdeck.backend.simulation.invariants.views import (
    AgeOrder,
    OneAuthor,
    OneMaster,
    UniqueContent,
    VersionMonotone,
    ViewIntegrity,
    ViewOrder,
)
from quarterdeck.backend.simulation.invariants.writes import NoLostWrite


class Conclusion(Struct, frozen=True):
    """The verdict at the end of a run.

    `violations` are all that were found, online and at the end. `open` tells what is owed still and cannot be judged,
    because a fault was on or the time was too short.
    """

    violations: tuple[Violation, ...]
    open: tuple[str, ...]

    @property
    def verdict(self) -> Literal["ok", "violation", "unknown"]:
        if self.violations:
            return "violation"
        return "unknown" if self.open else "ok"


class Watch:
    """Invariants over the records of one run. A record that no checker asks for costs its numbering and one look."""

    def __init__(self, names: Collection[str] | None = None) -> None:
        """`names`: only the invariants of these names are judged."""
        self._lives = Lives()
        self.tables = Tables(self._lives)
        self.writes = NoLostWrite(self.tables)
        every = (*membership_checkers(self._lives), *partition_checkers(self.tables), self.writes)
        self.checkers = tuple(one for one in every if names is None or one.name in names)
        self.violations: list[Violation] = []
        rules: dict[type, list[Rule]] = {}
        # What is known of the lives comes first, then the tables: checkers rely on it.
        for several in (self._lives.rules(), self.tables.rules(), *(checker.rules() for checker in self.checkers)):
            for kind, rule in several.items():
                rules.setdefault(kind, []).append(rule)
        self._rules = {kind: tuple(heeding) for kind, heeding in rules.items()}

    def heeds(self, kind: type) -> bool:
        """Whether events of this class make any difference."""
        return kind in self._rules

    def observe(self, record: Record) -> None:
        """Take in the next record of the run."""
        for rule in self._rules.get(type(record.event), ()):
            if found := rule(record, record.event):
                self.violations.append(found)

    def conclude(self, at_us: int, bound_us: int) -> Conclusion:
        """The verdict at `at_us`. Changes nothing, so the run may go on and be concluded again.

        What is owed is a violation when it has been owed for more than `bound_us`, nothing was done to the cluster for as
        long, and neither a pause nor the condition of a link troubles those who owe it; it is left open otherwise.
        """
        violations, still_open = list(self.violations), []
        for checker in self.checkers:
            for leftover in checker.leftovers():
                waited_us = at_us - max(leftover.since_us, self._lives.disturbed_us)
                why = self._lives.trouble(leftover.parties)
                if not why and waited_us <= bound_us:
                    why = f"only {waited_us} µs have passed undisturbed"
                if why:
                    still_open.append(f"{leftover.violation.text} ({why})")
                else:
                    violations.append(leftover.violation)
        return Conclusion(tuple(violations), tuple(still_open))


def membership_checkers(lives: Lives) -> tuple[Checker, ...]:
    """Every invariant of membership. `lives` must be shown each record before they are."""
    return (
        Numbering(),
        ViewIntegrity(),
        VersionMonotone(lives),
        UniqueContent(),
        OneMaster(),
        ViewOrder(),
        AgeOrder(lives),
        OneAuthor(),
        ViewAgreement(lives),
        ClaimSoundness(lives),
        OldestLeads(lives),
        LineageChange(lives),
        MergedVersion(lives),
        RemovalReason(lives),
        AdmissionTold(lives),
        ClosedDoors(lives),
        FullyConnected(lives),
        NoFlapping(lives),
    )


def partition_checkers(tables: Tables) -> tuple[Checker, ...]:
    """Every invariant of the partition table and of migrations. `tables` must be shown each record before they are."""
    return (
        TableMonotone(tables),
        TableContent(tables),
        TableAuthor(tables),
        TableSteps(tables),
        RowSanity(tables),
        Replicas(tables),
        LatestTable(tables),
        OneDecision(tables),
        CommitOrder(tables),
        OneAtATime(),
        Eviction(tables),
    )

"""All invariants of a run at once, record by record, and their verdict when the records end."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from msgspec import Struct

from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.invariants.convergence import Convergence
from quarterdeck.backend.invariants.data.acknowledged_writes import NoLostWrite
from quarterdeck.backend.invariants.data.holder_losses import HolderLosses
from quarterdeck.backend.invariants.data.linearizability import JudgedWrites, Linearizability
from quarterdeck.backend.invariants.data.undivided_clusters import UndividedClusters
from quarterdeck.backend.invariants.incarnations import RunIncarnations
from quarterdeck.backend.invariants.invariant import Invariant, Rule, Violation
from quarterdeck.backend.invariants.list_views import (
    AgeOrder,
    OneAuthor,
    OneMaster,
    UniqueContent,
    VersionMonotone,
    ViewAgreement,
    ViewIntegrity,
    ViewOrder,
)
from quarterdeck.backend.invariants.mastership import (
    ClaimCompleteness,
    ClaimSoundness,
    LineageChange,
    MergedVersion,
    OldestLeads,
)
from quarterdeck.backend.invariants.membership_changes import (
    AdmissionRecorded,
    IncarnationOrder,
    NoJoinsWhileClosed,
    RemovalReason,
)
from quarterdeck.backend.invariants.migrations import CommitOrder, Eviction, MigrationsAllowed, OneAtATime, OneDecision
from quarterdeck.backend.invariants.partial_disconnection import FullyConnected, NoFlapping
from quarterdeck.backend.invariants.partition_tables import PartitionTables
from quarterdeck.backend.invariants.table_invariants import (
    GroupReplicas,
    LatestTable,
    Replicas,
    RowSanity,
    TableAuthor,
    TableContent,
    TableMonotone,
    TableSteps,
)


class CheckedRun(Struct, frozen=True):
    """The verdict at the end of a run.

    `violations` are all that were found, online and at the end. `open` says what is owed still and cannot be judged,
    because a fault was on or the time was too short.
    """

    violations: tuple[Violation, ...]
    open: tuple[str, ...]

    @property
    def verdict(self) -> Literal["ok", "violation", "unknown"]:
        """Whether an invariant was broken; "unknown" while something is still owed."""
        if self.violations:
            return "violation"
        return "unknown" if self.open else "ok"


class InvariantChecker:
    """All invariants over the records of one run. A record that no invariant asks for costs next to nothing."""

    def __init__(self, names: Collection[str] | None = None, *, convergence_us: int | None = None) -> None:
        """Choose the invariants to check.

        Args:
            names: The invariants to check; by default all but convergence, which a simulated run proves as it goes on.
            convergence_us: See `Convergence`.
        """
        self._incarnations = RunIncarnations()
        self.tables = PartitionTables(self._incarnations)
        losses = HolderLosses(self.tables)
        clusters = UndividedClusters(self.tables, losses)
        self.writes = NoLostWrite(self.tables, losses)
        self.operations = Linearizability(self.tables, losses, clusters)
        of_data = self.writes, self.operations
        every = (*membership_invariants(self.tables), *partition_invariants(self.tables), *of_data)
        self.invariants: tuple[Invariant, ...] = tuple(rule for rule in every if names is None or rule.name in names)
        if names is not None and Convergence.name in names:
            self.invariants += (Convergence(self.tables, convergence_us),)
        self.violations: list[Violation] = []
        rules: dict[type, list[Rule]] = {}
        # What is known of the incarnations comes first, then the tables: invariants rely on it.
        context = (self._incarnations.rules(), self.tables.rules(), losses.rules(), clusters.rules())
        for several in (*context, *(invariant.rules() for invariant in self.invariants)):
            for kind, rule in several.items():
                rules.setdefault(kind, []).append(rule)
        self._rules = {kind: tuple(rules_of_kind) for kind, rules_of_kind in rules.items()}

    def is_relevant(self, kind: type) -> bool:
        return kind in self._rules

    def observe(self, record: Record) -> Sequence[Violation]:
        """Judge the next record of the run. Return the violations that it shows."""
        event = record.event
        found: tuple[Violation, ...] = ()
        for rule in self._rules.get(type(event), ()):
            if violation := rule(record, event):
                found = *found, violation
                self.violations.append(violation)
        return found

    def judged_writes(self) -> JudgedWrites:
        acknowledged = self.operations.acknowledged()
        unjudged = acknowledged - self.operations.judged() - self.operations.found()
        return JudgedWrites(acknowledged, self.writes.survived(), unjudged)

    def conclude(self, at_us: int, bound_us: int) -> CheckedRun:
        """Return the verdict at `at_us`. It changes nothing, so the run may go on and be concluded again.

        What is owed is a violation when it has been owed for more than `bound_us`, nothing was done to the cluster for as
        long, and neither a pause nor the condition of a link troubles those who owe it; it is left open otherwise.
        """
        violations, still_open = list(self.violations), []
        for invariant in self.invariants:
            for pending in invariant.pending_obligations():
                waited_us = at_us - max(pending.since_us, self._incarnations.disturbed_us)
                why = self._incarnations.disturbance(pending.parties)
                if not why and waited_us <= (bound_us if pending.bound_us is None else pending.bound_us):
                    why = f"only {waited_us} µs have passed undisturbed"
                if why:
                    still_open.append(f"{pending.violation.text} ({why})")
                else:
                    found = pending.violation
                    violations.append(found if pending.bound_us is None else _after(found, waited_us))
        return CheckedRun(tuple(violations), tuple(still_open))


def _after(violation: Violation, calm_us: int) -> Violation:
    text = f"{violation.text}, after {calm_us / SECOND_US:.1f} s in which nothing was done to the cluster"
    return Violation(violation.invariant, text, violation.witnesses)


def membership_invariants(tables: PartitionTables) -> tuple[Invariant, ...]:
    """Make every invariant of membership."""
    kinds: tuple[type[Invariant], ...] = (
        *(Numbering, ViewIntegrity, VersionMonotone, UniqueContent, OneMaster, ViewOrder, AgeOrder, OneAuthor),
        *(ViewAgreement, ClaimSoundness, ClaimCompleteness, OldestLeads, LineageChange, MergedVersion, RemovalReason),
        *(IncarnationOrder, AdmissionRecorded, NoJoinsWhileClosed, FullyConnected, NoFlapping),
    )
    return tuple(kind(tables) for kind in kinds)


def partition_invariants(tables: PartitionTables) -> tuple[Invariant, ...]:
    """Make every invariant of the partition table and of migrations."""
    kinds: tuple[type[Invariant], ...] = (
        *(TableMonotone, TableContent, TableAuthor, TableSteps, RowSanity, Replicas, LatestTable, GroupReplicas),
        *(OneDecision, CommitOrder, OneAtATime, MigrationsAllowed, Eviction),
    )
    return tuple(kind(tables) for kind in kinds)


BEGINS_LATE = "begins with record"
"""The reason in statements about an incarnation whose first records are missing."""


@dataclass(eq=False)
class Numbering(Invariant):
    """The records of an incarnation count from 1 without gaps, and its time never goes back."""

    name = "numbering"

    _latest: dict[str, Record] = field(default_factory=dict)

    def rules(self) -> Mapping[type, Rule]:
        return dict.fromkeys(get_args(Event), self._follow)

    def _follow(self, record: Record, _: Event) -> Violation | None:
        latest = self._latest.get(record.uuid)
        self._latest[record.uuid] = record
        if latest is not None and record.seq == latest.seq + 1 and record.at >= latest.at:
            return None
        if latest is None:
            if record.seq == 1:
                return None
            return self.violated(f"{record.member} {BEGINS_LATE} {record.seq}, not 1", record)
        if record.seq != latest.seq + 1:
            text = f"record {record.seq} of {record.member} follows record {latest.seq}"
        else:
            text = f"the time of {record.member} went back from {latest.at} to {record.at} µs"
        return self.violated(text, latest, record)

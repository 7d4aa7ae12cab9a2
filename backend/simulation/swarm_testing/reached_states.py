"""The abstract states that a run has been in: what members believe of each other, without who and how often.

A state is a set of bits. Members count by rank: the oldest of a list, the one after it, and any other. The bits say what each
rank is doing, between which ranks lists differ, which rank suspects which, and how far claims, merges, migrations and repairs
are. Two runs in which the same goes on among other members are in one state, so a state not seen before is worth a closer look.
"""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import BackupInStep, BackupOutOfStep
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import (
    DrainStarted,
    MigrationAccepted,
    MigrationCommitting,
    MigrationFinished,
    MigrationStarted,
    TableRecovered,
    TableRecoveryStarted,
)
from quarterdeck.backend.picture.fold.picture import MemberBelief, Picture
from quarterdeck.backend.scenarios.run_state import RecordSink, RunState

OLDEST, NEXT, OTHER = range(3)
RANKS = 3
ROLES = ("joining", "following", "claiming", "leading", "merging", "paused", "gone")
PHASES = (
    *("reports", "held back", "migration copying", "migration committing", "source", "destination"),
    *("table recovery", "draining", "backup out of step", "not ACTIVE", "not operating"),
)

CHANGES: frozenset[type] = frozenset(
    {
        *(events.MemberStarted, events.MemberStopped, ProcessKilled, ProcessPaused, ProcessResumed),
        *(events.ListInstalled, events.MasterChanged, events.SuspicionRaised, events.SuspicionCleared),
        *(events.ClaimStarted, events.ClaimFinished, events.ClaimAbandoned, events.MemberMerging),
        *(events.MergeStarted, events.MergeAbandoned, events.DisconnectionReported, events.DisconnectionResolved),
        *(events.MemberHeldBack, events.ClusterStateChanged, events.ProtectionChanged),
        *(MigrationStarted, MigrationAccepted, MigrationCommitting, MigrationFinished, DrainStarted),
        *(TableRecoveryStarted, TableRecovered, BackupOutOfStep, BackupInStep),
    }
)
"""The kinds of events after which another state may be reached."""


class WatchedRun(RunState):
    """What a run has shown so far, and the abstract states that it has been in."""

    def __init__(self, journal: RecordSink | None = None) -> None:
        super().__init__(journal)
        self.reached: set[int] = set()

    def observe(self, record: Record) -> None:
        """Take in the next record of the run."""
        super().observe(record)
        if type(record.event) in CHANGES:
            self.reached.add(abstract_state(self.picture))


def abstract_state(picture: Picture) -> int:
    """Return the bits of the state that the members are in."""
    bits = 0
    lists: list[set[tuple[str, int]]] = [set() for _ in range(RANKS)]
    for belief in picture.members.values():
        rank = _rank(belief.members, belief.address)
        bits |= 1 << rank * len(ROLES) + ROLES.index(_role(belief))
        if belief.status != "member":
            continue
        lists[rank].add((belief.lineage, belief.version))
        for suspect in belief.suspicions:
            bits |= 1 << _SUSPICIONS + rank * RANKS + _rank(belief.members, suspect)
        for phase in _phases(belief):
            bits |= 1 << _PHASES + phase
    for number, (one, other) in enumerate(_PAIRS):
        if len(lists[one] | lists[other]) > 1:
            bits |= 1 << _LISTS + number
    return bits


_PAIRS = [(rank, other) for rank in range(RANKS) for other in range(rank, RANKS)]
_SUSPICIONS = RANKS * len(ROLES)
_PHASES = _SUSPICIONS + RANKS * RANKS
_LISTS = _PHASES + len(PHASES)


def _rank(members: tuple[Member, ...], address: Address) -> int:
    return next((place for place, member in enumerate(members[:OTHER]) if member.address == address), OTHER)


def _role(belief: MemberBelief) -> str:
    match belief.status:
        case "paused":
            return "paused"
        case "stopped" | "killed":
            return "gone"
        case "joining":
            return "merging" if belief.merged_from or belief.merging else "joining"
        case "member":
            if belief.claiming:
                return "claiming"
            return "following" if not belief.is_master else "merging" if belief.merging else "leading"


def _phases(belief: MemberBelief) -> Iterator[int]:
    """Yield the places in `PHASES` of what goes on at a member."""
    led = belief.leading
    running = {migration.phase for migration in led.running.values()} if led.running else ()
    ends = {accepted.endpoint for accepted in belief.taking_part.values()} if belief.taking_part else ()
    going_on = (
        *(belief.reports, belief.held_back, "copying" in running, "committing" in running),
        *("source" in ends, "destination" in ends, led.recovering, led.draining),
        *(belief.out_of_step, belief.cluster_state != "ACTIVE", not belief.operating),
    )
    return (place for place, is_on in enumerate(going_on) if is_on)

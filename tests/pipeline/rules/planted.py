"""Journals with one planted violation each, and their clean twins: for every invariant at least one.

Most are those by which the simulator's checkers are tested. The twin lacks the one event that breaks the rule, or has another one
in its place.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from quarterdeck.backend.core.events import ProcessKilled, Record
from quarterdeck.backend.core.membership.events import (
    ClaimAnswered,
    ClaimFinished,
    ClaimStarted,
    MasterChanged,
    SuspicionCleared,
)
from quarterdeck.backend.core.properties import SECOND_US
from tests.invariants import test_membership_invariants as membership
from tests.invariants import test_partition_invariants as partitions
from tests.invariants.test_membership_invariants import (
    FORMED,
    A,
    B,
    C,
    D,
    Happened,
    admits,
    installed,
    recorded,
    removes,
    suspects,
)
from tests.invariants.test_partition_invariants import (
    ARRANGED,
    WRITTEN,
    answered,
    asked,
    decided,
    finished,
    started,
    table,
)

LONG_US = 1_000 * SECOND_US
"""Whatever is owed has been owed for too long by then."""

LONGEST_US = 20_000 * SECOND_US
"""By then members have had all the time that they may need to become one cluster."""


@dataclass(frozen=True)
class Planted:
    """`companions`: rules that cannot but be broken by the same event."""

    rule: str
    records: list[Record]
    twin: list[Record]
    companions: tuple[str, ...] = ()


def much_later(records: list[Record], at_us: int) -> list[Record]:
    """With one more event, by which nothing changes."""
    last = records[-1]
    seq = 1 + max(record.seq for record in records if record.uuid == A.uuid)
    return [*records, Record(last.run, "a", A.uuid, seq, at_us, at_us, MasterChanged(A.address, "test"))]


def planted(rule: str, *history: Happened, companions: tuple[str, ...] = ()) -> Planted:
    """Broken by the last event."""
    records = recorded(*history)
    return Planted(rule, records, records[:-1], companions)


def _owed(rule: str, at_us: int, history: tuple[Happened, ...], settled: Happened) -> Planted:
    """Broken when the records end at `at_us` without `settled`."""
    return Planted(rule, much_later(recorded(*history), at_us), much_later(recorded(*history, settled), at_us))


def _gap() -> Planted:
    records = recorded(*FORMED)
    return Planted("numbering", [*records[:-2], replace(records[-2], seq=records[-2].seq + 1), records[-1]], records)


A_REMOVED_C = (*FORMED, *removes(A, C), installed(A, 4, A, B, cause="removal"), (None, ProcessKilled("c")))

CLAIMED_FROM_FOUR = (
    *FORMED,
    installed(A, 4, A, B, C, D, cause="join"),
    admits(A, D, 4),
    installed(B, 4, A, B, C, D),
    *suspects(B, A),
    (B, ClaimStarted(4, (A.address,), (C.address, D.address))),
    *((B, ClaimAnswered(member.address, "accepted", 3, "")) for member in (C, D)),
    (B, ClaimFinished(5, "M", (C.address, D.address), ())),
    installed(B, 5, B, C, D, lineage="M", cause="mastership claim"),
    installed(D, 5, B, C, D, lineage="M", cause="joined"),
)
"""D hears of the new master before it hears of the old one's list."""

PLANTED: dict[str, Planted] = {
    **{
        what: planted(rule, *history)
        for module in (membership, partitions)
        for what, (rule, history) in module.PLANTED.items()
        if what != "views in the opposite order"
    },
    "a gap": _gap(),
    "a master that is not the oldest of a new lineage": planted(
        "one master", *FORMED, installed(D, 1, D, B, lineage="N", master=B.address, author=B.address, cause="joined")
    ),
    "fewer replicas, and nobody had to": planted(
        "replicas",
        *(*ARRANGED, started("m1"), finished(C, "m1", "destination"), decided("m1")),
        table(A, {0: (2, (C, None))}, cause="migration"),
    ),
    "a migration decided twice": planted(
        "one decision", *ARRANGED, started("m1"), finished(C, "m1", "destination"), decided("m1"), decided("m1")
    ),
    "two lists in the opposite order": planted(
        "view order",
        *(*CLAIMED_FROM_FOUR, installed(D, 4, A, B, C, D)),
        # Whoever goes the other way goes back in version and age, and to a lineage that no claim gave it.
        companions=("version", "lineage", "age order"),
    ),
    "two puts that found the same": planted(
        "linearizability",
        *WRITTEN,
        *(asked(A, 1, "put", "x"), asked(C, 1, "put", "y")),
        *(answered(A, 1, "put", "two"), answered(C, 1, "put", "two")),
    ),
    "a list that never came": _owed("view agreement", LONG_US, A_REMOVED_C, installed(B, 4, A, B)),
    "a suspicion that never ends": _owed(
        "convergence", LONGEST_US, (*FORMED, *suspects(B, C)), (B, SuspicionCleared(C.address, C.uuid, "test"))
    ),
}
"""By what is planted."""

"""Each invariant of partitions, migrations and data notices a violation planted in otherwise sound records."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from quarterdeck.backend.core.data.events import CallFinished, CallStarted
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.membership.events import ClusterStateChanged, MasterChanged, MemberStarted, MemberStopped
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import (
    CompletedEvicted,
    DrainFinished,
    DrainStarted,
    Holder,
    MigrationAccepted,
    MigrationDecided,
    MigrationFinished,
    MigrationsPlanned,
    MigrationStarted,
    PartitionLost,
    PlannedMigration,
    TableCause,
    TableChanged,
    TableRecovered,
)
from quarterdeck.backend.core.partitions.migration.migration import Endpoint
from quarterdeck.backend.invariants.invariant_checker import InvariantChecker, partition_invariants
from tests.invariants.test_membership_invariants import (
    CLAIMED_BY_B,
    FORMED,
    NAMES,
    A,
    B,
    C,
    D,
    Happened,
    formed,
    found,
    installed,
    must_be_found,
    removes,
)

Holders = tuple[Member | None, ...]


def table(
    who: Member,
    rows: dict[int, tuple[int, Holders]],
    author: Member = A,
    cause: TableCause = "published",
    total: int | None = None,
) -> Happened:
    """The table of `who` changes to have these rows: by partition, version and holders. `total` defaults to their sum."""
    members = list(dict.fromkeys(holder for _, holders in rows.values() for holder in holders if holder))
    lines = tuple(
        (partition, version, *(-1 if holder is None else members.index(holder) for holder in holders))
        for partition, (version, holders) in rows.items()
    )
    version = sum(version for version, _ in rows.values()) if total is None else total
    digest = repr([(line[0], line[1]) for line in lines])
    holders = tuple(Holder(member.address, member.uuid) for member in members)
    return who, TableChanged(version, digest, 1, holders, lines, author.uuid, cause)


def started(migration_id: str, source: Member | None = A, destination: Member = C, **more: bool) -> Happened:
    at = source.address if source else None
    unavoidable = more.get("unavoidable", False)
    return A, MigrationStarted(
        migration_id, 0, "MOVE", 1, at, 0, -1, destination.address, -1, 0, A.address, 2, 2, unavoidable
    )


def accepted(who: Member, migration_id: str) -> Happened:
    return who, MigrationAccepted(migration_id, 0, "destination", -1, 0)


def decided(migration_id: str, committed: bool = True, version: int = 2, by: Member = A) -> Happened:
    return by, MigrationDecided(migration_id, 0, committed, version, "")


def finished(who: Member, migration_id: str, endpoint: Endpoint, committed: bool = True) -> Happened:
    return who, MigrationFinished(migration_id, 0, endpoint, committed, -1, 0)


def recovered(*, committed: tuple[str, ...] = (), rolled_back: tuple[str, ...] = ()) -> Happened:
    return B, TableRecovered(1, {}, committed, rolled_back)


def asked(who: Member, call: int, operation: str, value: str = "") -> Happened:
    return who, CallStarted(call, operation, "m", "k", value)  # type: ignore[arg-type]


def answered(
    who: Member, call: int, operation: str, value: str | None, problem: str = "", untouched: bool = False
) -> Happened:
    found_one = value is not None
    return who, CallFinished(call, operation, "m", "k", 0, value or "", found_one, 5, problem, untouched)  # type: ignore[arg-type]


def done(who: Member, call: int, operation: str, value: str | None, put: str = "") -> tuple[Happened, Happened]:
    return asked(who, call, operation, put), answered(who, call, operation, value)


def killed(who: Member) -> Happened:
    return None, ProcessKilled(NAMES[who.uuid])


ARRANGED = (
    *FORMED,
    table(A, {0: (1, (A, B))}, cause="arranged"),
    table(B, {0: (1, (A, B))}),
    table(C, {0: (1, (A, B))}),
)
"""One partition, held by A and B."""

MOVED = (
    *ARRANGED,
    started("m1"),
    accepted(C, "m1"),
    finished(C, "m1", "destination"),
    table(C, {0: (2, (C, B))}, cause="migration"),
    decided("m1"),
    finished(A, "m1", "source"),
    table(A, {0: (2, (C, B))}, cause="migration"),
    table(B, {0: (2, (C, B))}),
)
"""Its owner becomes C."""

WRITTEN = (*ARRANGED, *done(B, 1, "put", None, put="one"), *done(B, 2, "put", "one", put="two"))

REPAIRED_BY_B = (
    table(B, {0: (3, (B, C))}, B, "repaired"),
    table(C, {0: (3, (B, C))}, B),
)
ONE_AGAIN = (*WRITTEN, *CLAIMED_BY_B, killed(A), *REPAIRED_BY_B)
"""A lived on alone for a while and is gone now."""

LEAVES_B: tuple[Happened, ...] = (
    (A, DrainStarted(B.address)),
    (A, DrainFinished(B.address, "", "nothing-left")),
    (B, MemberStopped("asked to stop", "asked")),
)

NOTHING_PLANNED: Happened = (A, MigrationsPlanned((), 0, 0, "members changed", "members-changed"))


def arranged_in(*zones: str, backup: int = 1) -> tuple[Happened, ...]:
    """A and another hold the only partition; A, B and C stand in these zones, by which replicas are placed."""
    a, b, c = (replace(one, zone=zone) for one, zone in zip((A, B, C), zones, strict=True))
    settings = {"quarterdeck.partition.group.type": "zone-aware"}
    return (
        (A, MemberStarted(A.address, False, (), settings=settings)),
        *formed(a, b, c),
        *(
            table(member, {0: (1, (a, (a, b, c)[backup]))}, cause="arranged" if member is a else "published")
            for member in (a, b, c)
        ),
    )


PLANTED: dict[str, tuple[str, tuple[Happened, ...]]] = {
    "an older row": ("table version", (*MOVED, table(B, {0: (1, (A, B))}))),
    "a wrong sum": ("table version", (*ARRANGED, table(B, {0: (2, (A, B))}, total=3))),
    "two contents of a version": ("table content", (*MOVED[:-1], table(B, {0: (2, (A, C))}))),
    "a table of a stranger": ("table author", (*ARRANGED, table(C, {0: (2, (A, B))}, author=B))),
    "a slave that makes a table": ("table author", (*ARRANGED, table(C, {0: (2, (C, B))}, author=C, cause="repaired"))),
    "a commit that counts twice": ("table steps", (*MOVED[:-2], table(A, {0: (3, (C, B))}, cause="migration"))),
    "a failure that counts once": ("table steps", (*ARRANGED, table(A, {0: (2, (A, B))}, cause="migration"))),
    "a repair that repairs nothing": ("table steps", (*ARRANGED, table(A, {0: (3, (A, None))}, cause="repaired"))),
    "an arrangement over another": ("table steps", (*ARRANGED, table(A, {0: (2, (C, B))}, cause="arranged"))),
    "a life twice in a row": ("row", (*ARRANGED, table(B, {0: (2, (B, B))}))),
    "backups without an owner": ("row", (*ARRANGED, table(B, {0: (2, (None, B))}))),
    "a row of another width": ("row", (*ARRANGED, table(B, {0: (2, (A, B, C))}))),
    "a commit of another width": ("row", (*MOVED[:-2], table(A, {0: (2, (C,))}, cause="migration"))),
    "a holder that is no member": (
        "row",
        (
            *ARRANGED,
            *removes(A, C),
            installed(A, 4, A, B, cause="removal"),
            table(A, {0: (2, (C, B))}, cause="migration"),
        ),
    ),
    "fewer replicas by a migration": (
        "replicas",
        (*ARRANGED, started("m1"), decided("m1"), table(A, {0: (2, (C, None))}, cause="migration")),
    ),
    "a recovered table that is too old": (
        "latest table",
        (*ARRANGED, table(C, {0: (2, (A, C))}), killed(A), *CLAIMED_BY_B, recovered()),
    ),
    "a recovered table older than one who has not the new list yet": (
        "latest table",
        (*ARRANGED, table(C, {0: (2, (A, C))}), killed(A), *CLAIMED_BY_B[:-1], recovered()),
    ),
    "a source that decides otherwise": (
        "one decision",
        (*ARRANGED, started("m1"), finished(C, "m1", "destination"), decided("m1"), finished(A, "m1", "source", False)),
    ),
    "a new master that decides otherwise": (
        "one decision",
        (
            *ARRANGED,
            started("m1"),
            finished(C, "m1", "destination"),
            killed(A),
            *CLAIMED_BY_B,
            recovered(rolled_back=("m1",)),
        ),
    ),
    "a master before the destination": ("commit order", (*ARRANGED, started("m1"), decided("m1"))),
    "a source before the master": (
        "commit order",
        (*ARRANGED, started("m1"), finished(C, "m1", "destination"), finished(A, "m1", "source")),
    ),
    "two migrations at a time": ("one at a time", (*ARRANGED, accepted(C, "m1"), accepted(C, "m2"))),
    "a migration in a frozen cluster": (
        "migrations allowed",
        (*ARRANGED, (A, ClusterStateChanged("FROZEN", "as ordered")), started("m1")),
    ),
    "two replicas in one zone": ("groups", (*arranged_in("east", "east", "west"), NOTHING_PLANNED)),
    "a migration forgotten too early": ("eviction", (*MOVED[:-1], (A, CompletedEvicted(("m1",))))),
    "a migration of its own that a half forgets too early": (
        "eviction",
        (
            *ARRANGED,
            started("m1"),
            *CLAIMED_BY_B,
            decided("m1", True, 2, by=B),
            decided("m1", False, 3),
            (B, CompletedEvicted(("m1",))),
        ),
    ),
    "a put lost after the members are one again": (
        "no lost write",
        (*ONE_AGAIN, *done(C, 1, "put", "one", put="three"), *done(B, 3, "get", "one")),
    ),
    "a partition lost that had a holder who lives": (
        "no lost write",
        (
            *FORMED,
            killed(C),
            table(A, {0: (1, (C, B))}, cause="arranged"),
            *done(B, 1, "get", None),
            (A, PartitionLost(0, 6)),
        ),
    ),
    "an acknowledged put lost": ("no lost write", (*WRITTEN, *done(C, 1, "get", "one"))),
    "all of a key lost": ("no lost write", (*WRITTEN, *done(C, 1, "get", None))),
    "a put that found an older value": ("no lost write", (*WRITTEN, *done(C, 1, "put", "one", put="three"))),
    "a removed value that is back": (
        "no lost write",
        (*WRITTEN, *done(A, 1, "remove", "two"), *done(C, 1, "get", "two")),
    ),
    "a value from nowhere": ("no lost write", (*WRITTEN, *done(C, 1, "get", "three"))),
    "a refused put that was done": (
        "no lost write",
        (
            *WRITTEN,
            asked(A, 1, "put", "x"),
            answered(A, 1, "put", None, "too few members", True),
            *done(C, 1, "get", "x"),
        ),
    ),
    "a read value that is gone": (
        "no lost write",
        (*WRITTEN, asked(A, 1, "put", "x"), *done(C, 1, "get", "x"), *done(C, 2, "get", "two")),
    ),
    "a lost write after one crash": ("no lost write", (*WRITTEN, killed(A), *done(C, 1, "get", "one"))),
    "a write that a leaver took along": (
        "no lost write",
        (*WRITTEN, *LEAVES_B[:-1], killed(A), LEAVES_B[-1], *done(C, 1, "get", "one")),
    ),
    "a partition lost by one crash": ("no lost write", (*WRITTEN, killed(A), (B, PartitionLost(0, 6)))),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_violation_is_found_with_its_witnesses(what: str) -> None:
    must_be_found(*PLANTED[what])


def test_each_invariant_is_planted_somewhere() -> None:
    invariant_checker = InvariantChecker()
    mine = {invariant.name for invariant in (*partition_invariants(invariant_checker.tables), invariant_checker.writes)}
    assert {name for name, _ in PLANTED.values()} == mine


UNDISTURBED: dict[str, tuple[Happened, ...]] = {
    "a move": MOVED,
    "a failed migration": (
        *ARRANGED,
        started("m1"),
        decided("m1", False, 3),
        table(A, {0: (3, (A, B))}, cause="migration"),
        table(B, {0: (3, (A, B))}),
    ),
    "an unavoidable loss of a replica": (
        *ARRANGED,
        started("m1", unavoidable=True),
        finished(C, "m1", "destination"),
        decided("m1"),
        table(A, {0: (2, (C, None))}, cause="migration"),
    ),
    "a repair of two slots": (
        *FORMED,
        table(A, {0: (1, (C, A))}, cause="arranged"),
        table(A, {0: (3, (A, None))}, cause="repaired"),
    ),
    "a new master that commits what the destination has": (
        *ARRANGED,
        started("m1"),
        finished(C, "m1", "destination"),
        table(C, {0: (2, (C, B))}, cause="migration"),
        killed(A),
        *CLAIMED_BY_B,
        table(B, {0: (2, (C, B))}, B, "recovered"),
        recovered(committed=("m1",)),
    ),
    "a destination that committed and crashed": (
        *ARRANGED,
        started("m1"),
        finished(C, "m1", "destination"),
        killed(C),
        decided("m1", False, 3),
        table(A, {0: (3, (A, B))}, cause="migration"),
    ),
    "a row that its author took to the grave": (
        *ARRANGED,
        table(A, {0: (2, (A, None))}, cause="repaired"),
        killed(A),
        *CLAIMED_BY_B,
        table(B, {0: (2, (B, None))}, B, "repaired"),
    ),
    "a forgotten migration that all know": (*MOVED, (A, CompletedEvicted(("m1",)))),
    "a migration that two halves end each in its own way": (
        *ARRANGED,
        started("m1"),
        finished(C, "m1", "destination"),
        table(C, {0: (2, (C, B))}, cause="migration"),
        *CLAIMED_BY_B,
        table(B, {0: (2, (C, B))}, B, "recovered"),
        decided("m1", False, 3),
        (B, CompletedEvicted(("m1",))),
    ),
    "a first arrangement onto a member that is dead": (
        *FORMED,
        killed(C),
        table(A, {0: (1, (C, None))}, cause="arranged"),
        (A, PartitionLost(0, 6)),
    ),
    "a second arrangement of a master that never heard of the first": (
        *FORMED,
        table(A, {0: (1, (A, None))}, cause="arranged"),
        killed(A),
        *CLAIMED_BY_B,
        table(B, {0: (1, (B, None))}, B, "arranged"),
        table(C, {0: (1, (B, None))}, B),
        killed(B),
        (C, PartitionLost(0, 6)),
    ),
    "a newcomer that has gone to another cluster while the master searches": (
        *ARRANGED,
        killed(A),
        killed(C),
        *CLAIMED_BY_B[:-2],
        installed(B, 4, B, lineage="M", cause="mastership claim"),
        installed(B, 5, B, D, lineage="M", cause="join"),
        (D, MasterChanged(D.address, "test")),
        installed(D, 1, D, lineage="N", cause="formed"),
        table(D, {0: (7, (D, None))}, D, "arranged"),
        recovered(),
    ),
    "what the merge of two clusters chose": (*ONE_AGAIN, *done(C, 1, "get", "one"), *done(B, 3, "get", "one")),
    "a put that nobody answered, not done": (*WRITTEN, asked(A, 1, "put", "x"), *done(C, 1, "get", "two")),
    "a put that nobody answered, done": (*WRITTEN, asked(A, 1, "put", "x"), *done(C, 1, "get", "x")),
    "two puts at a time": (
        *WRITTEN,
        asked(A, 1, "put", "x"),
        asked(C, 1, "put", "y"),
        answered(C, 1, "put", "x"),
        answered(A, 1, "put", "two"),
        *done(C, 2, "get", "y"),
    ),
    "all holders lost at once": (*WRITTEN, killed(A), killed(B), *done(C, 1, "get", None)),
    "a holder that stops after another crashed": (
        *WRITTEN,
        killed(A),
        (B, MemberStopped("asked to stop")),
        *done(C, 1, "get", "one"),
        (C, PartitionLost(0, 6)),
    ),
    "a replica in each zone": (*arranged_in("east", "west", "west"), NOTHING_PLANNED),
    "a leaver in the zone of another replica": (
        *arranged_in("east", "east", "west"),
        (A, DrainStarted(B.address)),
        NOTHING_PLANNED,
    ),
    "one zone alone, which counts as two": (*arranged_in("east", "east", "east", backup=2), NOTHING_PLANNED),
    "two replicas in one zone, until they are moved": (
        *arranged_in("east", "east", "west"),
        (A, MigrationsPlanned((PlannedMigration(0, "MOVE", B.address, C.address, 1),), 1, 1, "x")),
    ),
    "a migration after the cluster was frozen for a while": (
        *ARRANGED,
        *((A, ClusterStateChanged(state, "as ordered")) for state in ("FROZEN", "ACTIVE")),
        started("m1"),
    ),
    "a crash after the only other holder has left": (
        *WRITTEN,
        *LEAVES_B,
        killed(A),
        (C, PartitionLost(0, 6)),
        *done(C, 1, "get", None),
    ),
    "a crash after a leaver may go whose copy no other member can take, before it has left": (
        *formed(A, B, replace(C, lite=True)),
        *(table(member, {0: (1, (A, B))}, cause="arranged" if member is A else "published") for member in (A, B, C)),
        *done(B, 1, "put", None, put="one"),
        *(*LEAVES_B[:-1], killed(A), LEAVES_B[-1]),
        *((C, PartitionLost(0, 6)), *done(C, 1, "get", None)),
    ),
    "a leaver that did not wait": (
        *WRITTEN,
        (A, DrainStarted(B.address)),
        (A, DrainFinished(B.address, "the cluster is FROZEN", "no-migrations")),
        killed(A),
        LEAVES_B[-1],
        *done(C, 1, "get", "one"),
    ),
    "a split": (*WRITTEN, *CLAIMED_BY_B, *done(C, 1, "get", "one")),
}


@pytest.mark.parametrize("what", UNDISTURBED)
def test_what_may_happen_is_no_violation(what: str) -> None:
    names = {invariant.name for invariant in partition_invariants(InvariantChecker().tables)}
    names |= {"no lost write"}
    assert [violation for violation in found(*UNDISTURBED[what]) if violation.invariant in names] == []

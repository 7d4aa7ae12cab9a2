"""What of the writes that were acknowledged may be lost, and for how long the invariant of data cannot judge."""

from __future__ import annotations

from msgspec.structs import replace

from quarterdeck.backend.core.data.events import EntriesEvicted, EntriesMerged
from quarterdeck.backend.core.membership.events import MemberMerging, MemberStarted, MemberStopped
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import (
    DrainFinished,
    DrainStarted,
    MigrationDecided,
    MigrationStarted,
    PartitionLost,
)
from tests.invariants.test_membership_invariants import (
    BOUND_US,
    CLAIMED_BY_B,
    NAMES,
    A,
    B,
    C,
    Happened,
    formed,
    installed,
    recorded,
    watched,
)
from tests.invariants.test_partition_invariants import (
    ONE_AGAIN,
    REPAIRED_BY_B,
    WRITTEN,
    answered,
    asked,
    done,
    finished,
    killed,
    table,
)

BOTH = {"no lost write", "linearizability"}


def test_after_the_data_was_safe_again_another_crash_is_no_excuse() -> None:
    """A dies, its replica is copied to C: both crashes are one at a time."""
    repaired = (
        *WRITTEN,
        killed(A),
        *CLAIMED_BY_B,
        table(B, {0: (2, (B, None))}, B, "repaired"),
        table(C, {0: (2, (B, None))}, B),
        (B, MigrationStarted("m1", 0, "COPY", 2, None, -1, -1, C.address, -1, 1, B.address, 1, 2, False)),
        finished(C, "m1", "destination"),
        table(C, {0: (3, (B, C))}, B, "migration"),
        (B, MigrationDecided("m1", 0, True, 3, "")),
    )
    killed_b: tuple[Happened, ...] = (killed(B), *done(C, 1, "get", "one"))
    safe = watched(recorded(*repaired, table(B, {0: (3, (B, C))}, B, "migration"), *killed_b))
    assert {violation.invariant for violation in safe.violations} == BOTH
    assert safe.writes.why_uncertain() == ""
    too_early = watched(recorded(*repaired, *killed_b))
    assert not too_early.violations
    assert "partition 0" in too_early.writes.why_uncertain()


def test_a_write_that_is_asked_again_after_its_owner_was_lost_may_be_done_twice() -> None:
    """Nobody is left who knows that it was done already; once its call has ended it is done no more."""
    lost_under_way: tuple[Happened, ...] = (
        *WRITTEN,
        asked(C, 7, "put", "late"),
        *done(C, 8, "get", "late"),
        killed(A),
        killed(B),
        *done(C, 9, "put", None, put="new"),
        *done(C, 10, "get", "late"),
        answered(C, 7, "put", None),
    )
    assert not watched(recorded(*lost_under_way)).violations
    replaced = (*lost_under_way, *done(C, 11, "put", "late", put="newer"), *done(C, 12, "get", "late"))
    assert {violation.invariant for violation in watched(recorded(*replaced)).violations} == BOTH
    nobody_lost = (
        *WRITTEN,
        asked(C, 7, "put", "late"),
        *done(C, 8, "get", "late"),
        *done(C, 9, "put", "late", put="new"),
    )
    found = watched(recorded(*nobody_lost, *done(C, 10, "get", "late"))).violations
    assert [violation.invariant for violation in found] == ["no lost write"]


def test_a_write_of_unknown_outcome_may_be_done_after_its_call_has_ended() -> None:
    """It was asked again after its owner was lost, and arrives when another write is acknowledged already."""
    unknown: tuple[Happened, ...] = (
        *WRITTEN,
        asked(C, 7, "put", "late"),
        killed(A),
        killed(B),
        answered(C, 7, "put", None, problem="no answer in time; the outcome is not known"),
        asked(C, 8, "get"),
        *done(C, 9, "put", None, put="new"),
        answered(C, 8, "get", "late"),
        *done(C, 10, "get", "late"),
    )
    assert not watched(recorded(*unknown)).violations
    replaced = (*unknown, *done(C, 11, "put", "late", put="newer"), *done(C, 12, "get", "late"))
    assert {violation.invariant for violation in watched(recorded(*replaced)).violations} == BOTH


def test_what_may_be_lost_is_told() -> None:
    invariant_checker = watched(recorded(*WRITTEN, *CLAIMED_BY_B))
    assert "which lived on" in invariant_checker.writes.why_uncertain()
    assert invariant_checker.conclude(10_000, BOUND_US).violations == tuple(invariant_checker.violations)
    assert watched(recorded(*WRITTEN)).writes.why_uncertain() == ""
    assert invariant_checker.writes.written() == [("m", "k")]


def test_what_was_judged_is_counted() -> None:
    """Only what a crash or a migration might have cost, and did not, counts as survived; what nothing looks at is not judged."""

    def judged(*history: Happened) -> tuple[int, int, int]:
        told = watched(recorded(*history)).judged_writes()
        return told.acknowledged, told.survived, told.unjudged

    assert judged(*WRITTEN) == (2, 0, 1)
    assert judged(*WRITTEN, *done(C, 1, "get", "two")) == (2, 0, 0)
    assert judged(*WRITTEN, killed(A), *done(C, 1, "get", "two"), *done(C, 2, "get", "two")) == (2, 1, 0)
    moved = table(B, {0: (2, (C, B))})
    assert judged(*WRITTEN, moved, *done(C, 1, "get", "two")) == (2, 1, 0)
    assert judged(*WRITTEN, killed(A), killed(B), *done(C, 1, "get", "one")) == (2, 0, 1)
    assert judged(*WRITTEN, *CLAIMED_BY_B) == (2, 0, 1)
    assert judged(*ONE_AGAIN, *done(C, 1, "put", "two", put="three")) == (3, 0, 1)


def test_a_division_lasts_until_all_that_is_brought_along_is_merged() -> None:
    """A merges into the cluster of B, and brings its entries."""
    new_a = Member(A.address, "uuid-new-a", 5)
    NAMES[new_a.uuid] = "a"

    def division(brings_entries: bool | None, *more: Happened) -> bool:
        merged = (
            *ONE_AGAIN[:-3],
            (A, MemberMerging(B.address, new_a.uuid, brings_entries)),
            (new_a, MemberStarted(A.address, False, (), A.uuid)),
            *(installed(member, 5, B, C, new_a, lineage="M") for member in (B, C, new_a)),
            *REPAIRED_BY_B,
            table(new_a, {0: (3, (B, C))}, B),
        )
        return bool(watched(recorded(*merged, *more)).tables.division)

    assert not division(False)
    assert division(True) and division(None)
    assert not division(True, (new_a, EntriesMerged("pass-through", 1, 1, "")))
    assert not division(None, killed(new_a), installed(B, 6, B, C, lineage="M"), installed(C, 6, B, C, lineage="M"))
    assert not division(True, killed(new_a), installed(B, 6, B, C, lineage="M"), installed(C, 6, B, C, lineage="M"))


def test_an_eviction_is_no_loss_but_what_is_written_after_it_has_to_be_there() -> None:
    evicted: Happened = (A, EntriesEvicted(0, "m", ("k", "another")))
    assert {
        violation.invariant for violation in watched(recorded(*WRITTEN, *done(C, 1, "get", None))).violations
    } == BOTH
    assert not watched(recorded(*WRITTEN, evicted, *done(C, 1, "get", None))).violations
    undone = watched(recorded(*WRITTEN, evicted, *done(C, 1, "get", "two")))
    assert not undone.violations, "an eviction that no backup knows of goes with its owner"
    later = (evicted, *done(B, 3, "put", None, put="three"))
    assert not watched(recorded(*WRITTEN, *later, *done(C, 1, "get", "three"))).violations
    lost = watched(recorded(*WRITTEN, *later, *done(C, 1, "get", None)))
    assert {violation.invariant for violation in lost.violations} == BOTH
    other = watched(recorded(*WRITTEN, (A, EntriesEvicted(0, "m", ("another",))), *done(C, 1, "get", None)))
    assert {violation.invariant for violation in other.violations} == BOTH


def lost_after_a_crash(master: Member, *changes: Happened) -> set[str]:
    """What is violated where B and C hold the only partition, B is killed, and the copy of C goes by these `changes`."""
    history = (
        *formed(master, B, C),
        *(table(member, {0: (1, (B, C))}, cause="arranged" if member is A else "published") for member in (A, B, C)),
        *done(C, 1, "put", None, put="one"),
        *(killed(B), *changes, (A, PartitionLost(0, 6)), *done(A, 1, "get", None)),
    )
    return {violation.invariant for violation in watched(recorded(*history)).violations} & BOTH


def test_a_copy_may_go_after_a_crash_that_its_master_has_not_noticed_if_no_other_member_can_take_it() -> None:
    leaves: tuple[Happened, ...] = (
        (A, DrainStarted(C.address)),
        (A, DrainFinished(C.address, "", "nothing-left")),
        (C, MemberStopped("asked to stop", "asked")),
    )
    a_lite = replace(A, lite=True)
    for master, expected in (a_lite, set()), (A, BOTH):
        demoted = installed(master, 4, master, B, replace(C, lite=True), cause="demotion")
        assert lost_after_a_crash(master, demoted) == expected
        assert lost_after_a_crash(master, *leaves) == expected

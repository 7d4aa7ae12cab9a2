"""Operations on one key are judged in each undivided cluster, and over a division where nothing touches the key."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from quarterdeck.backend.core.data.events import EntriesMerged
from quarterdeck.backend.core.membership.events import ClusterStateChanged, MemberMerging, MemberStarted
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import MigrationsPlanned, PartitionLost, PlannedMigration
from tests.invariants.test_membership_invariants import (
    CLAIMED_BY_B,
    FORMED,
    NAMES,
    A,
    B,
    C,
    D,
    Happened,
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
    killed,
    table,
)

NEW_A = Member(A.address, "uuid-another-a", 5)
NAMES[NEW_A.uuid] = "a"
C_WITHOUT_DATA = replace(C, lite=True)


def merged(policy: str = "pass-through", problem: str = "") -> tuple[Happened, ...]:
    """A is cut off and replaced, then merges into the cluster of B, and brings its entries."""
    return (
        *WRITTEN,
        *CLAIMED_BY_B,
        *REPAIRED_BY_B,
        (A, MemberStarted(A.address, False, (), settings={"quarterdeck.merge.policy": policy})),
        (A, MemberMerging(B.address, NEW_A.uuid, True)),
        (NEW_A, MemberStarted(A.address, False, (), A.uuid)),
        *(installed(member, 5, B, C, NEW_A, lineage="M") for member in (B, C, NEW_A)),
        table(NEW_A, {0: (3, (B, C))}, B),
        (NEW_A, EntriesMerged(policy, 1, 1, problem)),
    )


SIDE_OF_B = (*WRITTEN, *CLAIMED_BY_B, *REPAIRED_BY_B)
"""A is cut off and goes on alone; B and C are one cluster that holds the only partition."""

A_ALONE = (installed(A, 4, A), table(A, {0: (2, (A, None))}, A, "repaired"))
"""A is one cluster, too."""

FROZEN = tuple((member, ClusterStateChanged("FROZEN", "test")) for member in (A, B, C))
OWNED_BY_B = (*FORMED, *(table(member, {0: (1, (B, A))}, cause="arranged") for member in (A, B, C)))

BROKEN: dict[str, tuple[Happened, ...]] = {
    "a value that was replaced": (*WRITTEN, *done(C, 1, "get", "one")),
    "a put that both did and did not come before another": (
        *WRITTEN,
        asked(A, 1, "put", "x"),
        *done(C, 1, "get", "x"),
        *done(C, 2, "get", "two"),
        answered(A, 1, "put", "two"),
    ),
    "two puts that found the same": (
        *WRITTEN,
        asked(A, 1, "put", "x"),
        asked(C, 1, "put", "y"),
        answered(A, 1, "put", "two"),
        answered(C, 1, "put", "two"),
    ),
    "a put whose answer was lost and that is done twice": (
        *WRITTEN,
        asked(A, 1, "put", "x"),
        answered(A, 1, "put", None, problem="too late"),
        *done(C, 1, "put", "x", put="y"),
        *done(C, 2, "get", "x"),
    ),
    "a put that was certainly not done": (
        *WRITTEN,
        asked(A, 1, "put", "x"),
        answered(A, 1, "put", None, problem="no", untouched=True),
        *done(C, 1, "get", "x"),
    ),
    "a remove that left something": (*WRITTEN, *done(C, 1, "remove", "two"), *done(C, 2, "get", "two")),
    "another value after a reunion than at first": (
        *ONE_AGAIN,
        *done(C, 1, "get", "one"),
        *done(C, 2, "get", "two"),
    ),
    "what a side of a division took over is gone": (*SIDE_OF_B, *done(C, 1, "get", None)),
    "what a side of a division wrote is gone": (
        *SIDE_OF_B,
        *done(C, 1, "put", "two", put="x"),
        *done(B, 3, "get", "two"),
    ),
    "what the winner of a merge wrote is gone": (
        *SIDE_OF_B,
        *done(C, 1, "put", "two", put="x"),
        *merged("put-if-absent")[len(SIDE_OF_B) :],
        *done(C, 2, "get", "two"),
    ),
    "what the winner of a merge that discards had is gone": (*merged("discard"), *done(C, 1, "get", "one")),
    "what a side took over is gone, and the other side has written": (
        *SIDE_OF_B,
        *A_ALONE,
        *done(A, 1, "put", "two", put="x"),
        *done(C, 1, "get", "x"),
    ),
    "what a side wrote whose table keeps the name of a member that was left off": (
        *(*OWNED_BY_B, *FROZEN, *CLAIMED_BY_B),
        *done(C, 1, "put", None, put="x"),
        *done(B, 1, "get", None),
    ),
    "what a side wrote while members merge elsewhere": (
        *SIDE_OF_B,
        (A, MemberMerging(D.address, NEW_A.uuid, True)),
        *done(C, 1, "put", "two", put="x"),
        *done(B, 3, "get", "two"),
    ),
    "what no side touched is gone after the merge": (*merged(), *done(C, 1, "get", "one")),
}

SOUND: dict[str, tuple[Happened, ...]] = {
    "puts at the same time, in the other order": (
        *WRITTEN,
        asked(A, 1, "put", "x"),
        asked(C, 1, "put", "y"),
        answered(A, 1, "put", "y"),
        answered(C, 1, "put", "two"),
        *done(B, 3, "get", "x"),
    ),
    "a put whose answer was lost, done later": (
        *WRITTEN,
        asked(A, 1, "put", "x"),
        answered(A, 1, "put", None, problem="too late"),
        *done(C, 1, "put", "two", put="y"),
        *done(C, 2, "get", "x"),
    ),
    "a put of a member that died, done later": (
        *WRITTEN,
        asked(C, 1, "put", "x"),
        *done(B, 3, "get", "two"),
        killed(C),
        *done(B, 4, "get", "x"),
    ),
    "what was removed while clusters merged": (
        *merged("put-if-absent")[:-1],
        *done(C, 1, "remove", "two"),
        merged("put-if-absent")[-1],
        *done(C, 2, "get", "two"),
    ),
    "what an owner wrote that only the table of a frozen side names, when its backup takes its place": (
        *(*WRITTEN, *FROZEN, *A_ALONE, *done(A, 1, "put", "two", put="x")),
        *(*CLAIMED_BY_B, asked(C, 1, "get"), *REPAIRED_BY_B, answered(C, 1, "get", "x")),
        *(installed(B, 5, B, lineage="M"), table(B, {0: (4, (B, None))}, B, "repaired"), *done(B, 3, "get", "x")),
    ),
    "what an owner did that the table of a frozen side names, for a caller there, which asked another one again": (
        *(*WRITTEN, *FROZEN, *CLAIMED_BY_B, asked(C, 1, "put", "x"), *A_ALONE, *done(A, 1, "get", "x")),
        *(*REPAIRED_BY_B, answered(C, 1, "put", "two")),
    ),
    "what a call removed before the merge that is answered after it": (
        *(*SIDE_OF_B, asked(B, 3, "remove"), asked(C, 2, "get")),
        *merged("put-if-absent")[len(SIDE_OF_B) :],
        *(answered(B, 3, "remove", "two"), answered(C, 2, "get", "one"), *done(C, 3, "get", "one")),
    ),
    "what a member reads that was left off before its first list came": (
        *(*WRITTEN, (D, MemberStarted(D.address, False, ()))),
        *(installed(member, 4, A, B, C, D) for member in (A, B, C)),
        *(installed(member, 5, A, B, C) for member in (A, B, C)),
        *(installed(D, 4, A, B, C, D), table(D, {0: (2, (D, B))}), *done(D, 1, "get", None)),
    ),
    "what a member reads that was left off before its first list came, while the others move partitions": (
        *(*WRITTEN, (D, MemberStarted(D.address, False, ()))),
        *(installed(member, 4, A, B, C, D) for member in (A, B, C)),
        *(installed(member, 5, A, B, C) for member in (A, B, C)),
        (A, MigrationsPlanned((PlannedMigration(0, "MOVE", B.address, C.address, 1),), 1, 1, "x")),
        *done(C, 1, "get", "two"),
        *(installed(D, 4, A, B, C, D), table(D, {0: (2, (D, B))}), *done(D, 1, "get", None)),
    ),
    "the only holder that a side had left when a member of it was to hold no data any more": (
        *(*SIDE_OF_B, A_ALONE[0], table(A, {0: (9, (A, None))}, A, "repaired"), *done(C, 1, "get", "two")),
        installed(B, 5, B, C_WITHOUT_DATA, lineage="M", cause="demotion"),
        installed(C, 5, B, C_WITHOUT_DATA, lineage="M"),
        *(table(member, {0: (4, (B, None))}, B, "repaired") for member in (B, C)),
        *(killed(B), (C, PartitionLost(0, 6)), *done(C, 2, "get", None)),
    ),
    "all holders lost": (*WRITTEN, killed(A), killed(B), *done(C, 1, "get", "one")),
    "the other side of a division": (*SIDE_OF_B, *done(A, 1, "get", "one"), *done(C, 1, "get", "two")),
    "what the merge of two written sides chose": (
        *SIDE_OF_B,
        *done(C, 1, "put", "two", put="x"),
        *merged()[len(SIDE_OF_B) :],
        *done(C, 2, "get", "two"),
    ),
    "what a merge wrote over that was asked for by a member which has not seen the newcomer listed yet": (
        *(*merged()[:-4], *done(C, 1, "put", "two", put="x")),
        *(*merged()[-3:], *done(C, 2, "get", "two")),
    ),
    "a read that began before a write that a side which lost its data has shown, answered on the other side": (
        *(*WRITTEN, asked(C, 1, "get"), *done(B, 3, "put", "two", put="x"), *CLAIMED_BY_B),
        *(A_ALONE[0], (A, PartitionLost(0, 6)), A_ALONE[1], *done(A, 1, "get", None)),
        *(*REPAIRED_BY_B, answered(C, 1, "get", "two")),
    ),
    "what could not be brought along": (*merged(problem="no answer"), *done(C, 1, "get", "one")),
    "a member died in the division": (
        *merged()[:-1],
        killed(NEW_A),
        *(installed(member, 6, B, C, lineage="M") for member in (B, C)),
        *done(C, 1, "get", "one"),
    ),
    "what was empty before the merge": (
        *SIDE_OF_B,
        *done(C, 1, "remove", "two"),
        *merged("put-if-absent")[len(SIDE_OF_B) :],
        *done(C, 2, "get", "two"),
    ),
    "what was empty before the merge, while a read of the other member goes on": (
        *SIDE_OF_B,
        asked(B, 3, "get"),
        *done(C, 1, "remove", "two"),
        *merged("put-if-absent")[len(SIDE_OF_B) :],
        *done(C, 2, "get", "two"),
        answered(B, 3, "get", "two"),
    ),
    "what was removed before the merge, and written by a call that is answered after it": (
        *SIDE_OF_B,
        asked(B, 3, "put", "x"),
        *done(C, 1, "remove", "x"),
        *merged("put-if-absent")[len(SIDE_OF_B) :],
        answered(B, 3, "put", "two"),
        *done(C, 2, "get", None),
    ),
    "a lost partition": (*WRITTEN, killed(A), killed(B), (C, PartitionLost(0, 6)), *done(C, 1, "get", None)),
}


def broken(history: tuple[Happened, ...]) -> list[str]:
    return [
        violation.text
        for violation in watched(recorded(*history)).violations
        if violation.invariant == "linearizability"
    ]


@pytest.mark.parametrize("what", BROKEN)
def test_what_no_order_explains_is_a_violation(what: str) -> None:
    assert len(broken(BROKEN[what])) == 1


@pytest.mark.parametrize("what", SOUND)
def test_what_some_order_explains_is_none(what: str) -> None:
    assert broken(SOUND[what]) == []


def test_writes_are_judged_in_what_is_left_of_their_side_whatever_other_sides_have_read_meanwhile() -> None:
    history = (
        *(*SIDE_OF_B, *A_ALONE, *done(C, 1, "remove", "two")),
        *(installed(B, 5, B, lineage="M"), table(B, {0: (4, (B, None))}, B, "repaired")),
        *(*done(A, 1, "get", "two"), *done(B, 3, "get", None)),
    )
    assert watched(recorded(*history)).judged_writes().unjudged == 0


def test_a_violation_says_what_was_found_and_what_there_can_have_been() -> None:
    (violation,) = (
        violation
        for violation in watched(recorded(*BROKEN["a put whose answer was lost and that is done twice"])).violations
        if violation.invariant == "linearizability"
    )
    assert violation.text == "c found 'x' for k of m, where there can only have been 'y'"
    assert [type(witness.event).__name__ for witness in violation.witnesses] == ["CallFinished", "CallFinished"]

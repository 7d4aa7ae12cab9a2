"""Each invariant notices a violation planted in otherwise sound records, and only that one."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.events import Event, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership.events import (
    ClaimAnswered,
    ClaimFinished,
    ClaimStarted,
    ClusterStateChanged,
    DisconnectionReported,
    DisconnectionResolved,
    ListInstalled,
    MasterChanged,
    MemberAdmitted,
    MemberMerging,
    MemberRemoved,
    MemberStarted,
    SuspicionRaised,
)
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.invariants import InvariantChecker, Violation
from quarterdeck.backend.invariants.invariant_checker import membership_invariants

A, B, C, D = (
    Member(Address(f"127.0.0.1:{5701 + place}"), f"uuid-{name}", place + 1) for place, name in enumerate("abcd")
)
NAMES = {member.uuid: member.uuid[-1] for member in (A, B, C, D)}
BOUND_US = 100

Happened = tuple[Member | None, Event]
"""Whose event, or None for what was done to the cluster."""


def installed(
    who: Member,
    version: int,
    *members: Member,
    lineage: str = "L",
    master: Address | None = None,
    author: Address | None = None,
    cause: str = "published",
) -> Happened:
    master = master or members[0].address
    return who, ListInstalled(version, lineage, master, members, author or master, cause)


def recorded(*history: Happened) -> list[Record]:
    """Numbered as a run does it, one microsecond after the other."""
    numbers: dict[str, int] = {}
    records = []
    for at, (who, event) in enumerate(history):
        uuid = who.uuid if who else "run"
        numbers[uuid] = numbers.get(uuid, 0) + 1
        records.append(Record("run", NAMES.get(uuid, uuid[-1]) if who else "dev", uuid, numbers[uuid], at, at, event))
    return records


def found(*history: Happened) -> list[Violation]:
    return watched(recorded(*history)).violations


def watched(records: list[Record]) -> InvariantChecker:
    invariant_checker = InvariantChecker()
    for record in records:
        invariant_checker.observe(record)
    return invariant_checker


def suspects(who: Member, *others: Member) -> tuple[Happened, ...]:
    return tuple((who, SuspicionRaised(other.address, other.uuid, "test")) for other in others)


def removes(who: Member, *others: Member) -> tuple[Happened, ...]:
    return tuple((who, MemberRemoved(other.address, other.uuid, "test")) for other in others)


def admits(who: Member, other: Member, version: int) -> Happened:
    return who, MemberAdmitted(other.address, other.uuid, version, 0, 0)


def formed(a: Member, b: Member, c: Member) -> tuple[Happened, ...]:
    """`a` founds a cluster, and `b` and `c` join it."""
    return (
        installed(a, 1, a, cause="formed"),
        installed(a, 2, a, b, cause="join"),
        admits(a, b, 2),
        installed(b, 2, a, b, cause="joined"),
        installed(a, 3, a, b, c, cause="join"),
        installed(b, 3, a, b, c),
        admits(a, c, 3),
        installed(c, 3, a, b, c, cause="joined"),
    )


FORMED = formed(A, B, C)
"""A cluster of three."""

CLAIM_OF_B = (
    *suspects(B, A),
    (B, ClaimStarted(3, (A.address,), (C.address,))),
    (B, ClaimAnswered(C.address, "accepted", 3, "")),
)
CLAIMED_BY_B = (
    *CLAIM_OF_B,
    (B, ClaimFinished(4, "M", (C.address,), ())),
    installed(B, 4, B, C, lineage="M", cause="mastership claim"),
    installed(C, 4, B, C, lineage="M"),
)
REPORTS = (
    (A, DisconnectionReported(B.address, (C.address,))),
    (A, DisconnectionReported(C.address, (B.address,))),
)


def resolved(keep: tuple[Member, ...], remove: tuple[Member, ...]) -> Happened:
    kept, gone = (tuple(member.address for member in some) for some in (keep, remove))
    return A, DisconnectionResolved(kept, gone, True, "test")


C_REMOVED = (
    *REPORTS,
    resolved((A, B), (C,)),
    *removes(A, C),
    installed(A, 4, A, B, cause="removal"),
    installed(B, 4, A, B),
)


def c_removed_again_and_again(times: int, between: tuple[Happened, ...] = ()) -> tuple[Happened, ...]:
    """B never gets a list with C on it, and each reports the other; C comes back under a new uuid each time."""
    history: list[Happened] = []
    for count in range(times):
        again = Member(C.address, f"uuid-c{count}", 2 * count + 3)
        NAMES[again.uuid] = "c"
        history += [
            (again, MemberStarted(C.address, False, ())),
            installed(A, 2 * count + 3, A, B, again, cause="join"),
            admits(A, again, 2 * count + 3),
            installed(again, 2 * count + 3, A, B, again, cause="joined"),
            *between,
            *REPORTS,
            resolved((A, B), (again,)),
            *removes(A, again),
            installed(A, 2 * count + 4, A, B, cause="removal"),
        ]
    return (*FORMED[:4], *history)


NEW_C = Member(C.address, "uuid-new-c", 5)
NEW_B = Member(B.address, "uuid-new-b", 2)


def state(who: Member, wanted: ClusterState) -> Happened:
    return who, ClusterStateChanged(wanted, "test")


def test_a_sound_history_has_no_violations() -> None:
    split = (
        *removes(A, B, C),
        installed(A, 5, A, cause="removal"),  # both halves go on with versions of their own lineage
        installed(B, 5, B, C, D, lineage="M", cause="join"),
        installed(C, 5, B, C, D, lineage="M"),
        admits(B, D, 5),
        installed(D, 5, B, C, D, lineage="M", cause="joined"),
    )
    invariant_checker = watched(recorded(*FORMED, *CLAIMED_BY_B, *split))
    assert not invariant_checker.violations
    assert invariant_checker.conclude(1_000, BOUND_US).verdict == "ok"


def earlier_c_after_a_later_one(**settings: str) -> tuple[Happened, ...]:
    """The later incarnation of C has just left when the list takes in the earlier one."""
    return (
        (A, MemberStarted(A.address, False, (), settings=settings)),
        *FORMED[:4],
        (C, MemberStarted(C.address, False, ())),
        (NEW_C, MemberStarted(C.address, False, ())),
        installed(A, 3, A, B, NEW_C, cause="join"),
        installed(B, 3, A, B, NEW_C),
        admits(A, NEW_C, 3),
        *removes(A, NEW_C),
        installed(A, 4, A, B, cause="removal"),
        installed(A, 5, A, B, C, cause="join"),
    )


STALE_JOIN_PREVENTION = "hazelcast.stale.join.prevention.duration.seconds"

PLANTED: dict[str, tuple[str, tuple[Happened, ...]]] = {
    "a list without its owner": ("view integrity", (*FORMED, installed(D, 3, A, B, C, cause="joined"))),
    "an older list": ("version", (*FORMED, installed(B, 2, A, B))),
    "the same list again": ("version", (*FORMED, installed(B, 3, A, B, C))),
    "an older list of another lineage": (
        "version",
        (*FORMED, *CLAIMED_BY_B[:-2], installed(B, 3, B, C, lineage="M", cause="mastership claim")),
    ),
    "one version with two contents": ("unique content", (*FORMED, installed(D, 3, A, B, D, cause="joined"))),
    "two masters of one version": (
        "one master",
        (*FORMED, installed(D, 3, A, B, D, master=B.address, author=A.address, cause="joined")),
    ),
    "a master that is not the oldest": (
        "one master",
        (*FORMED, installed(B, 4, A, B, C, master=B.address, author=B.address)),
    ),
    "views in the opposite order": (
        "view order",
        (
            *FORMED,
            *CLAIMED_BY_B,
            installed(A, 4, B, C, lineage="M"),
            installed(A, 5, A, B, C),
            installed(C, 5, A, B, C),
            installed(D, 5, A, B, C),
            installed(D, 4, B, C, lineage="M"),
        ),
    ),
    "a younger member before an older": ("age order", (*FORMED, installed(B, 4, A, C, B))),
    "a newcomer before the old": ("age order", (*FORMED, installed(B, 4, D, A, B, C))),
    "a newcomer in between": ("age order", (*FORMED, installed(B, 4, A, D, B, C))),
    "another order in another lineage": (
        "age order",
        (*FORMED, *CLAIM_OF_B, installed(C, 4, C, B, lineage="M", master=C.address, author=C.address)),
    ),
    "another join version in the same lineage": (
        "age order",
        (*FORMED, installed(B, 4, A, B, Member(C.address, C.uuid, 2))),
    ),
    "two authors": ("one author", (*FORMED, installed(C, 4, B, C))),
    "two lives of one author": ("one author", (*FORMED, installed(C, 4, Member(A.address, "uuid-new-a", 1), B, C))),
    "a claim no newer than an answer": (
        "claim soundness",
        (*FORMED, *CLAIM_OF_B, (B, ClaimFinished(3, "M", (C.address,), ()))),
    ),
    "a claim with somebody who never answered": (
        "claim soundness",
        (*FORMED, *CLAIM_OF_B[:-1], (B, ClaimFinished(4, "M", (C.address,), ()))),
    ),
    "a claim with somebody who refused": (
        "claim soundness",
        (
            *FORMED,
            *CLAIM_OF_B[:-1],
            (B, ClaimAnswered(C.address, "refused", 0, "")),
            (B, ClaimFinished(4, "M", (C.address,), ())),
        ),
    ),
    "a claim without somebody who accepted": (
        "claim soundness",
        (*FORMED, *CLAIM_OF_B, (B, ClaimFinished(4, "M", (), (C.address,)))),
    ),
    "another list than the claim promised": (
        "claim soundness",
        (*FORMED, *CLAIMED_BY_B[:-2], installed(B, 4, B, lineage="M", cause="mastership claim")),
    ),
    "a claim out of nowhere": ("claim soundness", (*FORMED, (B, ClaimFinished(4, "M", (), ())))),
    "a claim that asks nobody whom an answer names": (
        "claim completeness",
        (
            *FORMED,
            installed(C, 4, A, B, C, D),
            installed(D, 4, A, B, C, D),
            *CLAIM_OF_B[:-1],
            (B, ClaimAnswered(C.address, "accepted", 4, "")),
            (B, ClaimFinished(5, "M", (C.address,), ())),
        ),
    ),
    "a claim of one who trusts an older member": (
        "oldest leads",
        (*FORMED, *suspects(C, A), (C, ClaimStarted(3, (A.address,), (B.address,)))),
    ),
    "a claim that is accepted by one who trusts an older member": (
        "oldest leads",
        (*FORMED, *CLAIM_OF_B[:1], (C, MasterChanged(B.address, "accepted", "claim-accepted"))),
    ),
    "a list made by a slave": (
        "oldest leads",
        (*FORMED, *removes(B, A), installed(B, 4, B, C, cause="removal")),
    ),
    "a lineage that no claim founded": ("lineage", (*FORMED, installed(C, 4, B, C, lineage="M"))),
    "a lineage of a claim that was not accepted": (
        "lineage",
        (*FORMED, *CLAIMED_BY_B, installed(A, 5, B, C, A, lineage="M")),
    ),
    "a merge into an older version": (
        "merged version",
        (
            *FORMED,
            (D, MemberStarted(D.address, False, ())),
            installed(D, 3, D, lineage="N", cause="formed"),
            (B, MemberMerging(D.address, NEW_B.uuid)),
            (NEW_B, MemberStarted(B.address, False, (), B.uuid)),
            installed(NEW_B, 3, D, NEW_B, lineage="O", cause="joined"),
        ),
    ),
    "a removal that nobody told": ("removal", (*FORMED, installed(A, 4, A, C, cause="removal"))),
    "a removal that removes nobody": ("removal", (*FORMED, *removes(A, B), installed(A, 4, A, B, C, cause="removal"))),
    "an earlier incarnation let in after a later one": ("incarnation order", earlier_c_after_a_later_one()),
    "an earlier incarnation let in within half a second": (
        "incarnation order",
        earlier_c_after_a_later_one(**{STALE_JOIN_PREVENTION: "0.5"}),
    ),
    "an admission of nobody": ("admission", (*FORMED, admits(A, D, 4))),
    "an admission told twice": ("admission", (*FORMED, admits(A, C, 3))),
    "a newcomer in a frozen cluster": (
        "no newcomers",
        (*FORMED, state(A, "FROZEN"), state(A, "PASSIVE"), installed(A, 4, A, B, C, D, cause="join")),
    ),
    "two in conflict kept": ("full connection", (*FORMED, *REPORTS, resolved((A, B, C), ()))),
    "one removed without a report": ("full connection", (*FORMED, resolved((A, B), (C,)))),
    "more removed than needed": ("full connection", (*FORMED, *REPORTS, resolved((A,), (B, C)))),
    "a decision about a stranger": ("full connection", (*FORMED, *REPORTS, resolved((A, B), (C, D)))),
    "let in over a blocked link": (
        "no flapping",
        (
            *FORMED,
            (None, LinkChanged("b", "c", "blackhole")),
            *C_REMOVED,
            (NEW_C, MemberStarted(C.address, False, ())),
            installed(A, 5, A, B, NEW_C, cause="join"),
        ),
    ),
    "a sound member removed again and again": ("no flapping", c_removed_again_and_again(4)[:-2]),
    "one removed again and again for another's links": (
        "no flapping",
        ((None, LinkChanged("a", "b", dropped_kinds=("members-update",))), *c_removed_again_and_again(4)[:-2]),
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_violation_is_found_with_its_witnesses(what: str) -> None:
    must_be_found(*PLANTED[what])


def must_be_found(name: str, history: tuple[Happened, ...]) -> None:
    """Its last record breaks this invariant and is a witness; without it nothing is broken."""
    records = recorded(*history)
    violations = [violation for violation in watched(records).violations if violation.invariant == name]
    assert len(violations) == 1
    assert records[-1] in violations[0].witnesses
    assert all(witness in records for witness in violations[0].witnesses)
    assert name not in {violation.invariant for violation in watched(records[:-1]).violations}


def test_each_invariant_is_planted_somewhere() -> None:
    others = {"numbering", "view agreement"}
    assert others | {name for name, _ in PLANTED.values()} == {
        invariant.name for invariant in membership_invariants(InvariantChecker().tables)
    }


EXCUSED: dict[str, tuple[Happened, ...]] = {
    "an earlier incarnation let in when its master has forgotten the later one": (
        earlier_c_after_a_later_one(**{STALE_JOIN_PREVENTION: "0.000001"})
    ),
    "a sound member removed three times": c_removed_again_and_again(3),
    "a member whose own link is bad removed again and again": (
        (None, LinkChanged("b", "c", loss=0.5)),
        *c_removed_again_and_again(9),
    ),
    "a member that freezes now and then removed again and again": c_removed_again_and_again(
        9, ((None, ProcessPaused("c")), (None, ProcessResumed("c")))
    ),
    "a missing member comes back to a frozen cluster": (
        *FORMED,
        state(A, "FROZEN"),
        *removes(A, C),
        installed(A, 4, A, B, cause="removal"),
        installed(A, 5, A, B, NEW_C, cause="join"),
    ),
    "a newcomer after the frost": (
        *FORMED,
        state(A, "FROZEN"),
        state(A, "ACTIVE"),
        installed(A, 4, A, B, C, D, cause="join"),
    ),
    "a claim without a follower that it suspects by now": (
        *FORMED,
        *CLAIM_OF_B,
        *suspects(B, C),
        (B, ClaimFinished(4, "M", (), (C.address,))),
    ),
    "one whom the masters of two lineages let in": (
        *FORMED,
        *CLAIM_OF_B,
        (B, ClaimFinished(4, "M", (C.address,), ())),
        installed(B, 4, B, Member(C.address, C.uuid, 2), lineage="M", cause="mastership claim"),
        installed(C, 4, B, Member(C.address, C.uuid, 2), lineage="M"),
    ),
    "an older one that the other master had left out": (
        *FORMED,
        *removes(A, B),
        installed(A, 4, A, C, cause="removal"),
        installed(C, 4, A, C),
        *CLAIM_OF_B[:-1],
        (B, ClaimAnswered(C.address, "accepted", 4, "")),
        (B, ClaimFinished(5, "M", (C.address,), ())),
        installed(B, 5, B, C, lineage="M", cause="mastership claim"),
        installed(C, 5, B, C, lineage="M"),
    ),
    "a withdrawn report": (
        *FORMED,
        *REPORTS,
        (A, DisconnectionReported(B.address, ())),
        (A, DisconnectionReported(C.address, ())),
        resolved((A, B, C), ()),
    ),
    "let in over a link that was blocked only after the proof": (
        *FORMED,
        *C_REMOVED,
        (NEW_C, MemberStarted(C.address, False, ())),
        (None, LinkChanged("b", "c", "blackhole")),
        installed(A, 5, A, B, NEW_C, cause="join"),
    ),
    "let in over a mended link": (
        *FORMED,
        (None, LinkChanged("b", "c", "blackhole")),
        *C_REMOVED,
        (None, LinkChanged("b", "c")),
        (NEW_C, MemberStarted(C.address, False, ())),
        installed(A, 5, A, B, NEW_C, cause="join"),
    ),
}


@pytest.mark.parametrize("what", EXCUSED)
def test_what_has_an_excuse_is_no_violation(what: str) -> None:
    assert not found(*EXCUSED[what])


def test_records_are_numbered_without_gaps_and_in_time() -> None:
    first, second, third = recorded(*FORMED[:3])
    assert "numbering" in {violation.invariant for violation in watched([second]).violations}
    assert [
        violation.invariant for violation in watched([first, third]).violations if violation.invariant == "numbering"
    ] == ["numbering"]
    early = Record(second.run, second.member, second.uuid, 2, -1, -1, second.event)
    assert [violation.invariant for violation in watched([first, early]).violations] == ["numbering"]


def test_other_records_are_passed_over() -> None:
    assert not found((A, MasterChanged(B.address, "test")))

"""Each invariant notices a violation planted in otherwise sound records, and only that one."""

from __future__ import annotations

import pytest

from backend.core.address import Address
from backend.core.events import ListInstalled, MasterChanged, Record
from backend.core.membership.identity import Member
from backend.simulation.invariants import Violation, Watch

A, B, C, D = (
    Member(Address(f"127.0.0.1:{5701 + place}"), f"uuid-{name}", place + 1) for place, name in enumerate("abcd")
)
NAMES = {member.uuid: member.uuid[-1] for member in (A, B, C, D)}


def installed(
    who: Member,
    version: int,
    *members: Member,
    lineage: str = "L",
    master: Address | None = None,
    author: Address | None = None,
) -> Record:
    master = master or members[0].address
    event = ListInstalled(version, lineage, master, members, author or master, "test")
    return Record("run", NAMES[who.uuid], who.uuid, 1, version, version, event)


def found(*records: Record) -> list[Violation]:
    watch = Watch()
    for record in records:
        watch.observe(record)
    return watch.violations


def test_a_sound_history_has_no_violations() -> None:
    assert not found(
        installed(A, 1, A),
        installed(A, 2, A, B),
        installed(B, 2, A, B),
        installed(A, 3, A, B, C),
        installed(C, 3, A, B, C),
        installed(B, 3, A, B, C),
        installed(A, 5, A),  # the split: both halves go on with versions of their own lineage
        installed(B, 5, B, C, lineage="M"),
        installed(C, 5, B, C, lineage="M"),
        installed(B, 6, B, C, D, lineage="M"),
    )


PLANTED = {
    "view integrity": (installed(A, 1, A, B), installed(C, 1, A, B)),
    "version": (installed(A, 3, A, B), installed(B, 3, A, B), installed(A, 2, A, B)),
    "unique content": (installed(A, 2, A, B), installed(C, 2, A, C)),
    "one master": (installed(A, 2, A, B), installed(B, 2, A, B, master=B.address, author=A.address)),
    "view order": (
        installed(B, 2, A, B),
        installed(B, 3, A, B, lineage="M"),
        installed(A, 3, A, B, lineage="M"),
        installed(A, 2, A, B),
    ),
    "age order": (installed(B, 2, A, B, C), installed(B, 3, A, C, B)),
    "one author": (installed(A, 2, A, B), installed(B, 3, A, B, C, author=B.address)),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_violation_is_found_with_its_witnesses(name: str) -> None:
    records = PLANTED[name]
    violations = [violation for violation in found(*records) if violation.invariant == name]
    assert len(violations) == 1
    assert records[-1] in violations[0].witnesses
    assert set(violations[0].witnesses) <= set(records)
    assert not found(*records[:-1])


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(installed(B, 3, C, A, B), id="a newcomer before the old"),
        pytest.param(installed(B, 3, A, D, B), id="a newcomer in between"),
    ],
)
def test_newcomers_stand_at_the_end(second: Record) -> None:
    assert "age order" in {violation.invariant for violation in found(installed(B, 2, A, B), second)}


def test_the_oldest_on_the_list_is_the_master() -> None:
    violations = found(installed(B, 2, A, B, master=B.address))
    assert [violation.invariant for violation in violations] == ["one master"]


def test_one_lineage_has_one_author() -> None:
    violations = found(installed(A, 2, A, B), installed(B, 3, B))
    assert [violation.invariant for violation in violations] == ["one author"]


def test_an_equal_version_again_is_a_violation() -> None:
    violations = found(installed(A, 2, A, B), installed(A, 2, A, B))
    assert [violation.invariant for violation in violations] == ["version"]


def test_other_records_are_passed_over() -> None:
    assert not found(Record("run", "a", A.uuid, 1, 0, 0, MasterChanged(B.address, "test")))

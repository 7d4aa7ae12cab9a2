"""What is owed when the records end: it is judged by how long it was owed, and by what kept it from coming."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership.events import MemberMerging
from tests.invariants.test_membership_invariants import (
    BOUND_US,
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
    watched,
)

BEHIND = (*FORMED, *removes(A, C), installed(A, 4, A, B, cause="removal"))
"""B has not heard of v4."""


@pytest.mark.parametrize(
    ("after", "at_us", "verdict"),
    [
        pytest.param((), 1_000, "violation", id="nothing kept B from it"),
        pytest.param((), 50, "unknown", id="too early to say"),
        pytest.param(((None, ProcessPaused("b")),), 1_000, "unknown", id="B is paused"),
        pytest.param(((None, LinkChanged("a", "b", "blackhole")),), 1_000, "unknown", id="the link is blocked"),
        pytest.param(((None, LinkChanged("a", "b", loss=0.5)),), 1_000, "unknown", id="the link is lossy"),
        pytest.param(((None, ProcessKilled("b")),), 1_000, "ok", id="B ends"),
        pytest.param(((None, ProcessKilled("a")),), 1_000, "ok", id="A ends"),
        pytest.param(((B, MemberMerging(D.address, "uuid-new")),), 1_000, "ok", id="B merges"),
        pytest.param((installed(B, 4, A, B),), 1_000, "ok", id="B installs it"),
        pytest.param((installed(B, 5, A, B, D),), 1_000, "violation", id="now A is behind"),
        pytest.param((*removes(A, B), installed(A, 5, A, cause="removal")), 1_000, "ok", id="A parts"),
    ],
)
def test_a_list_reaches_everybody_on_it_or_they_part(after: tuple[Happened, ...], at_us: int, verdict: str) -> None:
    # C left with its process.
    invariant_checker = watched(recorded(*BEHIND, (None, ProcessKilled("c")), *after))
    assert not invariant_checker.violations
    conclusion = invariant_checker.conclude(at_us, BOUND_US)
    assert conclusion.verdict == verdict
    assert {violation.invariant for violation in conclusion.violations} <= {"view agreement"}
    assert bool(conclusion.open) == (verdict == "unknown")


def test_a_newcomer_is_admitted_or_removed() -> None:
    taken_in = (installed(A, 1, A, cause="formed"), installed(A, 2, A, B, cause="join"))
    owed = watched(recorded(*taken_in)).conclude(1_000, BOUND_US)
    assert [violation.invariant for violation in owed.violations] == ["admission"]
    for settled in ((admits(A, B, 2),), removes(A, B), ((None, ProcessKilled("a")),)):
        assert watched(recorded(*taken_in, *settled)).conclude(1_000, BOUND_US).verdict == "ok"

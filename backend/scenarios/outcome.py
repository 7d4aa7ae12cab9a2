"""The result of a run, as JSON: each step, the violations, and the belief of every member."""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec
from msgspec import Struct

from quarterdeck.backend.invariants import Violation
from quarterdeck.backend.picture.text.formatting import counted


class StepOutcome(Struct, frozen=True):
    """How one step ended. `at_seconds`: the run's time when it was met or given up. `missing`: empty when met."""

    step: int
    """Place in the file, from 1."""
    text: str
    met: bool
    at_seconds: float
    missing: str


class MemberOutcome(Struct, frozen=True):
    """The belief of one running member at the end, in labels."""

    master: str | None
    version: int
    members: tuple[str, ...]
    suspected: tuple[str, ...]


class TableOutcome(Struct, frozen=True):
    """`version` is the greatest table version of a running member; 0 while no member has a table."""

    version: int = 0


class Outcome(Struct, frozen=True):
    """The result of a run, as JSON. `members` holds the members that still run at the end."""

    passed: bool
    expectations: tuple[StepOutcome, ...]
    violations: tuple[Violation, ...]
    members: dict[str, MemberOutcome]
    table: TableOutcome
    virtual_seconds: float
    events: int
    messages: int | None
    """Sent by all members, whether they arrived or not; None for a live run, in which they are not counted."""
    fingerprint: str
    """Equal for equal seeds; empty for a live run, which nothing can repeat."""
    source: Literal["simulated", "live"]

    def sentence(self) -> str:
        """Return in a line whether the run passed, and the first unmet expectation."""
        met = sum(step.met for step in self.expectations)
        facts = [f"{met} of {counted(len(self.expectations), 'expectation')} met in {self.virtual_seconds:.1f} s"]
        facts += [f"step {step.step} was not: {step.missing}" for step in self.expectations if not step.met][:1]
        facts += [f"{violation.invariant} is violated: {violation.text}" for violation in self.violations[:1]]
        return f"{'passed' if self.passed else 'FAILED'}: {'; '.join(facts)}"

    def as_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = json.loads(msgspec.json.encode(self))
        return plain

"""The invariants by name: their statements, and which of them hold where a journal is incomplete. Imports no Spark."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

import msgspec

from quarterdeck.backend.invariants import PROVEN_BY_WITNESSES, InvariantChecker, RunIncarnations
from quarterdeck.backend.invariants.convergence import Convergence
from quarterdeck.backend.invariants.partition_tables import PartitionTables
from quarterdeck.backend.pipeline.rules.finding import Finding

_CONVERGENCE = Convergence(PartitionTables(RunIncarnations()))

STATEMENTS: dict[str, str] = {one.name: one.statement() for one in (*InvariantChecker().invariants, _CONVERGENCE)}
"""Every invariant by its name, in words."""

NAMES = tuple(STATEMENTS)


class UnknownRule(ValueError):
    """A name that no rule has. The message names it and gives a hint."""


def wanted_rules(names: Collection[str]) -> frozenset[str]:
    """Return the rules of these names, or all of them if none is named. Raises `UnknownRule`."""
    for name in names:
        if name not in STATEMENTS:
            near = get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(NAMES)}"
            raise UnknownRule(f"no rule {name!r}; {hint}")
    return frozenset(names or NAMES)


def holds_for_incomplete_journals(name: str) -> bool:
    """Return whether a finding of the rule holds although a part of the journal is missing."""
    return name in PROVEN_BY_WITNESSES


def downgraded(finding: Finding, lacks: str) -> Finding:
    """Return the finding as a warning if the run's journal `lacks` something that the finding needs."""
    if not lacks or finding.severity == "warning" or holds_for_incomplete_journals(finding.rule):
        return finding
    return msgspec.structs.replace(finding, severity="warning", doubt=lacks)

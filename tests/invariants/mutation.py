"""A core that is broken on purpose, and the invariant that must notice it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest

from quarterdeck.backend.invariants import Violation

SEEDS = (1, 2, 3, 4)
"""A broken rule need not do harm in every run: what arrives first decides. One of these shows it."""

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutation:
    breaks: str
    """The invariant that must notice it; others may as well."""
    how: Callable[[Patch], None]
    scenario: str

    def __str__(self) -> str:
        return f"{self.breaks}: {self.how.__name__}"

    def must_be_noticed(self, patch: Patch, violations: Callable[[str, int], Iterable[Violation]]) -> None:
        """Break the core, and fail unless `violations` of the scenario under some seed has the invariant's, with witnesses."""
        self.how(patch)
        for seed in SEEDS:
            found = {violation.invariant: violation for violation in violations(self.scenario, seed)}
            if self.breaks in found:
                assert found[self.breaks].witnesses
                return
        pytest.fail(f"no {self.breaks} under any seed")

"""Which of two clusters that meet merges into the other (seed 002; behaviour 6.4; design 9.3).

A pure function of what the two masters say of their clusters. Both sides come to the same outcome.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from backend.core.cluster_profile import ClusterProfile

Outcome = Literal["local-merges", "remote-merges", "cannot-merge"]


class MergeDecision(Struct, frozen=True):
    """The outcome, the name of the rule that decided, and why in one sentence for people."""

    decision: Outcome
    rule: str
    why: str


def decide_merge(local: ClusterProfile, remote: ClusterProfile | None) -> MergeDecision:
    """Who merges, seen from `local`. `remote` is None when there was no answer."""
    raise NotImplementedError

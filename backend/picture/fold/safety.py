"""What of a member's belief stands between its cluster and safety: the health of members and scenarios ask the same."""

from __future__ import annotations

from typing import Literal

from quarterdeck.backend.picture.fold.belief import MemberBelief

Unsafety = Literal[
    "no-table",
    "several-masters",
    "recovering",
    "migrating",
    "draining",
    "out-of-step",
    "other-table",
    "replica-missing",
]
"""What is missing for the data of a cluster to be safe."""

WORDS: dict[Unsafety, str] = {
    "recovering": "the latest table is being searched for",
    "migrating": "migrations are under way",
    "draining": "a member waits to leave",
    "out-of-step": "a backup does not have what its owner has",
}
"""What a member itself is busy with, for people."""


def unsafety_of(belief: MemberBelief) -> Unsafety | None:
    """Return what this member is busy with, the gravest first; None when its belief shows nothing of the kind."""
    leading = belief.leading
    if leading.recovering is not None:
        return "recovering"
    if leading.running or leading.waiting or belief.taking_part:
        return "migrating"
    if leading.draining:
        return "draining"
    return "out-of-step" if belief.out_of_step else None

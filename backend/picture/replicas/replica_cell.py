"""One replica of one partition as a cell to paint: a letter for its holder, and a mark for what is wrong with it."""

from __future__ import annotations

from collections.abc import Set
from typing import Literal, NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.table_belief import NO_HOLDER
from quarterdeck.backend.picture.text.fact import Tone

ReplicaState = Literal["held", "gap", "gone", "single", "doubtful", "behind", "migrating", "differs", "vacant"]


class ReplicaSign(NamedTuple):
    """How a state of replicas is shown."""

    mark: str
    tone: Tone
    meaning: str
    filter_word: str = ""
    """By which a reader asks for partitions with such a replica; empty for what nothing is wrong with."""


SIGNS: dict[ReplicaState, ReplicaSign] = {
    "held": ReplicaSign("", "plain", "held"),
    "gap": ReplicaSign("∅", "bad", "empty, though a member could take it", "gaps"),
    "gone": ReplicaSign("✕", "bad", "on a member that is gone", "gone"),
    "single": ReplicaSign("!", "warning", "the only copy", "single"),
    "doubtful": ReplicaSign("?", "warning", "on a member that is suspected or frozen", "doubtful"),
    "behind": ReplicaSign("~", "warning", "a backup out of step with its owner", "behind"),
    "migrating": ReplicaSign("▶", "strong", "a member gets it by a migration", "moving"),
    "differs": ReplicaSign("≠", "warning", "another holder than in the master's table", "differs"),
    "vacant": ReplicaSign("·", "faint", "empty: there are not enough members"),
}
"""The gravest first."""


class ReplicaCell(NamedTuple):
    """A replica as it is painted."""

    letter: str
    """That of the holder, or of who comes where no member is; empty without either."""
    hue: int
    """Number of the member whose letter it is, to colour it by; `NO_HOLDER` for none."""
    state: ReplicaState


Column = tuple[ReplicaCell, ...]
"""The replicas of one partition by replica index."""

EMPTY: dict[ReplicaState, ReplicaCell] = {state: ReplicaCell("", NO_HOLDER, state) for state in SIGNS}
"""Cells in which no member is."""


def suspected_with(picture: Picture, belief: MemberBelief) -> Set[Address]:
    """Whom the running members that follow the same master as `belief` suspect."""
    found: set[Address] = set()
    for other in picture.members.values():
        if other.suspicions and other.running and other.master == belief.master:
            found.update(other.suspicions)
    return found


def state_of_holder(belief: MemberBelief | None, uuid: str, *, suspected: bool) -> ReplicaState:
    """Return the state of a replica on the incarnation `uuid`; `belief` is of the member at its address, if it was seen."""
    if belief is None:
        return "doubtful" if suspected else "held"
    if belief.uuid != uuid or belief.status in ("stopped", "killed"):
        return "gone"
    return "doubtful" if suspected or belief.status == "paused" else "held"

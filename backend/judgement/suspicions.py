"""The suspicions in force: who suspects whom, which pairs do so mutually, and of whom it is not known."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture

MUTUALS_COUNTED = 20_000
"""The number of suspicions up to which mutual ones are counted."""


class SuspicionsInForce:
    """The suspicions of members that run and are reached, counted once for all that show them."""

    def __init__(self, picture: Picture, members: Iterable[MemberBelief]) -> None:
        self.picture = picture
        known = tuple(members)
        self.observers = tuple(belief for belief in known if belief.suspicions)
        self.silent = tuple(belief for belief in known if not belief.shows("suspicions"))
        """Members whose suspicions are not known."""
        self.raised = sum(len(belief.suspicions) for belief in self.observers)
        self.by_suspect: dict[Address, list[str]] = {}
        """By suspected address, the labels of the observers."""
        for belief in self.observers:
            for suspect in belief.suspicions:
                self.by_suspect.setdefault(suspect, []).append(belief.label)

    @cached_property
    def mutual(self) -> int | None:
        """Return the number of pairs that suspect each other; None beyond `MUTUALS_COUNTED`."""
        if self.raised > MUTUALS_COUNTED:
            return None
        pairs = (is_mutual(self.picture, belief, other) for belief in self.observers for other in belief.suspicions)
        return sum(pairs) // 2


def is_mutual(picture: Picture, belief: MemberBelief, suspect: Address) -> bool:
    """Return whether the member at `suspect` suspects the holder of `belief`, too."""
    other = picture.members.get(picture.label_of(suspect))
    return other is not None and other.running and belief.address in other.suspicions


def stays(picture: Picture, belief: MemberBelief, suspect: Address) -> bool:
    """Return whether a suspicion lasts after its link has healed, for the two send each other no heartbeats again.

    Members of Hazelcast that are no masters send none to whom they suspect; a master sends to all, and is heard again.
    """
    other = picture.members.get(picture.label_of(suspect))
    if other is None or not (belief.witnessed_by and other.witnessed_by) or belief.is_master or other.is_master:
        return False
    return is_mutual(picture, belief, suspect) and suspect in belief.listed and belief.address in other.listed

"""What a watcher knows of itself: which members it reaches, which it does not, since when and by which sign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from quarterdeck.backend.picture.fold.picture import Picture


class Missed(NamedTuple):
    """How the watcher misses one member."""

    since_us: int
    """When it was last heard; since when it is looked for, if it was never heard."""
    has_ended: bool = False
    """Its host answers and its process is there no more."""
    is_refusing: bool = False
    """It answers, and turns the watcher away."""
    was_met: bool = True
    reason: str = ""


class Watcher(Struct, frozen=True):
    """The watcher of a cluster. The picture says what members reported; this says how complete that is."""

    missed: Mapping[str, Missed] = {}
    """By label or address, the members that are looked for and not reached; also members that were never met."""
    since_us: int | None = None
    """Since when the watcher follows the cluster: who was there before is not known. None where the whole run is known."""
    expected_members: int | None = None
    """The number of members that an operator has accepted as the size of the cluster."""

    @property
    def away(self) -> tuple[str, ...]:
        """Return the members that are not reached and may be there."""
        return tuple(label for label, missed in self.missed.items() if not missed.has_ended)

    @property
    def gone(self) -> frozenset[str]:
        """Return the members that are known to have ended."""
        return frozenset(label for label, missed in self.missed.items() if missed.has_ended)


WATCHES_ALL = Watcher()
"""The watcher of a run in which every member's own records are at hand."""


def recorded_watcher(picture: Picture) -> Watcher:
    """Return the watcher that recorded the records of `picture`, as far as they say how it reached members.

    The end of a log says nothing about the member, so a member that only its log shows is not missed.
    """
    missed = {
        label: Missed(at_us, state == "gone" and belief.version > 0, state == "refused", belief.version > 0, reason)
        for label, belief in picture.members.items()
        if belief.connection is not None and belief.witnessed_by != ("logs",)
        for state, reason, at_us in [belief.connection]
        if state != "connected"
    }
    return Watcher(missed, watched_since(picture), picture.expected_members)


def watched_since(picture: Picture) -> int | None:
    """Return since when members are watched that report their present state alone; None where members record their past."""
    witnessed = any("client-protocol" in belief.witnessed_by for belief in picture.members.values())
    return 0 if witnessed else None

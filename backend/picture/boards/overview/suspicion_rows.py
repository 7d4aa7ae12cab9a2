"""Every suspicion in force as a row: who suspects whom, for how long, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.picture.boards.suspicion_board import MUTUAL_GLYPH, STAYS, SUSPECTS_GLYPH, is_mutual, stays
from quarterdeck.backend.picture.fold.belief import Suspected
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Tone, not_told
from quarterdeck.backend.picture.text.formatting import age_text, counted, one_line, with_names

MOST_ROWS = 500
"""Of more suspicions the rest is only counted."""


class SuspicionEntry(NamedTuple):
    """One suspicion, and who has it."""

    observer: str
    suspicion: Suspected


class SuspicionRow(Struct, frozen=True):
    """One suspicion in words."""

    observer: str
    suspect: str
    glyph: str
    """Says whether the suspect suspects the observer too."""
    age: str
    since_us: int
    reason: str

    @property
    def pair(self) -> str:
        """Who suspects whom."""
        return f"{self.observer} → {self.suspect}"


class SuspicionRows(Struct, frozen=True):
    """The suspicions of all running members, those of the older member first."""

    entries: Mapping[str, SuspicionEntry]
    """By a key that stays the same while the suspicion lasts."""
    raised: int
    """How many there are, those without a row included."""
    suspects: int
    """How many members are suspected by any other."""
    silent: int = 0
    """Of how many running members it is not known whom they suspect."""
    nothing: str = ""
    """What is to be said where there are no rows."""

    def row(self, picture: Picture, key: str, now_us: int) -> SuspicionRow:
        """Return the row of this key.

        Raises:
            KeyError: There is no such row.
        """
        observer, suspicion = self.entries[key]
        suspect, since_us = suspicion.suspect, suspicion.since_us
        belief = picture.members.get(observer)
        mutual = belief is not None and is_mutual(picture, belief, suspect)
        said = with_names(suspicion.reason, picture.label_of)
        return SuspicionRow(
            observer=one_line(observer),
            suspect=one_line(picture.label_of(suspect)),
            glyph=MUTUAL_GLYPH if mutual else SUSPECTS_GLYPH,
            age=age_text(now_us - since_us),
            since_us=since_us,
            reason=one_line(f"{STAYS}: {said}" if belief is not None and stays(picture, belief, suspect) else said),
        )


def suspicion_rows(picture: Picture, labels: Sequence[str]) -> SuspicionRows:
    """Return the suspicions in force of these members, in this order."""
    entries: dict[str, SuspicionEntry] = {}
    raised = silent = 0
    nothing = "no member suspects another" if picture.members else "no member is seen"
    suspected: set[Address] = set()
    for label in labels:
        belief = picture.members.get(label)
        if belief is None or not belief.running:
            continue
        if not belief.shows("suspicions"):
            silent += 1
            nothing = f"suspicions are {not_told('suspicions', belief.witnessed_by)}"
        if not belief.suspicions:
            continue
        raised += len(belief.suspicions)
        suspected.update(belief.suspicions)
        for suspicion in islice(belief.suspicions.values(), MOST_ROWS - len(entries)):
            entries[f"{label} {suspicion.suspect}"] = SuspicionEntry(label, suspicion)
    return SuspicionRows(entries, raised, len(suspected), silent, nothing)


def suspicion_figure(rows: SuspicionRows) -> tuple[str, Tone]:
    """How many there are, in a word or two."""
    if not rows.raised:
        return (NOT_REPORTED if rows.silent else "none"), "faint"
    return f"{rows.raised}, of {counted(rows.suspects, 'member')}", "warning"

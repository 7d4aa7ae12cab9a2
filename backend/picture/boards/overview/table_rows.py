"""The partition tables of all members, a row each: which one it is, how many copies are left, and whether that is safe.

What a table says of a stretch of partitions is one character of a strip. Tables are looked through once for all members that hold
the same one, and again when a table, or the life of a member, has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from quarterdeck.backend.core.partitions.events import Holder
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.boards.belief_matrix import DISSENT_GLYPH, table_text
from quarterdeck.backend.picture.boards.table_agreement import DIGEST_SHOWN, differs_from_master, table_digests
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.safety import unsafety_of
from quarterdeck.backend.picture.fold.table_belief import TableBelief
from quarterdeck.backend.picture.text.fact import Tone
from quarterdeck.backend.picture.text.formatting import counted, one_line
from quarterdeck.backend.picture.text.not_told import NOT_TOLD

STRIP_LENGTH = 16
LOOKED_THROUGH_ALWAYS = 5_003
"""A table of more partitions is looked through at most once a second."""
STRIPS_KEPT = 64

NO_HOLDERS = (0,)

WHOLE, FEWER, SINGLE, NONE = "▇", "▅", "▂", "∅"
"""What is left of the partition that has the fewest copies: all that there could be, fewer, a single one of several, none."""

BUSY_WORDS = {
    "recovering": "searching the latest",
    "migrating": "migrating",
    "draining": "a member waits to leave",
    "out-of-step": "a backup out of step",
}


class TableCount(NamedTuple):
    """A table, counted."""

    strip: str
    single: int
    """Partitions of which one living copy is left although there could be more."""
    lost: int
    """Partitions of which no living copy is left."""
    fewer: int
    """Partitions with fewer copies than there could be, single ones included."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """What is known of the table of one member, each text one line."""

    label: str
    version: str
    digest: str
    strip: str
    owned: int
    backups: int
    state: str
    tone: Tone
    differs: bool
    """Whether it is not the table of its master."""
    greyed: bool


class TableRows:
    """Makes the rows, and keeps what it counted until that changes."""

    def __init__(self) -> None:
        self._counted: dict[tuple[str, str, object], tuple[int, TableCount]] = {}

    def row(self, picture: Picture, label: str, now_s: int) -> TableRow:
        """Return the row of a member; `now_s` is the time in whole seconds."""
        belief = picture.members.get(label)
        if belief is None:
            return TableRow(one_line(label), "", "", "", 0, 0, "not up", "faint", False, True)
        gone = belief.status in ("stopped", "killed", "paused")
        if belief.table is None:
            missing = differs_from_master(picture, belief, now_s * SECOND_US)
            state = NOT_TOLD if not belief.tells("owners") else "none yet"
            state = f"{DISSENT_GLYPH} none" if missing else belief.status if gone else state
            return TableRow(one_line(label), "", "", "", 0, 0, state, "warning" if missing else "faint", missing, gone)
        table = belief.table
        census = self.census(picture, belief, table, now_s)
        differs = differs_from_master(picture, belief, now_s * SECOND_US)
        state, tone = _state(belief, census, differs)
        return TableRow(
            label=one_line(label),
            version=table_text(belief, "v"),
            digest=table.digest[:DIGEST_SHOWN],
            strip=census.strip,
            owned=table.owned_by(belief.uuid),
            backups=table.backed_up_by(belief.uuid),
            state=belief.status if gone else state,
            tone="faint" if gone else tone,
            differs=differs,
            greyed=gone,
        )

    def census(self, picture: Picture, belief: MemberBelief, table: TableBelief, now_s: int) -> TableCount:
        """Count what is left of the partitions of this table, as its holder sees its cluster."""
        living = frozenset(holder.uuid for holder in table.holders if _lives(picture, belief, holder))
        able = sum(not member.lite for member in belief.members)
        slow = table.partitions > LOOKED_THROUGH_ALWAYS
        key = (belief.uuid, "", None) if slow else ("", table.digest, (living, able, table.version))
        known = self._counted.get(key)
        if known is not None and (not slow or known[0] == now_s):
            return known[1]
        if len(self._counted) >= STRIPS_KEPT:
            self._counted.clear()
        census = _census(table, living, able)
        self._counted[key] = (now_s, census)
        return census


def table_figure(picture: Picture, labels: Sequence[str], now_us: int) -> tuple[str, Tone]:
    """How many tables there are among the running members, in a word or two."""
    digests = table_digests(picture, iter(labels), now_us)
    without = [one for label in labels if (one := picture.members.get(label)) and one.running and one.table is None]
    missing = any(one.tells("owners") and differs_from_master(picture, one, now_us) for one in without)
    silent = any(not one.tells("owners") for one in without)
    if not digests:
        return (NOT_TOLD if silent else "none yet"), "faint"
    if len(digests) > 1 or missing:
        return f"{DISSENT_GLYPH} {counted(len(digests), 'digest')}{' and none' if missing else ''}", "warning"
    return "1 digest", "plain"


def _state(belief: MemberBelief, census: TableCount, differs: bool) -> tuple[str, Tone]:
    """Return what is most grave of all that keeps this table from being safe."""
    if census.lost:
        return f"∅ {census.lost} without {'a copy' if belief.tells('backups') else 'an owner'}", "bad"
    if census.single:
        return f"! {census.single} with one copy", "warning"
    unsafety = unsafety_of(belief)
    if unsafety == "migrating":
        return "migrating", "strong"
    if unsafety is not None:
        return BUSY_WORDS.get(unsafety, unsafety), "warning"
    if differs:
        return f"{DISSENT_GLYPH} not its master's", "warning"
    if census.fewer:
        return f"{census.fewer} with fewer copies", "warning"
    if not belief.tells("backups"):
        return f"backups {NOT_TOLD}", "faint"
    return "✓ safe", "good"


def _lives(picture: Picture, belief: MemberBelief, holder: Holder) -> bool:
    """Whether what that incarnation holds is within the reach of this member's cluster."""
    other = picture.members.get(picture.label_of(holder.address))
    if other is not None and (other.uuid != holder.uuid or other.status in ("stopped", "killed")):
        return False
    return holder.address in belief.listed


def _census(table: TableBelief, living: Collection[str], able: int) -> TableCount:
    """Look through the whole table; of a partition with all its copies nothing is noted."""
    length = min(STRIP_LENGTH, table.partitions)
    signs = [WHOLE] * length
    single = lost = fewer = 0
    lives = (*(holder.uuid in living for holder in table.holders), False)  # the last place is nobody's
    copies_of: dict[tuple[int, ...], int] = {}
    """By its holders, of whom many partitions have the same, what is left of a partition; -1 where nothing is to be noted."""
    for partition in range(table.partitions):
        held = table.rows.get(partition, NO_HOLDERS)[1:]
        copies = copies_of.get(held)
        if copies is None:
            copies = sum([lives[number] for number in held])
            copies_of[held] = copies = -1 if copies and copies >= min(len(held), able) else copies
        if copies < 0:
            continue
        place = partition * length // table.partitions
        if not copies:
            lost += 1
            signs[place] = NONE
            continue
        fewer += 1
        single += copies == 1
        if signs[place] != NONE and (copies == 1 or signs[place] == WHOLE):
            signs[place] = SINGLE if copies == 1 else FEWER
    return TableCount("".join(signs), single, lost, fewer)

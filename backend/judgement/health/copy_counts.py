"""How many copies are left of each partition of a table.

How many copies are left of each partition is counted by one member's table: what it says of a stretch of partitions is one
character of a strip. Tables are looked through once for all members that hold the same one, and again when a table, or the
status of a member, has changed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from quarterdeck.backend.core.partitions.arrangement.member_groups import groups_of
from quarterdeck.backend.core.partitions.events import Holder
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.table_belief import TableBelief

STRIP_LENGTH = 16
LOOKED_THROUGH_ALWAYS = 5_003
"""A table of more partitions is looked through at most once a second."""
STRIPS_KEPT = 64

NO_HOLDERS = (0,)

WHOLE, FEWER, SINGLE, NONE = "▇", "▅", "▂", "∅"
"""What is left of the partition that has the fewest copies: all that there could be, fewer, a single one of several, none."""


class TableCount(NamedTuple):
    """A table, counted."""

    strip: str
    single: int
    """Partitions of which one living copy is left although there could be more."""
    lost: int
    """Partitions of which no living copy is left."""
    unowned: int
    """Partitions with a living copy and without a living owner: no member serves them until a backup is promoted."""
    fewer: int
    """Partitions with fewer copies than there could be, single ones included."""


class CopyCounts:
    """Counts copies, and keeps what it counted until that changes."""

    def __init__(self) -> None:
        self._counted: dict[tuple[str, str, object], tuple[int, TableCount]] = {}

    def census(
        self, picture: Picture, belief: MemberBelief, table: TableBelief, now_s: int, gone: Collection[str] = ()
    ) -> TableCount:
        """Count the remaining copies of this table's partitions, as its holder sees its cluster; `gone` members have ended."""
        listed = frozenset(member.uuid for member in belief.members)
        living = frozenset(holder.uuid for holder in table.holders if _lives(picture, belief, holder, listed, gone))
        able = most_copies(belief)
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


def most_copies(belief: MemberBelief) -> int:
    """Return how many copies of a partition the members of its list can hold: one for each member, or each group of them."""
    data = [member for member in belief.members if not member.lite]
    settings = belief.settings or {}
    kind = settings.get("quarterdeck.partition.group.type", "")
    if not kind or not data:
        return len(data)
    patterns = settings.get("quarterdeck.partition.groups", "")
    return len(set(groups_of(data, kind, patterns).values()))


def _lives(
    picture: Picture, belief: MemberBelief, holder: Holder, listed: Collection[str], gone: Collection[str]
) -> bool:
    """Return whether the replicas of that incarnation are within the reach of this member's cluster.

    An incarnation that has just merged is on the list before it is reached: the known one at its address is older.
    """
    label = picture.label_of(holder.address)
    if label in gone or holder.address in gone:
        return False
    other = picture.members.get(label)
    if other is not None and other.uuid != holder.uuid:
        return holder.uuid in listed and other.started_us < belief.list_since_us
    return holder.address in belief.listed and (other is None or other.status not in ("stopped", "killed"))


def _census(table: TableBelief, living: Collection[str], able: int) -> TableCount:
    """Look through the whole table; of a partition with all its copies nothing is noted."""
    length = min(STRIP_LENGTH, table.partitions)
    signs = [WHOLE] * length
    single = lost = unowned = fewer = 0
    alive = (*(holder.uuid in living for holder in table.holders), False)  # the last place is no holder's
    copies_of: dict[tuple[int, ...], int] = {}
    """By its holders, of whom many partitions have the same, what is left of a partition; -1 where nothing is to be noted."""
    for partition in range(table.partitions):
        held = table.rows.get(partition, NO_HOLDERS)[1:]
        copies = copies_of.get(held)
        if copies is None:
            copies = sum([alive[number] for number in held])
            is_whole = copies and copies >= min(len(held), able) and alive[held[0]]
            copies_of[held] = copies = -1 if is_whole else copies
        if copies < 0:
            continue
        place = partition * length // table.partitions
        if not copies:
            lost += 1
            signs[place] = NONE
            continue
        unowned += not alive[held[0]]
        fewer += 1
        single += copies == 1
        if signs[place] != NONE and (copies == 1 or signs[place] == WHOLE):
            signs[place] = SINGLE if copies == 1 else FEWER
    return TableCount("".join(signs), single, lost, unowned, fewer)

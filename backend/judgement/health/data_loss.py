"""Which data a cluster has lost: partitions, maps, about how many entries, when, and after which members went; and what is left.

How many copies are left of each partition is counted by one member's table: what it says of a stretch of partitions is one
character of a strip. Tables are looked through once for all members that hold the same one, and again when a table, or the
status of a member, has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from msgspec import Struct

from quarterdeck.backend.core.partitions.arrangement.member_groups import groups_of
from quarterdeck.backend.core.partitions.events import ALL_LOST, Holder, lost_partitions_text
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.losses import LineageLoss
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.table_belief import TableBelief
from quarterdeck.backend.picture.text.formatting import age_text, counted, listed, one_line

MEMBERS_NAMED = 3


class DataLoss(Struct, frozen=True):
    """What one side of a cluster has lost for good, as its master and its witness judge."""

    side: str
    """The label of its master; of the first who holds such a list while no member leads it."""
    lost: frozenset[int]
    """The partitions."""
    at_most_backups: int | None
    """Maps with at most so many backups have lost entries; None where no replica was left, whatever a map has."""
    maps: tuple[str, ...]
    """By name or pattern, where their configuration is known."""
    since_us: int
    """When the first of the partitions was lost."""
    entries: int | None
    """About how many entries they had, as their owners measured last; None where it is not known."""
    because_of: tuple[str, ...]
    """The members that were removed shortly before."""
    elsewhere: tuple[str, ...]
    """Those of them that run under another master: their replicas are there."""
    returned: tuple[str, ...]
    """Those of them that merged back and of which it is not known whether their entries came with them."""
    bringing: tuple[str, ...]
    """Those of them whose entries are being merged."""

    @property
    def partitions(self) -> int:
        """How many were lost."""
        return len(self.lost)

    @property
    def what(self) -> str:
        backups = ALL_LOST if self.at_most_backups is None else self.at_most_backups
        lost = one_line(lost_partitions_text(self.partitions, backups, self.maps))
        if self.entries is None:
            return lost
        return f"{lost}, about {self.entries:,} entries" if self.entries else f"{lost}, without entries"

    @property
    def why(self) -> str:
        """After which members went; empty where it is not known."""
        return f"after {one_line(listed(self.because_of, MEMBERS_NAMED))} went" if self.because_of else ""

    @property
    def certain(self) -> bool:
        """Whether entries are gone as far as is known: they may have been none, or be on the other side of a split."""
        return self.entries != 0 and not self.elsewhere and not self.returned and not self.bringing

    @property
    def outlook(self) -> str:
        """What became of the entries, and how long this is reported."""
        if self.entries == 0:
            return f"no entries were in them; reported as long as the cluster of {one_line(self.side)} exists"
        if self.elsewhere:
            return (
                f"they may be at {one_line(listed(self.elsewhere, MEMBERS_NAMED))}, under another master; "
                f"reported until all that went have merged their entries"
            )
        if self.bringing:
            return f"{one_line(listed(self.bringing, MEMBERS_NAMED))} merge their entries: how many are gone is not known yet"
        if self.returned:
            back = one_line(listed(self.returned, MEMBERS_NAMED))
            return f"{back} merged back; whether the entries came with that is not reported: count them"
        return f"what they held is gone; reported as long as the cluster of {one_line(self.side)} exists"

    def text(self, now_us: int) -> str:
        """All that is known of the loss."""
        loss_text = f"{self.what}, {age_text(max(now_us - self.since_us, 0))} ago"
        return " ".join(filter(None, (loss_text, self.why)))

    def shorter_texts(self, now_us: int) -> tuple[str, str, str]:
        """Return the same with less and less of it, for where there is little room; the last is only how many partitions."""
        age = f"{age_text(max(now_us - self.since_us, 0))} ago"
        return self.text(now_us), f"{self.what}, {age}", counted(self.partitions, "partition")

    def as_fields(self, now_us: int) -> dict[str, object]:
        return {
            "side": self.side,
            "partitions": self.partitions,
            "maps": list(self.maps),
            "at_most_backups": self.at_most_backups,
            "entries": self.entries,
            "since_seconds": round(max(now_us - self.since_us, 0) / SECOND_US, 1),
            "because_of": list(self.because_of),
            "outlook": self.outlook,
        }


def data_losses(picture: Picture, now_us: int) -> tuple[DataLoss, ...]:
    """Return the losses that members live with at `now_us`, one for each side that has one.

    A lineage without a master counts only as long as no master leads at all.
    """
    if not picture.losses:
        return ()
    living = [belief for belief in picture.members.values() if belief.status in ("member", "paused")]
    leading = [belief for belief in living if belief.is_master]
    sides = {belief.lineage: belief.label for belief in reversed(leading or living)}
    return tuple(
        _loss_of_side(picture, lineage, side, lost, now_us)
        for lineage, side in sides.items()
        if (lost := picture.losses.of(lineage)) is not None
    )


def _loss_of_side(picture: Picture, lineage: str, side: str, lost: LineageLoss, now_us: int) -> DataLoss:
    members, losses = picture.members.values(), picture.losses
    fewer, removed = losses.fewer(lineage, members, now_us), losses.removed_before(lineage)
    known = [entries for entries in lost.entries_of.values() if entries is not None]
    running = {belief.uuid for belief in members if belief.running and belief.lineage != lineage}
    merged = {belief.merged_from for belief in members if belief.witnessed_by and belief.lineage == lineage}

    def labels(are_so: Callable[[str], bool]) -> tuple[str, ...]:
        """Return each label once; several incarnations of a member may have gone, also of the present master."""
        found = dict.fromkeys(picture.label_of(member.address) for member in removed if are_so(member.uuid))
        return tuple(label for label in found if label != side)

    return DataLoss(
        side=side,
        lost=frozenset(lost.entries_of),
        at_most_backups=None if lost.at_most >= ALL_LOST else lost.at_most,
        maps=tuple(sorted(fewer or lost.maps)),
        since_us=lost.since_us,
        entries=sum(known) if len(known) == len(lost.entries_of) else sum(fewer.values()) or None,
        because_of=labels(lambda _: True),
        elsewhere=labels(running.__contains__),
        returned=labels(merged.__contains__),
        bringing=labels(losses.is_bringing),
    )


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
    fewer: int
    """Partitions with fewer copies than there could be, single ones included."""


class CopyCounts:
    """Counts copies, and keeps what it counted until that changes."""

    def __init__(self) -> None:
        self._counted: dict[tuple[str, str, object], tuple[int, TableCount]] = {}

    def census(self, picture: Picture, belief: MemberBelief, table: TableBelief, now_s: int) -> TableCount:
        """Count what is left of the partitions of this table, as its holder sees its cluster."""
        living = frozenset(holder.uuid for holder in table.holders if _lives(picture, belief, holder))
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
    alive = (*(holder.uuid in living for holder in table.holders), False)  # the last place is no holder's
    copies_of: dict[tuple[int, ...], int] = {}
    """By its holders, of whom many partitions have the same, what is left of a partition; -1 where nothing is to be noted."""
    for partition in range(table.partitions):
        held = table.rows.get(partition, NO_HOLDERS)[1:]
        copies = copies_of.get(held)
        if copies is None:
            copies = sum([alive[number] for number in held])
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

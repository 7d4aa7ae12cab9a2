"""Whether the replicas of all partitions are there and in step, by the tables of the masters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from quarterdeck.backend.judgement.health.copy_counts import CopyCounts, most_copies
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED
from quarterdeck.backend.picture.text.formatting import counted


class ReplicaSafety(NamedTuple):
    """Whether the replicas of all partitions are there and in step."""

    safe: bool | None
    """None where it is not known."""
    copies: int | None
    """How many copies of each partition there are; None where they differ, there is no table, or it is not known."""
    text: str
    ownerless: int = 0
    """Partitions without an owner that lives: calls on them get no answer."""
    is_outdated: bool = False
    """Whether owners were reported last for an older list, and some of them are not on the present one."""


UNKNOWN_TABLE = ReplicaSafety(None, None, f"partition table {NOT_REPORTED}")
SEARCHED_TABLE = ReplicaSafety(None, None, "the latest partition table is being searched")
NO_DATA = ReplicaSafety(True, None, "no data yet")


def replica_safety(
    picture: Picture,
    masters: Sequence[MemberBelief],
    members: Iterable[MemberBelief],
    counts: CopyCounts,
    now_s: int,
    gone: Collection[str] = (),
) -> ReplicaSafety:
    """Judge the tables of `masters`, and what the `members` that follow them say of their backups; the worst counts.

    What members hold that are `gone` for the watcher does not count.
    """
    if not masters:
        return UNKNOWN_TABLE
    found = [_of_table(picture, master, counts, now_s, gone) for master in masters]
    worst = min(found, key=lambda safety: (safety.safe is not False, safety.safe is not None))
    behind = sum(len(belief.out_of_step) for belief in members)
    if worst.safe and behind:
        return ReplicaSafety(False, worst.copies, f"{counted(behind, 'backup')} out of step")
    return worst


def _of_table(
    picture: Picture, master: MemberBelief, counts: CopyCounts, now_s: int, gone: Collection[str]
) -> ReplicaSafety:
    if master.leading.recovering is not None:
        return SEARCHED_TABLE
    if not master.shows("owners"):
        return UNKNOWN_TABLE
    table = master.table
    if table is None:
        return NO_DATA if master.seen_from_start else UNKNOWN_TABLE
    count = counts.census(picture, master, table, now_s, gone)
    if not master.shows("backups"):
        if count.lost and table.since_us <= master.list_since_us:
            text = f"owners of {counted(count.lost, 'partition')} unknown"
            return ReplicaSafety(None, None, text, is_outdated=True)
        if count.lost:
            return ReplicaSafety(False, None, f"{counted(count.lost, 'partition')} without an owner", count.lost)
        return ReplicaSafety(None, None, "backups unknown")
    few = (
        (count.lost, "no copy"), (count.unowned, "no owner"), (count.single, "one copy"),
        (count.fewer, "fewer copies than they should"),
    )  # fmt: skip
    for partitions, copies_left in few:
        if partitions:
            have = "has" if partitions == 1 else "have"
            text = f"{counted(partitions, 'partition')} {have} {copies_left}"
            return ReplicaSafety(False, None, text, count.lost + count.unowned)
    able = most_copies(master)
    copies = min(max((len(row) - 1 for row in table.rows.values()), default=0), able)
    if copies == 1:
        return ReplicaSafety(True, 1, "data in 1 copy, as there is no other member" if able == 1 else "data in 1 copy")
    return ReplicaSafety(True, copies, f"data safe: {copies} copies")

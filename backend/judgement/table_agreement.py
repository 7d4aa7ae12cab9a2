"""Whether the members of a cluster have the same partition table, judged only by reports of one moment.

Members that keep a journal record each change of their table. A witnessed member reports its owners when they change, at a
moment of its own, and its stamp of the table with its metrics. So its table is another one only if the owners still differ after
two samples; stamps alone show no difference.
"""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.table_belief import TableBelief

SAMPLE_US = 5 * SECOND_US
"""How often a witnessed member reports its metrics, and with them the stamp of its table."""
LASTING_US = 2 * SAMPLE_US


def differs_from_master(picture: Picture, belief: MemberBelief, now_us: int | None = None) -> bool:
    """Return whether the member's partition table is not the one that its master has, at `now_us` or the latest record.

    False while no master is seen, or nothing of it is reported.
    """
    return _is_another_table(picture, belief) and _has_lasted(picture, belief, picture.at if now_us is None else now_us)


def is_of_one_version(one: TableBelief, other: TableBelief) -> bool:
    """Return whether two tables have the same version, whatever they contain."""
    return one.version == other.version


def table_digests(picture: Picture, labels: Iterator[str], now_us: int) -> dict[str, list[str]]:
    """Return the members that hold each table, by its digest; one that its master has just changed counts as the master's."""
    holders: dict[str, list[str]] = {}
    for label in labels:
        belief = picture.members.get(label)
        if belief is None or not belief.running or belief.table is None:
            continue
        master = picture.master_of(label)
        unsettled = _is_another_table(picture, belief) and not differs_from_master(picture, belief, now_us)
        table = master.table if unsettled and master is not None and master.table is not None else belief.table
        holders.setdefault(table.digest, []).append(label)
    return holders


def is_unsettled(picture: Picture, now_us: int) -> bool:
    """Return whether members of one cluster report other owners, and it is not known yet whether that lasts."""
    return any(
        _is_another_table(picture, belief) and not _has_lasted(picture, belief, now_us)
        for belief in picture.members.values()
    )


def _is_another_table(picture: Picture, belief: MemberBelief) -> bool:
    master = picture.master_of(belief.label)
    if master is None or master.table is None or not belief.running or not belief.shows("owners"):
        return False
    return belief.table is None or belief.table.digest != master.table.digest


def _has_lasted(picture: Picture, belief: MemberBelief, now_us: int) -> bool:
    """Return whether what was reported of both is old enough to be of one moment."""
    master = picture.master_of(belief.label)
    if master is None or not (belief.witnessed_by or master.witnessed_by):
        return True
    changed = [holder.table.since_us if holder.table is not None else holder.started_us for holder in (belief, master)]
    return now_us - max(changed) > LASTING_US

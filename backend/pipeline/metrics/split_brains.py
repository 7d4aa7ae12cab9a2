"""Split brains: the spans in which more than one member led a cluster, and how long the sides took to merge again."""

from __future__ import annotations

from collections import Counter, defaultdict

from pyspark.sql.types import ArrayType, StructType

from quarterdeck.backend.pipeline.metrics.run_tables import RunTables
from quarterdeck.backend.pipeline.metrics.spans import counted, merged
from quarterdeck.backend.pipeline.tables.columns import schema
from quarterdeck.backend.pipeline.tables.run_events import Row

SIDE = schema(
    """
    master string label of its master
    lineage string lineage of its lists
    members array<string> labels of those who followed it longest, the master included
    """
)

SPLITS = schema(
    """
    run
    from_at bigint when there were two masters; microseconds on the run's clock
    to_at bigint when there was only one again; null while it lasted
    lasted_us bigint how long, up to the end of the journal where it lasted
    healed_at bigint when the last link was mended or frozen member resumed before it ended; null where none was
    merge_us bigint from then, or from the beginning, to the end
    sides sides the sides, in the order in which they began
    """,
    sides=ArrayType(StructType(SIDE.fields)),
)


def splits(tables: RunTables) -> list[Row]:
    """Make one row for each split brain. A frozen master leads no member."""
    leading = counted((one.from_at, one.to_at) for one in tables.masters)
    rows = []
    for from_at, to_at in merged((begins, ends) for begins, ends, masters in leading if masters > 1):
        ended_at = to_at if to_at < tables.span[1] else None
        healed_at = max((at for at, _ in tables.fault_ends if from_at < at <= to_at), default=None)
        rows.append(
            {
                **{"from_at": from_at, "to_at": ended_at, "lasted_us": to_at - from_at, "healed_at": healed_at},
                "merge_us": None if ended_at is None else ended_at - (from_at if healed_at is None else healed_at),
                "sides": _sides(tables, from_at, to_at),
            }
        )
    return rows


def _sides(tables: RunTables, begins: int, ends: int) -> list[Row]:
    """Return the sides of a split: who led in it, and those who followed that master longer than any other."""
    leaders: dict[str, tuple[int, str]] = {}
    for one in sorted(tables.masters, key=lambda one: (one.from_at, one.member)):
        if one.from_at < ends and one.to_at > begins:
            leaders.setdefault(one.lineage, (one.from_at, one.member))
    followed: dict[str, Counter[str]] = defaultdict(Counter)
    for view in tables.views:
        if view.from_at < view.to_at and view.from_at < ends and view.to_at > begins:
            followed[view.member][view.lineage] += min(view.to_at, ends) - max(view.from_at, begins)
    followers = defaultdict(list)
    for member, lineages in sorted(followed.items()):
        followers[min(lineages, key=lambda lineage: (-lineages[lineage], lineage))].append(member)
    return [
        {"master": master, "lineage": lineage, "members": followers[lineage]}
        for (_, master), lineage in sorted((leader, lineage) for lineage, leader in leaders.items())
        if lineage in followers
    ]

"""How long partitions had no owner that could answer, or too few replicas, according to the masters' tables.

Each side of a split counts by itself, with the table of its master. A holder counts until its incarnation ends, even when it
cannot be reached; a frozen owner answers no request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from quarterdeck.backend.pipeline.metrics.run_tables import RunTables, Span, Stretch, concurrent_sums, merged, metric
from quarterdeck.backend.pipeline.schemas import schema
from quarterdeck.backend.pipeline.tables.run_events import Row, followed

AVAILABILITY = schema(
    """
    run
    master_uuid string the incarnation of the master whose table this is
    master string its label
    partition int the partition
    observed_us bigint how long that master led with a table; all spans are in microseconds
    wanted int replicas that the partition should have: one more than backups are set, else the most it ever had
    without_owner_us bigint how long it had no owner that ran and was not frozen
    without_owner_times bigint how many times
    longest_without_owner_us bigint the longest of them
    fewer_replicas_us bigint how long it had fewer replicas than wanted, the owner included
    fewer_replicas_times bigint how many times
    """
)


class _HeldRow(NamedTuple):
    """A row of a master's table while that one led: the incarnations that hold replicas, the owner first."""

    holders: Sequence[str | None]
    from_at: int
    to_at: int


@metric("availability", AVAILABILITY, "how long partitions were without owner or short of replicas")
def availability(tables: RunTables) -> list[Row]:
    """Make one row for each partition and each master that led with a table."""
    held = _rows(tables)
    most = max((len(row.holders) - row.holders.count(None) for rows in held.values() for row in rows), default=0)
    made = []
    for (uuid, member, partition), rows in held.items():
        backups = tables.setting_count(uuid, "quarterdeck.backup.count")
        wanted = most if backups is None else backups + 1
        weighed = concurrent_sums(stretch for row in rows for stretch in _holding(tables, row))
        stretches = [stretch for stretch in weighed if stretch[2][0] > 0]
        ownerless = merged((from_at, to_at) for from_at, to_at, (_, owners, _) in stretches if owners == 0)
        fewer = merged((from_at, to_at) for from_at, to_at, (_, _, replicas) in stretches if replicas < wanted)
        made.append(
            {
                **{"master_uuid": uuid, "master": member, "partition": partition, "wanted": wanted},
                "observed_us": sum(stretch[1] - stretch[0] for stretch in stretches),
                **_summed(ownerless, "without_owner"),
                **_summed(fewer, "fewer_replicas"),
            }
        )
    return made


def _rows(tables: RunTables) -> dict[tuple[str, str, int], list[_HeldRow]]:
    """Return the rows of masters' own tables as long as these led, by uuid, label and partition."""
    leading = defaultdict(list)
    for leadership in tables.masters:
        leading[leadership.uuid].append(leadership)
    changes: dict[tuple[str, int], list[tuple[int, list[str | None]]]] = defaultdict(list)
    for event in sorted(tables.events.rows(("table-changed",), "uuid seq at", "holders rows"), key=itemgetter("seq")):
        # A row of `table-changed` has the partition, its version, and then the places of its holders.
        for partition, _, *places in event["rows"] if event["uuid"] in leading else ():
            uuids = [event["holders"][place]["uuid"] if place >= 0 else None for place in places]
            changes[event["uuid"], partition].append((event["at"], uuids))
    rows = defaultdict(list)
    for (uuid, partition), in_order in changes.items():
        for (at, uuids), following in followed(in_order):
            for leadership in leading[uuid]:
                from_at = max(at, leadership.from_at)
                to_at = leadership.to_at if following is None else min(following[0], leadership.to_at)
                if from_at < to_at:
                    rows[uuid, leadership.member, partition].append(_HeldRow(uuids, from_at, to_at))
    return rows


def _holding(tables: RunTables, row: _HeldRow) -> Iterator[Stretch]:
    """Yield the row's span, and for each holder the part of it in which that one ran; minus one owner while it was frozen.

    The weights are rows, owners and replicas.
    """
    yield row.from_at, row.to_at, (1, 0, 0)
    for index, holder in enumerate(row.holders):
        one = tables.running.get(holder) if holder is not None else None
        if one is not None and row.from_at < min(row.to_at, one.to_at):
            yield row.from_at, min(row.to_at, one.to_at), (0, int(index == 0), 1)
        for from_at, to_at in tables.frozen[holder] if holder is not None and index == 0 else ():
            if row.from_at < to_at and from_at < row.to_at:
                yield max(from_at, row.from_at), min(to_at, row.to_at), (0, -1, 0)


def _summed(spans: Sequence[Span], name: str) -> Row:
    lengths = [to_at - from_at for from_at, to_at in spans]
    longest = max(lengths, default=0)
    return {f"{name}_us": sum(lengths), f"{name}_times": len(lengths), f"longest_{name}_us": longest}

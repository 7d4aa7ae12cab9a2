"""The partition table as each member of a live cluster believes in it, folded from its records."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions.events import TableChanged

Row = tuple[str, ...]
"""The uuids of the holders by replica index; empty for nobody."""


class PartitionTables:
    """The tables of the lives whose records were taken in so far."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[int, Row]] = {}
        self.latest: dict[str, str] = {}
        """The uuid of every member's latest life, by label."""

    def take(self, records: Sequence[Record]) -> None:
        for record in records:
            if record.uuid != record.run:
                self.latest[record.member] = record.uuid
            event = record.event
            if isinstance(event, TableChanged):
                rows = self.rows.setdefault(record.uuid, {})
                uuids = [holder.uuid for holder in event.holders] + [""]
                for partition, _, *places in event.rows:
                    rows[partition] = tuple(uuids[place] for place in places)

    def are_safe(self, labels: Sequence[str], replicas: int) -> bool:
        """Whether all these members have the same table, and in it so many of them hold each partition."""
        lives = {self.latest.get(label, "") for label in labels}
        tables = [self.rows.get(life) for life in lives]
        first = tables[0]
        return (
            bool(first)
            and all(table == first for table in tables)
            and all(len(lives.intersection(row)) == replicas for row in first.values())
        )

    def are_balanced(self, labels: Sequence[str], replicas: int) -> bool:
        """Whether they are safe, and each of these members owns as many partitions as the others, but for one or two."""
        if not self.are_safe(labels, replicas):
            return False
        rows = self.rows[self.latest[labels[0]]].values()
        for index in range(replicas):
            shares = [sum(row[index] == self.latest[label] for row in rows) for label in labels]
            if max(shares) - min(shares) > 2:
                return False
        return True

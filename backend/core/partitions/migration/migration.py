"""One migration: what it changes, and what became of it.

See Avoid Data Loss on Migration, sections 2 and 3; Hazelcast: one migration.
"""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.core.partitions.migration.migration_steps import Kind
from quarterdeck.backend.core.partitions.table.replica import Replica, Replicas

SUCCESS_INCREMENT = 1
FAILURE_INCREMENT = 2
"""A failed migration raises the partition's version by 2, so that no table of a success can ever equal it (Avoid Data Loss on
Migration, 2.1)."""


class PartitionMigration(Struct, frozen=True, array_like=True):
    """One step of one partition, done wholly or not at all. Index -1 stands for none, as in `migration_planner.Step`.

    `version` is that of the partition from which the migration starts, `master` the incarnation that leads it.
    """

    id: str
    partition: int
    type: Kind
    version: int
    source: Replica | None
    source_current: int
    source_new: int
    destination: Replica
    destination_current: int
    destination_new: int
    master: Replica
    unavoidable: bool = False

    def applied_to(self, replicas: Replicas) -> Replicas:
        """Return the row after the migration."""
        after: list[Replica | None] = list(replicas)
        for index in (self.source_current, self.destination_current):
            if index >= 0:
                after[index] = None
        if self.source_new >= 0:
            after[self.source_new] = self.source
        after[self.destination_new] = self.destination
        return tuple(after)


class CompletedMigration(Struct, frozen=True, array_like=True):
    """An entry of the completed migrations list: the one decision about a migration.

    See Avoid Data Loss on Migration, Terminology.
    """

    migration: PartitionMigration
    committed: bool

    @property
    def final_version(self) -> int:
        """The partition's version after the decision."""
        return self.migration.version + (SUCCESS_INCREMENT if self.committed else FAILURE_INCREMENT)

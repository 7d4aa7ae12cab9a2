"""All tables that are made of events, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from quarterdeck.backend.pipeline.tables import (
    calls,
    claims,
    faults,
    lives,
    merges,
    migrations,
    suspicions,
    table_versions,
    views,
)


@dataclass(frozen=True)
class TableDefinition:
    """A table: its columns, and how it is made of de-duplicated events."""

    name: str
    schema: StructType
    make: Callable[[DataFrame], DataFrame]
    meaning: str


TABLES: dict[str, TableDefinition] = {
    one.name: one
    for one in (
        TableDefinition("lives", lives.LIVES, lives.lives, "the incarnations of members"),
        TableDefinition("views", views.VIEWS, views.views, "the lists that members installed"),
        TableDefinition(
            "suspicions", suspicions.SUSPICIONS, suspicions.suspicions, "who suspected whom, and for how long"
        ),
        TableDefinition("claims", claims.CLAIMS, claims.claims, "mastership claims"),
        TableDefinition("merges", merges.MERGES, merges.merges, "members that left their cluster for another one"),
        TableDefinition(
            "table_versions",
            table_versions.TABLE_VERSIONS,
            table_versions.table_versions,
            "changes of partition tables",
        ),
        TableDefinition("migrations", migrations.MIGRATIONS, migrations.migrations, "migrations, with their steps"),
        TableDefinition("writes", calls.WRITES, calls.writes, "puts and removes that somebody watched"),
        TableDefinition("reads", calls.READS, calls.reads, "gets that somebody watched"),
        TableDefinition("faults", faults.FAULTS, faults.faults, "what was done to the cluster from outside"),
    )
}
"""In the order of the reference."""

"""All tables that are made of events, by name."""

from __future__ import annotations

from pyspark.sql import DataFrame

from quarterdeck.backend.pipeline.tables import data_tables as data
from quarterdeck.backend.pipeline.tables import faults
from quarterdeck.backend.pipeline.tables import membership_tables as membership
from quarterdeck.backend.pipeline.tables.columns import TableDefinition as Table

_TABLES: tuple[Table[DataFrame], ...] = (
    Table("lives", membership.LIVES, membership.incarnations, "the incarnations of members"),
    Table("views", membership.VIEWS, membership.views, "the lists that members installed"),
    Table("suspicions", membership.SUSPICIONS, membership.suspicions, "who suspected whom, and for how long"),
    Table("claims", membership.CLAIMS, membership.claims, "mastership claims"),
    Table("merges", membership.MERGES, membership.merges, "members that left their cluster for another one"),
    Table("table_versions", data.TABLE_VERSIONS, data.table_versions, "changes of partition tables"),
    Table("migrations", data.MIGRATIONS, data.migrations, "migrations, with their steps"),
    Table("writes", data.WRITES, data.writes, "puts and removes that clients reported"),
    Table("reads", data.READS, data.reads, "gets that clients reported"),
    Table("faults", faults.FAULTS, faults.faults, "what was done to the cluster from outside"),
)

TABLES = {table.name: table for table in _TABLES}
"""In the order of the reference. Each is made of events that occur once."""

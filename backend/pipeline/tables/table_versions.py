"""One row for each change of a member's partition table (Avoid Data Loss on Migration)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.tables.columns import (
    AT,
    INCARNATION_UUID,
    INDEX,
    MEMBER,
    NUMBER,
    RUN,
    SEQ,
    TEXT,
    UTC,
    of_kind,
    schema,
    shaped,
)

TABLE_VERSIONS = schema(
    RUN,
    INCARNATION_UUID,
    MEMBER,
    SEQ,
    AT,
    UTC,
    ("version", NUMBER, "the table's version: the sum of its partitions' versions"),
    ("digest", TEXT, "what the content is compared by"),
    ("partitions", INDEX, "how many partitions there are"),
    ("changed", INDEX, "how many of them have changed"),
    ("cause", TEXT, "arranged, repaired, migration, recovered or published"),
    ("author", TEXT, "the incarnation that made the change"),
)


def table_versions(events: DataFrame) -> DataFrame:
    """Versions as each member came to have them."""
    event = F.col("event")
    rows = events.where(of_kind("table-changed")).withColumns(
        {
            "version": event["table_version"],
            "digest": event["digest"],
            "partitions": event["partitions"],
            "changed": F.size(event["rows"]),
            "cause": event["cause"],
            "author": event["author"],
        }
    )
    return shaped(rows, TABLE_VERSIONS)

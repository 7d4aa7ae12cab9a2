"""One row for each member list that a member installed."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from backend.pipeline.schemas import ENVELOPE, EVENT, RECORD

VIEWS = StructType(
    [*(RECORD[name] for name in ENVELOPE)]
    + [EVENT[name] for name in ("version", "lineage", "master", "members", "author", "cause")]
)
"""One row for each member list that a member installed."""


def views(events: DataFrame) -> DataFrame:
    """One row for each member list that a member installed (schema `VIEWS`)."""
    installed = events.where(F.col("event.kind") == "list-installed")
    return installed.select([F.col(name if name in ENVELOPE else f"event.{name}").alias(name) for name in VIEWS.names])

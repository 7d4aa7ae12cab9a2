"""One row for each member list that a member installed."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.schemas import ENVELOPE, EVENT
from quarterdeck.backend.pipeline.tables.columns import (
    AT,
    INCARNATION_UUID,
    MEMBER,
    NUMBER,
    RUN,
    SEQ,
    TEXT,
    UTC,
    of_kind,
    schema,
)

VIEWS = schema(
    RUN,
    MEMBER,
    INCARNATION_UUID,
    SEQ,
    AT,
    UTC,
    ("version", NUMBER, "version of the list"),
    ("lineage", TEXT, "the mastership from which it descends; versions are comparable within one"),
    ("master", TEXT, "address of the master that it names"),
    ("members", EVENT["members"].dataType, "the members, the oldest first"),
    ("author", TEXT, "address of the member that sent it; the master itself makes its own"),
    ("cause", TEXT, "what changed it"),
)


def views(events: DataFrame) -> DataFrame:
    """One row for each member list that a member installed (schema `VIEWS`)."""
    installed = events.where(of_kind("list-installed"))
    described = F.when(F.col("event.reason") != "", F.col("event.reason"))  # only lists from logs are
    columns = {"cause": F.coalesce(described, "event.cause")}
    return installed.select(
        [columns.get(name, F.col(name if name in ENVELOPE else f"event.{name}")).alias(name) for name in VIEWS.names]
    )

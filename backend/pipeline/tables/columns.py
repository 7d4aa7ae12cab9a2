"""How the tables are declared: each column with a type and a meaning, which the reference repeats; and common expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from quarterdeck.backend.core.properties import DOCUMENTED, PROPERTIES, SCALES

TYPES: dict[str, DataType] = {
    "string": StringType(),
    "bigint": LongType(),
    "int": IntegerType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
    "array<string>": ArrayType(StringType()),
}

COMMON = {
    "run": "string the run",
    "uuid": "string the incarnation: a member has a new one after each start and each merge",
    "member": "string label of the member",
    "seq": "bigint number of the event within its incarnation",
    "at": "bigint microseconds on the run's clock",
    "utc": "bigint microseconds since 1970, UTC",
}
"""Columns that are declared by their name alone."""

CLUSTER_EVENT_KINDS = (
    "process-killed",
    "process-paused",
    "process-resumed",
    "journal-changed",
    "link-changed",
    "operator-asked",
    "stranger-refused",
)
"""Kinds of events recorded under the name of the cluster: what is done to members, not what they do."""

SourceT = TypeVar("SourceT")


@dataclass(frozen=True)
class TableDefinition(Generic[SourceT]):
    """A table: its columns, and how it is made of its source."""

    name: str
    schema: StructType
    make: Callable[[SourceT], DataFrame]
    meaning: str


def schema(text: str, **types: DataType) -> StructType:
    """Parse a schema with a column in each line: name, type and meaning, which becomes the column's comment.

    A line of one word is a column of `COMMON`. `types` has the types that are not in `TYPES`, by the names used in the text.
    """
    fields = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition(" ")
        kind, meaning = (rest or COMMON[name]).split(maxsplit=1)
        fields.append(StructField(name, (TYPES | types)[kind], metadata={"comment": meaning}))
    return StructType(fields)


def shaped(table: DataFrame, wanted: StructType) -> DataFrame:
    """Select just the columns of `wanted`, in its order and types."""
    return table.select([F.col(field.name).cast(field.dataType).alias(field.name) for field in wanted.fields])


def of_kind(*kinds: str) -> Column:
    """Return whether an event is of one of these kinds."""
    return F.col("event.kind").isin(*kinds)


def aggregates(**columns: str) -> list[Column]:
    """Return SQL expressions as columns of these names.

    `expression @ kind` is aggregated over events of this kind only.
    """
    return [
        F.expr(f"{text} FILTER (WHERE event.kind = '{kind}')" if kind else text).alias(name)
        for name, expression in columns.items()
        for text, _, kind in (expression.partition(" @ "),)
    ]


def setting(settings: str, name: str) -> Column:
    """Return the text of property `name` in the map `settings`, or the documented default; null where they are unknown."""
    return F.when(F.col(settings).isNotNull(), F.coalesce(F.col(settings)[name], F.lit(str(DOCUMENTED[name]))))


def setting_us(settings: str, name: str) -> Column:
    """Return a duration in microseconds; null where the settings are unknown."""
    scale = SCALES[PROPERTIES[name][1].unit]
    return F.round(setting(settings, name).cast("double") * scale).cast("long")


def setting_count(settings: str, name: str) -> Column:
    """Return a number; null where the settings are unknown."""
    return setting(settings, name).cast("long")

"""How the tables' columns are written down: a type and a meaning, which the reference of tables repeats; and what many need."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from quarterdeck.backend.core.properties import DOCUMENTED, PROPERTIES, SCALES

TEXT, NUMBER, BOOLEAN, INDEX = StringType(), LongType(), BooleanType(), IntegerType()
TEXTS = ArrayType(TEXT)

RUN = ("run", TEXT, "the run")
INCARNATION_UUID = ("uuid", TEXT, "the incarnation: a member has a new one after each start and each merge")
MEMBER = ("member", TEXT, "label of the member")
SEQ = ("seq", NUMBER, "number of the event within its incarnation")
AT = ("at", NUMBER, "microseconds on the run's clock")
UTC = ("utc", NUMBER, "microseconds since 1970, UTC")


CLUSTER_EVENT_KINDS = (
    "process-killed",
    "process-paused",
    "process-resumed",
    "journal-changed",
    "link-changed",
    "operator-asked",
    "stranger-refused",
)
"""Kinds of events that stand under the name of the cluster: what is done to members, not what they do."""


def schema(*columns: tuple[str, DataType, str]) -> StructType:
    """A schema whose columns carry their meaning as a comment."""
    return StructType([StructField(name, kind, metadata={"comment": meaning}) for name, kind, meaning in columns])


def shaped(table: DataFrame, wanted: StructType) -> DataFrame:
    """`table` with just the columns of `wanted`, in its order and types."""
    return table.select([F.col(field.name).cast(field.dataType).alias(field.name) for field in wanted.fields])


def of_kind(*kinds: str) -> Column:
    """Whether an event is of one of these kinds."""
    return F.col("event.kind").isin(*kinds)


def field_when(kind: str, name: str) -> Column:
    """A field of the event where it is of this kind; null elsewhere."""
    return F.when(F.col("event.kind") == kind, F.col(f"event.{name}"))


def setting(settings: str, name: str) -> Column:
    """The text of property `name` in the map `settings`, or the documented default; null where they are not known."""
    return F.when(F.col(settings).isNotNull(), F.coalesce(F.col(settings)[name], F.lit(str(DOCUMENTED[name]))))


def setting_us(settings: str, name: str) -> Column:
    """A length of time in microseconds; null where they are not known."""
    scale = SCALES[PROPERTIES[name][1].unit]
    return F.round(setting(settings, name).cast("double") * scale).cast("long")


def setting_count(settings: str, name: str) -> Column:
    """A number; null where they are not known."""
    return setting(settings, name).cast("long")

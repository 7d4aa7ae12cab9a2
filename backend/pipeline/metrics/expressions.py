"""Expressions of Spark that several metrics and the report use."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from quarterdeck.backend.core.properties import DOCUMENTED, PROPERTIES, SCALES


def shaped(table: DataFrame, wanted: StructType) -> DataFrame:
    """Select just the columns of `wanted`, in its order and types."""
    return table.select([F.col(field.name).cast(field.dataType).alias(field.name) for field in wanted.fields])


def of_kind(*kinds: str) -> Column:
    """Return whether an event is of one of these kinds."""
    return F.col("event.kind").isin(*kinds)


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

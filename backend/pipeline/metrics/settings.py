"""What a life was set to, read from what it told as it began."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from quarterdeck.backend.core.properties import DOCUMENTED, PROPERTIES, SCALES


def setting(settings: str, name: str) -> Column:
    """The text of property `name` in the map `settings`, or the documented default; null where nobody told the settings."""
    return F.when(F.col(settings).isNotNull(), F.coalesce(F.col(settings)[name], F.lit(str(DOCUMENTED[name]))))


def setting_us(settings: str, name: str) -> Column:
    """A length of time in microseconds; null where nobody told the settings."""
    scale = SCALES[PROPERTIES[name][1].unit]
    return F.round(setting(settings, name).cast("double") * scale).cast("long")


def setting_count(settings: str, name: str) -> Column:
    """A number; null where nobody told the settings."""
    return setting(settings, name).cast("long")

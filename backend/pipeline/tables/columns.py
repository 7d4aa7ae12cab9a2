"""How the tables are declared: each column with a type and a meaning, which the reference repeats."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
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
    TimestampType,
)

from quarterdeck.backend.core.events import CLUSTER_EVENTS, EVENT_KINDS

TYPES: dict[str, DataType] = {
    "string": StringType(),
    "bigint": LongType(),
    "int": IntegerType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
    "timestamp": TimestampType(),
    "array<string>": ArrayType(StringType()),
}

COMMON = {
    "run": "string the run",
    "uuid": "string the incarnation: a member has a new one after each start and each merge",
    "member": "string label of the member",
    "seq": "bigint number of the event within its incarnation",
    "at": "bigint microseconds on the run's clock",
    "utc": "timestamp the same by the wall clock",
}
"""Columns that are declared by their name alone."""

CLUSTER_EVENT_KINDS = tuple(tag for tag, kind in EVENT_KINDS.items() if kind in CLUSTER_EVENTS)
"""Kinds of events recorded under the name of the cluster: what is done to members, not what they do."""


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


def arrow_schema(columns: StructType) -> pa.Schema:
    """Return these columns as Arrow has them; times are those of UTC."""
    return to_arrow_schema(columns, timezone="UTC")

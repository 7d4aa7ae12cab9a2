"""Schemas of the tables, derived from the event classes: nothing is inferred from data.

The `event` of a record becomes one struct with the fields of all kinds; a field that belongs to another kind is null.
"""

from __future__ import annotations

from typing import cast

import pyarrow as pa
from msgspec import inspect
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from quarterdeck.backend.core.events import CLUSTER_EVENTS, EVENT_KINDS, Record


class SchemaConflict(TypeError):
    """Event classes that cannot become columns; the message names class and field."""


def spark_type(kind: inspect.Type, where: str) -> DataType:
    """Return the column type for values of `kind`. Raises `SchemaConflict` naming `where`."""
    match kind:
        case inspect.BoolType():
            return BooleanType()
        case inspect.IntType():
            return LongType()
        case inspect.FloatType():
            return DoubleType()
        case inspect.StrType():
            return StringType()
        case inspect.LiteralType(values=values) if all(isinstance(value, str) for value in values):
            return StringType()
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return ArrayType(spark_type(item, where))
        case inspect.DictType(key_type=key, value_type=value):
            return MapType(spark_type(key, where), spark_type(value, where))
        case inspect.StructType(array_like=False):
            return struct_type(kind)
        case inspect.UnionType(types=types) if kind.includes_none and len(types) == 2:
            return spark_type(next(option for option in types if not isinstance(option, inspect.NoneType)), where)
    raise SchemaConflict(f"{where}: {type(kind).__name__} has no column type")


def struct_type(kind: inspect.StructType) -> StructType:
    """Return the columns of one struct class, as msgspec describes it."""
    return StructType(
        [
            StructField(field.encode_name, spark_type(field.type, f"{kind.cls.__name__}.{field.name}"))
            for field in kind.fields
        ]
    )


def columns_of(kind: type) -> StructType:
    """Return the columns of a struct class, under the names that its JSON uses."""
    return struct_type(cast(inspect.StructType, inspect.type_info(kind)))


def event_struct(kinds: tuple[inspect.StructType, ...]) -> StructType:
    """Return one struct that can hold an event of any of `kinds`.

    Raises `SchemaConflict` when two kinds give one name to fields of different types.
    """
    columns: dict[str, tuple[DataType, str]] = {"kind": (StringType(), "the tag")}
    for kind in kinds:
        for column in struct_type(kind).fields:
            owner = kind.cls.__name__
            known, first_owner = columns.setdefault(column.name, (column.dataType, owner))
            if known != column.dataType:
                raise SchemaConflict(
                    f"{owner}.{column.name} is {column.dataType.simpleString()}, "
                    f"in {first_owner} it is {known.simpleString()}"
                )
    return StructType([StructField(name, column_type) for name, (column_type, _) in columns.items()])


_FIELDS = {field.name: field.type for field in cast(inspect.StructType, inspect.type_info(Record)).fields}
EVENT_CLASSES = cast(tuple[inspect.StructType, ...], cast(inspect.UnionType, _FIELDS.pop("event")).types)
EVENT = event_struct(EVENT_CLASSES)
RECORD = StructType(
    [
        *(StructField(name, spark_type(kind, f"Record.{name}")) for name, kind in _FIELDS.items()),
        StructField("event", EVENT),
    ]
)


# How the tables are declared

TYPES: dict[str, DataType] = {
    "string": StringType(),
    "bigint": LongType(),
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

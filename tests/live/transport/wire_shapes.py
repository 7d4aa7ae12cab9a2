"""The shape of everything that members say to one another, as JSON, so that the wire of a release can be kept and compared.

Run it as ``python -m tests.live.transport.wire_shapes`` when a release is made: it writes what members of that release say.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.inspect import (
    BoolType,
    BytesType,
    DictType,
    FloatType,
    FrozenSetType,
    IntType,
    ListType,
    LiteralType,
    NoneType,
    SetType,
    StrType,
    StructType,
    TupleType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

from quarterdeck.backend.core.messages import MESSAGE_KINDS
from quarterdeck.backend.live.transport.handshake import (
    PROTOCOL_VERSION,
    Challenge,
    HandshakeHello,
    HandshakeRejection,
    Proof,
    Welcome,
)

DATA = Path(__file__).parent / "data"

HANDSHAKE: tuple[type[Struct], ...] = (HandshakeHello, Challenge, Proof, Welcome, HandshakeRejection)
KINDS: dict[str, type[Struct]] = {
    **{str(kind.__struct_config__.tag): kind for kind in HANDSHAKE},
    **MESSAGE_KINDS,
}
"""Everything that is said on a connection, by the name that it has there."""


def wire_file(version: int) -> Path:
    """Where the wire of a protocol version is kept."""
    return DATA / f"wire-{version}.json"


@cache
def shapes() -> dict[str, Any]:
    """For each kind its fields, and the bytes of an example."""
    return {
        name: {"fields": fields_of(kind), "example": msgspec.msgpack.encode(example_of(type_info(kind))).hex()}
        for name, kind in sorted(KINDS.items())
    }


def fields_of(kind: type) -> list[dict[str, Any]]:
    """The fields of a message in their order on the wire."""
    info = type_info(kind)
    assert isinstance(info, StructType)
    return [{"name": field.name, "type": shape_of(field.type), "required": field.required} for field in info.fields]


def shape_of(info: Type) -> Any:
    """A type as JSON; structs inside of messages with all their fields."""
    match info:
        case StructType():
            named = [
                {"name": field.name, "type": shape_of(field.type), "required": field.required} for field in info.fields
            ]
            return {"struct": info.tag or "", "fields": named, "as_list": info.array_like}
        case UnionType(types):
            return {"one of": sorted((shape_of(kind) for kind in types), key=json.dumps)}
        case LiteralType(values):
            return {"words": sorted(values, key=str)}
        case TupleType(item_types):
            return {"these": [shape_of(kind) for kind in item_types]}
        case VarTupleType(item_type) | ListType(item_type) | SetType(item_type) | FrozenSetType(item_type):
            return {"many": shape_of(item_type)}
        case DictType(key_type, value_type):
            return {"map": [shape_of(key_type), shape_of(value_type)]}
        case _:
            return type(info).__name__.removesuffix("Type").lower()


def example_of(info: Type) -> Any:
    """A value of a type, the same each time, with something in every place."""
    match info:
        case StructType():
            return info.cls(*(example_of(field.type) for field in info.fields))
        case UnionType(types):
            return example_of(next(kind for kind in types if not isinstance(kind, NoneType)))
        case LiteralType(values):
            return min(values, key=str)
        case TupleType(item_types):
            return tuple(example_of(kind) for kind in item_types)
        case VarTupleType(item_type) | ListType(item_type):
            return (example_of(item_type),)
        case SetType(item_type) | FrozenSetType(item_type):
            return frozenset({example_of(item_type)})
        case DictType(key_type, value_type):
            return {example_of(key_type): example_of(value_type)}
        case BoolType():
            return True
        case IntType():
            return 7
        case FloatType():
            return 0.5
        case StrType():
            return "10.0.0.7:5701"
        case BytesType():
            return b"\x07"
        case NoneType():
            return None
        case _:
            raise TypeError(f"no example of {info}")


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    wire_file(PROTOCOL_VERSION).write_text(json.dumps(shapes(), indent=1, sort_keys=True) + "\n")

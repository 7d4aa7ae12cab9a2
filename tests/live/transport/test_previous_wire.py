"""Members of this release understand those of the one before, which speak the oldest version that this one speaks.

A rolling upgrade has both at once. So what the one before says is kept here, and what is said now may only add to it: new kinds
of messages are no part of that promise, for they would close the connection.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from quarterdeck.backend.live.transport.handshake_messages import OLDEST_VERSION
from tests.live.transport.wire_shapes import KINDS, fields_of, shapes, wire_file

BEFORE: dict[str, Any] = json.loads(wire_file(OLDEST_VERSION).read_text())


def breaks(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> str:
    """Why members that know the fields `before` and those that know `now` do not understand one another; empty if they do."""
    for place, field in enumerate(before):
        if place >= len(now):
            return f"{field['name']} is gone"
        if now[place]["type"] != without_class_names(field["type"]):
            return f"{field['name']} is of another type"
        if now[place]["required"] and not field["required"]:
            return f"{field['name']} may not be left out any more"
    needed = [field["name"] for field in now[len(before) :] if field["required"]]
    return f"{', '.join(needed)} must be given" if needed else ""


def without_class_names(shape: Any) -> Any:
    """Return `shape` without the names of classes that have no tag, which are not on the wire."""
    if isinstance(shape, list):
        return [without_class_names(part) for part in shape]
    if not isinstance(shape, dict):
        return shape
    plain = {name: without_class_names(part) for name, part in shape.items()}
    return plain | {"struct": ""} if plain.get("struct", "")[:1].isupper() else plain


def test_the_same_kinds_are_said() -> None:
    assert set(KINDS) == set(BEFORE), "members of OLDEST_VERSION would hang up on other kinds of messages"


@pytest.mark.parametrize("name", sorted(BEFORE))
def test_fields_are_only_added_at_the_end(name: str) -> None:
    assert not breaks(BEFORE[name]["fields"], fields_of(KINDS[name])), "raise OLDEST_VERSION, too"


@pytest.mark.parametrize("name", sorted(BEFORE))
def test_what_the_release_before_says_is_understood(name: str) -> None:
    said = msgspec.msgpack.decode(bytes.fromhex(BEFORE[name]["example"]), type=KINDS[name])
    assert isinstance(said, KINDS[name])


@pytest.mark.parametrize("name", sorted(BEFORE))
def test_what_is_said_now_begins_as_the_release_before_expects(name: str) -> None:
    now = msgspec.msgpack.decode(bytes.fromhex(shapes()[name]["example"]))
    before = msgspec.msgpack.decode(bytes.fromhex(BEFORE[name]["example"]))
    assert now[: len(before)] == before


class Said(Struct, tag="said", array_like=True):
    number: int


class SaidLater(Struct, tag="said", array_like=True):
    number: int
    word: str = ""


def test_what_is_added_at_the_end_disturbs_nobody() -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(SaidLater(7, "x")), type=Said) == Said(7)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(Said(7)), type=SaidLater) == SaidLater(7)


def test_what_would_break_is_noticed() -> None:
    number, word = (
        {"name": "number", "type": "int", "required": True},
        {"name": "word", "type": "str", "required": False},
    )
    assert not breaks([number], [number, word])
    assert breaks([number, word], [number]) == "word is gone"
    assert breaks([number], [{**number, "type": "str"}]) == "number is of another type"
    assert breaks([number], [number, {**word, "required": True}]) == "word must be given"
    assert breaks([number, word], [number, {**word, "required": True}]) == "word may not be left out any more"

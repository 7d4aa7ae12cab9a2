"""Members of this release understand those of the one before, which speak the oldest version that this one speaks.

A rolling upgrade has both at once. So what the one before says is kept here, and what is said now may only add to it. New kinds
of messages would close the connection, so members of the release before are not sent them.
"""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from msgspec import Struct

from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.partitions.messages import ArrangeRequest, LiteChangeRequest
from quarterdeck.backend.live.transport import peer
from quarterdeck.backend.live.transport.connection import MESSAGE, CausedMessage
from quarterdeck.backend.live.transport.frames import PREFIX_BYTES, FrameTooLarge, frame_of
from quarterdeck.backend.live.transport.handshake import (
    OLDEST_VERSION,
    PROTOCOL_VERSION,
    HandshakeHello,
    Initiator,
    Responder,
    Welcome,
    hello_of,
)
from quarterdeck.backend.live.transport.peer import VERSION_OF_CAUSES, VERSION_OF_KIND, message_of, queued_frame_of
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
    newer = {kind.__struct_config__.tag for kind, version in VERSION_OF_KIND.items() if version > OLDEST_VERSION}
    assert set(KINDS) - newer == set(BEFORE), "members of OLDEST_VERSION would hang up on other kinds of messages"


def test_who_speaks_the_version_before_is_not_sent_what_it_does_not_know() -> None:
    sent: list[bytes] = []
    for version in (OLDEST_VERSION, PROTOCOL_VERSION):
        connection = Mock(version=version, send_bulk=sent.append, send=sent.append)
        for message in (LiteChangeRequest("u", lite=False), ArrangeRequest()):
            queued_frame_of(message).write_to(connection)
    assert [type(message_of(frame)) for frame in sent] == [ArrangeRequest, LiteChangeRequest, ArrangeRequest]


@pytest.mark.parametrize("version", range(OLDEST_VERSION, PROTOCOL_VERSION + 1))
def test_a_cause_goes_around_a_message_to_those_who_know_of_causes(version: int) -> None:
    because, said = RecordId("u1", 7), ArrangeRequest()
    frame = queued_frame_of(said, because).frame_for(version)
    if version < VERSION_OF_CAUSES:
        assert frame == queued_frame_of(said).frame == frame_of(said)
        assert message_of(frame) == said
    else:
        assert MESSAGE.decode(memoryview(frame)[PREFIX_BYTES:]) == CausedMessage(said, "u1", 7)


def test_a_message_that_is_too_long_with_its_cause_goes_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    queued = queued_frame_of(ArrangeRequest(), RecordId("u1", 7))

    def too_long(content: Struct) -> bytes:
        raise FrameTooLarge(2, 1)

    monkeypatch.setattr(peer, "frame_of", too_long)
    assert queued.frame_for(PROTOCOL_VERSION) == queued.frame


@pytest.mark.parametrize(("newest", "agreed"), [(0, 2), (2, 2), (3, 3), (4, 4), (5, 4)])
def test_both_sides_of_a_connection_know_the_version_that_they_have_in_common(newest: int, agreed: int) -> None:
    ours = hello_of("dev", "10.0.0.1:5701", "u1")
    theirs = HandshakeHello(OLDEST_VERSION, "dev", "10.0.0.2:5701", "u2", newest=newest)
    called = Responder(lambda: ours, None, lambda hello: None)
    called.take(memoryview(msgspec.msgpack.encode(theirs)))
    dialling = Initiator(ours, "10.0.0.2:5701", None)
    dialling.take(memoryview(msgspec.msgpack.encode(Welcome("10.0.0.2:5701", "u2", newest=newest))))
    assert called.agreement is not None and dialling.agreement is not None
    assert called.agreement.version == dialling.agreement.version == agreed


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

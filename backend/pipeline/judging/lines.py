"""From a line of a journal to its record, or to the reason why it is none. Imports no Spark."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import msgspec
from msgspec import Struct, inspect

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import HeartbeatLate, Record

TORN = "torn, no JSON, or a value of the wrong type"
UNKNOWN_VALUE = "Invalid enum value"
"""How msgspec begins what it says of a word that is not in a closed set."""


Line = tuple[int, str, int, Record, bytes]
"""A record where it stands: its time, file and line number, and the line. Tuples in order are in the order of the run's time."""


class StrangeRecord(Struct, frozen=True):
    """The head of a record whose event has a value that this version does not know: it is there, and cannot be judged."""

    run: str
    member: str
    uuid: str
    seq: int
    at: int
    utc: int

    def stand_in(self) -> Record:
        """A record of which nothing is asked but its number, so that nothing seems to be missing."""
        event = HeartbeatLate(Address(""), "", 0, 0, False)
        return Record(self.run, self.member, self.uuid, self.seq, self.at, self.utc, event)


class NoRecord(Exception):
    """A line that is no record; the message is the reason."""


decode_record = msgspec.json.Decoder(Record).decode
_HEAD = msgspec.json.Decoder(StrangeRecord)


def why_no_record(raw: bytes) -> str | None:
    """The reason why a line is no record; None for a record, also for a strange one."""
    try:
        decode_record(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        try:
            strange_record(raw, problem)
        except NoRecord as reason:
            return str(reason)
    return None


def strange_record(raw: bytes, problem: Exception) -> StrangeRecord:
    """The head of the record in `raw`, which could not be decoded because of `problem`. Raises `NoRecord` where it is none."""
    reason = _what_is_lacking(raw)
    if reason == TORN and str(problem).startswith(UNKNOWN_VALUE):
        try:
            return _HEAD.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            pass
    raise NoRecord(reason)


def _what_is_lacking(raw: bytes) -> str:
    try:
        told = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return TORN
    if not isinstance(told, dict):
        return TORN
    envelope, required_of = _required()
    if lacks := _absent(told, envelope):
        return f"lacks {lacks}"
    event = told.get("event")
    kind = event.get("kind") if isinstance(event, dict) else None
    if kind is None:
        return "lacks the kind of its event"
    if kind not in required_of:
        return f"unknown kind of event {kind}"
    lacks = _absent(cast(dict[str, Any], event), required_of[kind])
    return f"{kind} lacks {lacks}" if lacks else TORN


def _absent(told: dict[str, Any], names: tuple[str, ...]) -> str:
    return ", ".join(name for name in names if told.get(name) is None)


@cache
def _required() -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """What has to be there beside the event for a line to be a record, and by kind of event what makes it one."""
    record = cast(inspect.StructType, inspect.type_info(Record))
    envelope = tuple(one.encode_name for one in record.fields if one.required and one.name != "event")
    events = cast(inspect.UnionType, next(one.type for one in record.fields if one.name == "event"))
    kinds = (cast(inspect.StructType, kind) for kind in events.types)
    return envelope, {
        str(kind.tag): tuple(one.encode_name for one in kind.fields if one.required and not _may_be_null(one.type))
        for kind in kinds
    }


def _may_be_null(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.UnionType) and kind.includes_none

"""Decodes the lines of a journal, and counts and keeps those that are not judged. Imports no Spark."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import PurePosixPath
from typing import Any, cast

import msgspec
from msgspec import Struct, inspect

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Int64
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import HeartbeatLate
from quarterdeck.backend.journal.files import NOT_DECODABLE, SEALED_SUFFIX, sealed_name
from quarterdeck.backend.pipeline.rules import QuarantinedLine

TORN = "torn, no JSON, or a value of the wrong type"
UNKNOWN_VALUE = "Invalid enum value"
"""How msgspec begins its message about a word that is not in a closed set."""

MAX_QUARANTINED = 1_000
NO_RUN = "(none)"
"""The run of lines that belong to none."""

CONTRADICTS = "contradicts another event with the same identity"

Line = tuple[int, str, int, Record, bytes]
"""A record where it stands: its time, file and line number, and the line. Sorted tuples are in the order of the run's time.

The file is the key of `file_order` and, after another zero, the name that users know.
"""


@cache
def file_order(file: str) -> str:
    """Return the key by which files are sorted: their names while they are finished, then their paths.

    Of several lines with one identity (run, incarnation and number) but other contents the record is the first one by this key
    and its number in the file. All ways to read a journal keep to that: audits, tables, views, metrics and streams.
    """
    return f"{sealed_name(PurePosixPath(file).name).removesuffix(SEALED_SUFFIX)}\0{file}"


def file_of(line: Line) -> str:
    """Return the path of the file in which a line stands."""
    return line[1].rpartition("\0")[2]


class StrangeRecord(Struct, frozen=True):
    """The head of a record whose event has a value that this version does not know: it exists, but cannot be judged."""

    run: str
    member: str
    uuid: str
    seq: Int64
    at: Int64
    utc: Int64

    def stand_in(self) -> Record:
        """Return a record in its place of which only the number matters, so that nothing seems to be missing."""
        event = HeartbeatLate(Address(""), "", 0, 0, False)
        return Record(self.run, self.member, self.uuid, self.seq, self.at, self.utc, event)


class NoRecord(Exception):
    """A line that is no record; the message is the reason."""


class RunOfLine(Struct):
    """The run that a line names."""

    run: str


run_of_line = msgspec.json.Decoder(RunOfLine).decode
decode_record = msgspec.json.Decoder(Record).decode
_HEAD = msgspec.json.Decoder(StrangeRecord)


def strange_record(raw: bytes, problem: Exception) -> StrangeRecord:
    """Return the head of the record in `raw`, which `problem` kept from being decoded. Raises `NoRecord` if it is none."""
    reason = _missing_fields(raw)
    if reason == TORN and str(problem).startswith(UNKNOWN_VALUE):
        try:
            return _HEAD.decode(raw)
        except NOT_DECODABLE:
            pass
    raise NoRecord(reason)


def _missing_fields(raw: bytes) -> str:
    try:
        line = msgspec.json.decode(raw)
    except NOT_DECODABLE:
        return TORN
    if not isinstance(line, dict):
        return TORN
    envelope, required_of = _required()
    if lacks := _absent(line, envelope):
        return f"lacks {lacks}"
    event = line.get("event")
    kind = event.get("kind") if isinstance(event, dict) else None
    if kind is None:
        return "lacks the kind of its event"
    if kind not in required_of:
        return f"unknown kind of event {kind}"
    lacks = _absent(cast(dict[str, Any], event), required_of[kind])
    return f"{kind} lacks {lacks}" if lacks else TORN


def _absent(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return ", ".join(name for name in names if fields.get(name) is None)


@cache
def _required() -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the fields that every record needs beside the event, and by kind of event those that the event needs."""
    record = cast(inspect.StructType, inspect.type_info(Record))
    envelope = tuple(field.encode_name for field in record.fields if field.required and field.name != "event")
    events = cast(inspect.UnionType, next(field.type for field in record.fields if field.name == "event"))
    kinds = (cast(inspect.StructType, kind) for kind in events.types)
    return envelope, {
        str(kind.tag): tuple(
            field.encode_name
            for field in kind.fields
            if field.required and not (isinstance(field.type, inspect.UnionType) and field.type.includes_none)
        )
        for kind in kinds
    }


class SetAside(Struct):
    """The lines that were read but not judged: no records, or records that are there already."""

    lines: int = 0
    """How many lines were read in all."""
    duplicates: int = 0
    contradicting: int = 0
    quarantined: int = 0
    """Lines that are no records, and those that contradict one."""
    problems: list[QuarantinedLine] = []
    """The first of these."""

    def quarantine(self, place: str, number: int, raw: bytes, reason: str) -> None:
        """Count the line of this number as no record."""
        self.quarantined += 1
        if len(self.problems) < MAX_QUARANTINED:
            listed = place.rpartition("\0")[2]
            self.problems.append(QuarantinedLine(listed, raw.decode(errors="replace"), reason, number))

    def repeat(self, place: str, number: int, record: Record, raw: bytes, *, is_same: bool) -> None:
        """Count a record that is there already, or that contradicts one of the same identity."""
        if is_same:
            self.duplicates += 1
            return
        self.contradicting += 1
        self.quarantine(place, number, raw, f"{CONTRADICTS}, uuid {record.uuid} seq {record.seq}")

    def add(self, others: Iterable[SetAside]) -> None:
        for other in others:
            self.lines += other.lines
            self.duplicates += other.duplicates
            self.contradicting += other.contradicting
            self.quarantined += other.quarantined
            self.problems += other.problems
        self.problems = sorted(self.problems, key=lambda line: (line.file, line.number))[:MAX_QUARANTINED]

"""Patterns of events in expectations: the records that a pattern means, the number that it wants, and its mistakes.

A pattern holds a kind, any fields of such events, `member` for who recorded it, and how often: `at-least` once unless said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
from pydantic import BeforeValidator, Field

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import EVENT_KINDS, Record
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.documents.validation import did_you_mean
from quarterdeck.backend.picture.fold.picture import Picture

AT_LEAST, AT_MOST = "at-least", "at-most"
NOT_OF_EVENTS = ("kind", "member", AT_LEAST, AT_MOST)
"""The keys of a pattern that are no fields of an event."""

EventPattern = dict[str, Any]


def _as_patterns(value: object) -> object:
    """Accept one pattern without a list, and a kind alone as a pattern."""
    written = value if isinstance(value, list | tuple) else [value]
    return [{"kind": kind} if isinstance(kind, str) else kind for kind in written]


Written = Annotated[str, Field(json_schema_extra={"enum": sorted(EVENT_KINDS)})] | EventPattern
EventPatterns = Annotated[
    tuple[EventPattern, ...],
    BeforeValidator(_as_patterns, json_schema_input_type=Written | list[Written]),
    Field(min_length=1),
]


def event_text(pattern: EventPattern) -> str:
    """Return an event pattern in a few words."""
    rest = ", ".join(f"{name.replace('-', ' ')} {value}" for name, value in pattern.items() if name != "kind")
    return f"event {pattern.get('kind')}{f' ({rest})' if rest else ''}"


def events_missing(
    patterns: Iterable[EventPattern], picture: Picture, records: Sequence[Record], since: str
) -> Iterator[str]:
    """Return the number of records of each pattern that has too few or too many."""
    for pattern in patterns:
        found = sum(matches(pattern, picture, record) for record in records)
        least, most = pattern.get(AT_LEAST, 1), pattern.get(AT_MOST)
        what = event_text({name: value for name, value in pattern.items() if name not in (AT_LEAST, AT_MOST)})
        times = "once" if found == 1 else f"{found} times"
        if not found:
            yield f"no {what} since {since}"
        elif found < least:
            yield f"{what} {times} since {since}; expected {least} at least"
        elif most is not None and found > most:
            yield f"{what} {times} since {since}; expected {most} at most"


def forbidden_event(patterns: Iterable[EventPattern], picture: Picture, records: Iterable[Record]) -> str:
    """Return the first record that matches one of `patterns`, in words; empty when no record matches."""
    for record in records:
        if any(matches(pattern, picture, record) for pattern in patterns):
            return f"{_kind(record)} happened to {record.member} at {record.at / SECOND_US:.3f} s; expected never"
    return ""


def matches(pattern: EventPattern, picture: Picture, record: Record) -> bool:
    """Whether a record is of the pattern's kind and has its fields; labels stand for addresses, a set for a list."""
    if _kind(record) != pattern["kind"]:
        return False
    if pattern.get("member", record.member) != record.member:
        return False
    fields = {name: value for name, value in pattern.items() if name not in NOT_OF_EVENTS}
    return all(_same(picture, wanted, getattr(record.event, name)) for name, wanted in fields.items())


def _same(picture: Picture, wanted: Any, actual: Any) -> bool:
    if isinstance(wanted, list) and isinstance(actual, tuple):
        return len(wanted) == len(actual) and all(any(_same(picture, one, other) for other in actual) for one in wanted)
    if isinstance(actual, Member):
        return _same(picture, wanted, actual.address)
    if isinstance(actual, str):
        return bool(wanted == actual or picture.label_of(Address(actual)) == wanted)
    return bool(wanted == actual)


def _kind(record: Record) -> str:
    return str(record.event.__struct_config__.tag)


def pattern_problems(
    pattern: EventPattern, members: Sequence[str], *, counted: bool
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the mistakes of a pattern: the field, or none for the whole pattern, and the problem with a hint."""
    if "kind" not in pattern:
        yield (), f"names no kind; add kind: one of {', '.join(EVENT_KINDS)}"
        return
    kind = pattern["kind"]
    if not isinstance(kind, str) or kind not in EVENT_KINDS:
        yield ("kind",), f"there is no event {kind!r}; {did_you_mean(str(kind), EVENT_KINDS)}"
        return
    known = ["member", *(field.name for field in msgspec.structs.fields(EVENT_KINDS[kind]))]
    counts = [AT_LEAST, AT_MOST] if counted else []
    for name in pattern:
        if name not in ("kind", *known, *counts):
            yield (name,), f"{kind} has no such field; {did_you_mean(str(name), [*known, *counts])}"
    if "member" in pattern and pattern["member"] not in members:
        yield ("member",), f"there is no member {pattern['member']!r}; {did_you_mean(str(pattern['member']), members)}"
    for name in counts:
        if name in pattern and (type(pattern[name]) is not int or pattern[name] < 1):
            yield (name,), f"{pattern[name]!r} is not a number of events; write 1 or more, or never for none at all"
            return
    if pattern.get(AT_MOST, pattern.get(AT_LEAST, 1)) < pattern.get(AT_LEAST, 1):
        yield (AT_MOST,), f"{pattern[AT_MOST]} is less than at-least: {pattern[AT_LEAST]}; write that or more"

"""Every row, by the class of its events, and what all readers ask of an event: its kind, its words and its tone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quarterdeck.backend.core.events import EVENT_KINDS, Event, Record
from quarterdeck.backend.core.membership.events import MemberStarted
from quarterdeck.backend.picture.events.event_row import EpisodePart, EventRow
from quarterdeck.backend.picture.events.faults import FAULTS
from quarterdeck.backend.picture.events.membership import MEMBERSHIP
from quarterdeck.backend.picture.events.partitions import PARTITIONS
from quarterdeck.backend.picture.events.witnessed import WITNESSED
from quarterdeck.backend.picture.text.fact import Tone
from quarterdeck.backend.picture.text.formatting import NameOf, clock_text, one_line, with_names

ALL_ROWS: tuple[EventRow[Any], ...] = (*MEMBERSHIP, *FAULTS, *PARTITIONS, *WITNESSED)

ROWS: Mapping[type[Event], EventRow[Any]] = {row.kind: row for row in ALL_ROWS}

KINDS: Mapping[type[Event], str] = {kind: tag for tag, kind in EVENT_KINDS.items()}
"""By class, the name that it has in journals."""


PROCESS_FAULTS: frozenset[type] = frozenset(row.kind for row in ALL_ROWS if row.befalls is not None and row.lane)
"""The events of a member's process, recorded under the name of its cluster."""


def kind_of(record: Record) -> str:
    """Return the name of the kind of event, as journals have it."""
    return KINDS[type(record.event)]


def describe_event(event: Event, name_of: NameOf = str) -> str:
    """Return an event's words, without time and member. They may hold text of others; `record_words` makes one line."""
    return ROWS[type(event)].described(event, name_of)


def record_words(record: Record, name_of: NameOf = str) -> str:
    """Return the words of an event as one line without control characters, also with names for the addresses in reasons."""
    words = describe_event(record.event, name_of)
    if not isinstance(record.event, MemberStarted):  # which says which address a name stands for
        words = with_names(words, name_of)
    return one_line(words)


def describe_record(record: Record, name_of: NameOf = str) -> str:
    """Return time, member and words of an event, as one line without control characters."""
    return f"{clock_text(record.at)}  {one_line(record.member)}  {record_words(record, name_of)}"


def tone_of(event: Event) -> Tone:
    """Return how the line of an event is painted."""
    tone = ROWS[type(event)].tone
    return tone if isinstance(tone, str) else tone(event)


def part_of(event: Event) -> EpisodePart:
    """Return the role of an event within an episode."""
    part = ROWS[type(event)].part
    return part if isinstance(part, str) else part(event)

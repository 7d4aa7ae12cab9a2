"""How people name a moment of a run: in seconds, from where they are, by an event, or by a bookmark."""

from __future__ import annotations

import re
from typing import NamedTuple

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.replay.playhead import Playhead
from quarterdeck.backend.picture.replay.tape import Tape
from quarterdeck.backend.picture.text.refusal import Refusal

SECONDS = re.compile(r"(?:(?P<minutes>\d+):)?(?P<seconds>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|)")
UNIT_US = {"": SECOND_US, "s": SECOND_US, "ms": 1_000, "m": 60_000_000}
EVENT = re.compile(r"(?P<member>.+)#(?P<seq>\d+)")

USAGE = "write seconds (12.5, 1:30), +2 or -500ms from here, MEMBER#NUMBER of an event, a bookmark, start or end"


class EventName(NamedTuple):
    """An event: the label or the uuid of its member, and its number in that incarnation."""

    member: str
    seq: int


class BadMoment(Refusal):
    """A text that names no moment. The message has a hint."""


def moment_of(text: str, tape: Tape, playhead: Playhead) -> int:
    """Return the moment that `text` names, in microseconds on the run's clock; it may lie outside of the run.

    Raises:
        BadMoment: The text names none.
    """
    text = text.strip()
    named = tape.moment_of(text)
    if named is not None:
        return named
    if text in ("start", "end"):
        return tape.start_us if text == "start" else playhead.now_us
    event = named_event(text)
    if event is not None:
        return _moment_of_event(event, tape)
    if text[:1] in ("+", "-"):
        return playhead.shown_us + (seconds_of(text[1:]) if text[0] == "+" else -seconds_of(text[1:]))
    return seconds_of(text)


def seconds_of(text: str) -> int:
    """Return the microseconds of a time such as 12.5, 500ms or 1:30.

    Raises:
        BadMoment: The text is no time.
    """
    timed = SECONDS.fullmatch(text.strip())
    if timed is None:
        raise BadMoment(f"{text!r} names no moment; {USAGE}")
    return round(float(timed["seconds"]) * UNIT_US[timed["unit"]]) + int(timed["minutes"] or 0) * 60_000_000


def named_event(text: str) -> EventName | None:
    """Return the event that a text such as `n1#17` names; None when it is no such text."""
    event = EVENT.fullmatch(text.strip())
    return EventName(event["member"], int(event["seq"])) if event is not None else None


def _moment_of_event(event: EventName, tape: Tape) -> int:
    for record in reversed(tape.last(len(tape))):
        if record.seq == event.seq and event.member in (record.member, record.uuid):
            return record.at
    raise BadMoment(f"no event {event.member}#{event.seq} is remembered; {USAGE}")

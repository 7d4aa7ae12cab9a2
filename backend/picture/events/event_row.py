"""The row of an event: its words and its tone, its places in diagrams, logs and episodes, and what it follows from."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from string import Formatter
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event
from quarterdeck.backend.picture.text.fact import Tone
from quarterdeck.backend.picture.text.formatting import NameOf, bytes_text, duration_text, names_text, span_text

E = TypeVar("E")

FORMS: dict[str, Callable[[Any, NameOf], str]] = {
    "": lambda value, _: str(value),
    "name": lambda address, name_of: name_of(address),
    "names": names_text,
    "duration": lambda length_us, _: duration_text(length_us),
    "span": lambda length_us, _: span_text(length_us),
    "bytes": lambda size, _: bytes_text(size),
}
"""How a template writes a field of an event; the name of the form stands behind that of the field."""


def filled(template: str, event: object, name_of: NameOf) -> str:
    """Return a template such as ``removes {address:name}: {reason}`` with the event's values in these fields."""
    return "".join(
        [text + form(getattr(event, field), name_of) if field else text for text, field, form in _parts(template)]
    )


@cache
def _parts(template: str) -> list[tuple[str, str | None, Callable[[Any, NameOf], str]]]:
    return [(text, field, FORMS[form or ""]) for text, field, form, _ in Formatter().parse(template)]


Mark = tuple[str, Tone]
"""A mark in a lane of the space–time diagram: a glyph and its subject."""

LetterOf = Callable[[Address | str], str]
"""Gives the letter of the member at an address, or of this label, in marks."""

LandmarkLane = Literal["bookmarks", "violations", "splits", "claims", "faults", "observed"]
"""`faults` are those that were injected. For real members these are not recorded: what is `observed` stands in their place."""


class LandmarkMark(NamedTuple):
    """The reason for a mark on the strip of time."""

    lane: LandmarkLane
    letter: str
    tone: Tone
    text: str


class Follows(NamedTuple):
    """A kind of event that another one follows from, and why that is so."""

    kind: type[Event]
    reason: str
    deeper: bool = True
    """Whether the causes of that event belong to the answer too."""
    same: str = ""
    """The field in which both events agree. A `migration_id` is looked for at all members, as migrations have several."""


EpisodePart = Literal["decision", "detail", "frequent", "background", "measurement"]
"""What an event is within an episode.

A ``detail`` leads to a decision or follows one. ``frequent`` ones come by the thousand, and none of them is a decision that a
reader waits for. ``background`` is what a member notes for itself, which begins no episode if there is one. A ``measurement``
only gives amounts, and belongs to no episode.
"""

LaneState = Literal["alive", "frozen", "over"]


class EventRow(Struct, Generic[E], frozen=True):
    """Everything about one class of events that is not a field of it. Texts are templates, see `filled`, or functions."""

    kind: type[E]
    words: str | Callable[[E, NameOf], str]
    """The words of the event, without its time and member. They may hold text that others sent."""
    tone: Tone | Callable[[E], Tone] = "plain"
    """How its line in the tail of events is painted."""

    # The member's log
    level: int = logging.INFO
    """Warnings should be looked at, debug messages are the single steps of a protocol."""
    logged_as: str | Callable[[E], str] = ""
    """The product's phrase for it, which stands before its words."""

    # The space–time diagram and the strip of time
    mark: Mark | Callable[[E], Mark] | None = ("·", "faint")
    """Its text is a template. None: it is not drawn, for it would hide the rest, or concerns no other member."""
    mark_weight: int = 0
    """The greatest is shown of several marks in one place."""
    befalls: Callable[[E], str] | None = None
    """The label of the member that it is done to, where another one records it."""
    lane: LaneState | None = None
    """The state of its member's lane from here on."""
    landmark: Callable[[E, str], LandmarkMark | None] | None = None
    """How it stands out in a run; the second argument is the label of the member that records it."""

    # Episodes
    part: EpisodePart | Callable[[E], EpisodePart] = "decision"
    decides: int = 0
    """How much it says of why its episode went as it did; 0: nothing."""

    # Causes
    external: bool = False
    """Whether it comes from outside, and so follows from nothing that is recorded."""
    follows: tuple[Follows, ...] = ()
    """The kind of event that it follows from where it names no cause: the latest of the same incarnation."""

    def described(self, event: E, name_of: NameOf) -> str:
        """Return the words of the event, with these names of members."""
        return filled(self.words, event, name_of) if isinstance(self.words, str) else self.words(event, name_of)

    def marked(self, event: E, letter: LetterOf) -> Mark:
        """Return the diagram's text for a drawn event."""
        mark = self.mark if isinstance(self.mark, tuple) else self.mark(event) if self.mark else ("", "faint")
        return filled(mark[0], event, letter), mark[1]

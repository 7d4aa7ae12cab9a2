"""One event in full: every field of it, to read or to export."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.events.catalogue import kind_of, record_words
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.explain.episodes.sentences import Sentence
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import (
    NAMES_SPELT_OUT,
    NameOf,
    counted,
    duration_text,
    listed,
    one_line,
)

MOST_EVENTS = 40
"""How many events of an episode are listed beside it."""


def facts_of(record: Record, words: str) -> tuple[Fact, ...]:
    """Return the words of a record, its envelope and every field of its event."""
    fields = msgspec.to_builtins(record.event, enc_hook=str)
    return (
        Fact("event", words, "strong"),
        Fact("member", one_line(record.member)),
        Fact("incarnation", f"{one_line(record.uuid)}, event {record.seq} of it"),
        Fact("run", one_line(record.run)),
        Fact("at", f"{record.at / SECOND_US:.6f} s on the run's clock"),
        *(Fact(name.replace("_", " "), one_line(_text(value))) for name, value in fields.items() if name != "kind"),
    )


def episode_facts(
    episode: Episode, sentence: Sentence, time_of: Callable[[Record], str], name_of: NameOf
) -> tuple[Fact, ...]:
    """Return the sentence of an episode, and the first of its events."""
    events = (
        Fact(
            "" if place else "events",
            f"{time_of(record).strip()} {one_line(record.member)}: {record_words(record, name_of)}",
        )
        for place, record in enumerate(episode.records[:MOST_EVENTS])
    )
    lasted = episode.end_us - episode.at_us
    more = sentence.events - MOST_EVENTS
    return (
        Fact("what", sentence.text, "strong"),
        Fact("at", f"{time_of(episode.first).strip()}{f', for {duration_text(lasted)}' if lasted else ''}"),
        *(
            [Fact("members", listed(list(map(one_line, episode.subjects)), NAMES_SPELT_OUT))]
            if episode.subjects
            else []
        ),
        *events,
        *([Fact("", f"and {counted(more, 'event')} more; enter unfolds them", "faint")] if more > 0 else []),
    )


def exported(record: Record) -> dict[str, str]:
    """Return a record as a row of a file: the envelope, and the event as JSON."""
    return {
        "at_us": str(record.at),
        "utc_us": str(record.utc),
        "member": record.member,
        "uuid": record.uuid,
        "seq": str(record.seq),
        "kind": kind_of(record),
        "event": msgspec.json.encode(record.event, enc_hook=str).decode(),
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

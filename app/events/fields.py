"""One event in full: every field of it, to read or to export."""

from __future__ import annotations

import json

import msgspec

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.explain.event_filter import kind_of
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import one_line


def facts_of(record: Record, words: str) -> tuple[Fact, ...]:
    """What is told of `record` in `words`, the envelope of it and every field of its event."""
    fields = msgspec.to_builtins(record.event, enc_hook=str)
    return (
        Fact("event", words, "strong"),
        Fact("member", one_line(record.member)),
        Fact("incarnation", f"{one_line(record.uuid)}, event {record.seq} of it"),
        Fact("run", one_line(record.run)),
        Fact("at", f"{record.at / SECOND_US:.6f} s on the run's clock"),
        *(Fact(name.replace("_", " "), one_line(_text(value))) for name, value in fields.items() if name != "kind"),
    )


def exported(record: Record) -> dict[str, str]:
    """A record as a row of a file: the envelope, and the event as JSON."""
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

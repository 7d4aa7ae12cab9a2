"""Records as JSON, exactly as in journals; as many at a time as an answer or a message should hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from quarterdeck.backend.core.events import Record

_encode = msgspec.json.Encoder().encode


def first_of(records: Sequence[Record], limit: int) -> Iterator[Record]:
    return islice(records, limit)


def encoded(records: Iterable[Record], most_bytes: int) -> list[bytes]:
    """The first of `records`, one JSON object each: one at least, if there is any, and then as many as fit into `most_bytes`."""
    lines: list[bytes] = []
    room = most_bytes
    for record in records:
        line = _encode(record)
        room -= len(line)
        if lines and room < 0:
            break
        lines.append(line)
    return lines

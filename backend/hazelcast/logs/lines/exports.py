"""Exports of log stores whose records are not lines: CSV, one JSON array, the answer of a search. They are read as JSON lines.

Of a file whose objects carry printed lines, the newest first, the lines are turned round.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from array import array
from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, Literal, cast

from quarterdeck.backend.hazelcast.logs.lines.envelope import MESSAGE_KEYS, STREAM_KEYS, TIME_KEYS, strip_envelope
from quarterdeck.backend.hazelcast.logs.lines.form import FileForm
from quarterdeck.backend.hazelcast.logs.lines.layout import PREFIX
from quarterdeck.backend.hazelcast.logs.lines.timestamps import parse_time

Export = Literal["", "csv", "array", "answer"]
HEAD_BYTES = 1 << 13
"""So much of a file shows whether it is an export."""
_KEPT_BYTES = 16 << 20
"""More of a converted file than this stands on disk."""
_ANSWERS = ('"hits"', '"events"', '"values"', '"entries"', '"results"', '"logEvents"', '"data"', '"rows"')
_DELIMITERS = ",;\t|"


def export_kind(head: bytes) -> Export:
    """Return how a file that begins with `head` was exported, or "" when its lines are those of a log."""
    text = head.decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    first = text.partition("\n")[0].rstrip()
    if first[:1] == "[" and first[1:].lstrip()[:1] == "{" and first[1:].strip() != "{":
        return "array"
    if first[:1] == "{" and first != "{" and any(name in first[: HEAD_BYTES // 2] for name in _ANSWERS):
        return "answer" if _has_list(first) else ""
    return "csv" if _columns(text, _delimiter(first)) is not None else ""


def converted(source: BinaryIO, kind: Export) -> BinaryIO:
    """Return the records of an export as JSON lines."""
    rows = _csv_rows(source) if kind == "csv" else _objects(source, is_array=kind == "array")
    return spooled(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n" for row in rows)


def in_order_of_time(source: BinaryIO, form: FileForm) -> BinaryIO:
    """Return the lines of a file whose newest ones stand first. Lines of one moment keep their order where lists are whole so."""
    places, times = array("q", [0]), array("q")
    is_turned = True
    before = ""
    while line := source.readline():
        carried = strip_envelope(line.decode("utf-8", "replace"), form)
        is_turned &= not (carried.text.startswith("\tMember ") and before.startswith("Members "))
        before = carried.text
        times.append(carried.collected.us if carried.collected else times[-1] if times else 0)
        places.append(source.tell())
    order = sorted(range(len(times)), key=lambda number: (times[number], -number if is_turned else number))
    return spooled(_lines_at(source, places, order))


def _lines_at(source: BinaryIO, places: Iterable[int], order: Iterable[int]) -> Iterator[bytes]:
    starts = list(places)
    for number in order:
        source.seek(starts[number])
        line = source.read(starts[number + 1] - starts[number])
        yield line if line.endswith(b"\n") else line + b"\n"


def spooled(lines: Iterable[bytes]) -> BinaryIO:
    """Return a file of these lines, which can be read from any place; a great one stands on disk."""
    made = SpooledTemporaryFile(max_size=_KEPT_BYTES)  # closed by who reads it
    made.writelines(lines)
    made.seek(0)
    return cast(BinaryIO, made)


def _has_list(text: str) -> bool:
    """Return whether the beginning of a JSON document has a list in one of its fields, as the answer of a search has."""
    return any(
        f"{name}:{blank}{opens}" in text
        for name in _ANSWERS
        for blank in ("", " ")
        for opens in ("[", '{"hits"', '{"result')
    )


def _objects(source: BinaryIO, *, is_array: bool) -> Iterator[dict[str, Any]]:
    if not is_array:
        yield from _records(json.loads(source.read().decode("utf-8", "replace")))
        return
    decoder = json.JSONDecoder()
    text = ""
    reader = io.TextIOWrapper(source, "utf-8", "replace")
    while block := reader.read(1 << 16):
        text = (text + block).lstrip("\ufeff[ ,\r\n\t")
        while text.startswith("{"):
            try:
                found, end = decoder.raw_decode(text)
            except ValueError:
                break
            yield from _records(found)
            text = text[end:].lstrip("[ ,\r\n\t]")
    reader.detach()


def _records(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in a document that have a message, and the pairs of time and line of Loki."""
    if isinstance(document, list):
        for part in document:
            yield from _records(part)
    elif isinstance(document, dict):
        if strip_envelope(json.dumps(document)).wrapped:
            yield document
            return
        stream = document.get("stream") or document.get("labels") or {}
        for pair in document.get("values") or ():
            if isinstance(pair, list) and len(pair) > 1:
                yield {"timestamp": pair[0], "line": pair[1], "labels": stream}
        for name, part in document.items():
            if isinstance(part, (dict, list)) and name != "values":
                yield from _records(part)


def _delimiter(first: str) -> str:
    quoted = re.match(r'"(?:[^"]|"")*"([,;\t|])', first)
    return quoted[1] if quoted else max(_DELIMITERS, key=first.count)


class _CsvColumns(tuple[int, int | None, int | None, bool]):
    """The columns of message, time and source, and whether the first row names them."""


def _columns(text: str, delimiter: str) -> _CsvColumns | None:
    """Return which columns of a CSV file are the message, its time and its source; None for what is no such file."""
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))[:20]
    if not rows or len(rows[0]) < 2:
        return None
    names = [name.strip().lstrip("\ufeff") for name in rows[0]]
    message = _named(names, MESSAGE_KEYS)
    if message is not None:
        return _CsvColumns((message, _named(names, TIME_KEYS), _named(names, STREAM_KEYS), True))
    if not text.startswith('"'):
        return None
    places = [place for row in rows for place, field in enumerate(row) if PREFIX.search(field)]
    if not places:
        return None
    time = next((place for place, field in enumerate(rows[0]) if place != places[0] and parse_time(field)), None)
    return _CsvColumns((places[0], time, None, False))


def _named(names: list[str], wanted: Iterable[str]) -> int | None:
    lower = [name.lower() for name in names]
    return next((lower.index(name.lower()) for name in wanted if name.lower() in lower), None)


def _csv_rows(source: BinaryIO) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(min(sys.maxsize, 1 << 24))
    head = source.read(HEAD_BYTES).decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    source.seek(0)
    delimiter = _delimiter(head.partition("\n")[0])
    found = _columns(head, delimiter)
    assert found is not None
    message, time, stream, has_names = found
    reader = io.TextIOWrapper(source, "utf-8-sig", "replace", newline="")
    for number, row in enumerate(csv.reader(reader, delimiter=delimiter)):
        if len(row) > message and not (has_names and number == 0):
            of_row: dict[str, Any] = {"message": row[message]}
            if time is not None and len(row) > time:
                of_row["timestamp"] = row[time]
            if stream is not None and len(row) > stream:
                of_row["host"] = row[stream]
            yield of_row
    reader.detach()

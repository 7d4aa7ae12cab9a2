"""Bodies of JSON: read strictly, and those that may be long so that no step of the member's loop takes long.

A long body is a flat object of texts, or has a list of such objects. Nothing else of it is decoded.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NoReturn

from starlette.requests import Request

from quarterdeck.backend.service.http.responses import Denied

MOST_BYTES = 128 * 1024
"""Of JSON of any form; what is longer is flat."""
ENTRIES_AT_ONCE = 500
"""Entries of a body that are read within one step of the loop."""
HINT = "see /quarterdeck/v1/openapi.json for what goes here"
_BLANK = re.compile(r"[ \t\n\r]*")


class StrictRequest(Request):
    """A request whose JSON is decoded strictly: each field of an object stands once, and no number is infinite."""

    async def json(self) -> Any:
        raw = await self.body()
        return strict_json(raw) if len(raw) <= MOST_BYTES else long_json(raw)


def strict_json(raw: bytes) -> Any:
    """Decode JSON of any form. Raises `Denied`."""
    try:
        return json.loads(raw, object_pairs_hook=_object, parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        raise _no_json(problem) from None


def long_json(raw: bytes) -> dict[str, str | None]:
    """Decode an object of texts, which may be long. Raises `Denied`."""
    try:
        pull = JsonPull(raw.decode())
        fields = pull.flat_object()
        pull.end()
    except ValueError as problem:
        raise _no_json(problem) from None
    return fields


async def entries_json(raw: bytes) -> tuple[dict[str, str | None], list[dict[str, str | None]]]:
    """Decode an object of texts in which ``entries`` is a list of such objects: what else it holds, and those.

    Raises `Denied`.
    """
    fields: dict[str, str | None] = {}
    entries: list[dict[str, str | None]] | None = None
    try:
        pull = JsonPull(raw.decode())
        for name in pull.names():
            if name != "entries":
                fields[name] = pull.text()
                continue
            entries = []
            for _ in pull.places():
                if len(entries) % ENTRIES_AT_ONCE == 0:
                    await asyncio.sleep(0)
                entries.append(pull.flat_object())
        pull.end()
    except ValueError as problem:
        raise _no_json(problem) from None
    if entries is None:
        raise Denied(400, "entries: is missing", HINT)
    return fields, entries


async def request_bytes(request: Request, at_most: int) -> bytes:
    """Read the whole body. Raises `Denied`."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > at_most:
            raise Denied(413, "the body is too long", f"the most is {at_most} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _no_json(problem: Exception) -> Denied:
    return Denied(400, f"the body is no JSON of the form that is taken here: {problem}", HINT)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(_twice(next(name for name in names if names.count(name) > 1)))
    return fields


def _twice(name: str) -> str:
    return f"the field {name[:100]!r} is given twice"


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


class JsonPull:
    """Decodes JSON piece by piece. All methods raise ValueError for anything else than what they are to find."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def flat_object(self) -> dict[str, str | None]:
        """Return the next object, of which each value is a text or null."""
        return {name: self.text() for name in self.names()}

    def names(self) -> Iterator[str]:
        """Yield the names of the next object's fields. The caller takes each value before the next name."""
        seen: set[str] = set()
        for _ in self._places("{", "}"):
            name = self.text()
            self._expect(":")
            if name is None or name in seen:
                raise ValueError(_twice(name) if name is not None else "a name of a field is null")
            seen.add(name)
            yield name

    def places(self) -> Iterator[None]:
        """Yield for each element of the next list. The caller takes it."""
        return self._places("[", "]")

    def text(self) -> str | None:
        """Return the next text, or None for null."""
        if self._next() == '"':
            found, self._at = scanstring(self._text, self._at + 1)
            return str(found)
        if self._text.startswith("null", self._at):
            self._at += 4
            return None
        raise ValueError(f"expected a text at character {self._at}")

    def end(self) -> None:
        """Return where nothing follows."""
        if self._next():
            raise ValueError(f"something follows after its end, at character {self._at}")

    def _places(self, begin: str, end: str) -> Iterator[None]:
        self._expect(begin)
        if self._next() == end:
            self._at += 1
            return
        while True:
            yield
            if self._next() == end:
                self._at += 1
                return
            self._expect(",")

    def _expect(self, sign: str) -> None:
        if self._next() != sign:
            raise ValueError(f"expected {sign} at character {self._at}")
        self._at += 1

    def _next(self) -> str:
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank is not None else self._at
        return self._text[self._at : self._at + 1]

"""Bodies of operators' requests: a name, a password and maybe one thing more, joined by ``&`` (Hazelcast: REST bodies), or JSON.

The parts are told apart by their places, as ``curl --data-urlencode a --data-urlencode b`` writes them, and decoded once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import Struct
from starlette.requests import Request

from quarterdeck.backend.service.http.responses import Denied

MOST_BYTES = 64 * 1024
"""Of a body that is not a value of a map."""

NAME, PASSWORD = "cluster-name", "password"
"""Fields of a JSON body; the password may be left out."""

BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")

Value = str | list[object] | dict[str, object]


class Body(Struct, frozen=True):
    """What stood in the body. `payload` is empty where the path takes nothing more."""

    name: str
    password: str
    payload: Value = ""


async def read_body(request: Request, payload: str = "") -> Body:
    """The body of `request`; `payload` names what follows the password, if the path takes it. Raises `Denied`."""
    raw = await request_bytes(request, MOST_BYTES)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        return body_of_json(raw, payload)
    return body_of_text(raw, payload)


async def request_bytes(request: Request, at_most: int) -> bytes:
    """The whole body. Raises `Denied`."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > at_most:
            raise Denied(413, "the body is too long", f"the most is {at_most} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def body_of_text(raw: bytes, payload: str) -> Body:
    """Two parts, or three, of which the last may hold more ``&``. Raises `Denied`."""
    wanted = 3 if payload else 2
    parts = raw.split(b"&", wanted - 1)
    if len(parts) < wanted:
        names = [NAME, PASSWORD, payload][:wanted]
        line = " ".join(f'--data-urlencode "<{name}>"' for name in names)
        hint = f"this body has {len(parts)} of {' & '.join(names)}: curl -X POST {line}"
        raise Denied(400, f"expects at least {wanted} parameters", hint)
    return Body(*(_decoded(part, place) for place, part in enumerate(parts, start=1)))


def body_of_json(raw: bytes, payload: str) -> Body:
    """An object with the fields `NAME`, `PASSWORD` and `payload`. Raises `Denied`."""
    try:
        fields = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
        raise Denied(400, f"the body is not JSON: {problem}", "or leave out Content-Type: application/json") from None
    names = [NAME, PASSWORD, *([payload] if payload else [])]
    if not isinstance(fields, Mapping):
        raise Denied(400, "the body is no JSON object", f"write an object with {', '.join(names)}")
    unknown = sorted(set(fields) - set(names))
    if unknown:
        raise Denied(400, f"there is no field {unknown[0][:100]!r}", f"the fields are {', '.join(names)}")
    for name in names:
        if name == PASSWORD and name not in fields:
            continue
        value = fields.get(name)
        fits = isinstance(value, str) or (name == payload and isinstance(value, list | dict))
        if not fits:
            raise Denied(
                400, f"{name}: {'is missing' if name not in fields else 'is not text'}", f"write {name} as text"
            )
    return Body(fields[NAME], fields.get(PASSWORD, ""), fields[payload] if payload else "")


def _decoded(part: bytes, place: int) -> str:
    """Decoded once. A plus is a blank, as in forms."""
    if BAD_ESCAPE.search(part):
        raise Denied(400, f"part {place} of the body has a % that begins no escape", "write % as %25, as curl does")
    try:
        return unquote_to_bytes(part.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise Denied(400, f"part {place} of the body is not UTF-8 text", "write it in UTF-8") from None

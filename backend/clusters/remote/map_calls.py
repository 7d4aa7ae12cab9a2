"""Operations on distributed maps, asked of one member over HTTP."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from urllib.parse import quote

from msgspec.json import Decoder

from quarterdeck.backend.clusters.remote.member_client import HttpRequest, MemberClient, Method, RequestRefused, decoded
from quarterdeck.backend.core.commands.commands import CommandRefused
from quarterdeck.backend.core.operations import Answer, Get, Keys, Operation, Put, PutAll, Remove, Size
from quarterdeck.backend.member_api.answers import EntriesStored, Entry, ExportedEntry, MapKeys, MapSize

BODY_BYTES = 2 * 1024 * 1024
"""So many bytes of keys and values, at most, are sent in one request of many entries; one entry may be longer."""

LENGTH_IN_JSON = 2
"""A byte that is no plain letter takes up to so many in JSON or base64."""

PROBLEMS = (HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
"""What a member answers when an operation has failed, not the asking for it."""

RESERVED_KEYS = ("size", "keys")
"""What stands in the place of a key in paths that ask something about the whole map."""


async def call_map(client: MemberClient, url: str, operation: Operation) -> Answer:
    """Return the answer of the member at `url`.

    Raises:
        CommandRefused: It may not be asked, or gives no answer.
    """
    try:
        match operation:
            case Put(name, key, value):
                return await _of_key(client, url, "PUT", name, key, value)
            case Get(_, key) if key in RESERVED_KEYS:
                raise CommandRefused(
                    f"the key {key!r} cannot be read over HTTP: its path asks for the {key} of the map"
                )
            case Get(name, key):
                return await _get(client, url, name, key)
            case Remove(name, key):
                return await _of_key(client, url, "DELETE", name, key)
            case PutAll():
                return await _put_all(client, url, operation)
            case Size(name):
                content = await client.send(url, HttpRequest("GET", f"/maps/{segment(name)}/size", may_take_long=True))
                return Answer(size=decoded(Decoder(MapSize), content, url).size)
            case Keys(name):
                content = await client.send(url, HttpRequest("GET", f"/maps/{segment(name)}/keys", may_take_long=True))
                return Answer(keys=decoded(Decoder(MapKeys), content, url).keys)
    except RequestRefused as refusal:
        if refusal.status not in PROBLEMS:
            raise
        return Answer(problem=str(refusal), untouched=refusal.status != HTTPStatus.GATEWAY_TIMEOUT)


async def _get(client: MemberClient, url: str, name: str, key: str) -> Answer:
    """Read a key. A missing key is an answer, as it is for a member that is asked without HTTP."""
    try:
        return await _of_key(client, url, "GET", name, key)
    except RequestRefused as refusal:
        if refusal.status != HTTPStatus.NOT_FOUND:
            raise
        return Answer()


async def _of_key(
    client: MemberClient, url: str, method: Method, name: str, key: str, value: bytes | None = None
) -> Answer:
    body = None if value is None else _body_of(value)
    content = await client.send(
        url, HttpRequest(method, f"/maps/{segment(name)}/{segment(key)}", body, may_take_long=True)
    )
    return Answer(value=value_of(decoded(Decoder(Entry), content, url)))


async def _put_all(client: MemberClient, url: str, wanted: PutAll) -> Answer:
    """All of them in as few requests as their size allows; no more after the first that fails."""
    for some in in_batches(wanted.entries):
        body = {"map": wanted.map, "entries": [{"key": key, **_body_of(value)} for key, value in some]}
        content = await client.send(url, HttpRequest("POST", "/entries", body, may_take_long=True))
        decoded(Decoder(EntriesStored), content, url)
    return Answer()


def in_batches(entries: Iterable[tuple[str, bytes]], most: int = sys.maxsize) -> Iterator[list[tuple[str, bytes]]]:
    """Yield the entries, at most so many at a time, and not more than fit into one request."""
    batch: list[tuple[str, bytes]] = []
    size = 0
    for key, value in entries:
        length = LENGTH_IN_JSON * (len(key) + len(value))
        if batch and (len(batch) >= most or size + length > BODY_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((key, value))
        size += length
    if batch:
        yield batch


def _body_of(value: bytes) -> dict[str, str]:
    try:
        return {"value": value.decode()}
    except UnicodeDecodeError:
        return {"value_base64": base64.b64encode(value).decode()}


def value_of(entry: Entry | ExportedEntry) -> bytes | None:
    """Return the value of an entry as it is stored; None when there is none."""
    if entry.value_base64 is not None:
        return base64.b64decode(entry.value_base64)
    return None if entry.value is None else entry.value.encode()


def segment(text: str) -> str:
    """Return `text` as one part of a path or a query."""
    return quote(text, safe="")

"""The paths of ``/quarterdeck/v1/maps``: a distributed map, as a client of this member sees it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator, Mapping
from http import HTTPStatus
from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import ValidationError
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.responses import Response

from quarterdeck.backend.core.data.map_calls import why_too_large
from quarterdeck.backend.core.data.map_service import owned_maps
from quarterdeck.backend.core.data.partition_store import StoredEntry
from quarterdeck.backend.core.operations import Answer, Get, Keys, Operation, Put, PutAll, Remove, Size
from quarterdeck.backend.member_api.answers import EntriesStored, Entry, ExportedEntry, MapKeys, MapSize, PartitionHead
from quarterdeck.backend.service.configuration.process_configuration import Role
from quarterdeck.backend.service.console_api.route_classes import (
    JOINED,
    CallerDependency,
    FaceDependency,
    NewEntries,
    NewEntry,
    NewMapEntries,
    NewValue,
    described_body,
    guarded_by,
    validation_problem,
    with_error_responses,
)
from quarterdeck.backend.service.http.audited_requests import request_note
from quarterdeck.backend.service.http.bodies import ENTRIES_AT_ONCE, entries_json
from quarterdeck.backend.service.http.face import Caller, Face, utc_now_us
from quarterdeck.backend.service.http.responses import Denied


def _router(role: Role, *statuses: int, prefix: str = "") -> APIRouter:
    route, responses = guarded_by(role, "DATA"), with_error_responses(409, 503, *statuses)
    return APIRouter(prefix=prefix, route_class=route, responses=responses, dependencies=JOINED)


reading, writing = _router("read", 504, prefix="/maps"), _router("write", 504, prefix="/maps")
exporting, importing = _router("read"), _router("write", 504)

LINES_TYPE = "application/x-ndjson"
LINES_AT_ONCE = 500
"""So many lines of an export are written before other clients have their turn."""


class KeyConvertor(PathConvertor):
    """Any characters, also slashes and newlines."""

    regex = "(?s:.+)"


register_url_convertor("map_key", KeyConvertor())

MapName = Annotated[str, Path(alias="map", min_length=1, max_length=200)]
Key = Annotated[str, Path(min_length=1, description="may hold slashes")]


@reading.get("/{map}/size")
async def size(name: MapName, face: FaceDependency, caller: CallerDependency) -> MapSize:
    """Return how many entries the map has."""
    return MapSize(size=(await map_answer(face, Size(name), caller)).size)


@reading.get("/{map}/keys")
async def keys(name: MapName, face: FaceDependency, caller: CallerDependency) -> MapKeys:
    """Return all keys, sorted. Refused when there are too many to list."""
    return MapKeys(keys=(await map_answer(face, Keys(name), caller)).keys)


@reading.get("/{map}/{key:map_key}")
async def get(name: MapName, key: Key, face: FaceDependency, caller: CallerDependency) -> Entry:
    """Return the value under `key`. Keys called size or keys are read with the operators' paths."""
    answer = await map_answer(face, Get(name, key), caller)
    if answer.value is None:
        raise Denied(HTTPStatus.NOT_FOUND, f"nothing is stored under {key!r} in {name!r}")
    return _entry(key, answer.value)


def _body_of(model: type[NewEntries], example: dict[str, object]) -> dict[str, object]:
    return described_body({"$ref": f"#/components/schemas/{model.__name__}"}, {"one": example})


ONE_ENTRY: dict[str, object] = {"entries": [{"key": "a", "value": "Byzantium"}]}


@writing.post("/{map}/entries", openapi_extra=_body_of(NewEntries, ONE_ENTRY))
async def put_all(name: MapName, request: Request, face: FaceDependency, caller: CallerDependency) -> EntriesStored:
    """Store many values, each as a put of its own. After a problem some may be stored and others not."""
    rest, entries = await entries_json(await request.body())
    NewEntries.model_validate({**rest, "entries": []})
    return await _put_all(face, caller, name, await _checked(name, entries))


@importing.post("/entries", openapi_extra=_body_of(NewMapEntries, {"map": "cities"} | ONE_ENTRY))
async def put_all_of(request: Request, face: FaceDependency, caller: CallerDependency) -> EntriesStored:
    """Store many values in a map of any name, as the path of the map does."""
    rest, entries = await entries_json(await request.body())
    given = NewMapEntries.model_validate({**rest, "entries": []})
    return await _put_all(face, caller, given.map, await _checked(given.map, entries))


async def _checked(name: str, entries: list[dict[str, str | None]]) -> tuple[tuple[str, bytes], ...]:
    """Return keys and values of the entries of a body. Raises `Denied`."""
    checked = []
    for number, fields in enumerate(entries):
        if number % ENTRIES_AT_ONCE == 0:
            await asyncio.sleep(0)
        try:
            entry = NewEntry.model_validate(fields)
        except ValidationError as problem:
            first = problem.errors()[0]
            message, hint = validation_problem({**first, "loc": ("body", "entries", number, *first["loc"])})
            raise Denied(HTTPStatus.BAD_REQUEST, message, hint) from None
        checked.append((entry.key, _bytes_of(entry)))
        _require_room(Put(name, *checked[-1]))
    return tuple(checked)


async def _put_all(face: Face, caller: Caller, name: str, entries: tuple[tuple[str, bytes], ...]) -> EntriesStored:
    request_note().detail = f"{len(entries)} entries of {name}"
    return EntriesStored(stored=(await map_answer(face, PutAll(name, entries), caller)).size)


@writing.put("/{map}/{key:map_key}")
async def put(name: MapName, key: Key, value: NewValue, face: FaceDependency, caller: CallerDependency) -> Entry:
    """Store a value; the answer has the previous one."""
    return _entry(key, (await map_answer(face, Put(name, key, _bytes_of(value)), caller)).value)


@writing.delete("/{map}/{key:map_key}")
async def remove(name: MapName, key: Key, face: FaceDependency, caller: CallerDependency) -> Entry:
    """Remove a value; the answer has the previous one."""
    return _entry(key, (await map_answer(face, Remove(name, key), caller)).value)


async def map_answer(face: Face, operation: Operation, caller: Caller) -> Answer:
    """Carry out an operation on a map, for all paths of maps. Raises `Denied`."""
    _require_room(operation)
    answer = await face.call(operation, caller)
    more: dict[str, object] = {"untouched": answer.untouched}
    if answer.problem and answer.untouched:
        raise Denied(HTTPStatus.CONFLICT, answer.problem, "nothing was changed", more=more)
    if answer.problem:
        more |= {"stored": answer.size} if isinstance(operation, PutAll) else {}
        hint = "a write may have been done or not; look it up"
        raise Denied(HTTPStatus.GATEWAY_TIMEOUT, answer.problem, hint, more=more)
    return answer


def _require_room(operation: Operation) -> None:
    if too_large := why_too_large(operation):
        raise Denied(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, too_large, "nothing was changed")


def _entry(key: str, value: bytes | None) -> Entry:
    if value is None:
        return Entry(key=key, found=False)
    try:
        return Entry(key=key, found=True, value=value.decode())
    except UnicodeDecodeError:
        return Entry(key=key, found=True, value_base64=base64.b64encode(value).decode())


def _bytes_of(given: NewValue) -> bytes:
    if given.value is not None:
        return given.value.encode()
    return base64.b64decode(given.value_base64 or "", validate=True)


@exporting.get("/partitions/{partition}/entries", response_class=StreamingResponse)
async def entries(
    face: FaceDependency,
    partition: Annotated[int, Path(ge=0, le=1_000_000)],
    name: Annotated[str, Query(alias="map", max_length=200, description="only this map")] = "",
) -> Response:
    """Return a line of JSON about the partition and one for each entry, as they are at one moment. Only its owner can."""
    maps = owned_maps(face.member, partition, name)
    if maps is None:
        problem = f"partition {partition} is not owned here"
        raise Denied(HTTPStatus.CONFLICT, problem, "ask its owner: /quarterdeck/v1/table")
    count = sum(map(len, maps.values()))
    member = face.member
    head = PartitionHead(partition, len(member.table), member.address, member.uuid, utc_now_us(), count)
    pieces = _pieces(head, maps)
    if count < LINES_AT_ONCE:  # one answer of a known length arrives sooner
        return Response(b"".join(pieces), media_type=LINES_TYPE)
    return StreamingResponse(_piecewise(pieces), media_type=LINES_TYPE)


def _pieces(head: PartitionHead, maps: Mapping[str, Mapping[str, StoredEntry]]) -> Iterator[bytes]:
    lines = [msgspec.json.encode(head)]
    for name, stored in maps.items():
        for key, entry in stored.items():
            lines.append(msgspec.json.encode(_exported(name, key, entry)))
            if len(lines) >= LINES_AT_ONCE:
                yield b"\n".join(lines) + b"\n"
                lines = []
    yield b"".join(line + b"\n" for line in lines)


async def _piecewise(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)


def _exported(name: str, key: str, entry: StoredEntry) -> ExportedEntry:
    use = (entry.version, entry.created_us, entry.updated_us, entry.accessed_us, entry.hits)
    value = _entry(key, entry.value)
    return ExportedEntry(name, key, *use, value=value.value, value_base64=value.value_base64)

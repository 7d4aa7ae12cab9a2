"""The paths of ``/quarterdeck/v1/maps``: a distributed map, as a client of this member sees it."""

from __future__ import annotations

import base64
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.convertors import PathConvertor, register_url_convertor

from quarterdeck.backend.core.operations import Answer, Get, Keys, Operation, Put, PutAll, Remove, Size
from quarterdeck.backend.member_api.answers import EntriesStored, Entry, MapKeys, MapSize
from quarterdeck.backend.service.console_api.requests import NewEntries, NewValue
from quarterdeck.backend.service.console_api.route_classes import (
    JOINED,
    CallerDependency,
    DataReadingRoute,
    DataWritingRoute,
    FaceDependency,
    with_error_responses,
)
from quarterdeck.backend.service.http.face import Caller, Face
from quarterdeck.backend.service.http.responses import Denied

reading = APIRouter(
    prefix="/maps",
    route_class=DataReadingRoute,
    responses=with_error_responses(409, 503, 504),
    dependencies=JOINED,
)
writing = APIRouter(
    prefix="/maps",
    route_class=DataWritingRoute,
    responses=with_error_responses(409, 503, 504),
    dependencies=JOINED,
)


class KeyConvertor(PathConvertor):
    """Any characters, also slashes and newlines."""

    regex = "(?s:.+)"


register_url_convertor("map_key", KeyConvertor())

MapName = Annotated[str, Path(alias="map", min_length=1, max_length=200)]
Key = Annotated[str, Path(min_length=1, description="may hold slashes")]


@reading.get("/{map}/size")
async def size(name: MapName, face: FaceDependency, caller: CallerDependency) -> MapSize:
    """Return how many entries the map has."""
    return MapSize(size=(await _answer(face, Size(name), caller)).size)


@reading.get("/{map}/keys")
async def keys(name: MapName, face: FaceDependency, caller: CallerDependency) -> MapKeys:
    """Return all keys, sorted. Refused when there are too many to list."""
    return MapKeys(keys=(await _answer(face, Keys(name), caller)).keys)


@reading.get("/{map}/{key:map_key}")
async def get(name: MapName, key: Key, face: FaceDependency, caller: CallerDependency) -> Entry:
    """Return the value under `key`. Keys called size or keys are read with the operators' paths."""
    answer = await _answer(face, Get(name, key), caller)
    if answer.value is None:
        raise Denied(HTTPStatus.NOT_FOUND, f"nothing is stored under {key!r} in {name!r}")
    return _entry(key, answer.value)


@writing.post("/{map}/entries")
async def put_all(name: MapName, given: NewEntries, face: FaceDependency, caller: CallerDependency) -> EntriesStored:
    """Store many values, each as a put of its own. After a problem some may be stored and others not."""
    entries = tuple((entry.key, _bytes_of(entry)) for entry in given.entries)
    await _answer(face, PutAll(name, entries), caller)
    return EntriesStored(stored=len(entries))


@writing.put("/{map}/{key:map_key}")
async def put(name: MapName, key: Key, value: NewValue, face: FaceDependency, caller: CallerDependency) -> Entry:
    """Store a value; the answer has the previous one."""
    return _entry(key, (await _answer(face, Put(name, key, _bytes_of(value)), caller)).value)


@writing.delete("/{map}/{key:map_key}")
async def remove(name: MapName, key: Key, face: FaceDependency, caller: CallerDependency) -> Entry:
    """Remove a value; the answer has the previous one."""
    return _entry(key, (await _answer(face, Remove(name, key), caller)).value)


async def _answer(face: Face, operation: Operation, caller: Caller) -> Answer:
    answer = await face.call(operation, caller)
    if answer.problem and answer.untouched:
        raise Denied(HTTPStatus.CONFLICT, answer.problem, "nothing was changed")
    if answer.problem:
        raise Denied(HTTPStatus.GATEWAY_TIMEOUT, answer.problem, "a write may have been done or not; look it up")
    return answer


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

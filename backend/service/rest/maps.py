"""``/hazelcast/rest/maps/{map}/{key}``: entries of distributed maps. A value is bytes, as they came."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from starlette.convertors import PathConvertor, register_url_convertor
from starlette.responses import Response

from quarterdeck.backend.core.data.map_calls import MOST_ENTRY_BYTES
from quarterdeck.backend.core.operations import Answer, Get, Operation, Put, Remove
from quarterdeck.backend.service.console_api.maps import map_answer
from quarterdeck.backend.service.http.bodies import request_bytes
from quarterdeck.backend.service.http.responses import Denied
from quarterdeck.backend.service.rest.endpoint import BAD_ESCAPE, RestEndpoint, RestRequest

PREFIX = "/hazelcast/rest/maps/"


class AnyText(PathConvertor):
    """The rest of a path, line breaks included."""

    regex = r"[\s\S]*"


register_url_convertor("any", AnyText())


async def get(rest_request: RestRequest) -> Response:
    """Answer with the value, or 204 when there is none."""
    answer = await _carried_out(rest_request, Get(*_entry(rest_request)))
    if answer.value is None:
        return Response(status_code=204)
    return Response(answer.value, media_type=_kind_of(answer.value))


async def put(rest_request: RestRequest) -> Response:
    """Set the value of a key."""
    name, key = _entry(rest_request)
    await _carried_out(rest_request, Put(name, key, await request_bytes(rest_request.request, MOST_ENTRY_BYTES)))
    return Response()


async def remove(rest_request: RestRequest) -> Response:
    """Remove a key, whether it was there or not."""
    await _carried_out(rest_request, Remove(*_entry(rest_request)))
    return Response()


async def _carried_out(rest_request: RestRequest, operation: Operation) -> Answer:
    return await map_answer(rest_request.joined(), operation, rest_request.caller)


def _entry(rest_request: RestRequest) -> tuple[str, str]:
    """Return the map and the key. A key may hold slashes, escaped or not. Raises `Denied`."""
    raw = rest_request.request.scope.get("raw_path") or rest_request.request.url.path.encode()
    rest = raw.partition(b"?")[0].removeprefix(PREFIX.encode())
    name, slash, key = rest.partition(b"/")
    if not name or not slash or not key:
        raise Denied(404, "no entry is named", f"write {PREFIX}MAP/KEY")
    return _decoded(name), _decoded(key)


def _decoded(part: bytes) -> str:
    if BAD_ESCAPE.search(part):
        raise Denied(400, "the path has a % that begins no escape", "write % as %25")
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise Denied(400, "the path is not UTF-8 text", "escape it as UTF-8") from None


def _kind_of(value: bytes) -> str:
    """Return the type of text if it is text; the type with which it was stored is not kept."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain; charset=utf-8"


PATHS = (
    RestEndpoint(PREFIX + "{entry:any}", ("GET",), "DATA", get),
    RestEndpoint(PREFIX + "{entry:any}", ("POST", "PUT"), "DATA", put, role="write"),
    RestEndpoint(PREFIX + "{entry:any}", ("DELETE",), "DATA", remove, role="write"),
)

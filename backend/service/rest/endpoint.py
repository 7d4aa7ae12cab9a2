"""How an operators' path is served: its endpoint group, who asks, what the body says, then the answer.

Each file of this room lists its paths as `RestEndpoint`; what they have in common is done here, in one order for all. A body is
a name, a password and perhaps one more part, joined by ``&`` (Hazelcast: REST bodies), or JSON. Parts are recognised by their
places, as ``curl --data-urlencode a --data-urlencode b`` writes them, and decoded once.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from msgspec import Struct
from starlette.background import BackgroundTask
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from quarterdeck.backend.service.configuration.process_configuration import GROUPS_BY_DEFAULT, EndpointGroup, Role
from quarterdeck.backend.service.http.access import access_of, require
from quarterdeck.backend.service.http.audited_requests import request_note
from quarterdeck.backend.service.http.bodies import request_bytes, strict_json
from quarterdeck.backend.service.http.face import Caller, Face
from quarterdeck.backend.service.http.responses import Denied, wrong_method

MOST_BYTES = 64 * 1024
"""Of a body that is not a value of a map."""
NAME, PASSWORD = "cluster-name", "password"
"""Fields of a JSON body; the password may be left out."""
BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
Value = str | list[object] | dict[str, object]


class Body(Struct, frozen=True):
    """The parts of a body. `payload` is empty where the path takes nothing more."""

    name: str
    password: str
    payload: Value = ""


async def read_body(request: Request, payload: str = "") -> Body:
    """Read the body of `request`; `payload` names what follows the password, if the path takes it. Raises `Denied`."""
    raw = await request_bytes(request, MOST_BYTES)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        return body_of_json(raw, payload)
    return body_of_text(raw, payload)


def body_of_text(raw: bytes, payload: str) -> Body:
    """Split a text into two parts, or three, of which the last may hold more ``&``. Raises `Denied`."""
    wanted = 3 if payload else 2
    parts = raw.split(b"&", wanted - 1)
    if len(parts) < wanted:
        names = [NAME, PASSWORD, payload][:wanted]
        line = " ".join(f'--data-urlencode "<{name}>"' for name in names)
        hint = f"this body has {len(parts)} of {' & '.join(names)}: curl -X POST {line}"
        raise Denied(400, f"expects at least {wanted} parameters", hint)
    return Body(*(_decoded(part, place) for place, part in enumerate(parts, start=1)))


def body_of_json(raw: bytes, payload: str) -> Body:
    """Read an object with the fields `NAME`, `PASSWORD` and `payload`. Raises `Denied`."""
    fields = strict_json(raw)
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
        if not (isinstance(value, str) or (name == payload and isinstance(value, list | dict))):
            what = "is missing" if name not in fields else "is not text"
            raise Denied(400, f"{name}: {what}", f"write {name} as text")
    return Body(fields[NAME], fields.get(PASSWORD, ""), fields[payload] if payload else "")


def _decoded(part: bytes, place: int) -> str:
    """Decode a part. A plus is a blank, as in forms."""
    if BAD_ESCAPE.search(part):
        raise Denied(400, f"part {place} of the body has a % that begins no escape", "write % as %25, as curl does")
    try:
        return unquote_to_bytes(part.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise Denied(400, f"part {place} of the body is not UTF-8 text", "write it in UTF-8") from None


@dataclass(frozen=True)
class RestRequest:
    """An authorized request: the caller, and the third part of the body, if there is one."""

    face: Face
    request: Request
    caller: Caller
    payload: Value = ""

    def joined(self) -> Face:
        """Return the face of the member. Raises `Denied` while that belongs to no cluster."""
        if not self.face.member.joined:
            hint = "wait until hazelcast/health/ready answers 200"
            raise Denied(503, f"{self.face.label} has not joined a cluster yet", hint)
        return self.face

    def text(self, name: str) -> str:
        """Return the third part, where it must be text. Raises `Denied`."""
        if not isinstance(self.payload, str):
            raise Denied(400, f"{name}: is not text", f"write {name} as text")
        return self.payload


EndpointHandler = Callable[[RestRequest], Awaitable[Response] | Response]
"""Answers a request; raises `Denied`, `CommandRefused` or `BadProperty` to refuse it."""


@dataclass(frozen=True)
class RestEndpoint:
    """One path and what it does for some methods."""

    path: str
    methods: tuple[str, ...]
    group: EndpointGroup
    answer: EndpointHandler
    role: Role | None = "read"
    """None: clients need not identify themselves."""
    identifies_by_body: bool = False
    """The body begins with the cluster's name and a password."""
    payload: str = ""
    """What follows those two in the body; empty when nothing does."""


def reading(path: str, answer: EndpointHandler) -> RestEndpoint:
    """Describe a path that a GET reads."""
    return RestEndpoint(path, ("GET",), "CLUSTER_READ", answer)


def reading_by_post(path: str, answer: EndpointHandler) -> RestEndpoint:
    """Describe a path that a POST reads, with name and password in its body."""
    return RestEndpoint(path, ("POST",), "CLUSTER_READ", answer, identifies_by_body=True)


def writing(path: str, answer: EndpointHandler, payload: str = "") -> RestEndpoint:
    """Describe a path that a POST changes, with name, password and perhaps a `payload` in its body."""
    return RestEndpoint(path, ("POST",), "CLUSTER_WRITE", answer, "write", identifies_by_body=True, payload=payload)


def rest_routes(face: Face, paths: Iterable[RestEndpoint]) -> list[BaseRoute]:
    """Return one route for each path, whatever the method."""
    by_path: dict[str, dict[str, RestEndpoint]] = {}
    for endpoint in paths:
        by_path.setdefault(endpoint.path, {}).update(dict.fromkeys(endpoint.methods, endpoint))
    return [Route(path, _Endpoint(face, methods)) for path, methods in by_path.items()]


class _Endpoint:
    def __init__(self, face: Face, methods: dict[str, RestEndpoint]) -> None:
        self._face = face
        self._methods = methods
        if "GET" in methods:
            methods.setdefault("HEAD", methods["GET"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive, send))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path = self._methods.get(request.method)
        if path is None:
            return wrong_method(request.method, self._methods)
        _require_group(self._face, request, path)
        caller, payload = await self._identify(request, path)
        answer = path.answer(RestRequest(self._face, request, caller, payload))
        return answer if isinstance(answer, Response) else await answer

    async def _identify(self, request: Request, path: RestEndpoint) -> tuple[Caller, Value]:
        face, access = self._face, access_of(self._face, request)
        if path.role is None:
            return Caller("", "read"), ""
        if not path.identifies_by_body:
            return require(face, request, path.role, path.group), ""
        caller = access.identified(request)
        body = await read_body(request, path.payload)
        own_name = face.configuration.member.cluster_name
        if not hmac.compare_digest(body.name.encode(errors="replace"), own_name.encode()):
            request_note().caller = caller
            raise Denied(403, "unauthenticated", "the body does not begin with the name of this cluster")
        if caller is None:
            caller = access.by_password(request, body.password)
        access.allow(request, caller, path.role, path.group)
        return caller, body.payload


def _require_group(face: Face, connection: HTTPConnection, path: RestEndpoint) -> None:
    """Raise `Denied` when the endpoint group is off: an answer, not a closed socket (Hazelcast: REST complaints)."""
    configuration = face.configuration
    if configuration.endpoint_groups.get(path.group, GROUPS_BY_DEFAULT[path.group]):
        return
    problem = f"the endpoint group {path.group} is off on this member"
    hint = f"set hazelcast.network.rest-api.endpoint-groups.{path.group}.enabled to true and start the member anew"
    raise Denied(403, problem, hint, more={"group": path.group})


def after_response(response: Response, action: Callable[[], None]) -> Response:
    """Return `response`, with an `action` for when it is sent."""

    async def do() -> None:
        action()

    response.background = BackgroundTask(do)
    return response

"""How an operators' path is served: its endpoint group, who asks, what stands in the body, then the answer.

Each chapter ``rest_…`` lists its paths as `RestEndpoint`; what they have in common is done here, in one order for all.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from quarterdeck.backend.core.commands.commands import CommandRefused
from quarterdeck.backend.core.properties import BadProperty
from quarterdeck.backend.service.configuration.process_configuration import GROUPS_BY_DEFAULT, EndpointGroup, Role
from quarterdeck.backend.service.http.access import access_of, require
from quarterdeck.backend.service.http.face import Caller, Face
from quarterdeck.backend.service.http.responses import Denied, failure, wrong_method
from quarterdeck.backend.service.rest.request_body import Body, Value, read_body


@dataclass(frozen=True)
class RestRequest:
    """A request that may be answered: who asks, and the third part of the body, if there is one."""

    face: Face
    request: Request
    caller: Caller
    payload: Value = ""

    def require_joined(self) -> None:
        """Raises `Denied` while the member belongs to no cluster."""
        if not self.face.member.joined:
            hint = "wait until hazelcast/health/ready answers 200"
            raise Denied(503, f"{self.face.label} has not joined a cluster yet", hint)

    def text(self, name: str) -> str:
        """The third part, where only a text will do. Raises `Denied`."""
        if not isinstance(self.payload, str):
            raise Denied(400, f"{name}: is not text", f"write {name} as text")
        return self.payload


EndpointHandler = Callable[[RestRequest], Awaitable[Response]]
"""What answers a request; raises `Denied`, `CommandRefused` or `BadProperty` when the answer is no."""


@dataclass(frozen=True)
class RestEndpoint:
    """One path and what it does for some methods."""

    path: str
    methods: tuple[str, ...]
    group: EndpointGroup
    answer: EndpointHandler
    role: Role | None = "read"
    """None: nobody is asked who they are."""
    identifies_by_body: bool = False
    """The body begins with the cluster's name and a password."""
    payload: str = ""
    """What follows those two in the body; empty when nothing does."""


def rest_routes(face: Face, paths: Iterable[RestEndpoint]) -> list[BaseRoute]:
    """One route for each path, whatever the method."""
    by_path: dict[str, dict[str, RestEndpoint]] = {}
    for one in paths:
        by_path.setdefault(one.path, {}).update(dict.fromkeys(one.methods, one))
    return [Route(path, _Endpoint(face, methods)) for path, methods in by_path.items()]


class _Endpoint:
    """What is at one path."""

    def __init__(self, face: Face, methods: dict[str, RestEndpoint]) -> None:
        self._face = face
        self._methods = methods
        if "GET" in methods:
            methods.setdefault("HEAD", methods["GET"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        try:
            response = await self._answer(request)
        except CommandRefused as refusal:
            response = failure(Denied(409, str(refusal)))
        except BadProperty as problem:
            response = failure(Denied(400, str(problem), more={"field": problem.name}))
        except HTTPException as problem:
            response = failure(problem)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path = self._methods.get(request.method)
        if path is None:
            return wrong_method(request.method, self._methods)
        _require_group(self._face, request, path)
        caller, payload = await self._identify(request, path)
        return await path.answer(RestRequest(self._face, request, caller, payload))

    async def _identify(self, request: Request, path: RestEndpoint) -> tuple[Caller, Value]:
        face, access = self._face, access_of(self._face, request)
        if path.role is None:
            return Caller("", "read"), ""
        if not path.identifies_by_body:
            return await require(face, request, path.role, path.group), ""
        caller = await access.identified(request)
        body = await read_body(request, path.payload)
        if not _names_this_cluster(face, body):
            access.refused(request, caller, "the cluster has another name")
            raise Denied(403, "unauthenticated", "the body does not begin with the name of this cluster")
        if caller is None:
            caller = await access.by_password(request, body.password)
        access.allow(request, caller, path.role, path.group)
        return caller, body.payload


def _names_this_cluster(face: Face, body: Body) -> bool:
    """Whether the body is meant for this cluster."""
    return hmac.compare_digest(body.name.encode(errors="replace"), face.configuration.cluster_name.encode())


def _require_group(face: Face, connection: HTTPConnection, path: RestEndpoint) -> None:
    """Raises `Denied` when the endpoint group is off: an answer, not a closed socket (Hazelcast: REST complaints)."""
    configuration = face.configuration
    if configuration.endpoint_groups.get(path.group, GROUPS_BY_DEFAULT[path.group]):
        return
    problem = f"the endpoint group {path.group} is off on this member"
    if path.role not in (None, "read"):
        access_of(face, connection).refused(connection, None, problem)
    hint = f"set hazelcast.network.rest-api.endpoint-groups.{path.group}.enabled to true and start the member anew"
    raise Denied(403, problem, hint, more={"group": path.group})


def after_response(response: Response, action: Callable[[], None]) -> Response:
    """`response`, and when it is sent, `action`."""

    async def do() -> None:
        action()

    response.background = BackgroundTask(do)
    return response

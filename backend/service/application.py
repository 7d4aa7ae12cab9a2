"""The whole HTTP interface of one member as one ASGI application: operators' paths, the console's interface, events, metrics."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from quarterdeck.backend.service.console_api.routes import console_paths, console_routes
from quarterdeck.backend.service.http.audited_requests import AuditedRequests
from quarterdeck.backend.service.http.face import Face
from quarterdeck.backend.service.http.request_guard import RequestGuard, RequestLimits
from quarterdeck.backend.service.http.responses import Denied, failure, no_such_path, on_crash, wrong_method
from quarterdeck.backend.service.meters import TimedRequests
from quarterdeck.backend.service.rest import configuration, health, management, maps
from quarterdeck.backend.service.rest.endpoint import rest_routes
from quarterdeck.backend.service.rest.metrics import metrics_route

OPERATOR_PATHS = (
    *health.PATHS,
    *configuration.PATHS,
    *management.PATHS,
    *maps.PATHS,
)

REST = "/hazelcast/rest/"

ABSENT = {
    "queues": "queues",
    "wan": "replication between clusters",
    "cp-subsystem": "CP subsystem",
    "license": "licenses",
    "management/cluster/forceStart": "persistence",
    "management/cluster/partialStart": "persistence",
    "management/cluster/backup": "persistence",
    "management/cluster/hotBackup": "persistence",
}
"""What the product has below `REST` and this cluster does not."""

KNOWN_PATHS = (
    *(endpoint.path for endpoint in OPERATOR_PATHS if "{" not in endpoint.path),
    *console_paths(),
    "/metrics",
)
"""All paths without names in them."""


def application(face: Face, limits: RequestLimits | None = None) -> ASGIApp:
    """Serve `face`. The application belongs to the member's event loop, as the face does."""
    handlers = {HTTPException: _on_problem, Exception: on_crash}
    routes: list[BaseRoute] = [
        *rest_routes(face, OPERATOR_PATHS),
        *console_routes(face),
        metrics_route(face),
    ]
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    guarded = RequestGuard(
        _for_browsers(app, face.configuration.security.allowed_origins), face, limits or RequestLimits()
    )
    return TimedRequests(AuditedRequests(guarded, face), face.meters)


def _for_browsers(app: ASGIApp, origins: tuple[str, ...]) -> ASGIApp:
    """Allow browsers to use `app` from pages of these origins. `backend.service.http.access` refuses others."""
    browsers = CORSMiddleware(app, origins, ["*"], ["Authorization", "Content-Type"], allow_credentials=True)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        known = scope["type"] == "http" and Headers(scope=scope).get("origin") in origins
        await (browsers if known else app)(scope, receive, send)

    return serve if origins else app


def _no_such_path(path: str) -> Denied:
    below = path.removeprefix(REST)
    absent = next((what for start, what in ABSENT.items() if below != path and below.startswith(start)), None)
    if absent is not None:
        return Denied(404, f"there is nothing of the kind here: {absent}", "see docs/reference/rest.md")
    return no_such_path(path, KNOWN_PATHS, "docs/reference/rest.md")


async def _on_problem(connection: HTTPConnection, problem: Exception) -> Response:
    """Answer what a route denies, and paths that no route is at. A WebSocket is denied before it is opened."""
    assert isinstance(problem, HTTPException)
    if problem.status_code == 404 and not isinstance(problem, Denied):
        problem = _no_such_path(connection.scope["path"])
    if problem.status_code == 405 and not isinstance(problem, Denied):
        allowed = (problem.headers or {}).get("Allow", "").split(", ")
        return wrong_method(connection.scope["method"], allowed)
    answer = failure(problem)
    if isinstance(connection, WebSocket):
        await connection.send_denial_response(answer)
    return answer

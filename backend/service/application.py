"""The whole HTTP interface of one member as one ASGI application: operators' paths, the console's interface, events, metrics.

The console's interface, ``/quarterdeck/v1``, describes itself; its contract is docs/reference/http-api.md. Everything goes
through `Face`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from quarterdeck.backend.core.commands import CommandRefused, LinkCommand
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import BadProperty
from quarterdeck.backend.member_api.answers import ROOT, Fail, RecordPage
from quarterdeck.backend.service.console_api import cluster_secret, commands, queries
from quarterdeck.backend.service.console_api import maps as console_maps
from quarterdeck.backend.service.console_api.event_stream import event_stream
from quarterdeck.backend.service.console_api.queries import process_started_utc
from quarterdeck.backend.service.console_api.route_classes import (
    ERROR_HANDLERS,
    GuardedRoute,
    NewEntries,
    NewMapEntries,
)
from quarterdeck.backend.service.http.audited_requests import AuditedRequests
from quarterdeck.backend.service.http.face import Face
from quarterdeck.backend.service.http.request_guard import RequestGuard, RequestLimits
from quarterdeck.backend.service.http.responses import JSON_TYPE, Denied, failure, no_such_path, on_crash, wrong_method
from quarterdeck.backend.service.member_log import software_version
from quarterdeck.backend.service.rest import configuration, health, management, maps
from quarterdeck.backend.service.rest.endpoint import rest_routes
from quarterdeck.backend.service.rest.metrics import metrics_route

ROUTERS = (
    *(queries.router, cluster_secret.router, commands.copying, commands.writing, commands.faults),
    *(console_maps.reading, console_maps.writing, console_maps.exporting, console_maps.importing),
)

SCHEMAS = "#/components/schemas/{name}"

DESCRIPTION = """\
What one member believes, and what may be asked of it. Every answer is this member's own view: ask others for theirs.

Events stream over a WebSocket at `/quarterdeck/v1/events?after=UUID:SEQ`. Errors are
`{"status": "fail", "message": …, "hint": …}`. Times in `_us` are microseconds on the member's clock.
"""


def console_routes(face: Face) -> list[BaseRoute]:
    """Return the interface of the member behind `face`, all of it below one mount."""
    mount = Mount(ROOT, console_app(face))
    mount.path_regex = re.compile(mount.path_regex.pattern, re.DOTALL)  # keys of maps may hold newlines
    return [mount]


def console_paths() -> list[str]:
    """Return the paths that have no names in them."""
    paths = [str(getattr(route, "path", "")) for router in ROUTERS for route in router.routes]
    return [ROOT + path for path in dict.fromkeys(paths) if "{" not in path]


def console_app(face: Face) -> FastAPI:
    """Return the interface, to be mounted anywhere."""
    app = FastAPI(
        title="Quarterdeck",
        version=software_version(),
        description=DESCRIPTION,
        servers=[{"url": ROOT}],
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        exception_handlers=ERROR_HANDLERS,
    )
    app.state.face = face
    app.state.started_utc = process_started_utc()
    app.state.known_paths = console_paths()
    for router in ROUTERS:
        app.router.routes.extend(router.routes)
    app.router.routes.append(event_stream(face))
    app.openapi = lambda: openapi_description(app)  # type: ignore[method-assign]
    app.router.routes.append(Route("/openapi.json", _described(app), methods=["GET"]))
    return app


def _described(app: FastAPI) -> Callable[[Request], Response]:
    """Return the handler of the description: any client may ask, so it is encoded once."""
    encoded: list[bytes] = []

    def describe(_: Request) -> Response:
        if not encoded:
            encoded.append(msgspec.json.encode(app.openapi()))
        return Response(encoded[0], media_type=JSON_TYPE)

    return describe


def openapi_description(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description; made once, at the first use."""
    if app.openapi_schema is None:
        found = FastAPI.openapi(app)
        for operations in found["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)  # bad input is answered with 400
        schemas = found["components"]["schemas"]
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        for name, schema in {**_wire_schemas(app), **_body_schemas()}.items():
            assert name not in schemas, f"two things are called {name}"
            schemas[name] = schema
        found["components"]["securitySchemes"] = {
            "basic": {"type": "http", "scheme": "basic"},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
        found["security"] = [{"basic": []}, {"bearer": []}, {}]
        return found
    return app.openapi_schema


def _wire_schemas(app: FastAPI) -> dict[str, Any]:
    answers = {route.answer for route in app.routes if isinstance(route, GuardedRoute) and route.answer is not None}
    by_name = sorted(answers, key=lambda answer: answer.__name__)
    (links, *_), schemas = msgspec.json.schema_components(
        [LinkCommand, Record, RecordPage, Fail, *by_name], ref_template=SCHEMAS
    )
    return {**schemas, "LinkCommand": links}


def _body_schemas() -> dict[str, Any]:
    models: tuple[type[BaseModel], ...] = (NewEntries, NewMapEntries)
    template = SCHEMAS.replace("{name}", "{model}")
    _, together = models_json_schema([(model, "validation") for model in models], ref_template=template)
    found: dict[str, Any] = together["$defs"]
    return found


OPERATOR_PATHS = (*health.PATHS, *configuration.PATHS, *management.PATHS, *maps.PATHS)
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
    handlers = dict.fromkeys((HTTPException, CommandRefused, BadProperty), _on_problem) | {Exception: on_crash}
    routes = [*rest_routes(face, OPERATOR_PATHS), *console_routes(face), metrics_route(face)]
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    served = _for_browsers(app, face.configuration.security.allowed_origins)
    return AuditedRequests(RequestGuard(served, face, limits or RequestLimits()), face)


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
    """Answer what a route denies or a member refuses, bad properties, and paths that no route is at.

    A WebSocket is denied before it is opened.
    """
    if isinstance(problem, CommandRefused):
        problem = Denied(409, str(problem))
    if isinstance(problem, BadProperty):
        problem = Denied(400, str(problem), more={"field": problem.name})
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

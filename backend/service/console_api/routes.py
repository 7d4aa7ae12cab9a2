"""The console's own interface, ``/quarterdeck/v1``: its routes, and its description.

Contract: docs/reference/http-api.md. Everything goes through `Face`.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute, Mount

from quarterdeck.backend.core.commands.commands import LinkCommand
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.member_api.answers import ROOT, Fail, RecordPage
from quarterdeck.backend.service.console_api import commands, plans, queries
from quarterdeck.backend.service.console_api import maps as console_maps
from quarterdeck.backend.service.console_api.event_stream import event_stream
from quarterdeck.backend.service.console_api.queries import process_started_utc
from quarterdeck.backend.service.console_api.route_classes import GuardedRoute, add_error_handlers
from quarterdeck.backend.service.http.face import Face
from quarterdeck.backend.service.member_log import software_version

ROUTERS = (
    *(queries.router, commands.copying, commands.writing, commands.faults),
    *(plans.router, console_maps.reading, console_maps.writing, console_maps.exporting, console_maps.importing),
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
        title="Quarterdeck", version=software_version(), description=DESCRIPTION, docs_url=None, redoc_url=None
    )
    app.state.face = face
    app.state.planning = False
    app.state.started_utc = process_started_utc()
    add_error_handlers(app)
    app.state.known_paths = console_paths()
    for router in ROUTERS:
        app.router.routes.extend(router.routes)
    app.router.routes.append(event_stream(face))
    app.openapi = lambda: openapi_description(app)  # type: ignore[method-assign]
    return app


def openapi_description(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description; made once, at the first use."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            servers=[{"url": ROOT}],
        )
        for operations in found["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)  # bad input is answered with 400
        schemas = found["components"]["schemas"]
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        for name, schema in {**_wire_schemas(app), **_plan_schemas()}.items():
            assert name not in schemas, f"two things are called {name}"
            schemas[name] = schema
        found["components"]["securitySchemes"] = {
            "basic": {"type": "http", "scheme": "basic"},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
        found["security"] = [{"basic": []}, {"bearer": []}, {}]
        app.openapi_schema = found
    return app.openapi_schema


def _wire_schemas(app: FastAPI) -> dict[str, Any]:
    answers = {route.answer for route in app.routes if isinstance(route, GuardedRoute) and route.answer is not None}
    by_name = sorted(answers, key=lambda answer: answer.__name__)
    (links, *_), schemas = msgspec.json.schema_components(
        [LinkCommand, Record, RecordPage, Fail, *by_name], ref_template=SCHEMAS
    )
    return {**schemas, "LinkCommand": links}


def _plan_schemas() -> dict[str, Any]:
    _, together = models_json_schema(
        [(model, "validation") for model in plans.MODELS], ref_template=SCHEMAS.replace("{name}", "{model}")
    )
    found: dict[str, Any] = together["$defs"]
    return found

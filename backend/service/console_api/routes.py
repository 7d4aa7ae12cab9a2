"""The console's own interface, ``/quarterdeck/v1`` (design 5.3): what it consists of, and its description.

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

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.links import LinkCommand
from quarterdeck.backend.service.console_api import commands, maps, plans, queries
from quarterdeck.backend.service.console_api.event_stream import event_stream
from quarterdeck.backend.service.console_api.query_results import process_started_utc_us
from quarterdeck.backend.service.console_api.route_classes import add_error_handlers
from quarterdeck.backend.service.http.face import Face
from quarterdeck.backend.service.member_log import software_version

PREFIX = "/quarterdeck/v1"

SCHEMAS = "#/components/schemas/{name}"

DESCRIPTION = """\
What one member believes, and what may be asked of it. Every answer is this member's own view: ask others for theirs.

Events stream over a WebSocket at `/quarterdeck/v1/events?after=UUID:SEQ`. Errors are
`{"status": "fail", "message": …, "hint": …}`. Times in `_us` are microseconds on the member's clock.
"""


def console_routes(face: Face) -> list[BaseRoute]:
    """The interface of the member behind `face`, all of it below one mount."""
    mount = Mount(PREFIX, console_app(face))
    mount.path_regex = re.compile(mount.path_regex.pattern, re.DOTALL)  # keys of maps may hold newlines
    return [mount]


def console_app(face: Face) -> FastAPI:
    """The same, to be mounted anywhere."""
    app = FastAPI(
        title="Quarterdeck", version=software_version(), description=DESCRIPTION, docs_url=None, redoc_url=None
    )
    app.state.face = face
    app.state.planning = False
    app.state.started_utc_us = process_started_utc_us()
    add_error_handlers(app)
    app.include_router(queries.router)
    app.include_router(commands.writing)
    app.include_router(commands.faults)
    app.include_router(plans.router)
    app.include_router(maps.reading)
    app.include_router(maps.writing)
    app.router.routes.append(event_stream(face))
    app.openapi = lambda: openapi_description(app)  # type: ignore[method-assign]
    return app


def openapi_description(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description; made once, at the first use."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            servers=[{"url": PREFIX}],
        )
        for operations in found["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)  # bad input is answered with 400
        schemas = found["components"]["schemas"]
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        for name, schema in {**_core_schemas(), **_plan_schemas()}.items():
            assert name not in schemas, f"two things are called {name}"
            schemas[name] = schema
        found["components"]["securitySchemes"] = {
            "basic": {"type": "http", "scheme": "basic"},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
        found["security"] = [{"basic": []}, {"bearer": []}, {}]
        app.openapi_schema = found
    return app.openapi_schema


def _core_schemas() -> dict[str, Any]:
    """Of records and of commands about links, which are the core's own."""
    (_, links), schemas = msgspec.json.schema_components([Record, LinkCommand], ref_template=SCHEMAS)
    return {**schemas, "LinkCommand": links}


def _plan_schemas() -> dict[str, Any]:
    """Of what plans are made from."""
    _, together = models_json_schema(
        [(model, "validation") for model in plans.MODELS], ref_template=SCHEMAS.replace("{name}", "{model}")
    )
    found: dict[str, Any] = together["$defs"]
    return found

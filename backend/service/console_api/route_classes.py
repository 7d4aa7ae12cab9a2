"""How the console's interface handles requests: callers are checked before the body is read, and errors have one form."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from http import HTTPStatus
from typing import Annotated, Any, ClassVar, cast, get_type_hints

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from msgspec import Struct
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from quarterdeck.backend.core.commands.commands import CommandRefused
from quarterdeck.backend.core.properties import FIXED_AT_START, PROPERTIES, BadProperty
from quarterdeck.backend.documents.validation import message_of
from quarterdeck.backend.member_api.answers import ROOT, Fail
from quarterdeck.backend.service.configuration.process_configuration import Role, UserGroup
from quarterdeck.backend.service.http.access import require
from quarterdeck.backend.service.http.face import Caller, Face
from quarterdeck.backend.service.http.responses import (
    JSON_TYPE,
    Denied,
    failure,
    json_response,
    no_such_path,
    on_crash,
    wrong_method,
)

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
DESCRIPTION_PATH = f"{ROOT}/openapi.json"
LONGEST_QUOTE = 60
"""How much of an input an error repeats."""


class GuardedRoute(APIRoute):
    """A path that requires a role. A caller without it is refused before anything of the body is read.

    A handler that returns one of the types of `backend.member_api` is described by that type, and its answer is encoded as JSON.
    """

    role: ClassVar[Role] = "read"
    group: ClassVar[UserGroup] = "CONSOLE"

    def __init__(self, path: str, endpoint: Callable[..., Any], **named: Any) -> None:
        self.answer: type[Struct] | None = None
        """The type of its answers, where it is one of the interface."""
        answer = get_type_hints(endpoint)["return"]
        if isinstance(answer, type) and issubclass(answer, Struct):
            self.answer = answer
            status = named.get("status_code") or HTTPStatus.OK
            described = {status: described_answer(answer, "Successful Response")}
            named |= {"response_model": None, "responses": described | (named.get("responses") or {})}
            endpoint = _encoding(endpoint, status)
        super().__init__(path, endpoint, **named)

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            request.state.caller = require(face_of(request), request, self.role, self.group)
            return await handle(request)

        return guarded


def guarded_by(role: Role, group: UserGroup = "CONSOLE") -> type[GuardedRoute]:
    """Return the class of paths for callers of this role, and of this group if they are limited to some."""
    return type("GuardedRoute", (GuardedRoute,), {"role": role, "group": group})


def described_answer(answer: type[Struct], description: str) -> dict[str, Any]:
    """Describe an answer of this type for OpenAPI."""
    schema = {"$ref": f"#/components/schemas/{answer.__name__}"}
    return {"description": description, "content": {JSON_TYPE: {"schema": schema}}}


def _encoding(endpoint: Callable[..., Coroutine[Any, Any, Struct]], status: int) -> Callable[..., Any]:
    @wraps(endpoint)
    async def encoded(*given: Any, **named: Any) -> Response:
        return json_response(await endpoint(*given, **named), status)

    return encoded


def face_of(request: Request) -> Face:
    """Return the member to which the application of `request` belongs."""
    return cast(Face, request.app.state.face)


async def _face_of_application(request: Request) -> Face:
    return face_of(request)


async def _caller_of_request(request: Request) -> Caller:
    return cast(Caller, request.state.caller)


FaceDependency = Annotated[Face, Depends(_face_of_application)]
CallerDependency = Annotated[Caller, Depends(_caller_of_request)]


async def _require_joined(face: FaceDependency) -> None:
    if face.member.members is None:
        raise Denied(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"{face.label} has not joined a cluster yet",
            "ask again when node_state in /quarterdeck/v1/member is ACTIVE",
        )


JOINED = [Depends(_require_joined)]
"""For paths that only a member of a cluster can serve."""

ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    400: described_answer(Fail, "Bad input; nothing was changed"),
    401: described_answer(Fail, "Who asks has not identified themselves"),
    403: described_answer(Fail, "Not allowed"),
    404: described_answer(Fail, "There is nothing here"),
    405: described_answer(Fail, "Not with this method"),
    408: described_answer(Fail, "The body did not come in time"),
    409: described_answer(Fail, "Refused as things stand, or for what the body says; nothing was changed"),
    413: described_answer(Fail, "The body is too long"),
    414: described_answer(Fail, "The path is too long"),
    429: described_answer(Fail, "Too many attempts"),
    503: described_answer(Fail, "Not joined yet"),
    504: described_answer(Fail, "No answer in time; whether it was done is not known"),
}
"""What every path may answer instead, for its description."""


def with_error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors that every path may answer, and those of `statuses`, as OpenAPI describes them."""
    return {status: ERROR_RESPONSES[status] for status in (400, 401, 403, 404, 405, 408, 413, 414, 429, *statuses)}


def add_error_handlers(app: FastAPI) -> None:
    """Give every error of `app` the form of `Fail`."""
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(RequestValidationError, _on_bad_input)
    app.add_exception_handler(CommandRefused, _on_refused)
    app.add_exception_handler(BadProperty, _on_bad_property)
    app.add_exception_handler(Exception, on_crash)


async def _on_http(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    if isinstance(problem, Denied):
        return failure(problem)
    if problem.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return wrong_method(request.method, _methods_at(request))
    if problem.status_code == HTTPStatus.NOT_FOUND:
        problem = no_such_path(request.scope["path"], request.app.state.known_paths, DESCRIPTION_PATH)
    return failure(problem)


def _methods_at(request: Request) -> set[str]:
    """Return the methods of the path, of all routes that fit: a key may be called like another path of its map."""
    fitting = (route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE)
    return {method for route in fitting for method in getattr(route, "methods", ())}


async def _on_bad_input(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, RequestValidationError)
    return failure(
        Denied(HTTPStatus.BAD_REQUEST, *validation_problem(cast(Sequence[ErrorDetails], problem.errors())[0]))
    )


async def _on_refused(_: Request, problem: Exception) -> Response:
    return failure(Denied(HTTPStatus.CONFLICT, str(problem), "nothing was changed"))


async def _on_bad_property(_: Request, problem: Exception) -> Response:
    """Answer that an unknown name is bad input, and that a value which a property cannot have is refused."""
    known = isinstance(problem, BadProperty) and problem.name in PROPERTIES and problem.name not in FIXED_AT_START
    status = HTTPStatus.CONFLICT if known else HTTPStatus.BAD_REQUEST
    return failure(Denied(status, str(problem), "nothing was changed; GET /quarterdeck/v1/properties lists all"))


def validation_problem(error: ErrorDetails) -> tuple[str, str]:
    """Return the field and problem of an input, and a hint."""
    where, *rest = error["loc"] or ("request",)
    field = ".".join(str(part) for part in rest) or str(where)
    hint = "see /quarterdeck/v1/openapi.json for what goes here"
    match error["type"]:
        case "json_invalid":
            return f"the body is no JSON: {error.get('ctx', {}).get('error', error['msg'])}", hint
        case "missing" if not rest:
            return "there is no body", 'send JSON, with the header "Content-Type: application/json"'
        case "missing":
            return f"{field}: is missing", hint
        case "extra_forbidden":
            return f"{field}: there is no such field", hint
        case "model_attributes_type" | "model_type" | "dict_type" if not rest:
            return "the body is no JSON object", 'send JSON, with the header "Content-Type: application/json"'
        case "value_error":
            return f"{field}: {message_of(error)}", hint
        case _:
            return f"{field}: {error['msg']}; given was {_quoted(error['input'])}", hint


def _quoted(given: object) -> str:
    text = repr(given)
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…"

"""How the console's interface handles requests: callers are checked before the body is read, and errors have one form.

In bodies (docs/reference/http-api.md) unknown fields are errors, and nothing is converted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from http import HTTPStatus
from typing import Annotated, Any, ClassVar, Literal, cast, get_type_hints

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.core.properties import FIXED_AT_START, PROPERTIES, BadProperty
from quarterdeck.backend.documents.validation import message_of
from quarterdeck.backend.member_api.answers import ROOT, Fail
from quarterdeck.backend.service.configuration.process_configuration import Role, UserGroup
from quarterdeck.backend.service.http.access import require
from quarterdeck.backend.service.http.bodies import StrictRequest
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
            return await handle(StrictRequest(request.scope, request.receive))

        return guarded


def guarded_by(role: Role, group: UserGroup = "CONSOLE") -> type[GuardedRoute]:
    """Return the class of paths for callers of this role, and of this group if they are limited to some."""
    return type("GuardedRoute", (GuardedRoute,), {"role": role, "group": group})


def described_answer(answer: type[Struct], description: str) -> dict[str, Any]:
    """Describe an answer of this type for OpenAPI."""
    schema = {"$ref": f"#/components/schemas/{answer.__name__}"}
    return {"description": description, "content": {JSON_TYPE: {"schema": schema}}}


def described_body(schema: dict[str, Any], examples: dict[str, object]) -> dict[str, Any]:
    """Describe the body of a request, which the handler reads itself, for OpenAPI."""
    shown = {name: {"value": example} for name, example in examples.items()}
    return {"requestBody": {"required": True, "content": {JSON_TYPE: {"schema": schema, "examples": shown}}}}


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
    401: described_answer(Fail, "The caller has not identified itself"),
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


async def _on_http(request: Request, problem: HTTPException) -> Response:
    if isinstance(problem, Denied):
        return failure(problem)
    if problem.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # Of all routes that fit: a key may be called like another path of its map.
        fitting = (route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE)
        methods = {method for route in fitting for method in getattr(route, "methods", ())}
        return wrong_method(request.method, methods)
    if problem.status_code == HTTPStatus.NOT_FOUND:
        problem = no_such_path(request.scope["path"], request.app.state.known_paths, DESCRIPTION_PATH)
    return failure(problem)


async def _on_bad_input(_: Request, problem: RequestValidationError | ValidationError) -> Response:
    first = cast(Sequence[ErrorDetails], problem.errors())[0]
    return failure(Denied(HTTPStatus.BAD_REQUEST, *validation_problem(first)))


async def _on_refused(_: Request, problem: CommandRefused) -> Response:
    return failure(Denied(HTTPStatus.CONFLICT, str(problem), "nothing was changed"))


async def _on_bad_property(_: Request, problem: BadProperty) -> Response:
    """Answer that an unknown name is bad input, and that a value which a property cannot have is refused."""
    known = problem.name in PROPERTIES and problem.name not in FIXED_AT_START
    status = HTTPStatus.CONFLICT if known else HTTPStatus.BAD_REQUEST
    return failure(Denied(status, str(problem), "nothing was changed; GET /quarterdeck/v1/properties lists all"))


ERROR_HANDLERS: dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]] = {
    HTTPException: _on_http,
    RequestValidationError: _on_bad_input,
    ValidationError: _on_bad_input,
    CommandRefused: _on_refused,
    BadProperty: _on_bad_property,
    Exception: on_crash,
}
"""They give every error the form of `Fail`."""


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
            given = repr(error["input"])
            quoted = given if len(given) <= LONGEST_QUOTE else f"{given[:LONGEST_QUOTE]}…"
            return f"{field}: {error['msg']}; given was {quoted}", hint


BASE64 = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
"""As RFC 4648 has it, with padding."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class RequestModel(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _only_text(cls, given: object) -> object:
        r"""Refuse halves of letters, which JSON can write as ``\\ud800`` and which could be neither stored nor sent back."""
        if not _is_text(given):
            raise ValueError("a character is half of a surrogate pair; write both halves")
        return given


class NewJoinList(RequestModel):
    addresses: tuple[str, ...] = Field(
        max_length=1_000,
        strict=False,
        description="host:port each; one without a port stands for a few ports",
        examples=[["127.0.0.1:5701", "127.0.0.1:5702"]],
    )


class SecretTurn(RequestModel):
    do: Literal["add", "use", "remove"]
    secret: str = Field(min_length=1, max_length=1_000, repr=False, examples=["the content of the file"])


class StateWanted(RequestModel):
    state: ClusterState = Field(examples=["FROZEN"])


class SizeAccepted(RequestModel):
    size: int = Field(ge=1, le=1_000_000, description="members", examples=[4])


class SuspectWanted(RequestModel):
    suspect: str = Field(max_length=300, description="its address", examples=["127.0.0.1:5702"])


class NewProperties(RequestModel):
    properties: dict[str, bool | int | float | str] = Field(
        min_length=1,
        max_length=200,
        examples=[{"hazelcast.merge.next.run.delay.seconds": 30}],
        json_schema_extra={"propertyNames": {"enum": [*sorted(set(PROPERTIES) - FIXED_AT_START)]}},
    )


def _alone(given: str, other: str) -> dict[str, JsonValue]:
    return {"required": [given], "properties": {given: {"type": "string"}, other: {"type": "null"}}}


class NewValue(RequestModel):
    """Exactly one of the two."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"value": "Byzantium"}],
            "oneOf": [_alone("value", "value_base64"), _alone("value_base64", "value")],
        }
    )
    value: str | None = None
    value_base64: str | None = Field(default=None, pattern=BASE64)

    @model_validator(mode="after")
    def _one_of_two(self) -> NewValue:
        if (self.value is None) == (self.value_base64 is None):
            raise ValueError("give either value, as text, or value_base64")
        return self


class NewEntry(NewValue):
    """A value, and the key to store it under."""

    key: str = Field(min_length=1)


class NewEntries(RequestModel):
    """Many at once; each is a put of its own."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"entries": [{"key": "a", "value": "Byzantium"}]}]})
    entries: list[NewEntry]


class NewMapEntries(NewEntries):
    """Many entries of one map, which may have any name."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"map": "cities", "entries": [{"key": "a", "value": "Byzantium"}]}]}
    )
    map: str = Field(min_length=1)


def _is_text(given: object) -> bool:
    if isinstance(given, str):
        return given.isascii() or _SURROGATE.search(given) is None
    if isinstance(given, dict):
        return all(map(_is_text, given)) and all(map(_is_text, given.values()))
    return not isinstance(given, list) or all(map(_is_text, given))

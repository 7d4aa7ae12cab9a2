"""What the HTTP face answers: the shapes that all paths share (Hazelcast: REST status codes)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

JSON_TYPE = "application/json"


class Denied(HTTPException):
    """The answer is no, and here is why. `hint` says what would help; `challenges` are the ways to identify
    oneself, a header each; `more` are further fields of the body.
    """

    def __init__(
        self,
        status: int,
        message: str,
        hint: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        challenges: Sequence[str] = (),
        more: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.message = message
        self.hint = hint
        self.challenges = challenges
        self.more = dict(more or {})


def json_response(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """`body` as JSON."""
    return Response(msgspec.json.encode(body), status, dict(headers or {}), JSON_TYPE)


def success(**fields: object) -> Response:
    """It is done. Names of fields have an underscore where the body has a dash."""
    return json_response({"status": "success"} | {name.replace("_", "-"): value for name, value in fields.items()})


def failure(problem: HTTPException) -> Response:
    """A refusal."""
    hint, more = (problem.hint, problem.more) if isinstance(problem, Denied) else ("", {})
    body = failure_body(problem.detail, hint, more)
    response = Response(body, problem.status_code, problem.headers, JSON_TYPE)
    for challenge in problem.challenges if isinstance(problem, Denied) else ():
        response.headers.append("WWW-Authenticate", challenge)
    return response


def failure_body(message: str, hint: str = "", more: Mapping[str, object] | None = None) -> bytes:
    """The body that every refusal has."""
    hinted = {"hint": hint} if hint else {}
    return msgspec.json.encode({"status": "fail", "message": message, **hinted, **(more or {})})


def wrong_method(method: str, methods: Iterable[str]) -> Response:
    """What may be done at a path at which there is something else to do; OPTIONS asks for just that."""
    allowed = ", ".join(sorted({*methods, "OPTIONS"}))
    if method == "OPTIONS":
        return Response(status_code=204, headers={"Allow": allowed})
    return failure(Denied(405, f"{method} is nothing to do here", f"use {allowed}", headers={"Allow": allowed}))

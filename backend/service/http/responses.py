"""Answers of the HTTP interface in the forms that all paths share (Hazelcast: REST status codes), and of unknown paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from quarterdeck.backend.core.causes import one_line

JSON_TYPE = "application/json"


class Denied(HTTPException):
    """A refusal with its reason.

    `hint` says what would help; `challenges` are the ways to identify, a header each; `more` are further fields of the body.
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
    """Respond with `body` as JSON."""
    return Response(msgspec.json.encode(body), status, dict(headers or {}), JSON_TYPE)


def success(**fields: object) -> Response:
    """Respond that it is done. Names of fields have an underscore where the body has a dash."""
    return json_response({"status": "success"} | {name.replace("_", "-"): value for name, value in fields.items()})


def failure(problem: HTTPException) -> Response:
    """Respond with a refusal."""
    hint, more = (problem.hint, problem.more) if isinstance(problem, Denied) else ("", {})
    body = failure_body(problem.detail, hint, more)
    response = Response(body, problem.status_code, problem.headers, JSON_TYPE)
    for challenge in problem.challenges if isinstance(problem, Denied) else ():
        response.headers.append("WWW-Authenticate", challenge)
    return response


def failure_body(message: str, hint: str = "", more: Mapping[str, object] | None = None) -> bytes:
    """Return the body that every refusal has. What it quotes of a request cannot steer a terminal."""
    hinted = {"hint": one_line(hint)} if hint else {}
    return msgspec.json.encode({"status": "fail", "message": one_line(message), **hinted, **(more or {})})


async def on_crash(_: HTTPConnection, __: Exception) -> Response:
    """Respond without details: the server logs the cause, and clients learn nothing of how the member is built."""
    return failure(Denied(500, "something went wrong in this member", "its log says what"))


def wrong_method(method: str, methods: Iterable[str]) -> Response:
    """Respond with the methods of a path that does not have this one; OPTIONS asks for just that."""
    allowed = ", ".join(sorted({*methods, "OPTIONS"}))
    if method == "OPTIONS":
        return Response(status_code=204, headers={"Allow": allowed})
    return failure(Denied(405, f"{method} is nothing to do here", f"use {allowed}", headers={"Allow": allowed}))


LONGEST_PATH, MOST_STEPS = 200, 8
"""Characters and steps of a path that are compared."""
NEAR = 0.7
"""How similar two steps of a path are at least, of 1, for one to be taken for the other."""


def no_such_path(path: str, known: Iterable[str], reference: str) -> Denied:
    """Refuse a path; the hint names the nearest of the `known` paths, or `reference` when none is near."""
    near = nearest(path, known)
    return Denied(404, "there is nothing at this path", f"did you mean {near}?" if near else f"see {reference}")


def nearest(path: str, known: Iterable[str]) -> str | None:
    """Return the known path that shares most steps with `path`, from its end: people forget or mistype what stands before."""
    wanted = _steps(path[:LONGEST_PATH])
    scores = {candidate: _likeness(wanted, _steps(candidate)) for candidate in known}
    most = max(scores.values(), default=0.0)
    best = [candidate for candidate, score in scores.items() if score == most > 0]
    return best[0] if len(best) == 1 else None


def _steps(path: str) -> list[str]:
    return [step.lower() for step in path.split("/") if step][:MOST_STEPS]


def _likeness(wanted: list[str], known: list[str]) -> float:
    """Score how much two paths have in common. It is 0 when their ends differ, unless `wanted` is the beginning of `known`."""
    from_end = _in_common(wanted[::-1], known[::-1])
    from_start = _in_common(wanted, known)
    if from_end == 0 and from_start < len(wanted):
        return 0
    return from_end + from_start - abs(len(wanted) - len(known)) / 10


def _in_common(wanted: list[str], known: list[str]) -> float:
    """Sum how similar steps side by side are, up to the first two that are not."""
    alike = 0.0
    for step, other in zip(wanted, known, strict=False):
        ratio = 1.0 if step == other else _similarity(step, other)
        if ratio < NEAR:
            break
        alike += ratio
    return alike


def _similarity(step: str, other: str) -> float:
    """Return how similar two steps are, of 1; 0 where they are certainly not near. Any client may have it worked out."""
    matcher = _matcher_of(other)
    matcher.set_seq1(step)
    is_near = matcher.real_quick_ratio() >= NEAR and matcher.quick_ratio() >= NEAR
    return matcher.ratio() if is_near else 0.0


@lru_cache(maxsize=256)
def _matcher_of(known: str) -> SequenceMatcher[str]:
    return SequenceMatcher(None, "", known)

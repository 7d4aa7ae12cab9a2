"""The paths of ``/quarterdeck/v1/plan``: what ``quarterdeck plan`` works out, worked out by a member (role read).

Nothing of the member's cluster is used. Plans are computed beside the member's event loop, one at a time, and only for so much
input that the loop hardly notices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from quarterdeck.backend.planning.disconnections import Disconnections, plan_disconnections
from quarterdeck.backend.planning.merge import Meeting, plan_merge
from quarterdeck.backend.planning.migrations import PlannedRows, explained_plan, read_and_plan, steps_of
from quarterdeck.backend.planning.rebalance import Rebalance, plan_rebalance
from quarterdeck.backend.planning.strict_input import BadInput
from quarterdeck.backend.service.console_api.route_classes import GuardedRoute, with_error_responses
from quarterdeck.backend.service.http.responses import JSON_TYPE, Denied

MOST_BYTES = 1024 * 1024
"""Of input for one plan."""
router = APIRouter(prefix="/plan", route_class=GuardedRoute, responses=with_error_responses(409))
MOST_MEMBERS = 1_000
MOST_SEARCH_SECONDS = 0.3
"""A member serves others meanwhile, and anybody who may ask may set a time."""
PLAN_LOCALLY = "quarterdeck plan works it out without a member"
REFERENCE = "see docs/reference/plan.md for what goes here"

ONE_SIDE = {
    "address": "10.0.0.1:5701",
    "cluster_name": "dev",
    "state": "ACTIVE",
    "members": ["10.0.0.1:5701", "10.0.0.2:5701"],
}

MODELS: tuple[type[BaseModel], ...] = (Disconnections, Meeting, PlannedRows, Rebalance)
"""What the paths accept, for the description."""
Explain = Annotated[bool, Query(description="add why")]


def _body_description(model: type[BaseModel], example: object, *, or_list: bool = False) -> dict[str, Any]:
    item: dict[str, Any] = {"$ref": f"#/components/schemas/{model.__name__}"}
    schema = {"anyOf": [item, {"type": "array", "items": item}]} if or_list else item
    content = {JSON_TYPE: {"schema": schema, "examples": {"one": {"value": example}}}}
    return {"requestBody": {"required": True, "content": content}}


@router.post(
    "/disconnections",
    response_model=dict[str, Any],
    openapi_extra=_body_description(
        Disconnections, {"members": [{"name": "N1"}, {"name": "N2"}, {"name": "N3"}], "suspicions": {"N2": ["N3"]}}
    ),
)
async def disconnections(request: Request, explain: Explain = False) -> Response:
    """Plan which members stay and which are removed when some cannot reach one another."""

    def plan(text: bytes) -> object:
        given = Disconnections.read(text)
        _check_size(len(given.members))
        seconds = min(given.timeout_seconds or MOST_SEARCH_SECONDS, MOST_SEARCH_SECONDS)
        return plan_disconnections(given.model_copy(update={"timeout_seconds": seconds}), explain=explain)

    return await _plan_response(request, plan)


@router.post(
    "/merge",
    response_model=dict[str, Any],
    openapi_extra=_body_description(Meeting, {"local": ONE_SIDE, "remote": None}),
)
async def merge(request: Request, explain: Explain = False) -> Response:
    """Plan which of two clusters that meet would merge into the other."""
    return await _plan_response(request, lambda text: plan_merge(Meeting.read(text), explain=explain))


@router.post(
    "/migrations",
    response_model=list[Any] | dict[str, Any],
    openapi_extra=_body_description(PlannedRows, {"current": ["A", "B"], "target": ["A", "C"]}, or_list=True),
)
async def migrations(request: Request, explain: Explain = False) -> Response:
    """Plan the steps from the current to the targeted replicas of a partition, or of each of a list."""

    def plan(text: bytes) -> object:
        explain_plan = explained_plan if explain else steps_of
        planned = read_and_plan(text)
        return [explain_plan(rows) for rows in planned] if isinstance(planned, list) else explain_plan(planned)

    return await _plan_response(request, plan)


@router.post(
    "/rebalance",
    response_model=dict[str, Any],
    openapi_extra=_body_description(
        Rebalance, {"partitions": 3, "backups": 1, "members": [{"name": "A"}, {"name": "B"}]}
    ),
)
async def rebalance(request: Request, explain: Explain = False) -> Response:
    """Plan which member would hold which replica after members came or went."""

    def plan(text: bytes) -> object:
        given = Rebalance.read(text)
        _check_size(len(given.members))
        return plan_rebalance(given, explain=explain)

    return await _plan_response(request, plan)


def _check_size(members: int) -> None:
    if members > MOST_MEMBERS:
        raise BadInput(f"members: {members} are too many for a member to plan for; the most is {MOST_MEMBERS}")


async def _plan_response(request: Request, plan: Callable[[bytes], object]) -> Response:
    text = await request.body()
    if len(text) > MOST_BYTES:
        raise Denied(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the most is {MOST_BYTES} bytes", PLAN_LOCALLY)
    state = request.app.state
    if state.planning:
        raise Denied(HTTPStatus.TOO_MANY_REQUESTS, "another plan is being worked out", PLAN_LOCALLY)
    state.planning = True
    try:
        return Response(await asyncio.to_thread(lambda: msgspec.json.encode(plan(text))), media_type=JSON_TYPE)
    except BadInput as problem:
        status = HTTPStatus.CONFLICT if problem.contradictory else HTTPStatus.BAD_REQUEST
        raise Denied(status, f"the body: {problem}", REFERENCE) from problem
    finally:
        state.planning = False

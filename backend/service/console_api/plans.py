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
from quarterdeck.backend.service.console_api.route_classes import GuardedRoute, described_body, with_error_responses
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
Plan = Callable[[bytes, bool], object]
"""Plans for the text of a body; the second argument: whether to add why."""
Explain = Annotated[bool, Query(description="add why")]


def _path(
    path: str, model: type[BaseModel], example: object, answer: Any = dict[str, Any], *, or_list: bool = False
) -> Callable[[Plan], Plan]:
    """Return a decorator that makes a function the planner of a path which accepts `model`, or also a list of it."""
    item: dict[str, Any] = {"$ref": f"#/components/schemas/{model.__name__}"}
    schema = {"anyOf": [item, {"type": "array", "items": item}]} if or_list else item
    body = described_body(schema, {"one": example})

    def add(plan: Plan) -> Plan:
        @router.post(path, name=plan.__name__, description=plan.__doc__, response_model=answer, openapi_extra=body)
        async def planned(request: Request, explain: Explain = False) -> Response:
            text = await request.body()
            if len(text) > MOST_BYTES:
                raise Denied(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the most is {MOST_BYTES} bytes", PLAN_LOCALLY)
            state = request.app.state
            if state.planning:
                raise Denied(HTTPStatus.TOO_MANY_REQUESTS, "another plan is being worked out", PLAN_LOCALLY)
            state.planning = True
            try:
                content = await asyncio.to_thread(lambda: msgspec.json.encode(plan(text, explain)))
            except BadInput as problem:
                status = HTTPStatus.CONFLICT if problem.contradictory else HTTPStatus.BAD_REQUEST
                raise Denied(status, f"the body: {problem}", REFERENCE) from problem
            finally:
                state.planning = False
            return Response(content, media_type=JSON_TYPE)

        return plan

    return add


@_path(
    "/disconnections",
    Disconnections,
    {"members": [{"name": "N1"}, {"name": "N2"}, {"name": "N3"}], "suspicions": {"N2": ["N3"]}},
)
def disconnections(text: bytes, explain: bool) -> object:
    """Plan which members stay and which are removed when some cannot reach one another."""
    given = Disconnections.read(text)
    _check_size(len(given.members))
    seconds = min(given.timeout_seconds or MOST_SEARCH_SECONDS, MOST_SEARCH_SECONDS)
    return plan_disconnections(given.model_copy(update={"timeout_seconds": seconds}), explain=explain)


@_path("/merge", Meeting, {"local": ONE_SIDE, "remote": None})
def merge(text: bytes, explain: bool) -> object:
    """Plan which of two clusters that meet would merge into the other."""
    return plan_merge(Meeting.read(text), explain=explain)


@_path(
    "/migrations", PlannedRows, {"current": ["A", "B"], "target": ["A", "C"]}, list[Any] | dict[str, Any], or_list=True
)
def migrations(text: bytes, explain: bool) -> object:
    """Plan the steps from the current to the targeted replicas of a partition, or of each of a list."""
    explain_plan = explained_plan if explain else steps_of
    planned = read_and_plan(text)
    return [explain_plan(rows) for rows in planned] if isinstance(planned, list) else explain_plan(planned)


@_path("/rebalance", Rebalance, {"partitions": 3, "backups": 1, "members": [{"name": "A"}, {"name": "B"}]})
def rebalance(text: bytes, explain: bool) -> object:
    """Plan which member would hold which replica after members came or went."""
    given = Rebalance.read(text)
    _check_size(len(given.members))
    return plan_rebalance(given, explain=explain)


def _check_size(members: int) -> None:
    if members > MOST_MEMBERS:
        raise BadInput(f"members: {members} are too many for a member to plan for; the most is {MOST_MEMBERS}")

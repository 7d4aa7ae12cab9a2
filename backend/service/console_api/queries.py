"""The paths of ``/quarterdeck/v1`` that only look (role read)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from quarterdeck.backend.core.properties import FIXED_AT_START
from quarterdeck.backend.service.console_api import data_models as data
from quarterdeck.backend.service.console_api import models as models
from quarterdeck.backend.service.console_api import query_results as views
from quarterdeck.backend.service.console_api.event_feed import encoded, first_of
from quarterdeck.backend.service.console_api.route_classes import FaceDependency, GuardedRoute, with_error_responses
from quarterdeck.backend.service.http.face import Face
from quarterdeck.backend.service.http.responses import JSON_TYPE

MOST_RECORDS = 10_000
MOST_RECORD_BYTES = 8 * 1024 * 1024
"""What one answer has of records, unless a single one is longer."""

router = APIRouter(route_class=GuardedRoute, responses=with_error_responses())

RECORDS_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Records exactly as in journals, oldest first; `complete` tells whether none before them is lost",
        "content": {
            JSON_TYPE: {
                "schema": {
                    "type": "object",
                    "required": ["complete", "records"],
                    "properties": {
                        "complete": {"type": "boolean"},
                        "records": {"type": "array", "items": {"$ref": "#/components/schemas/Record"}},
                    },
                }
            }
        },
    }
}


@router.get("/member")
async def member(face: FaceDependency, request: Request) -> models.ThisMember:
    """Who this member is, whom it follows, and its member list."""
    return views.this_member(face, request.app.state.started_utc_us)


@router.get("/picture")
async def picture(face: FaceDependency) -> models.Belief:
    """All that this member believes."""
    return views.whole_belief(face)


@router.get("/members")
async def members(face: FaceDependency) -> models.Members:
    """The member list, with what each member holds of the partitions."""
    return views.members(face)


@router.get("/suspicions")
async def suspicions(face: FaceDependency) -> models.Suspicions:
    """Whom this member suspects and why; on a master also what slaves reported and who is held back."""
    return views.suspicions_of(views.own_belief(face))


@router.get("/table")
async def table(
    face: FaceDependency,
    first: Annotated[int, Query(alias="from", ge=0, le=1_000_000, description="first partition")] = 0,
    last: Annotated[int | None, Query(alias="to", ge=0, le=1_000_000, description="last partition")] = None,
) -> data.Table:
    """The partition table, up to 5,000 rows at a time."""
    return views.table_rows(face, first, last)


@router.get("/migrations")
async def migrations(face: FaceDependency) -> data.Migrations:
    """What runs, what is planned, and how the latest ended."""
    return views.migrations(face)


@router.get("/why-not-merging")
async def why_not_merging(face: FaceDependency) -> models.WhyNotMerging:
    """Why the clusters that this member could meet do not become one."""
    return views.why_not_merging(face)


@router.get("/join-list")
async def join_list(face: FaceDependency) -> models.JoinList:
    """Where this member looks for its cluster, and for others."""
    return models.JoinList(addresses=face.machine.join_list)


@router.get("/state")
async def state(face: FaceDependency) -> models.StateIs:
    """The state of the cluster as this member holds it to be."""
    return models.StateIs(state=face.machine.cluster_state)


@router.get("/properties")
async def properties(face: FaceDependency) -> models.Properties:
    """Every property with its present value."""
    return properties_of(face)


@router.get("/records", responses=RECORDS_ANSWER, response_model=None)
async def records(
    face: FaceDependency,
    after_uuid: Annotated[str, Query(max_length=100, description="the life of the last record that is known")] = "",
    after_seq: Annotated[int, Query(ge=0, le=2**62, description="its number in that life")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_RECORDS)] = 1_000,
) -> Response:
    """The records after a known one, or the oldest that are kept. Ask again, after the last one got, until none come."""
    complete, found = face.records_after(after_uuid, after_seq)
    lines = encoded(first_of(found, limit), MOST_RECORD_BYTES)
    said = b'{"complete":%s,"records":[%s]}' % (b"true" if complete else b"false", b",".join(lines))
    return Response(said, media_type=JSON_TYPE)


def properties_of(face: Face) -> models.Properties:
    return models.Properties(
        properties=face.machine.settings.as_properties(), fixed_at_start=tuple(sorted(FIXED_AT_START))
    )

"""The paths of ``/quarterdeck/v1`` that only look (role read)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from quarterdeck.backend.core.properties import FIXED_AT_START
from quarterdeck.backend.member_api.answers import JoinList, Properties, RecordPage, StateIs
from quarterdeck.backend.member_api.beliefs import (
    Belief,
    Members,
    Suspicions,
    ThisMember,
    WhyNotMerging,
    suspicions_of,
    whole_belief,
    why_not_merging_of,
)
from quarterdeck.backend.member_api.partitions import Migrations, Table
from quarterdeck.backend.service.console_api import query_results
from quarterdeck.backend.service.console_api.event_stream import fitting
from quarterdeck.backend.service.console_api.route_classes import (
    FaceDependency,
    GuardedRoute,
    described_answer,
    with_error_responses,
)
from quarterdeck.backend.service.http.face import Face, own_belief
from quarterdeck.backend.service.http.responses import JSON_TYPE

MOST_RECORDS = 10_000
MOST_RECORD_BYTES = 8 * 1024 * 1024
"""The size of an answer with records, unless a single one is longer."""
router = APIRouter(route_class=GuardedRoute, responses=with_error_responses())


@router.get("/member")
async def member(face: FaceDependency, request: Request) -> ThisMember:
    """Return the identity of this member, the master it follows, and its member list."""
    return query_results.this_member(face, request.app.state.started_utc)


@router.get("/picture")
async def picture(face: FaceDependency) -> Belief:
    """Return all that this member believes."""
    return whole_belief(own_belief(face), face.node_state, face.now_us())


@router.get("/members")
async def members(face: FaceDependency) -> Members:
    """Return the member list, with what each member holds of the partitions."""
    return query_results.members(face)


@router.get("/suspicions")
async def suspicions(face: FaceDependency) -> Suspicions:
    """Return the members that this one suspects; on a master also what slaves reported and which members are held back."""
    return suspicions_of(own_belief(face))


@router.get("/table")
async def table(
    face: FaceDependency,
    first: Annotated[int, Query(alias="from", ge=0, le=1_000_000, description="first partition")] = 0,
    last: Annotated[int | None, Query(alias="to", ge=0, le=1_000_000, description="last partition")] = None,
) -> Table:
    """Return the partition table, up to 5,000 rows at a time."""
    return query_results.table_rows(face, first, last)


@router.get("/migrations")
async def migrations(face: FaceDependency) -> Migrations:
    """Return what runs, what is planned, and how the latest ended."""
    return query_results.migrations(face)


@router.get("/why-not-merging")
async def why_not_merging(face: FaceDependency) -> WhyNotMerging:
    """Return why the clusters that this member could meet do not become one."""
    return why_not_merging_of(own_belief(face))


@router.get("/join-list")
async def join_list(face: FaceDependency) -> JoinList:
    """Return where this member looks for its cluster, and for others."""
    return JoinList(addresses=face.member.join_list)


@router.get("/state")
async def state(face: FaceDependency) -> StateIs:
    """Return the state of the cluster as this member believes it to be."""
    return StateIs(state=face.member.cluster_state)


@router.get("/properties")
async def properties(face: FaceDependency) -> Properties:
    """Return every property with its present value."""
    return properties_of(face)


@router.get("/records", responses={HTTPStatus.OK: described_answer(RecordPage, "Records, oldest first")})
async def records(
    face: FaceDependency,
    after_uuid: Annotated[
        str, Query(max_length=100, description="the incarnation of the last record that is known")
    ] = "",
    after_seq: Annotated[int, Query(ge=0, le=2**62, description="its number in that incarnation")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_RECORDS)] = 1_000,
) -> Response:
    """Return the records after a known one, or the oldest that are kept.

    Ask again, after the last one received, until none come.
    """
    complete, found = face.records_after(after_uuid, after_seq)
    held = fitting(found[:limit], MOST_RECORD_BYTES)
    page = b'{"complete":%s,"records":[%s]}' % (
        b"true" if complete else b"false",
        b",".join(stored.text for stored in held),
    )
    return Response(page, media_type=JSON_TYPE)


def properties_of(face: Face) -> Properties:
    """Return every property of the member, and which of them are fixed."""
    return Properties(properties=face.member.settings.as_properties(), fixed_at_start=tuple(sorted(FIXED_AT_START)))

"""The paths of ``/quarterdeck/v1`` that only look (role read): answers made from a member's state machine and its picture."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from itertools import chain, islice, starmap
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from fastapi import APIRouter, Query, Request
from msgspec.structs import asdict
from starlette.responses import Response

from quarterdeck.backend.core.partitions.events import Holder
from quarterdeck.backend.core.partitions.table.partition_table import packed
from quarterdeck.backend.core.properties import FIXED_AT_START
from quarterdeck.backend.member_api import beliefs
from quarterdeck.backend.member_api.answers import JoinList, Properties, RecordPage, StateIs
from quarterdeck.backend.service.console_api.event_stream import fitting
from quarterdeck.backend.service.console_api.route_classes import (
    FaceDependency,
    GuardedRoute,
    described_answer,
    with_error_responses,
)
from quarterdeck.backend.service.http.face import Face, own_belief, utc_now_us
from quarterdeck.backend.service.http.responses import JSON_TYPE
from quarterdeck.backend.service.member_log import software_version

Answer = TypeVar("Answer", bound=msgspec.Struct)
PLANNED_SHOWN = 100
ENDED_SHOWN = 50
MOST_ROWS = 5_000
"""Rows of the table in one answer."""

MOST_RECORDS = 10_000
MOST_RECORD_BYTES = 8 * 1024 * 1024
"""The size of an answer with records, unless a single one is longer."""
router = APIRouter(route_class=GuardedRoute, responses=with_error_responses())


@router.get("/member")
async def member(face: FaceDependency, request: Request) -> beliefs.ThisMember:
    """Return the identity of this member, the master it follows, and its member list."""
    listed, table = face.member.members, face.member.partitions.table
    return _gathered(
        beliefs.ThisMember,
        (face, face.member, face.configuration, face.configuration.member),
        version=software_version(),
        started_utc=request.app.state.started_utc,
        now_us=face.now_us(),
        utc_us=utc_now_us(),
        list_version=listed.version if listed else 0,
        lineage=listed.lineage if listed else "",
        members=listed.members if listed else (),
        join_list=face.member.join_list,
        remembered=beliefs.remembered_by(own_belief(face)),
        table_version=table.version if table else 0,
        table_digest=f"{table.digest:016x}" if table else "",
    )


@router.get("/picture")
async def picture(face: FaceDependency) -> beliefs.Belief:
    """Return all that this member believes."""
    return beliefs.whole_belief(own_belief(face), face.node_state, face.now_us())


@router.get("/members")
async def members(face: FaceDependency) -> beliefs.Members:
    """Return the member list, with what each member holds of the partitions."""
    listed, belief = face.member.members, own_belief(face)
    table = belief.table
    return beliefs.Members(
        list_version=listed.version if listed else 0,
        lineage=listed.lineage if listed else "",
        master=face.member.master,
        members=tuple(
            beliefs.MemberRow(
                **asdict(listed_member),
                this=listed_member.uuid == face.member.uuid,
                master=listed_member.address == face.member.master,
                suspected=listed_member.address in belief.suspicions,
                owned=table.owned_by(listed_member.uuid) if table else 0,
                backed_up=table.backed_up_by(listed_member.uuid) if table else 0,
            )
            for listed_member in (listed.members if listed else ())
        ),
    )


@router.get("/suspicions")
async def suspicions(face: FaceDependency) -> beliefs.Suspicions:
    """Return the members that this one suspects; on a master also what slaves reported and which members are held back."""
    return beliefs.suspicions_of(own_belief(face))


@router.get("/table")
async def table(
    face: FaceDependency,
    first: Annotated[int, Query(alias="from", ge=0, le=1_000_000, description="first partition")] = 0,
    last: Annotated[int | None, Query(alias="to", ge=0, le=1_000_000, description="last partition")] = None,
) -> beliefs.Table:
    """Return the partition table, up to 5,000 rows at a time."""
    found = face.member.partitions.table
    if found is None:
        return beliefs.Table(0, "", partitions=0, replicas=0, holders=(), rows=(), next=None)  # nothing is arranged yet
    end = len(found) if last is None else min(len(found), last + 1)
    wanted = range(first, end)[:MOST_ROWS]
    rows = packed(found.row(partition) for partition in wanted)
    return beliefs.Table(
        table_version=found.version,
        digest=f"{found.digest:016x}",
        partitions=len(found),
        replicas=found.width,
        holders=tuple(Holder(holder.address, holder.uuid) for holder in rows.holders),
        rows=rows.rows,
        next=wanted.stop if wanted.stop < end else None,
    )


@router.get("/migrations")
async def migrations(face: FaceDependency) -> beliefs.Migrations:
    """Return what runs, what is planned, and how the latest ended."""
    belief, history = own_belief(face), face.picture.history
    leading = belief.leading
    ended = sorted(chain(history.done, history.failed), key=lambda migration: -migration.at_us)
    return _gathered(
        beliefs.Migrations,
        (leading,),
        leading=belief.is_master,
        draining=tuple(starmap(beliefs.Draining, leading.draining.items())),
        queued=leading.waiting,
        running_count=len(leading.running),
        done=history.done_count,
        failed=history.failed_count,
        lost=history.lost_count,
        planned=tuple(islice(leading.queue(), PLANNED_SHOWN)),
        running=tuple(
            _gathered(beliefs.Running, (running, running.begun))
            for running in islice(leading.running.values(), PLANNED_SHOWN)
        ),
        taking_part=tuple(islice(belief.taking_part.values(), PLANNED_SHOWN)),
        ended=tuple(_gathered(beliefs.Finished, (end, end.begun)) for end in ended[:ENDED_SHOWN]),
        lost_partitions=tuple(beliefs.LostPartition(lost.partition, lost.at_us) for lost in reversed(history.lost)),
    )


@router.get("/why-not-merging")
async def why_not_merging(face: FaceDependency) -> beliefs.WhyNotMerging:
    """Return why the clusters that this member could meet do not become one."""
    return beliefs.why_not_merging_of(own_belief(face))


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
    complete, found = face.records.after(after_uuid, after_seq)
    held = fitting(found[:limit], MOST_RECORD_BYTES)
    whole, texts = b"true" if complete else b"false", b",".join(stored.text for stored in held)
    return Response(b'{"complete":%s,"records":[%s]}' % (whole, texts), media_type=JSON_TYPE)


def properties_of(face: Face) -> Properties:
    """Return every property of the member, and which of them are fixed."""
    return Properties(properties=face.member.settings.as_properties(), fixed_at_start=tuple(sorted(FIXED_AT_START)))


def process_started_utc() -> datetime:
    """Return when this process began; now, where the system does not say."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return datetime.now(UTC)
    age_seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return datetime.now(UTC) - timedelta(seconds=age_seconds)


def _gathered(shape: type[Answer], sources: Sequence[object], **given: object) -> Answer:
    """Return an answer with what is `given`, and in its other fields what the first source has under their names."""
    names = [name for name in shape.__struct_fields__ if name not in given]
    found = {name: next(getattr(source, name) for source in sources if hasattr(source, name)) for name in names}
    return shape(**found, **given)

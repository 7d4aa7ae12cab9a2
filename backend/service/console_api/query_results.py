"""The answers of ``/quarterdeck/v1``, made from a member's state machine and its picture."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, islice, starmap
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import asdict

from quarterdeck.backend.core.partitions.events import Holder
from quarterdeck.backend.core.partitions.table.partition_table import packed
from quarterdeck.backend.member_api import beliefs, partitions
from quarterdeck.backend.service.http.face import Face, own_belief, utc_now_us
from quarterdeck.backend.service.member_log import software_version

Answer = TypeVar("Answer", bound=msgspec.Struct)
PLANNED_SHOWN = 100
ENDED_SHOWN = 50
MOST_ROWS = 5_000
"""Rows of the table in one answer."""


def process_started_utc() -> datetime:
    """Return when this process began; now, where the system does not say."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return datetime.now(UTC)
    age_seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return datetime.now(UTC) - timedelta(seconds=age_seconds)


def this_member(face: Face, started_utc: datetime) -> beliefs.ThisMember:
    """Return the identity of this member, and since when its process runs."""
    members, table = face.member.members, face.member.partitions.table
    return _gathered(
        beliefs.ThisMember,
        (face, face.configuration, face.member),
        version=software_version(),
        started_utc=started_utc,
        now_us=face.now_us(),
        utc_us=utc_now_us(),
        list_version=members.version if members else 0,
        lineage=members.lineage if members else "",
        members=members.members if members else (),
        join_list=face.member.join_list,
        remembered=beliefs.remembered_by(own_belief(face)),
        table_version=table.version if table else 0,
        table_digest=f"{table.digest:016x}" if table else "",
    )


def members(face: Face) -> beliefs.Members:
    """Return the member list, with what this member believes of each."""
    listed, belief = face.member.members, own_belief(face)
    table = belief.table
    return beliefs.Members(
        list_version=listed.version if listed else 0,
        lineage=listed.lineage if listed else "",
        master=face.member.master,
        members=tuple(
            beliefs.MemberRow(
                **asdict(listed_member),
                this=listed_member.uuid == face.uuid,
                master=listed_member.address == face.member.master,
                suspected=listed_member.address in belief.suspicions,
                owned=table.owned_by(listed_member.uuid) if table else 0,
                backed_up=table.backed_up_by(listed_member.uuid) if table else 0,
            )
            for listed_member in (listed.members if listed else ())
        ),
    )


def table_rows(face: Face, first: int, last: int | None) -> partitions.Table:
    """Return the rows from `first` to `last`, or as many of them as one answer has room for."""
    table = face.member.partitions.table
    if table is None:
        return partitions.Table(
            table_version=0, digest="", partitions=0, replicas=0, holders=(), rows=(), next=None
        )  # nothing is arranged yet
    wanted = range(first, min(len(table), len(table) if last is None else last + 1))[:MOST_ROWS]
    rows = packed(table.row(partition) for partition in wanted)
    after = wanted.stop if wanted.stop < min(len(table), len(table) if last is None else last + 1) else None
    return partitions.Table(
        table_version=table.version,
        digest=f"{table.digest:016x}",
        partitions=len(table),
        replicas=table.width,
        holders=tuple(Holder(holder.address, holder.uuid) for holder in rows.holders),
        rows=rows.rows,
        next=after,
    )


def migrations(face: Face) -> partitions.Migrations:
    """Return the migrations that this member leads or has seen end, and what is planned."""
    belief, history = own_belief(face), face.picture.history
    leading = belief.leading
    ended = sorted(chain(history.done, history.failed), key=lambda migration: -migration.at_us)
    return _gathered(
        partitions.Migrations,
        (leading,),
        leading=belief.is_master,
        draining=tuple(starmap(partitions.Draining, leading.draining.items())),
        queued=leading.waiting,
        running_count=len(leading.running),
        done=history.done_count,
        failed=history.failed_count,
        lost=history.lost_count,
        planned=tuple(islice(leading.queue(), PLANNED_SHOWN)),
        running=tuple(
            _gathered(partitions.Running, (running, running.begun))
            for running in islice(leading.running.values(), PLANNED_SHOWN)
        ),
        taking_part=tuple(islice(belief.taking_part.values(), PLANNED_SHOWN)),
        ended=tuple(_gathered(partitions.Finished, (end, end.begun)) for end in ended[:ENDED_SHOWN]),
        lost_partitions=tuple(partitions.LostPartition(lost.partition, lost.at_us) for lost in reversed(history.lost)),
    )


def _gathered(shape: type[Answer], sources: Sequence[object], **given: object) -> Answer:
    """Return an answer with what is `given`, and in its other fields what the first source has under their names."""
    names = [name for name in shape.__struct_fields__ if name not in given]
    found = {name: next(getattr(source, name) for source in sources if hasattr(source, name)) for name in names}
    return shape(**found, **given)

"""The answers of ``/quarterdeck/v1``, made from a member's state machine and its picture."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import chain, islice, starmap
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import Holder, MigrationStarted
from quarterdeck.backend.core.partitions.table.partition_table import packed
from quarterdeck.backend.member_api import beliefs, partitions
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.migrations import EndedMigration
from quarterdeck.backend.picture.merging.join_list_board import unusable_text
from quarterdeck.backend.service.http.face import Face, own_belief, utc_now_us
from quarterdeck.backend.service.member_log import software_version

Answer = TypeVar("Answer")
PLANNED_SHOWN = 100
ENDED_SHOWN = 50
MOST_ROWS = 5_000
"""Rows of the table in one answer."""
NO_LIST = "it has no member list yet: it is still looking for a cluster"
KNOWS_NOBODY = "every address that it knows is a member already; edit the join list to name others"
MEETS_NOBODY = "it has met no other cluster; nothing on its join list or among those it remembers has answered as one"


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
    member, configuration = face.member, face.configuration
    members, table = member.members, member.table
    return beliefs.ThisMember(
        label=face.label,
        address=face.address,
        uuid=face.uuid,
        run=face.run,
        cluster_name=configuration.cluster_name,
        node_state=face.node_state,
        version=software_version(),
        started_utc=started_utc,
        now_us=face.now_us(),
        utc_us=utc_now_us(),
        cluster_state=member.cluster_state,
        master=member.master,
        is_master=member.is_master,
        list_version=members.version if members else 0,
        lineage=members.lineage if members else "",
        members=_entries(members.members if members else ()),
        join_list=member.join_list,
        remembered=remembered(face),
        table_version=table.version if table else 0,
        table_digest=f"{table.digest:016x}" if table else "",
        allow_faults=configuration.allow_faults,
        read_only=configuration.read_only,
    )


def remembered(face: Face) -> tuple[Address, ...]:
    """Return addresses that were on a list of this member once, and are on none now."""
    belief = own_belief(face)
    return tuple(sorted(belief.ever_listed - belief.listed - {face.address}))


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
                **asdict(_as(beliefs.MemberEntry, listed_member)),
                this=listed_member.uuid == face.uuid,
                master=listed_member.address == face.member.master,
                suspected=listed_member.address in belief.suspicions,
                owned=table.owned_by(listed_member.uuid) if table else 0,
                backed_up=table.backed_up_by(listed_member.uuid) if table else 0,
            )
            for listed_member in (listed.members if listed else ())
        ),
    )


def whole_belief(face: Face) -> beliefs.Belief:
    """Return everything that this member believes of its cluster."""
    belief = own_belief(face)
    suspicions = suspicions_of(belief)
    return beliefs.Belief(
        label=belief.label,
        address=belief.address,
        uuid=belief.uuid,
        status=belief.status,
        node_state=face.node_state,
        now_us=face.now_us(),
        at_us=belief.at,
        merged_from=belief.merged_from,
        master=belief.master,
        is_master=belief.is_master,
        list_version=belief.version,
        lineage=belief.lineage,
        list_since_us=belief.list_since_us,
        members=_entries(belief.members),
        cluster_state=belief.cluster_state,
        operating=belief.operating,
        needed=belief.needed,
        suspicions=suspicions.suspicions,
        claiming=belief.claiming,
        merging=belief.merging,
        not_merging=_obstacles(belief),
        verdicts=_verdicts(belief),
        delay=_delay(belief),
        held_back=suspicions.held_back,
        reports=suspicions.reports,
        resolution=beliefs.Resolved(*belief.resolution) if belief.resolution else None,
        table=_as(beliefs.TableSummary, belief.table) if belief.table else None,
        out_of_step=tuple(
            beliefs.BackupBehind(partition, *why) for partition, why in sorted(belief.out_of_step.items())
        ),
    )


def suspicions_of(belief: MemberBelief) -> beliefs.Suspicions:
    """Return the members that a member suspects, what was reported to it, and those it holds back."""
    uuids = {member.address: member.uuid for member in belief.members}
    return beliefs.Suspicions(
        suspicions=tuple(
            beliefs.Suspected(address, uuids.get(address, ""), *suspicion)
            for address, suspicion in belief.suspicions.items()
        ),
        reports=tuple(starmap(beliefs.Report, belief.reports.items())),
        held_back=tuple(starmap(beliefs.HeldBack, belief.held_back.items())),
    )


def why_not_merging(face: Face) -> beliefs.WhyNotMerging:
    """Return what keeps this member's cluster from merging with another one."""
    belief, member = own_belief(face), face.member
    return beliefs.WhyNotMerging(
        sentence=_why(face, belief),
        master=member.master,
        is_master=member.is_master,
        merging=belief.merging,
        obstacles=_obstacles(belief),
        verdicts=_verdicts(belief),
        delay=_delay(belief),
        held_back=suspicions_of(belief).held_back,
        join_list=member.join_list,
        remembered=remembered(face),
    )


def table_rows(face: Face, first: int, last: int | None) -> partitions.Table:
    """Return the rows from `first` to `last`, or as many of them as one answer has room for."""
    table = face.member.table
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
    return partitions.Migrations(
        leading=belief.is_master,
        recovering=partitions.Recovery(*leading.recovering) if leading.recovering else None,
        draining=tuple(starmap(partitions.Draining, leading.draining.items())),
        moves=leading.moves,
        lower_bound=leading.lower_bound,
        why=leading.why,
        cancelled=leading.cancelled,
        queued=leading.waiting,
        running_count=len(leading.running),
        done=history.done_count,
        failed=history.failed_count,
        lost=history.lost_count,
        planned=tuple(_as(partitions.Planned, migration) for migration in islice(leading.queue(), PLANNED_SHOWN)),
        running=tuple(
            partitions.Running(**_begun(running.begun), phase=running.phase, since_us=running.since_us)
            for running in islice(leading.running.values(), PLANNED_SHOWN)
        ),
        taking_part=tuple(
            _as(partitions.TakingPart, migration) for migration in islice(belief.taking_part.values(), PLANNED_SHOWN)
        ),
        ended=tuple(map(_finished, ended[:ENDED_SHOWN])),
        lost_partitions=tuple(partitions.LostPartition(lost.partition, lost.at_us) for lost in reversed(history.lost)),
    )


def _as(shape: type[Answer], source: object) -> Answer:
    """Make an answer from attributes of the same names."""
    return msgspec.convert(source, shape, from_attributes=True)


def _begun(begun: MigrationStarted) -> dict[str, Any]:
    """Return the fields of `Migration`, for answers that have more of one."""
    return asdict(_as(partitions.Migration, begun))


def _finished(ended: EndedMigration) -> partitions.Finished:
    return partitions.Finished(
        **_begun(ended.begun),
        committed=ended.committed,
        reason=ended.reason,
        at_us=ended.at_us,
        took_us=ended.took_us,
    )


def _entries(listed: Iterable[Member]) -> tuple[beliefs.MemberEntry, ...]:
    return tuple(_as(beliefs.MemberEntry, member) for member in listed)


def _obstacles(belief: MemberBelief) -> tuple[beliefs.Obstacle, ...]:
    return tuple(beliefs.Obstacle(remote, obstacle.reason) for remote, obstacle in belief.obstacles.items())


def _verdicts(belief: MemberBelief) -> tuple[beliefs.VerdictOn, ...]:
    return tuple(beliefs.VerdictOn(remote, *verdict) for remote, verdict in belief.verdicts.items())


def _delay(belief: MemberBelief) -> beliefs.WaitsForLinks | None:
    return beliefs.WaitsForLinks(*belief.delay) if belief.delay else None


def _why(face: Face, belief: MemberBelief) -> str:
    member = face.member
    if belief.delay is not None:
        return f"{belief.delay.master} lets it in when its links to {', '.join(belief.delay.missing)} are proven"
    if member.members is None:
        unusable = unusable_text(belief)
        return f"{NO_LIST}; {unusable}" if unusable else NO_LIST
    if not member.is_master:
        return f"it follows {member.master}, and only a master merges; ask that one"
    if belief.merging:
        return f"it is merging into the cluster of {belief.merging}"
    return belief.not_merging or (MEETS_NOBODY if belief.search_addresses else KNOWS_NOBODY)

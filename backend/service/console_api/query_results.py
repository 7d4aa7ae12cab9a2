"""What a member tells of itself to the console: its machine and its picture, put into the answers of ``/quarterdeck/v1``."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.table.replica import packed
from quarterdeck.backend.picture.fold import belief as believed
from quarterdeck.backend.picture.fold.migrations import EndedMigration
from quarterdeck.backend.service.console_api import data_models as data
from quarterdeck.backend.service.console_api import models as models
from quarterdeck.backend.service.http.face import Face
from quarterdeck.backend.service.member_log import software_version

PLANNED_SHOWN = 100
ENDED_SHOWN = 50
MOST_ROWS = 5_000
"""Rows of the table in one answer."""

NO_LIST = "it has no member list yet: it is still looking for a cluster"
MEETS_NOBODY = "it has met no other cluster; nothing on its join list or among those it remembers has answered as one"


def utc_text(utc_us: int) -> str:
    """ISO 8601, with microseconds."""
    return datetime.fromtimestamp(utc_us / 1_000_000, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def utc_now_us() -> int:
    return time.time_ns() // 1_000


def process_started_utc_us() -> int:
    """When this process began, in UTC; now, where the system does not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return utc_now_us()
    age_seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return utc_now_us() - round(age_seconds * 1_000_000)


def this_member(face: Face, started_utc_us: int) -> models.ThisMember:
    machine, configuration = face.machine, face.configuration
    members, table = machine.members, machine.table
    return models.ThisMember(
        label=face.label,
        address=face.address,
        uuid=face.uuid,
        run=face.run,
        cluster_name=configuration.cluster_name,
        node_state=face.node_state,
        version=software_version(),
        started_utc=utc_text(started_utc_us),
        now_us=face.now_us(),
        utc_us=utc_now_us(),
        cluster_state=machine.cluster_state,
        master=machine.master,
        is_master=machine.is_master,
        list_version=members.version if members else 0,
        lineage=members.lineage if members else "",
        members=_entries(members.members if members else ()),
        join_list=machine.join_list,
        remembered=remembered(face),
        table_version=table.version if table else 0,
        table_digest=f"{table.digest:016x}" if table else "",
        allow_faults=configuration.allow_faults,
        read_only=configuration.read_only,
    )


def own_belief(face: Face) -> believed.Belief:
    """What was folded of this member's own records in its present life; an empty belief before the first of them."""
    found = face.picture.members.get(face.label)
    if found is None or found.uuid != face.uuid:
        return believed.Belief(face.label, face.address, face.uuid)
    return found


def remembered(face: Face) -> tuple[Address, ...]:
    belief = own_belief(face)
    return tuple(sorted(belief.ever_listed - belief.listed - {face.address}))


def members(face: Face) -> models.Members:
    listed, belief = face.machine.members, own_belief(face)
    table = belief.table
    return models.Members(
        list_version=listed.version if listed else 0,
        lineage=listed.lineage if listed else "",
        master=face.machine.master,
        members=tuple(
            models.MemberRow(
                **_entry(one).model_dump(),
                this=one.uuid == face.uuid,
                master=one.address == face.machine.master,
                suspected=one.address in belief.suspicions,
                owned=table.owned_by(one.uuid) if table else 0,
                backed_up=table.backed_up_by(one.uuid) if table else 0,
            )
            for one in (listed.members if listed else ())
        ),
    )


def whole_belief(face: Face) -> models.Belief:
    belief = own_belief(face)
    suspicions = suspicions_of(belief)
    return models.Belief(
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
        resolution=models.Resolved.model_validate(belief.resolution) if belief.resolution else None,
        table=models.TableSummary.model_validate(belief.table) if belief.table else None,
        out_of_step=tuple(
            models.BackupBehind(partition=partition, owner=why.owner, reason=why.reason)
            for partition, why in sorted(belief.out_of_step.items())
        ),
    )


def suspicions_of(belief: believed.Belief) -> models.Suspicions:
    lives = {member.address: member.uuid for member in belief.members}
    return models.Suspicions(
        suspicions=tuple(
            models.Suspected(suspect=address, uuid=lives.get(address, ""), reason=reason, since_us=since_us)
            for address, (reason, since_us) in belief.suspicions.items()
        ),
        reports=tuple(models.Report(reporter=who, suspects=whom) for who, whom in belief.reports.items()),
        held_back=tuple(models.HeldBack(address=who, missing=to) for who, to in belief.held_back.items()),
    )


def why_not_merging(face: Face) -> models.WhyNotMerging:
    belief, machine = own_belief(face), face.machine
    return models.WhyNotMerging(
        sentence=_why(face, belief),
        master=machine.master,
        is_master=machine.is_master,
        merging=belief.merging,
        obstacles=_obstacles(belief),
        verdicts=_verdicts(belief),
        delay=_delay(belief),
        held_back=suspicions_of(belief).held_back,
        join_list=machine.join_list,
        remembered=remembered(face),
    )


def table_rows(face: Face, first: int, last: int | None) -> data.Table:
    """The rows from `first` to `last`, or as many of them as one answer has room for."""
    table = face.machine.table
    if table is None:
        return data.Table(
            table_version=0, digest="", partitions=0, replicas=0, holders=(), rows=(), next=None
        )  # nothing is arranged yet
    wanted = range(first, min(len(table), len(table) if last is None else last + 1))[:MOST_ROWS]
    rows = packed(table.row(partition) for partition in wanted)
    after = wanted.stop if wanted.stop < min(len(table), len(table) if last is None else last + 1) else None
    return data.Table(
        table_version=table.version,
        digest=f"{table.digest:016x}",
        partitions=len(table),
        replicas=table.width,
        holders=tuple(map(data.HolderEntry.model_validate, rows.holders)),
        rows=rows.rows,
        next=after,
    )


def migrations(face: Face) -> data.Migrations:
    belief, history = own_belief(face), face.picture.history
    leading = belief.leading
    ended = sorted(chain(history.done, history.failed), key=lambda one: -one.at_us)
    return data.Migrations(
        leading=belief.is_master,
        recovering=data.Recovery.model_validate(leading.recovering) if leading.recovering else None,
        draining=tuple(data.Draining(address=who, since_us=since) for who, since in leading.draining.items()),
        moves=leading.moves,
        lower_bound=leading.lower_bound,
        why=leading.why,
        cancelled=leading.cancelled,
        queued=leading.waiting,
        running_count=len(leading.running),
        done=history.done_count,
        failed=history.failed_count,
        lost=history.lost_count,
        planned=tuple(map(data.Planned.model_validate, islice(leading.queue(), PLANNED_SHOWN))),
        running=tuple(
            data.Running(
                **data.Migration.model_validate(one.begun).model_dump(), phase=one.phase, since_us=one.since_us
            )
            for one in islice(leading.running.values(), PLANNED_SHOWN)
        ),
        taking_part=tuple(map(data.TakingPart.model_validate, islice(belief.taking_part.values(), PLANNED_SHOWN))),
        ended=tuple(map(_finished, ended[:ENDED_SHOWN])),
        lost_partitions=tuple(map(data.LostPartition.model_validate, reversed(history.lost))),
    )


def _finished(ended: EndedMigration) -> data.Finished:
    return data.Finished(
        **data.Migration.model_validate(ended.begun).model_dump(),
        committed=ended.committed,
        reason=ended.reason,
        at_us=ended.at_us,
        took_us=ended.took_us,
    )


def _entry(member: Member) -> models.MemberEntry:
    return models.MemberEntry.model_validate(member)


def _entries(listed: Iterable[Member]) -> tuple[models.MemberEntry, ...]:
    return tuple(map(_entry, listed))


def _obstacles(belief: believed.Belief) -> tuple[models.Obstacle, ...]:
    return tuple(models.Obstacle(remote=remote, reason=reason) for remote, reason in belief.obstacles.items())


def _verdicts(belief: believed.Belief) -> tuple[models.VerdictOn, ...]:
    return tuple(models.VerdictOn(remote=remote, **one._asdict()) for remote, one in belief.verdicts.items())


def _delay(belief: believed.Belief) -> models.WaitsForLinks | None:
    return models.WaitsForLinks.model_validate(belief.delay) if belief.delay else None


def _why(face: Face, belief: believed.Belief) -> str:
    machine = face.machine
    if belief.delay is not None:
        return f"{belief.delay.master} lets it in when its links to {', '.join(belief.delay.missing)} are proven"
    if machine.members is None:
        return NO_LIST
    if not machine.is_master:
        return f"it follows {machine.master}, and only a master merges; ask that one"
    if belief.merging:
        return f"it is merging into the cluster of {belief.merging}"
    return belief.not_merging or MEETS_NOBODY

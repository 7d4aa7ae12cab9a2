"""Whether the loss of one member would lose data, as far as this member knows (Hazelcast: REST health, done right: 10.5).

A member that has not joined is never safe. One without a table is safe only where nothing can be stored yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.arrangement.member_groups import grouped
from quarterdeck.backend.core.partitions.table.partition_table import PartitionTable
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.safety import WORDS, unsafety_of
from quarterdeck.backend.picture.merging.join_list_board import unusable_text
from quarterdeck.backend.service.http.face import Face, own_belief


def why_not_ready(face: Face) -> str:
    """Why the member should be sent no work; empty when it may be."""
    member = face.member
    if face.node_state == "SHUT_DOWN":
        return "it is shut down"
    if face.node_state == "PASSIVE" and member.cluster_state != "PASSIVE":
        return "it is about to leave"
    if not member.joined or member.members is None:
        unusable = unusable_text(own_belief(face))
        return f"it has not joined a cluster; {unusable}" if unusable else "it has not joined a cluster"
    size, needed = len(member.members.members), member.settings.minimum_cluster_size
    if size < needed:
        return f"it sees {size} of at least {needed} members"
    return ""


def why_unsafe(face: Face) -> str:
    """The first thing found that stands between this cluster and safety; empty when there is none."""
    member = face.member
    if not member.joined or member.members is None:
        return "it has not joined a cluster"
    belief = face.picture.members.get(face.label)
    busy = unsafety_of(belief) if belief is not None else None
    if busy is not None:
        return WORDS[busy]
    if member.table is None:
        return _why_unsafe_without_table(face, belief)
    table = member.table
    return _missing_replicas(_SafetyInput(table.digest, table.version, member.members.members, member.settings, table))


def migration_queue_size(face: Face) -> int:
    """On the master, the migrations that run or wait; on others, those that they take part in: more they are not told."""
    belief = face.picture.members.get(face.label)
    if belief is None:
        return 0
    if face.member.is_master:
        return belief.leading.waiting + len(belief.leading.running)
    return len(belief.taking_part)


def _why_unsafe_without_table(face: Face, belief: MemberBelief | None) -> str:
    """The master knows whether there is a table; another member is told of it within the time that compares tables."""
    member = face.member
    if member.is_master:
        return ""
    since_us = belief.list_since_us if belief is not None else face.now_us()
    if face.now_us() - since_us < member.settings.table_send_interval_us:
        return "whether there is a partition table is not known yet"
    return ""


@dataclass(frozen=True)
class _SafetyInput:
    """A table and those who may hold it. Two are the same whose tables have the same content."""

    digest: int
    version: int
    members: tuple[Member, ...]
    settings: Settings
    table: PartitionTable = field(compare=False)


@lru_cache(maxsize=8)
def _missing_replicas(given: _SafetyInput) -> str:
    """Remembered, for probes ask again and again, and fifty thousand partitions take as many microseconds."""
    table, members = given.table, given.members
    departed = table.holders().keys() - {member.uuid for member in members}
    if departed:
        return "members that are gone stand in the partition table"
    wanted = min(table.width, _group_count(members, given.settings))
    short = sum(None in row[: max(wanted, 1)] for row in table.rows)
    return f"{short} of {len(table)} partitions have fewer than {wanted} replicas" if short else ""


def _group_count(members: tuple[Member, ...], settings: Settings) -> int:
    """In how many groups replicas can be held; no partition has two in one."""
    data = [member for member in members if not member.lite]
    return len({one.group for one in grouped(data, settings.partition_groups, settings.custom_groups)})

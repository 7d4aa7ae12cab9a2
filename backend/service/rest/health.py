"""``/hazelcast/health`` and below: for probes and load balancers, which need not identify themselves.

A cluster is safe if the loss of one member would lose no data, as far as this member knows (Hazelcast: REST health, done right:
10.5). A member that has not joined is never safe. One without a table is safe only where nothing can be stored yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from msgspec import Struct
from starlette.responses import Response

from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.arrangement.member_groups import groups_of
from quarterdeck.backend.core.partitions.table.partition_table import PartitionTable
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.member_api.beliefs import NodeState
from quarterdeck.backend.picture.fold.belief import WORDS, MemberBelief, unsafety_of
from quarterdeck.backend.service.http.face import Face, own_belief
from quarterdeck.backend.service.http.responses import Denied, json_response
from quarterdeck.backend.service.rest.endpoint import EndpointHandler, RestEndpoint, RestRequest

NOT_JOINED = "it has not joined a cluster"


def why_not_ready(face: Face) -> str:
    """Return why the member should be sent no work; empty when it may be."""
    member = face.member
    if face.node_state == "SHUT_DOWN":
        return "it is shut down"
    if face.node_state == "PASSIVE" and member.cluster_state != "PASSIVE":
        return "it is about to leave"
    if not member.joined or member.members is None:
        causes = sorted({found.cause for found in own_belief(face).unusable.values()})  # no address: anyone may ask
        return f"{NOT_JOINED}; it searches in vain: {', '.join(causes)}" if causes else NOT_JOINED
    size, needed = len(member.members.members), member.settings.minimum_cluster_size
    if size < needed:
        return f"it sees {size} of at least {needed} members"
    return ""


def why_unsafe(face: Face) -> str:
    """Return the first reason found why this cluster is not safe; empty when there is none."""
    member = face.member
    if not member.joined or member.members is None:
        return NOT_JOINED
    belief = face.picture.members.get(face.label)
    busy = unsafety_of(belief) if belief is not None else None
    if busy is not None:
        return WORDS[busy]
    if member.partitions.table is None:
        return _why_unsafe_without_table(face, belief)
    table = member.partitions.table
    return _missing_replicas(_SafetyInput(table.digest, table.version, member.members.members, member.settings, table))


def migration_queue_size(face: Face) -> int:
    """Return how many migrations run or wait on the master; on others, how many they take part in, as they know no more."""
    belief = face.picture.members.get(face.label)
    if belief is None:
        return 0
    if face.member.is_master:
        return belief.leading.waiting + len(belief.leading.running)
    return len(belief.taking_part)


def _why_unsafe_without_table(face: Face, belief: MemberBelief | None) -> str:
    """Return "" on the master, which knows whether there is a table; another member receives one within an interval."""
    member = face.member
    if member.is_master:
        return ""
    since_us = belief.list_since_us if belief is not None else face.now_us()
    if face.now_us() - since_us < member.settings.table_send_interval_us:
        return "whether there is a partition table is not known yet"
    return ""


@dataclass(frozen=True)
class _SafetyInput:
    """A table and the members that may hold it. Two are the same whose tables have the same content."""

    digest: int
    version: int
    members: tuple[Member, ...]
    settings: Settings
    table: PartitionTable = field(compare=False)


@lru_cache(maxsize=8)
def _missing_replicas(given: _SafetyInput) -> str:
    """Return why replicas are missing. Cached: probes ask often, and fifty thousand partitions take as many microseconds."""
    table, members = given.table, given.members
    departed = table.holders().keys() - {member.uuid for member in members}
    if departed:
        return "members that are gone stand in the partition table"
    wanted = min(table.width, _group_count(members, given.settings))
    short = sum(None in row[: max(wanted, 1)] for row in table.rows)
    return f"{short} of {len(table)} partitions have fewer than {wanted} replicas" if short else ""


def _group_count(members: tuple[Member, ...], settings: Settings) -> int:
    """Return in how many groups replicas can be held; no partition has two in one."""
    data = [member for member in members if not member.lite]
    return len(set(groups_of(data, settings.partition_groups, settings.custom_groups).values()))


class Health(Struct, frozen=True, rename="camel"):
    """What a member reports of itself. Before it has joined, it reports nothing of a cluster."""

    node_state: NodeState
    cluster_state: ClusterState | None
    cluster_safe: bool
    migration_queue_size: int
    cluster_size: int
    reason: str
    """Why it is not ready or not safe; empty when it is both."""
    journal_failure: str
    """Why its journal cannot be written just now; empty when it can, or when there is none."""


def health_of(face: Face) -> Health:
    """Return the health of the member behind `face`."""
    member = face.member
    joined = member.joined and member.members is not None
    unsafe = why_unsafe(face)
    return Health(
        node_state=face.node_state,
        cluster_state=member.cluster_state if joined else None,
        cluster_safe=not unsafe,
        migration_queue_size=migration_queue_size(face),
        cluster_size=_size(face),
        reason=why_not_ready(face) or unsafe,
        journal_failure=face.journal.failure if face.journal is not None else "",
    )


async def health(rest_request: RestRequest) -> Response:
    """Answer with all of it; 503 until the member is ready, in the same form."""
    return json_response(health_of(rest_request.face), _status(rest_request.face))


async def health_headers(rest_request: RestRequest) -> Response:
    """Answer with the same in headers, for HEAD."""
    current = health_of(rest_request.face)
    headers = {
        "Hazelcast-NodeState": current.node_state,
        "Hazelcast-MigrationQueueSize": str(current.migration_queue_size),
        "Hazelcast-ClusterSize": str(current.cluster_size),
    }
    if current.cluster_state is not None:
        headers["Hazelcast-ClusterState"] = current.cluster_state
    return Response(status_code=_status(rest_request.face), headers=headers)


def _size(face: Face) -> int:
    member = face.member
    return len(member.members.members) if member.joined and member.members is not None else 0


def _status(face: Face) -> int:
    return 503 if why_not_ready(face) else 200


def _node_state(asked: RestRequest) -> Response:
    state = asked.face.node_state
    return Response(status_code=503) if state == "SHUT_DOWN" else json_response(state)


def _no_such_part(asked: RestRequest) -> Response:
    status = 404 if asked.request.method == "HEAD" else 400
    raise Denied(status, "health has no such part", "see hazelcast/health")


def _probe(below: str, answer: EndpointHandler, method: str = "GET") -> RestEndpoint:
    return RestEndpoint(f"/hazelcast/health{below}", (method,), "HEALTH_CHECK", answer, role=None)


PATHS = (
    _probe("", health),
    _probe("", health_headers, "HEAD"),
    _probe("/ready", lambda asked: Response(status_code=_status(asked.face))),
    _probe("/node-state", _node_state),  # whether the process runs, from what it knows itself
    _probe("/cluster-state", lambda asked: json_response(asked.joined().member.cluster_state)),
    _probe("/cluster-safe", lambda asked: Response(status_code=503 if why_unsafe(asked.face) else 200)),
    _probe("/migration-queue-size", lambda asked: json_response(migration_queue_size(asked.face))),
    _probe("/cluster-size", lambda asked: json_response(_size(asked.face))),
    _probe("{rest:any}", _no_such_part),
)

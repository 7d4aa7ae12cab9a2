"""``/hazelcast/health`` and what is below it: for probes and load balancers, which are never asked who they are."""

from __future__ import annotations

from msgspec import Struct
from starlette.responses import Response

from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.member_api.beliefs import NodeState
from quarterdeck.backend.service.http.face import Face
from quarterdeck.backend.service.http.responses import Denied, json_response
from quarterdeck.backend.service.rest.cluster_safety import migration_queue_size, why_not_ready, why_unsafe
from quarterdeck.backend.service.rest.endpoint import RestEndpoint, RestRequest


class Health(Struct, frozen=True, rename="camel"):
    """What a member says of itself. Before it has joined, nothing is said of a cluster."""

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
    """The health of the member behind `face`."""
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
    """All of it; 503 until the member is ready, in the same shape."""
    return json_response(health_of(rest_request.face), _status(rest_request.face))


async def health_headers(rest_request: RestRequest) -> Response:
    """The same in headers, for HEAD."""
    told = health_of(rest_request.face)
    headers = {
        "Hazelcast-NodeState": told.node_state,
        "Hazelcast-MigrationQueueSize": str(told.migration_queue_size),
        "Hazelcast-ClusterSize": str(told.cluster_size),
    }
    if told.cluster_state is not None:
        headers["Hazelcast-ClusterState"] = told.cluster_state
    return Response(status_code=_status(rest_request.face), headers=headers)


async def ready(rest_request: RestRequest) -> Response:
    """Whether it should be sent work."""
    return Response(status_code=_status(rest_request.face))


async def node_state(rest_request: RestRequest) -> Response:
    """Whether the process runs, and what it believes of its cluster; asks nobody else."""
    state = rest_request.face.node_state
    return Response(status_code=503) if state == "SHUT_DOWN" else json_response(state)


async def cluster_state(rest_request: RestRequest) -> Response:
    """The state of the cluster; refused until the member has joined one."""
    rest_request.require_joined()
    return json_response(rest_request.face.member.cluster_state)


async def cluster_safe(rest_request: RestRequest) -> Response:
    """200 when every partition has its backups, else 503."""
    return Response(status_code=503 if why_unsafe(rest_request.face) else 200)


async def queue_size(rest_request: RestRequest) -> Response:
    """How many migrations are planned or under way."""
    return json_response(migration_queue_size(rest_request.face))


async def cluster_size(rest_request: RestRequest) -> Response:
    """How many members the list has; 0 before there is one."""
    return json_response(_size(rest_request.face))


async def no_such_health(rest_request: RestRequest) -> Response:
    """Refuse what is no part of the health."""
    raise Denied(
        404 if rest_request.request.method == "HEAD" else 400, "health has no such part", "see hazelcast/health"
    )


def _size(face: Face) -> int:
    member = face.member
    return len(member.members.members) if member.joined and member.members is not None else 0


def _status(face: Face) -> int:
    return 503 if why_not_ready(face) else 200


PATHS = (
    RestEndpoint("/hazelcast/health", ("GET",), "HEALTH_CHECK", health, role=None),
    RestEndpoint("/hazelcast/health", ("HEAD",), "HEALTH_CHECK", health_headers, role=None),
    RestEndpoint("/hazelcast/health/ready", ("GET",), "HEALTH_CHECK", ready, role=None),
    RestEndpoint("/hazelcast/health/node-state", ("GET",), "HEALTH_CHECK", node_state, role=None),
    RestEndpoint("/hazelcast/health/cluster-state", ("GET",), "HEALTH_CHECK", cluster_state, role=None),
    RestEndpoint("/hazelcast/health/cluster-safe", ("GET",), "HEALTH_CHECK", cluster_safe, role=None),
    RestEndpoint("/hazelcast/health/migration-queue-size", ("GET",), "HEALTH_CHECK", queue_size, role=None),
    RestEndpoint("/hazelcast/health/cluster-size", ("GET",), "HEALTH_CHECK", cluster_size, role=None),
    RestEndpoint("/hazelcast/health{rest:any}", ("GET",), "HEALTH_CHECK", no_such_health, role=None),
)

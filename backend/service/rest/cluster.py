"""``/hazelcast/rest/cluster`` and ``/hazelcast/rest/instance``: who is there."""

from __future__ import annotations

from starlette.responses import Response

from quarterdeck.backend.core.address import bracketed
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.service.http.responses import json_response
from quarterdeck.backend.service.member_log import software_version
from quarterdeck.backend.service.rest.endpoint import RestEndpoint, RestRequest


async def cluster(rest_request: RestRequest) -> Response:
    """The members in order of age. Clients have no connections of their own kind here, so there are none to count."""
    face = rest_request.face
    members = face.member.members.members if face.member.members is not None else ()
    rows = [_row(member, face.member.uuid) for member in members]
    return json_response({"members": rows, "connectionCount": 0, "allConnectionCount": face.connections})


async def instance(rest_request: RestRequest) -> Response:
    """The name of this member."""
    return json_response({"name": rest_request.face.label})


def _row(member: Member, this: str) -> dict[str, object]:
    return {
        "address": bracketed(member.address),
        "liteMember": member.lite,
        "localMember": member.uuid == this,
        "uuid": member.uuid,
        "memberVersion": software_version(),
    }


PATHS = (
    RestEndpoint("/hazelcast/rest/cluster", ("GET",), "CLUSTER_READ", cluster),
    RestEndpoint("/hazelcast/rest/instance", ("GET",), "CLUSTER_READ", instance),
)

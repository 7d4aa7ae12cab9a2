"""``/hazelcast/rest/cluster`` and ``/hazelcast/rest/instance``: who is there."""

from __future__ import annotations

from starlette.responses import Response

from quarterdeck.backend.core.address import bracketed
from quarterdeck.backend.core.membership.identity import Member
from quarterdeck.backend.service.answers import json_answer
from quarterdeck.backend.service.operator_path import Asked, OperatorPath
from quarterdeck.backend.service.software import software_version


async def cluster(asked: Asked) -> Response:
    """The members in order of age. Clients have no connections of their own kind here, so there are none to count."""
    face = asked.face
    members = face.machine.members.members if face.machine.members is not None else ()
    rows = [_row(member, face.machine.uuid) for member in members]
    return json_answer({"members": rows, "connectionCount": 0, "allConnectionCount": face.connections})


async def instance(asked: Asked) -> Response:
    return json_answer({"name": asked.face.label})


def _row(member: Member, this: str) -> dict[str, object]:
    return {
        "address": bracketed(member.address),
        "liteMember": member.lite,
        "localMember": member.uuid == this,
        "uuid": member.uuid,
        "memberVersion": software_version(),
    }


PATHS = (
    OperatorPath("/hazelcast/rest/cluster", ("GET",), "CLUSTER_READ", cluster),
    OperatorPath("/hazelcast/rest/instance", ("GET",), "CLUSTER_READ", instance),
)

"""The path of ``/quarterdeck/v1`` that tells all that the member knows, values of maps included (role write)."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from fastapi import APIRouter

from quarterdeck.backend.member_api.answers import Snapshot
from quarterdeck.backend.picture.text.formatting import bytes_text
from quarterdeck.backend.service.console_api.route_classes import (
    CallerDependency,
    FaceDependency,
    WritingRoute,
    with_error_responses,
)
from quarterdeck.backend.service.http.responses import Denied
from quarterdeck.backend.service.member_log import software_version

MOST_BYTES = 32 * 1024 * 1024
"""What a member tells of itself at most: a copy is for trying out what the protocols do, not for moving data."""

router = APIRouter(route_class=WritingRoute, responses=with_error_responses(409))


@router.get("/snapshot")
async def snapshot(face: FaceDependency, caller: CallerDependency) -> Snapshot:
    """All that this member knows at this moment, for a simulated copy that goes on from there."""
    if caller.groups is not None and "DATA" not in caller.groups:
        problem = f"values of maps are told too, and {caller.name} is limited to {', '.join(caller.groups)}"
        raise Denied(HTTPStatus.FORBIDDEN, problem, "ask as somebody who may use DATA as well")
    content = msgspec.msgpack.encode(await face.report(caller))
    if len(content) > MOST_BYTES:
        held, most = bytes_text(len(content)), bytes_text(MOST_BYTES)
        raise Denied(
            HTTPStatus.CONFLICT, f"{face.label} holds {held}, of which no copy is made", f"at most {most} are told"
        )
    return Snapshot(face.label, face.uuid, software_version(), content)

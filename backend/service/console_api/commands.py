"""The paths of ``/quarterdeck/v1`` that change something (role write), and those that do harm on purpose (role fault)."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import APIRouter, Request

from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    ChangeState,
    Heal,
    KillMember,
    PauseMember,
    ResumeMember,
    SearchClusters,
    SetJoinList,
)
from quarterdeck.backend.core.events import LinkChanged
from quarterdeck.backend.core.join_list import BadJoinList, resolve_join_list
from quarterdeck.backend.core.links import LinkCommand
from quarterdeck.backend.service.console_api import models as models
from quarterdeck.backend.service.console_api.queries import properties_of
from quarterdeck.backend.service.console_api.route_classes import (
    JOINED,
    CallerDependency,
    FaceDependency,
    FaultRoute,
    WritingRoute,
    with_error_responses,
)
from quarterdeck.backend.service.http.responses import JSON_TYPE, Denied

writing = APIRouter(route_class=WritingRoute, responses=with_error_responses(409, 503))
faults = APIRouter(prefix="/faults", route_class=FaultRoute, responses=with_error_responses(409))

LINK_COMMAND: msgspec.json.Decoder[LinkCommand] = msgspec.json.Decoder(LinkCommand)

LINK_COMMAND_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            JSON_TYPE: {
                "schema": {"$ref": "#/components/schemas/LinkCommand"},
                "examples": {
                    "cut": {"value": {"do": "cut", "sources": ["127.0.0.1:5701"], "targets": ["127.0.0.1:5702"]}},
                    "delay": {
                        "value": {
                            "do": "delay",
                            "sources": ["127.0.0.1:5701"],
                            "targets": ["127.0.0.1:5702"],
                            "delay_us": 50_000,
                            "one_way": True,
                        }
                    },
                },
            }
        },
    }
}

ACCEPTED = HTTPStatus.ACCEPTED
"""For what has only begun."""


@writing.put("/join-list")
async def set_join_list(wanted: models.NewJoinList, face: FaceDependency, caller: CallerDependency) -> models.JoinList:
    """Edit the join list of this member's whole cluster; it reaches the other members by itself."""
    try:
        addresses = resolve_join_list(
            wanted.addresses,
            {face.label: face.address},
            port_try_count=face.machine.settings.join_port_try_count,
        )
    except BadJoinList as problem:
        raise Denied(HTTPStatus.BAD_REQUEST, f"addresses: {problem}", "nothing was changed") from problem
    await face.do(SetJoinList(face.label, addresses), caller)
    return models.JoinList(addresses=face.machine.join_list)


@writing.post("/state", status_code=ACCEPTED, dependencies=JOINED)
async def change_state(wanted: models.StateWanted, face: FaceDependency, caller: CallerDependency) -> models.Done:
    """Ask the cluster to change its state. Events tell whether it did."""
    await face.do(ChangeState(face.label, wanted.state), caller)
    return models.Done(message=f"the cluster was asked to be {wanted.state}")


@writing.post("/search", status_code=ACCEPTED, dependencies=JOINED)
async def search(face: FaceDependency, caller: CallerDependency) -> models.Done:
    """Look for other clusters now, instead of at the next turn. Refused by who is no master."""
    await face.do(SearchClusters(face.label), caller)
    return models.Done(message="it looks for other clusters")


@writing.post("/arrange", status_code=ACCEPTED, dependencies=JOINED)
async def arrange(face: FaceDependency, caller: CallerDependency) -> models.Done:
    """See to it that the partitions are arranged, if they are not yet."""
    await face.do(ArrangePartitions(face.label), caller)
    return models.Done(message="the master was asked to arrange the partitions")


@writing.post("/stop", status_code=ACCEPTED)
async def stop(face: FaceDependency, caller: CallerDependency, wanted: models.StopWanted | None = None) -> models.Done:
    """Stop gracefully: give the data away, say goodbye, end."""
    whole_cluster = wanted is not None and wanted.whole_cluster
    face.shut_down(caller, whole_cluster=whole_cluster)
    return models.Done(message="all members stop" if whole_cluster else f"{face.label} stops")


@writing.patch("/properties")
async def reconfigure(
    wanted: models.NewProperties, face: FaceDependency, caller: CallerDependency
) -> models.Properties:
    """Change properties of this member while it runs: all of them, or none."""
    await face.reconfigure(dict(wanted.properties), caller)
    return properties_of(face)


@faults.get("")
async def link_conditions(face: FaceDependency) -> models.Faults:
    """The link conditions that this member applies to what it sends."""
    return _faults(face.faults)


@faults.post("", openapi_extra=LINK_COMMAND_BODY)
async def change_links(request: Request, face: FaceDependency, caller: CallerDependency) -> models.Faults:
    """Change conditions of links. Members are named by address, or by label where this member knows it."""
    try:
        command = LINK_COMMAND.decode(await request.body())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        hint = "send a command about links, as in the examples of /quarterdeck/v1/openapi.json"
        raise Denied(HTTPStatus.BAD_REQUEST, f"the body: {problem}", hint) from problem
    await face.do(command, caller)
    return _faults(face.faults)


@faults.delete("")
async def heal(face: FaceDependency, caller: CallerDependency) -> models.Faults:
    """Make every link plain again."""
    await face.do(Heal(), caller)
    return _faults(face.faults)


@faults.post("/pause", status_code=ACCEPTED)
async def pause(face: FaceDependency, caller: CallerDependency) -> models.Done:
    """Freeze this member."""
    await face.do(PauseMember(face.label), caller)
    return models.Done(message=f"{face.label} is frozen")


@faults.post("/resume", status_code=ACCEPTED)
async def resume(face: FaceDependency, caller: CallerDependency) -> models.Done:
    """Let a frozen member go on."""
    await face.do(ResumeMember(face.label), caller)
    return models.Done(message=f"{face.label} goes on")


@faults.post("/kill", status_code=ACCEPTED)
async def kill(face: FaceDependency, caller: CallerDependency) -> models.Done:
    """End this member without a goodbye."""
    await face.do(KillMember(face.label), caller)
    return models.Done(message=f"{face.label} is killed")


def _faults(conditions: Sequence[LinkChanged]) -> models.Faults:
    return models.Faults(faults=tuple(map(models.LinkCondition.model_validate, conditions)))

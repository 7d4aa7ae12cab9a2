"""The paths of ``/quarterdeck/v1`` that change something or copy all (role write), or do harm on purpose (role fault)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from fastapi import APIRouter, Request

from quarterdeck.backend.commands.catalogue import CATALOGUE, CommandDescription, HttpForm, described
from quarterdeck.backend.core import commands
from quarterdeck.backend.core.address import BadJoinList, resolve_join_list
from quarterdeck.backend.core.commands import LinkCommand
from quarterdeck.backend.core.data.state import entries_held, memory_used
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.journal.files import NOT_DECODABLE
from quarterdeck.backend.member_api import answers
from quarterdeck.backend.picture.text.formatting import bytes_text
from quarterdeck.backend.service.console_api.queries import properties_of
from quarterdeck.backend.service.console_api.route_classes import (
    JOINED,
    CallerDependency,
    FaceDependency,
    NewJoinList,
    NewProperties,
    SizeAccepted,
    StateWanted,
    SuspectWanted,
    described_body,
    guarded_by,
    with_error_responses,
)
from quarterdeck.backend.service.http import bodies
from quarterdeck.backend.service.http.bodies import request_bytes
from quarterdeck.backend.service.http.responses import Denied
from quarterdeck.backend.service.member_log import software_version

writing = APIRouter(route_class=guarded_by("write"), responses=with_error_responses(409, 503))
copying = APIRouter(route_class=guarded_by("write"), responses=with_error_responses(409))
faults = APIRouter(prefix="/faults", route_class=guarded_by("fault"), responses=with_error_responses(409))
LINK_COMMAND: msgspec.json.Decoder[LinkCommand] = msgspec.json.Decoder(LinkCommand)

ONE_LINK = {"sources": ["127.0.0.1:5701"], "targets": ["127.0.0.1:5702"]}
LINK_COMMAND_BODY = described_body(
    {"$ref": "#/components/schemas/LinkCommand"},
    {"cut": {"do": "cut", **ONE_LINK}, "delay": {"do": "delay", **ONE_LINK, "delay_us": 50_000, "one_way": True}},
)

ACCEPTED = HTTPStatus.ACCEPTED
"""For what has only begun."""
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def _path_of(kind: type[commands.Command], **options: Any) -> Callable[[Endpoint], Endpoint]:
    """Return a decorator that makes a function the handler of the catalogue's path of this type of command."""
    of_kind = described(kind)
    assert of_kind.http is not None
    return _path(of_kind, of_kind.http, **options)


def _path(of_kind: CommandDescription, form: HttpForm, **options: Any) -> Callable[[Endpoint], Endpoint]:
    router = faults if of_kind.role == "fault" else writing
    dependencies = JOINED if form.needs_cluster else None
    path = form.path.removeprefix(router.prefix)
    return router.api_route(path, methods=[form.method], dependencies=dependencies, **options)


def _add_plain_path(of_kind: CommandDescription, form: HttpForm) -> None:

    async def do(face: FaceDependency, caller: CallerDependency) -> answers.Done:
        await face.do(of_kind.make({"member": face.label}), caller)
        return answers.Done(message=form.answer.format(member=face.label))

    _path(of_kind, form, name=of_kind.tag, description=form.summary, status_code=ACCEPTED)(do)


for _description in CATALOGUE:
    if _description.http is not None and _description.http.summary:
        _add_plain_path(_description, _description.http)


@_path_of(commands.SetJoinList)
async def set_join_list(wanted: NewJoinList, face: FaceDependency, caller: CallerDependency) -> answers.JoinList:
    """Edit the join list of this member's whole cluster; it reaches the other members by itself."""
    try:
        tries = face.member.settings.join_port_try_count
        addresses = resolve_join_list(wanted.addresses, {face.label: face.member.address}, port_try_count=tries)
    except BadJoinList as problem:
        raise Denied(HTTPStatus.CONFLICT, f"addresses: {problem}", "nothing was changed") from problem
    await face.do(commands.SetJoinList(face.label, addresses), caller)
    return answers.JoinList(addresses=face.member.join_list)


@_path_of(commands.ChangeState, status_code=ACCEPTED)
async def change_state(wanted: StateWanted, face: FaceDependency, caller: CallerDependency) -> answers.Done:
    """Ask the cluster to change its state. Events show whether it did."""
    await face.do(commands.ChangeState(face.label, wanted.state), caller)
    return answers.Done(message=f"the cluster was asked to be {wanted.state}")


@_path_of(commands.ExpectMembers)
async def expect(wanted: SizeAccepted, face: FaceDependency, caller: CallerDependency) -> answers.Done:
    """Accept a number of members as the size of the cluster: those that left before are not missed."""
    await face.do(commands.ExpectMembers(face.label, wanted.size), caller)
    return answers.Done(message=f"{wanted.size} members are expected")


@_path_of(commands.StopMember, status_code=ACCEPTED)
async def stop(face: FaceDependency, caller: CallerDependency) -> answers.Done:
    """Stop gracefully: give the data away, say goodbye, end."""
    face.shut_down(caller)
    return answers.Done(message=f"{face.label} stops")


@_path_of(commands.SetProperties)
async def reconfigure(wanted: NewProperties, face: FaceDependency, caller: CallerDependency) -> answers.Properties:
    """Change properties of this member while it runs: all of them, or none."""
    await face.reconfigure(dict(wanted.properties), caller)
    return properties_of(face)


@_path_of(commands.SuspectMember, status_code=ACCEPTED)
async def suspect(wanted: SuspectWanted, face: FaceDependency, caller: CallerDependency) -> answers.Done:
    """Suspect another member: a master removes it from the list, any other member suspects it."""
    await face.do(commands.SuspectMember(face.label, wanted.suspect), caller)
    return answers.Done(message=f"{face.label} was asked to suspect {wanted.suspect}")


@faults.get("")
async def link_conditions(face: FaceDependency) -> answers.Faults:
    """Return the link conditions that this member applies to what it sends."""
    return _faults(face.faults)


@_path_of(commands.CutLink, openapi_extra=LINK_COMMAND_BODY)
async def change_links(request: Request, face: FaceDependency, caller: CallerDependency) -> answers.Faults:
    """Change conditions of links. Members are named by address, or by label where this member knows it."""
    try:
        command = LINK_COMMAND.decode(await request_bytes(request, bodies.MOST_BYTES))
    except NOT_DECODABLE as problem:
        hint = "send a command about links, as in the examples of /quarterdeck/v1/openapi.json"
        raise Denied(HTTPStatus.BAD_REQUEST, f"the body: {problem}", hint) from problem
    await face.do(command, caller)
    return _faults(face.faults)


@_path_of(commands.Heal)
async def heal(face: FaceDependency, caller: CallerDependency) -> answers.Faults:
    """Heal every link: end all faults."""
    await face.do(commands.Heal(), caller)
    return _faults(face.faults)


def _faults(conditions: Sequence[LinkChanged]) -> answers.Faults:
    return msgspec.convert({"faults": conditions}, answers.Faults, from_attributes=True)


MOST_ENTRIES, MOST_BYTES = 40_000, 16 * 1024 * 1024
"""The largest snapshot: a copy is for trying out what the protocols do, not for moving data. It is of one moment, so the member
does nothing else while it is made."""


@copying.get("/snapshot")
async def snapshot(face: FaceDependency, caller: CallerDependency) -> answers.Snapshot:
    """Return all that this member knows at this moment, for a simulated copy that continues from there."""
    if caller.groups is not None and "DATA" not in caller.groups:
        problem = f"values of maps are included, and {caller.name} is limited to {', '.join(caller.groups)}"
        raise Denied(HTTPStatus.FORBIDDEN, problem, "use a user of the group DATA as well")
    entries, held = entries_held(face.member), memory_used(face.member)
    if entries > MOST_ENTRIES or held > MOST_BYTES:
        problem = f"{face.label} holds {entries} entries of {bytes_text(held)}, of which no copy is made"
        raise Denied(HTTPStatus.CONFLICT, problem, f"the most are {MOST_ENTRIES} entries of {bytes_text(MOST_BYTES)}")
    report = await face.report(caller)
    await asyncio.sleep(0)
    content = msgspec.msgpack.encode(report)
    await asyncio.sleep(0)
    return answers.Snapshot(face.label, face.member.uuid, software_version(), content)

"""``/hazelcast/rest/config/…``: the TCP-IP member list, and changes of the configuration.

See Split-brain Recovery Improvements, User Interaction.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
from starlette.responses import Response

from quarterdeck.backend.core.commands.commands import SetJoinList
from quarterdeck.backend.documents.yaml_document import text_of
from quarterdeck.backend.service.configuration.process_configuration import Security
from quarterdeck.backend.service.configuration.sources import BadConfiguration, ConfigurationReader, read_member_file
from quarterdeck.backend.service.http.audited_requests import request_note
from quarterdeck.backend.service.http.face import Face
from quarterdeck.backend.service.http.responses import Denied, success
from quarterdeck.backend.service.member_log import LOGGER
from quarterdeck.backend.service.rest.endpoint import RestRequest, reading, writing
from quarterdeck.backend.service.rest.runtime_configuration import RuntimeChange, parse_document, read_member_list

NO_TCP_IP = "TCP-IP join mechanism is not enabled in the cluster."
LIST_UPDATED = "The member list of TCP-IP join config is updated at run time. "
"""With the blank at its end, as the product writes it."""
UPDATED = "Configuration Update successfully finished."


async def member_list(rest_request: RestRequest) -> Response:
    """Answer with the list in force: as it was configured, or as it was edited last."""
    _require_tcp_ip(rest_request.face)
    return success(member_list=_list_in_force(rest_request.face))


async def update_member_list(rest_request: RestRequest) -> Response:
    """Replace the list at this member, which passes it to all members of its cluster."""
    face = rest_request.face
    _require_tcp_ip(face)
    addresses = read_member_list(rest_request.payload, face.member.settings)
    await face.do(SetJoinList(face.label, addresses), rest_request.caller)
    return success(message=LIST_UPDATED, member_list=addresses)


async def update(rest_request: RestRequest) -> Response:
    """Apply what can be changed at runtime of a configuration in the body."""
    if isinstance(rest_request.payload, str):
        text = rest_request.payload
        document = await asyncio.to_thread(parse_document, text)
    else:
        document = rest_request.payload
        text = msgspec.json.encode(document).decode()  # JSON is YAML
    try:
        await asyncio.to_thread(read_member_file, text, "configuration", Path())
    except BadConfiguration as problem:
        raise Denied(400, str(problem), more={"field": problem.field}) from None
    return await _apply(rest_request, document)


async def reload(rest_request: RestRequest) -> Response:
    """Apply what can be changed at runtime of the file with which the member was started, as it is now."""
    source = rest_request.face.configuration.source
    if source is None:
        raise Denied(409, "this member was started without a configuration file", "use hazelcast/rest/config/update")

    def read() -> tuple[object, Security]:
        document, _, warnings = read_member_file(text_of(source, BadConfiguration), str(source), source.parent)
        for warning in warnings:
            LOGGER.warning("%s", warning)
        return document.data or {}, ConfigurationReader(source, ()).security()

    try:
        document, security = await asyncio.to_thread(read)
    except BadConfiguration as problem:
        hint = "mend it on the host of this member; nothing was changed"
        raise Denied(409, str(problem), hint, more={"field": problem.field}) from None
    return await _apply(rest_request, document, security)


async def _apply(rest_request: RestRequest, document: object, reloaded: Security | None = None) -> Response:
    face = rest_request.face
    configured = face.configuration
    change = RuntimeChange(document, face, reloaded)
    if change.join_list is not None:
        await face.do(SetJoinList(face.label, change.join_list), rest_request.caller)
    if change.properties:
        await face.reconfigure(change.properties, rest_request.caller)
    if change.security:
        face.configuration = replace(configured, security=replace(configured.security, **change.security))
        names = ", ".join(user.name for user in face.configuration.security.users) or "none"
        LOGGER.info("the security of the HTTP interface was reloaded; its users are %s", names)
    applied = ", ".join(entry.config_name for entry in change.applied) or "nothing"
    request_note().detail = f"takes effect: {applied}; {len(change.ignored)} others are ignored"
    return success(message=UPDATED, result={"addedConfigs": change.applied, "ignoredConfigs": change.ignored})


def _list_in_force(face: Face) -> tuple[str, ...]:
    """Return the configured list if it was not edited: there an entry without a port is one entry, though it means several."""
    member, configured = face.member, face.configuration.join_list
    if configured and read_member_list(list(configured), member.settings) == member.join_list:
        return configured
    return member.join_list


def _require_tcp_ip(face: Face) -> None:
    if not face.configuration.tcp_ip_enabled:
        raise Denied(400, NO_TCP_IP, "set hazelcast.network.join.tcp-ip.enabled to true and start the members anew")


_AT = "/hazelcast/rest/config/"

PATHS = (
    reading(_AT + "tcp-ip/member-list", member_list),
    writing(_AT + "tcp-ip/member-list", update_member_list, "member-list"),
    writing(_AT + "update", update, "configuration"),
    writing(_AT + "reload", reload),
)

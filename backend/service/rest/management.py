"""``/hazelcast/rest/management/…`` and ``/hazelcast/rest/log-level``: states, shutdowns, levels of the log."""

from __future__ import annotations

import asyncio
import logging
import platform

from starlette.responses import Response

from quarterdeck.backend.core.address import bracketed
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES, ClusterProfile, ClusterState
from quarterdeck.backend.core.commands.commands import ChangeState
from quarterdeck.backend.core.events import ClusterStateRefused
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.service.http.face import Face
from quarterdeck.backend.service.http.responses import Denied, json_response, success
from quarterdeck.backend.service.member_log import LEVEL_LOGGER, software_version
from quarterdeck.backend.service.rest.endpoint import EndpointHandler, RestEndpoint, RestRequest, after_response

_LOG = logging.getLogger(__name__)

CLUSTER_VERSION = str(ClusterProfile.__struct_defaults__[-1])
"""Of the protocol that members speak: a cluster of one version meets only its like."""

POLL_SECONDS = 0.02

LEVELS = {
    **dict.fromkeys(("OFF", "FATAL", "CRITICAL"), logging.CRITICAL),
    **dict.fromkeys(("ERROR", "SEVERE"), logging.ERROR),
    **dict.fromkeys(("WARN", "WARNING"), logging.WARNING),
    **dict.fromkeys(("INFO", "CONFIG"), logging.INFO),
    **dict.fromkeys(("DEBUG", "TRACE", "ALL", "FINE", "FINER", "FINEST"), logging.DEBUG),
}
"""The product's names, and Python's."""

_SET_AS: dict[str, str] = {}
"""The name under which the level of a logger was set last. Loggers belong to the process, and so does this."""


async def state(rest_request: RestRequest) -> Response:
    """The state of the cluster."""
    rest_request.require_joined()
    return success(state=rest_request.face.member.cluster_state.lower())


async def change_state(rest_request: RestRequest) -> Response:
    """Answered when the state has changed, or the change was refused."""
    rest_request.require_joined()
    face, wanted = rest_request.face, _state_named(rest_request.text("state"))
    if face.member.cluster_state != wanted:
        await _change(rest_request, wanted)
    return success(state=wanted.lower())


async def nodes(rest_request: RestRequest) -> Response:
    """The members, the version of this program, and that of Python."""
    rest_request.require_joined()
    members = rest_request.face.member.members
    assert members is not None
    listed = ", ".join(_node_text(member, rest_request.face.member.uuid) for member in members.members)
    return success(response=f"[{listed}]\n{software_version()}\n{platform.python_version()}")


async def version(rest_request: RestRequest) -> Response:
    """The version that the cluster speaks."""
    return success(version=CLUSTER_VERSION)


async def change_version(rest_request: RestRequest) -> Response:
    """Accept the version that the cluster speaks already, and no other one."""
    wanted = rest_request.text("version").strip()
    if wanted != CLUSTER_VERSION:
        raise Denied(409, f"this build speaks version {CLUSTER_VERSION} only", "start members of another build")
    return success(version=CLUSTER_VERSION)


async def member_shutdown(rest_request: RestRequest) -> Response:
    """The answer is sent, then the member begins to leave."""
    return after_response(success(), lambda: rest_request.face.shut_down(rest_request.caller))


async def cluster_shutdown(rest_request: RestRequest) -> Response:
    """The answer is sent, then all members of the cluster stop."""
    if not rest_request.face.member.joined:
        raise Denied(409, "Member has not yet joined cluster!", "use memberShutdown to stop this member alone")
    return after_response(success(), lambda: rest_request.face.shut_down(rest_request.caller, whole_cluster=True))


async def log_level(rest_request: RestRequest) -> Response:
    """The level as it was set; null while it is the configured one."""
    return json_response({"logLevel": _SET_AS.get(LEVEL_LOGGER)})


async def set_log_level(rest_request: RestRequest) -> Response:
    """Set the level of the log until it is set anew, or the process ends."""
    wanted = rest_request.text("level").strip().upper()
    if wanted not in LEVELS:
        known = ", ".join(LEVELS)
        raise Denied(400, f"{wanted[:40]!r} is not a level of a log", f"write one of {known}")
    _set_level(rest_request, LEVELS[wanted])
    _SET_AS[LEVEL_LOGGER] = wanted
    return success(message="log level is changed")


async def reset_log_level(rest_request: RestRequest) -> Response:
    """Go back to the level of the configuration."""
    _set_level(rest_request, _configured_level(rest_request.face))
    _SET_AS.pop(LEVEL_LOGGER, None)
    return success(message="log level is reset")


def _state_named(text: str) -> ClusterState:
    for known in CLUSTER_STATES:
        if text.strip().upper() == known:
            return known
    raise Denied(400, f"{text[:40]!r} is no state of a cluster", f"write one of {', '.join(CLUSTER_STATES)}")


async def _change(rest_request: RestRequest, wanted: ClusterState) -> None:
    """Ask for the state and wait until it has come, or it is known that it will not. Raises `Denied`."""
    face = rest_request.face
    _, earlier = face.records_after(face.member.uuid, 0)
    last = (earlier[-1].uuid, earlier[-1].seq) if earlier else (face.member.uuid, 0)
    deadline_us = face.now_us() + face.member.settings.state_lease_us + SECOND_US
    await face.do(ChangeState(face.label, wanted), rest_request.caller)
    while face.member.cluster_state != wanted:
        _, records = face.records_after(*last)
        for record in records:
            if isinstance(record.event, ClusterStateRefused) and record.event.wanted == wanted:
                raise Denied(409, f"the state stays {face.member.cluster_state}: {record.event.reason}", "try again")
            last = record.uuid, record.seq
        if face.now_us() >= deadline_us or face.node_state == "SHUT_DOWN":
            raise Denied(503, f"whether the state becomes {wanted} is not known yet", "ask for the state")
        await asyncio.sleep(POLL_SECONDS)


def _node_text(member: Member, this: str) -> str:
    end = (" this" if member.uuid == this else "") + (" lite" if member.lite else "")
    return f"Member {bracketed(member.address)} - {member.uuid}{end}"


def _configured_level(face: Face) -> int:
    return LEVELS.get(face.configuration.log_level.upper(), logging.INFO)


def _set_level(rest_request: RestRequest, level: int) -> None:
    logging.getLogger(LEVEL_LOGGER).setLevel(level)
    who = f"{rest_request.caller.name or 'somebody'} ({rest_request.caller.role}) at {rest_request.caller.remote}"
    _LOG.log(max(level, logging.WARNING), "the log has the level %s now, set by %s", logging.getLevelName(level), who)


_AT = "/hazelcast/rest/management/cluster/"
_LEVEL = "/hazelcast/rest/log-level"


def _reads(path: str, answer: EndpointHandler) -> RestEndpoint:
    return RestEndpoint(path, ("GET",), "CLUSTER_READ", answer)


def _reads_by_post(path: str, answer: EndpointHandler) -> RestEndpoint:
    return RestEndpoint(path, ("POST",), "CLUSTER_READ", answer, identifies_by_body=True)


def _writes(path: str, answer: EndpointHandler, payload: str = "") -> RestEndpoint:
    return RestEndpoint(path, ("POST",), "CLUSTER_WRITE", answer, "write", identifies_by_body=True, payload=payload)


PATHS = (
    _reads(_AT + "state", state),
    _reads_by_post(_AT + "state", state),
    _reads(_AT + "nodes", nodes),
    _reads_by_post(_AT + "nodes", nodes),
    _reads(_AT + "version", version),
    _writes(_AT + "version", change_version, "version"),
    _writes(_AT + "changeState", change_state, "state"),
    _writes(_AT + "memberShutdown", member_shutdown),
    _writes(_AT + "clusterShutdown", cluster_shutdown),
    _reads(_LEVEL, log_level),
    _writes(_LEVEL, set_log_level, "level"),
    _writes(_LEVEL + "/reset", reset_log_level),
)

"""``/hazelcast/rest/management/…``, ``…/log-level``, ``…/cluster`` and ``…/instance``: members, states, shutdowns, log levels."""

from __future__ import annotations

import asyncio
import logging
import platform

from starlette.responses import Response

from quarterdeck.backend.core.address import bracketed
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES, ClusterProfile, ClusterState
from quarterdeck.backend.core.commands import ChangeState
from quarterdeck.backend.core.membership.events import ClusterStateRefused
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.service.http.audited_requests import request_note
from quarterdeck.backend.service.http.responses import Denied, json_response, success
from quarterdeck.backend.service.member_log import LEVEL_LOGGER, software_version
from quarterdeck.backend.service.rest.endpoint import RestRequest, after_response, reading, reading_by_post, writing


async def cluster(rest_request: RestRequest) -> Response:
    """Answer with the members in order of age. Clients have no connections of their own kind here, so none are counted."""
    face = rest_request.face
    members = face.member.members.members if face.member.members is not None else ()
    rows = [
        {
            "address": bracketed(member.address),
            "liteMember": member.lite,
            "localMember": member.uuid == face.member.uuid,
            "uuid": member.uuid,
            "memberVersion": software_version(),
        }
        for member in members
    ]
    return json_response({"members": rows, "connectionCount": 0, "allConnectionCount": face.connections})


_LOG = logging.getLogger(__name__)
CLUSTER_VERSION = str(ClusterProfile.__struct_defaults__[-1])
"""Of the protocol that members speak: clusters of other versions do not meet."""
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
    """Answer with the state of the cluster."""
    return success(state=rest_request.joined().member.cluster_state.lower())


async def change_state(rest_request: RestRequest) -> Response:
    """Change the state. Answer when it has changed, or the change was refused."""
    face, wanted = rest_request.joined(), _state_named(rest_request.text("state"))
    if face.member.cluster_state != wanted:
        await _change(rest_request, wanted)
    return success(state=wanted.lower())


async def nodes(rest_request: RestRequest) -> Response:
    """Answer with the members, the version of this program, and that of Python."""
    member = rest_request.joined().member
    assert member.members is not None
    texts = (
        f"Member {bracketed(listed.address)} - {listed.uuid}{' this' * (listed.uuid == member.uuid)}{' lite' * listed.lite}"
        for listed in member.members.members
    )
    return success(response=f"[{', '.join(texts)}]\n{software_version()}\n{platform.python_version()}")


async def change_version(rest_request: RestRequest) -> Response:
    """Accept the version that the cluster speaks already, and no other one."""
    wanted = rest_request.text("version").strip()
    if wanted != CLUSTER_VERSION:
        raise Denied(409, f"this build speaks version {CLUSTER_VERSION} only", "start members of another build")
    return success(version=CLUSTER_VERSION)


async def cluster_shutdown(rest_request: RestRequest) -> Response:
    """Answer, then stop all members of the cluster."""
    if not rest_request.face.member.joined:
        raise Denied(409, "Member has not yet joined cluster!", "use memberShutdown to stop this member alone")
    return after_response(success(), lambda: rest_request.face.shut_down(rest_request.caller, whole_cluster=True))


async def set_log_level(rest_request: RestRequest) -> Response:
    """Set the level of the log until it is set again, or the process ends."""
    wanted = rest_request.text("level").strip().upper()
    if wanted not in LEVELS:
        known = ", ".join(LEVELS)
        raise Denied(400, f"{wanted[:40]!r} is not a level of a log", f"write one of {known}")
    _set_level(LEVELS[wanted])
    _SET_AS[LEVEL_LOGGER] = wanted
    return success(message="log level is changed")


async def reset_log_level(rest_request: RestRequest) -> Response:
    """Restore the level of the configuration."""
    _set_level(LEVELS.get(rest_request.face.configuration.log_level.upper(), logging.INFO))
    _SET_AS.pop(LEVEL_LOGGER, None)
    return success(message="log level is reset")


def _state_named(text: str) -> ClusterState:
    for known in CLUSTER_STATES:
        if text.strip().upper() == known:
            return known
    raise Denied(400, f"{text[:40]!r} is no state of a cluster", f"write one of {', '.join(CLUSTER_STATES)}")


async def _change(rest_request: RestRequest, wanted: ClusterState) -> None:
    face = rest_request.face
    last = face.records.latest_position()
    deadline_us = face.now_us() + face.member.settings.state_lease_us + SECOND_US
    await face.do(ChangeState(face.label, wanted), rest_request.caller)
    while face.member.cluster_state != wanted:
        _, records = face.records.after(*last)
        for stored in records:
            event = stored.record.event
            if isinstance(event, ClusterStateRefused) and event.wanted == wanted:
                raise Denied(409, f"the state stays {face.member.cluster_state}: {event.reason}", "try again")
            last = stored.uuid, stored.seq
        if face.now_us() >= deadline_us or face.node_state == "SHUT_DOWN":
            raise Denied(503, f"whether the state becomes {wanted} is not known yet", "ask for the state")
        await asyncio.sleep(POLL_SECONDS)


def _set_level(level: int) -> None:
    logging.getLogger(LEVEL_LOGGER).setLevel(level)
    name = logging.getLevelName(level)
    request_note().detail = f"level {name}"
    _LOG.log(max(level, logging.WARNING), "the log has the level %s now; the audit log says who set it", name)


_AT = "/hazelcast/rest/management/cluster/"
_LEVEL = "/hazelcast/rest/log-level"


PATHS = (
    reading("/hazelcast/rest/cluster", cluster),
    reading("/hazelcast/rest/instance", lambda asked: json_response({"name": asked.face.label})),
    reading(_AT + "state", state),
    reading_by_post(_AT + "state", state),
    reading(_AT + "nodes", nodes),
    reading_by_post(_AT + "nodes", nodes),
    reading(_AT + "version", lambda _: success(version=CLUSTER_VERSION)),
    writing(_AT + "version", change_version, "version"),
    writing(_AT + "changeState", change_state, "state"),
    writing(
        _AT + "memberShutdown", lambda asked: after_response(success(), lambda: asked.face.shut_down(asked.caller))
    ),
    writing(_AT + "clusterShutdown", cluster_shutdown),
    reading(_LEVEL, lambda _: json_response({"logLevel": _SET_AS.get(LEVEL_LOGGER)})),  # null: the configured one
    writing(_LEVEL, set_log_level, "level"),
    writing(_LEVEL + "/reset", reset_log_level),
)

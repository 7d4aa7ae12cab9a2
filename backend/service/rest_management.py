"""``/hazelcast/rest/management/…`` and ``/hazelcast/rest/log-level``: states, shutdowns, levels of the log."""

from __future__ import annotations

import asyncio
import logging
import platform

from starlette.responses import Response

from quarterdeck.backend.core.address import bracketed
from quarterdeck.backend.core.cluster_profile import CLUSTER_STATES, ClusterProfile, ClusterState
from quarterdeck.backend.core.commands import ChangeState
from quarterdeck.backend.core.events import ClusterStateRefused
from quarterdeck.backend.core.membership.identity import Member
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.service.answers import Denied, json_answer, success
from quarterdeck.backend.service.face import Face
from quarterdeck.backend.service.operator_path import Answering, Asked, OperatorPath, afterwards
from quarterdeck.backend.service.software import software_version
from quarterdeck.backend.service.structured_log import LEVEL_LOGGER

_LOG = logging.getLogger(__name__)

CLUSTER_VERSION = str(ClusterProfile.__struct_defaults__[-1])
"""Of the protocol that members speak: a cluster of one version meets only its like."""

LOOK_AGAIN_SECONDS = 0.02

LEVELS = {
    **dict.fromkeys(("OFF", "FATAL", "CRITICAL"), logging.CRITICAL),
    **dict.fromkeys(("ERROR", "SEVERE"), logging.ERROR),
    **dict.fromkeys(("WARN", "WARNING"), logging.WARNING),
    **dict.fromkeys(("INFO", "CONFIG"), logging.INFO),
    **dict.fromkeys(("DEBUG", "TRACE", "ALL", "FINE", "FINER", "FINEST"), logging.DEBUG),
}
"""The product's names, and Python's."""


async def state(asked: Asked) -> Response:
    asked.require_joined()
    return success(state=asked.face.machine.cluster_state.lower())


async def change_state(asked: Asked) -> Response:
    """Answered when the state has changed, or the change was refused."""
    asked.require_joined()
    face, wanted = asked.face, _state_named(asked.text("state"))
    if face.machine.cluster_state != wanted:
        await _change(asked, wanted)
    return success(state=wanted.lower())


async def nodes(asked: Asked) -> Response:
    asked.require_joined()
    members = asked.face.machine.members
    assert members is not None
    listed = ", ".join(_node_text(member, asked.face.machine.uuid) for member in members.members)
    return success(response=f"[{listed}]\n{software_version()}\n{platform.python_version()}")


async def version(asked: Asked) -> Response:
    return success(version=CLUSTER_VERSION)


async def change_version(asked: Asked) -> Response:
    wanted = asked.text("version").strip()
    if wanted != CLUSTER_VERSION:
        raise Denied(409, f"this build speaks version {CLUSTER_VERSION} only", "start members of another build")
    return success(version=CLUSTER_VERSION)


async def member_shutdown(asked: Asked) -> Response:
    """The answer is sent, then the member begins to leave."""
    return afterwards(success(), lambda: asked.face.shut_down(asked.caller))


async def cluster_shutdown(asked: Asked) -> Response:
    if not asked.face.machine.joined:
        raise Denied(409, f"{asked.face.label} has not yet joined", "use memberShutdown to stop this member alone")
    return afterwards(success(), lambda: asked.face.shut_down(asked.caller, whole_cluster=True))


async def log_level(asked: Asked) -> Response:
    """The level in force; null when it is the configured one."""
    level = logging.getLogger(LEVEL_LOGGER).level
    return json_answer({"logLevel": None if level == _configured_level(asked.face) else logging.getLevelName(level)})


async def set_log_level(asked: Asked) -> Response:
    wanted = asked.text("level").strip().upper()
    if wanted not in LEVELS:
        known = ", ".join(LEVELS)
        raise Denied(400, f"{wanted[:40]!r} is no level of a log", f"write one of {known}")
    _set_level(asked, LEVELS[wanted])
    return success(message="log level is changed")


async def reset_log_level(asked: Asked) -> Response:
    _set_level(asked, _configured_level(asked.face))
    return success(message="log level is reset")


def _state_named(text: str) -> ClusterState:
    for known in CLUSTER_STATES:
        if text.strip().upper() == known:
            return known
    raise Denied(400, f"{text[:40]!r} is no state of a cluster", f"write one of {', '.join(CLUSTER_STATES)}")


async def _change(asked: Asked, wanted: ClusterState) -> None:
    """Ask for the state and wait until it has come, or it is known that it will not. Raises `Denied`."""
    face = asked.face
    _, earlier = face.records_after(face.machine.uuid, 0)
    last = (earlier[-1].uuid, earlier[-1].seq) if earlier else (face.machine.uuid, 0)
    deadline_us = face.now_us() + face.machine.settings.state_lease_us + SECOND_US
    await face.do(ChangeState(face.label, wanted), asked.caller)
    while face.machine.cluster_state != wanted:
        _, records = face.records_after(*last)
        for record in records:
            if isinstance(record.event, ClusterStateRefused) and record.event.wanted == wanted:
                raise Denied(409, f"the state stays {face.machine.cluster_state}: {record.event.reason}", "try again")
            last = record.uuid, record.seq
        if face.now_us() >= deadline_us or face.node_state == "SHUT_DOWN":
            raise Denied(503, f"whether the state becomes {wanted} is not known yet", "ask for the state")
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


def _node_text(member: Member, this: str) -> str:
    end = (" this" if member.uuid == this else "") + (" lite" if member.lite else "")
    return f"Member {bracketed(member.address)} - {member.uuid}{end}"


def _configured_level(face: Face) -> int:
    return LEVELS.get(face.configuration.log_level.upper(), logging.INFO)


def _set_level(asked: Asked, level: int) -> None:
    logging.getLogger(LEVEL_LOGGER).setLevel(level)
    who = f"{asked.caller.name or 'somebody'} ({asked.caller.role}) at {asked.caller.remote}"
    _LOG.log(max(level, logging.WARNING), "the log has the level %s now, set by %s", logging.getLevelName(level), who)


_AT = "/hazelcast/rest/management/cluster/"
_LEVEL = "/hazelcast/rest/log-level"


def _reads(path: str, answer: Answering) -> OperatorPath:
    return OperatorPath(path, ("GET",), "CLUSTER_READ", answer)


def _reads_by_post(path: str, answer: Answering) -> OperatorPath:
    return OperatorPath(path, ("POST",), "CLUSTER_READ", answer, identifies_by_body=True)


def _writes(path: str, answer: Answering, third: str = "") -> OperatorPath:
    return OperatorPath(path, ("POST",), "CLUSTER_WRITE", answer, "write", identifies_by_body=True, third=third)


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

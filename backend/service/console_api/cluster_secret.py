"""``/quarterdeck/v1/secret``: the secret of the cluster turns without a stop (role write, of a user that has identified itself).

Every member gets the new secret as a second one, then each uses it, then each gives up the old one. So at no moment do two
members know no secret in common.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus

from fastapi import APIRouter

from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.live.security.cluster_secret import ClusterKeyring, ClusterSecret
from quarterdeck.backend.member_api import answers
from quarterdeck.backend.service.console_api.route_classes import (
    CallerDependency,
    FaceDependency,
    SecretTurn,
    guarded_by,
    with_error_responses,
)
from quarterdeck.backend.service.http.audited_requests import request_note
from quarterdeck.backend.service.http.face import Caller, Face
from quarterdeck.backend.service.http.responses import Denied

router = APIRouter(route_class=guarded_by("write"), responses=with_error_responses(409))


@router.get("/secret")
async def accepted_secrets(face: FaceDependency, caller: CallerDependency) -> answers.AcceptedSecrets:
    """Return the fingerprints of the secrets that this member accepts."""
    return _accepted(_keyring_for(face, caller))


@router.post("/secret")
async def turn_secret(wanted: SecretTurn, face: FaceDependency, caller: CallerDependency) -> answers.AcceptedSecrets:
    """Accept a second secret, use one of the two, or give up the one that is not used; of this member alone."""
    keyring = _keyring_for(face, caller)
    secret = await asyncio.to_thread(ClusterSecret, wanted.secret, face.configuration.member.cluster_name)
    request_note().detail = f"{wanted.do} {secret.fingerprint}"
    if wanted.do == "add":
        keyring.add(secret)
    elif wanted.do == "use":
        keyring.use(secret)
    else:
        await asyncio.to_thread(_require_written, face, secret)
        removed = keyring.remove(secret)
        if removed is not None:
            face.disconnect_proven(removed)
    return _accepted(keyring)


def _keyring_for(face: Face, caller: Caller) -> ClusterKeyring:
    """Return what turns. Raises `Denied`: without users any process of the machine would get the secret by giving it."""
    if not caller.name:
        hint = "name users in quarterdeck.security.users, and identify yourself as one of them"
        raise Denied(HTTPStatus.FORBIDDEN, "this takes a user, also where the rest takes none", hint)
    if face.keyring is None:
        hint = "start all members with quarterdeck.security.secret-file"
        raise Denied(HTTPStatus.CONFLICT, "this member has no secret that could turn", hint)
    return face.keyring


def _require_written(face: Face, removed: ClusterSecret) -> None:
    """Raise `CommandRefused` if this member would introduce itself at its next start with what it gives up now."""
    path = face.configuration.security.secret_file
    with suppress(OSError, UnicodeDecodeError, ValueError):  # then the next start says what is wrong
        written = path.read_text(encoding="utf-8").rstrip("\r\n") if path is not None else ""
        if ClusterSecret(written, face.configuration.member.cluster_name).fingerprint == removed.fingerprint:
            raise CommandRefused(
                f"{path} still has this secret, so no member would admit this one after a restart; "
                "write the new secret into it first"
            )


def _accepted(keyring: ClusterKeyring) -> answers.AcceptedSecrets:
    return answers.AcceptedSecrets(keyring.used.fingerprint, tuple(secret.fingerprint for secret in keyring.accepted))

"""Times every request, and puts those that change something, or are refused, into the audit log of the member.

The application's layers note what they find out about a request in its `RequestNote`; the answer says what became of it.
"""

from __future__ import annotations

import re
import time
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quarterdeck.backend.journal.audit_log import AuditEntry, Outcome
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.backend.service.http.face import Caller, Face
from quarterdeck.backend.service.meters import room_of

REFUSALS = frozenset({401, 403, 429})
"""Statuses of requests that are refused for who sent them, or from where."""
READING = frozenset({"GET", "HEAD", "OPTIONS"})
LONGEST_TEXT = 300
"""Characters of what a client sent."""
MAPS = "/maps/"
USER_INFO = re.compile(r"//[^/@]*@")
"""Name and password in a target that is a whole URL, which clients of proxies send."""


@dataclass
class RequestNote:
    """What is known of a request besides its head."""

    caller: Caller | None = None
    """The client, once it is identified, or need not be."""
    tried: str = ""
    """The name under which it tries to identify itself."""
    changes: bool = False
    """It changes something, or reveals more than usual, and is allowed to."""
    detail: str = ""
    """What is to be changed."""


_NOTE: ContextVar[RequestNote] = ContextVar("request_note")


def request_note() -> RequestNote:
    """Return the note of the request that is being served."""
    return _NOTE.get(None) or RequestNote()


class AuditedRequests:
    """Watches the requests of an application."""

    def __init__(self, app: ASGIApp, face: Face) -> None:
        self._app = app
        self._face = face

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        note, answer, began = RequestNote(), _SentAnswer(send), time.perf_counter()
        token = _NOTE.set(note)
        try:
            await self._app(scope, receive, answer.send)
        finally:
            _NOTE.reset(token)
            if scope["type"] == "http":
                outcome = f"{answer.status // 100}xx" if answer.status else "none"
                self._face.meters.requests[room_of(scope["path"]), outcome].add(time.perf_counter() - began)
            method = str(scope.get("method", "GET"))
            failed = answer.status >= 400 and method not in READING
            if note.changes or failed or answer.status in REFUSALS:
                scope = {**scope, "path": USER_INFO.sub("//…@", scope["path"])}
                before, maps, _ = scope["path"].partition(MAPS)  # names of maps and keys do not belong to the kind
                self._face.audited(self._entry(scope, note, answer), f"{method} {_short(before + maps)}")

    def _entry(self, scope: Scope, note: RequestNote, answer: _SentAnswer) -> AuditEntry:
        caller, client = note.caller, scope.get("client")
        name = caller.name if caller is not None else ""
        what = f"{scope.get('method', 'WEBSOCKET')} {scope['path']}"
        return AuditEntry(
            at=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            member=self._face.label,
            address=f"{client[0]}:{client[1]}" if client else "unknown",
            user=_short(name or note.tried),
            identified=bool(name),
            role=caller.role if caller is not None else "",
            what=_short(what),
            detail=_short(note.detail),
            outcome=answer.outcome,
            status=answer.status,
            reason=_short(answer.reason),
        )


class _SentAnswer:
    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.reason = ""

    async def send(self, message: Message) -> None:
        kind = message["type"].removeprefix("websocket.")
        if kind == "http.response.start":
            self.status = message["status"]
        elif kind == "http.response.body" and self.status >= 400 and not self.reason:
            self.reason = _message_in(message.get("body", b""))
        await self._send(message)

    @property
    def outcome(self) -> Outcome:
        if self.status == 0 or self.status >= 500:
            return "unknown"
        return "refused" if self.status >= 400 else "done"


def _message_in(body: bytes) -> str:
    try:
        return str(msgspec.json.decode(body)["message"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        return ""


def _short(text: str) -> str:
    return one_line(text[:LONGEST_TEXT])

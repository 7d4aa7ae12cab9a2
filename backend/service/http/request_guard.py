"""Limits of all requests: how long a body may be, and how long it may take to arrive.

The server has no such limits of its own. A request whose body was not read ends its connection. What still comes of that body is
dropped, within limits: a connection that is closed over unread bytes is reset, and takes the answer along (RFC 9112, 9.6).
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from quarterdeck.backend.service.http.access import AccessPolicy
from quarterdeck.backend.service.http.face import Face
from quarterdeck.backend.service.http.http_protocol import REFUSED_UPGRADE
from quarterdeck.backend.service.http.responses import Denied, failure


@dataclass(frozen=True)
class RequestLimits:
    """The limits of one request, and of all together."""

    body_bytes: int = 9 * 1024 * 1024
    """More than the longest entry of a map."""
    all_bodies_bytes: int = 64 * 1024 * 1024
    """Of the bodies of all requests under way."""
    body_seconds: float = 20.0
    """From the head of the request to the end of its body."""
    dropped_bytes: int = 64 * 1024 * 1024
    dropped_seconds: float = 5.0
    dropped_apart_seconds: float = 0.5
    """Of a body that comes although its request is answered, and between two pieces of it."""
    target_bytes: int = 8 * 1024
    """Path and query."""


WHOLE_ADDRESS = re.compile(rb"https?://([^/]*)(/.*)?", re.IGNORECASE | re.DOTALL)
OWN_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
"""On every answer: it is of the declared type, and it is not to be cached."""


class RequestGuard:
    """Applies the limits to the requests of an application."""

    def __init__(self, app: ASGIApp, face: Face, limits: RequestLimits) -> None:
        self._app = app
        self._face = face
        self._access = AccessPolicy(face)
        self.limits = limits
        self.held_bytes = 0
        """Of the bodies of all requests under way."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = _one_slash(origin_form(scope))
        scope["state"] = {**scope.get("state", {}), "access": self._access}
        app = self._app if self._face.configuration.rest_enabled else _switched_off
        if scope["type"] == "http":
            await _GuardedRequest(self, Headers(scope=scope), receive, send).run(app, scope)
        else:
            try:
                await app(scope, receive, send)
            except Denied as denied:
                await WebSocket(scope, receive, send).send_denial_response(failure(denied))


def origin_form(scope: Scope) -> Scope:
    """Make a request for a whole address, as clients of proxies send it, one for its path at its host (RFC 9112, 3.2.2)."""
    found = WHOLE_ADDRESS.fullmatch(scope.get("raw_path") or b"")
    if found is None:
        return scope
    host, raw_path = found[1], found[2] or b"/"
    headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
    path = unquote(raw_path.decode("ascii", "replace"))
    return {**scope, "path": path, "raw_path": raw_path, "headers": [*headers, (b"host", host)]}


async def _switched_off(scope: Scope, receive: Receive, send: Send) -> None:
    raise Denied(403, "the REST API is off on this member", "set hazelcast.network.rest-api.enabled to true")


def _one_slash(scope: Scope) -> Scope:
    """Remove slashes at the end. The product looks only at how a path begins, so there are scripts that have one too many."""
    path = scope["path"]
    if path.endswith("/") and path.startswith("/hazelcast/rest/") and not path.startswith("/hazelcast/rest/maps/"):
        return {**scope, "path": path.rstrip("/")}
    return {**scope}


class _GuardedRequest:
    def __init__(self, guard: RequestGuard, headers: Headers, receive: Receive, send: Send) -> None:
        self._guard, self._limits = guard, guard.limits
        self._receive = receive
        self._send = send
        self._length = headers.get("content-length")
        self._chunked = "transfer-encoding" in headers
        self._complete = self._length in (None, "0") and not self._chunked
        self._taken = 0
        self._deadline = asyncio.get_running_loop().time() + guard.limits.body_seconds
        self._answering = False

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        try:
            self._check_head(scope)
            refused = scope["state"].get(REFUSED_UPGRADE)
            if refused is not None:
                raise Denied(400, refused, "leave out Content-Length and Transfer-Encoding")
            await app(scope, self.receive, self.send)
        except Denied as denied:
            if self._answering:
                raise
            await failure(denied)(scope, self.receive, self.send)
        except ClientDisconnect:
            pass  # the client is gone, and no answer is needed
        finally:
            self._guard.held_bytes -= self._taken

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            seconds = f"{self._limits.body_seconds:g}"
            raise Denied(408, "the body did not come in time", f"send all of it within {seconds} s") from None
        if message["type"] == "http.request":
            self._count(len(message.get("body", b"")))
            self._complete = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._answering = True
            headers = MutableHeaders(raw=list(message.get("headers", ())))
            for name, value in OWN_HEADERS.items():
                headers.setdefault(name, value)
            if not self._complete:
                headers["Connection"] = "close"
            message = {**message, "headers": headers.raw}
        elif not self._complete and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._drop_body()
            message = {"type": "http.response.body"}
        await self._send(message)

    async def _drop_body(self) -> None:
        dropped = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.dropped_seconds):
                while dropped < self._limits.dropped_bytes:
                    async with asyncio.timeout(self._limits.dropped_apart_seconds):
                        message = await self._receive()
                    dropped += len(message.get("body", b""))
                    if not message.get("more_body", False):  # it is over, or the client is gone
                        return

    def _count(self, more: int) -> None:
        self._taken += more
        self._guard.held_bytes += more
        if self._taken > self._limits.body_bytes:
            raise self._too_long()
        if self._guard.held_bytes > self._limits.all_bodies_bytes:
            hint = "nothing was done; try again"
            raise Denied(503, "too much is being sent to this member at once", hint, headers={"Retry-After": "1"})

    def _check_head(self, scope: Scope) -> None:
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > self._limits.target_bytes:
            raise Denied(414, "the path is too long", f"the most is {self._limits.target_bytes} bytes")
        if self._length is None:
            return
        if self._chunked:  # a proxy may see another end of it, and another request behind it
            problem, hint = "Content-Length and Transfer-Encoding contradict each other", "leave out one of them"
            raise Denied(400, problem, hint, headers={"Connection": "close"})
        if not self._length.isdecimal() or len(self._length) > 18:
            raise Denied(400, "Content-Length is not a number", "write how many bytes the body has")
        if int(self._length) > self._limits.body_bytes:
            raise self._too_long()

    def _too_long(self) -> Denied:
        return Denied(413, "the body is too long", f"the most is {self._limits.body_bytes} bytes")

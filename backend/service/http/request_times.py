"""How long requests take, from the head to the end of the answer, by what they are about and how they end."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quarterdeck.backend.service.meters import Meters

ROOMS = {
    "/hazelcast/health": "health",
    "/hazelcast/rest/maps/": "maps",
    "/hazelcast/rest/": "operations",
    "/quarterdeck/v1/maps/": "maps",
    "/quarterdeck/v1": "console",
    "/metrics": "metrics",
}
"""By how a path begins; the first that fits counts. Short, for each is a label of metrics."""


class TimedRequests:
    """Stands before an application."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self._app = app
        self._meters = meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            kind = f"{status // 100}xx" if status else "none"
            self._meters.requests[room_of(scope["path"]), kind].take(time.perf_counter() - began)


def room_of(path: str) -> str:
    """What a path is about."""
    return next((room for start, room in ROOMS.items() if path.startswith(start)), "other")

"""``/quarterdeck/v1/events``: what a member records, over a WebSocket as it happens.

Frames are JSON texts (docs/reference/http-api.md). Clients only listen: whoever sends anything is disconnected. The server
pings; a client that does not answer, or that has not taken what it was sent for so long, is disconnected and may resume.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.routing import WebSocketRoute
from starlette.status import WS_1008_POLICY_VIOLATION
from starlette.websockets import WebSocket, WebSocketDisconnect

from quarterdeck.backend.member_api.answers import Hello
from quarterdeck.backend.service.console_api.event_feed import EventFeed, StreamPosition
from quarterdeck.backend.service.http.access import require
from quarterdeck.backend.service.http.face import Face, utc_now_us
from quarterdeck.backend.service.http.responses import Denied, failure

MOST_CLIENTS = 100
"""Streams at a time; more than that are asked to come again."""

LONGEST_UUID = 100
HIGHEST_SEQ = 2**62


def event_stream(face: Face) -> WebSocketRoute:
    """The route of the stream, to be mounted under ``/quarterdeck/v1``."""
    feed = EventFeed(face)

    async def serve(websocket: WebSocket) -> None:
        try:
            await require(face, websocket, "read", "CONSOLE")
            after = parse_position(websocket.query_params.get("after", ""))
            if feed.clients >= MOST_CLIENTS:
                raise Denied(
                    HTTPStatus.TOO_MANY_REQUESTS, f"{MOST_CLIENTS} streams are open already", "close one, or ask again"
                )
        except HTTPException as problem:
            await websocket.send_denial_response(failure(problem))
            return
        stream_position = feed.subscribe(after)
        try:
            await websocket.accept()
            hello = Hello(face.label, face.uuid, face.run, utc_now_us() - face.now_us())
            await websocket.send_text(msgspec.json.encode(hello).decode())
            await _until_first_ends(_send_events(websocket, feed, stream_position), _until_disconnected(websocket))
        except WebSocketDisconnect:
            pass
        finally:
            feed.unsubscribe()

    return WebSocketRoute("/events", serve)


def parse_position(text: str) -> tuple[str, int]:
    """What ``UUID:SEQ`` says, or the beginning for nothing. Raises `Denied`."""
    if not text:
        return "", 0
    uuid, colon, seq = text.rpartition(":")
    if not (colon and uuid and len(uuid) <= LONGEST_UUID and seq.isascii() and seq.isdigit() and len(seq) < 20):
        raise Denied(
            HTTPStatus.BAD_REQUEST,
            "after: is not a position in the stream",
            "write UUID:SEQ of the last record that you have, or leave it out",
        )
    return uuid, min(int(seq), HIGHEST_SEQ)


async def _send_events(websocket: WebSocket, feed: EventFeed, stream_position: StreamPosition) -> None:
    while True:
        for message in await feed.messages(stream_position):
            await websocket.send_text(message)


async def _until_disconnected(websocket: WebSocket) -> None:
    """Return when the client has gone, or has said something."""
    message = await websocket.receive()
    if message["type"] != "websocket.disconnect":
        await websocket.close(WS_1008_POLICY_VIOLATION, "this stream only tells")


async def _until_first_ends(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Return when one of these has ended, and end the others."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()

"""Memory has bounds: when the buffers of a member are full, no request of any kind leaves anything behind."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import sys
from itertools import pairwise

import pytest
from starlette.types import ASGIApp, Message

from quarterdeck.backend.service.application import application
from quarterdeck.backend.service.configuration.process_configuration import User
from quarterdeck.backend.service.http.request_guard import RequestLimits
from tests.service.single_member import SingleMemberFace

ROUND = 30
"""Requests of each kind."""
BODY_SECONDS = 0.02
"""The event loop keeps the timer of a body, and with it its request, for so long."""


async def status_of(
    app: ASGIApp, method: str, path: str, *, user: str = "", host: str = "localhost", body: str = ""
) -> int:
    """Ask without a client library, which keeps what it was asked."""
    headers = [(b"host", host.encode()), (b"content-type", b"application/json")]
    headers.append((b"content-length", str(len(body)).encode()))
    if user:
        headers.append((b"authorization", b"Basic " + base64.b64encode(f"{user}:a password".encode())))
    found = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body.encode()}

    async def send(message: Message) -> None:
        found.extend([message["status"]] if message["type"] == "http.response.start" else [])

    route = {"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "http"}
    client = {"client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 5701), "http_version": "1.1"}
    await app({"type": "http", "method": method, "headers": headers, **route, **client}, receive, send)
    return int(found[0])


async def ask_all_kinds(face: SingleMemberFace, app: ASGIApp, first: int) -> None:
    """Ask as one user, as strangers that try ever new names, and under ever new names of hosts."""
    for number in range(first, first + ROUND):
        face.pass_seconds(0.2)
        key, state = f"/quarterdeck/v1/maps/m/key-{number % ROUND}", ("ACTIVE", "FROZEN")[number % 2]
        statuses = [
            await status_of(app, "GET", "/quarterdeck/v1/member", user=f"name {number}"),
            await status_of(app, "GET", "/quarterdeck/v1/member", host=f"host-{number}.example"),
            await status_of(app, "PUT", key, user="ann", body=json.dumps({"value": f"value {number}"})),
            await status_of(app, "GET", key, user="ann"),
            await status_of(app, "POST", "/quarterdeck/v1/state", user="ann", body=json.dumps({"state": state})),
            await status_of(app, "GET", f"/quarterdeck/v1/nothing-{number}", user="ann"),
        ]
        assert statuses == [401, 403, 200, 200, 202, 404]
    face.audit.clear()
    face.asked.clear()
    await asyncio.sleep(2 * BODY_SECONDS)
    gc.collect()


@pytest.mark.long
def test_requests_leave_nothing_behind() -> None:
    async def growth_by_round() -> list[int]:
        face = SingleMemberFace(users=[User("ann", "write", password="a password")], buffer_records=20)
        app = application(face, RequestLimits(body_seconds=BODY_SECONDS))
        blocks = []
        for number in range(5):
            await ask_all_kinds(face, app, number * ROUND)
            blocks.append(sys.getallocatedblocks())
        return [after - before for before, after in pairwise(blocks)]

    growth = asyncio.run(growth_by_round())
    assert min(growth[1:]) < 3 * ROUND, f"{growth} objects in each round of {ROUND} requests of each kind"

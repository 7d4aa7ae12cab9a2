"""Members that are nothing but their HTTP faces: a test says what they know, and reads what they were asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from tests.waiting import wait_until

HOST = "127.0.0.1"

Reply = tuple[int, object]
"""A status, and what JSON is made from."""


class FakeMember:
    """One member at a port of its own. `serve` and `vanish` may come in any order, also again."""

    def __init__(self, label: str, cluster_name: str = "dev") -> None:
        self.label, self.cluster_name = label, cluster_name
        self.run = f"run-of-{label}"
        self.uuid = f"{label}-life-1"
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            self.port: int = probe.getsockname()[1]
        self.address = Address(f"{HOST}:{self.port}")
        self.url = f"http://{self.address}"
        self.began = "2026-01-01T00:00:00Z"
        self.started_us = time.time_ns() // 1_000
        self.records: list[Record] = []
        self.lost_before = 0
        """How many of the oldest records it does not have any more."""
        self.members: list[FakeMember] = []
        self.join_list: list[Address] = []
        self.remembered: list[Address] = []
        self.is_master = False
        self.authorization = ""
        """The header that it wants; empty: none."""
        self.asked: list[tuple[str, str, Any]] = []
        """Whatever was not just looked at: method, path below the root, body."""
        self.replies: dict[tuple[str, str], Reply] = {}
        """What to answer instead of success, by method and path."""
        self.skipped: list[Record] = []
        """Records that the next stream leaves out, telling so."""
        self.streams = 0
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    # What it knows

    def happen(self, event: Event, *, at_us: int | None = None, uuid: str = "", utc_us: int | None = None) -> Record:
        uuid = uuid or self.uuid
        seq = 1 + sum(record.uuid == uuid for record in self.records)
        now_us = time.time_ns() // 1_000 if utc_us is None else utc_us
        at_us = now_us - self.started_us if at_us is None else at_us
        record = Record(self.run, self.label, uuid, seq, at_us, now_us, event)
        self.records.append(record)
        return record

    def begin(self) -> None:
        self.happen(events.MemberStarted(self.address, False, tuple(self.join_list)))

    def install(self, version: int, members: Sequence[FakeMember]) -> None:
        self.members = list(members)
        self.is_master = members[0] is self
        listed = tuple(Member(one.address, one.uuid, place + 1) for place, one in enumerate(members))
        master = members[0].address
        self.happen(events.ListInstalled(version, "L1", master, listed, master, "unknown", "a member joined"))

    def facts(self) -> dict[str, Any]:
        now_us = time.time_ns() // 1_000
        listed = [
            {"address": one.address, "uuid": one.uuid, "lite": False, "zone": "", "join_version": place}
            for place, one in enumerate(self.members, start=1)
        ]
        return {
            "label": self.label, "address": self.address, "uuid": self.uuid, "run": self.run,
            "cluster_name": self.cluster_name, "node_state": "ACTIVE", "version": "1.0", "started_utc": self.began,
            "now_us": now_us - self.started_us, "utc_us": now_us, "cluster_state": "ACTIVE",
            "master": self.members[0].address if self.members else None, "is_master": self.is_master,
            "list_version": len(self.members), "lineage": "L1", "members": listed, "join_list": self.join_list,
            "remembered": self.remembered, "table_version": 7, "table_digest": "ab", "allow_faults": True,
            "read_only": False,
        }  # fmt: skip

    # Its face

    def serve(self, certificate: Path | None = None) -> None:
        """With the `certificate` and key in that file, if any, then over TLS."""
        root = "/quarterdeck/v1"
        app = Starlette(
            routes=[
                WebSocketRoute(f"{root}/events", self._events),
                Route(f"{root}/{{path:path}}", self._answer, methods=["GET", "POST", "PUT", "DELETE"]),
            ]
        )
        configuration = uvicorn.Config(
            app,
            host=HOST,
            port=self.port,
            log_level="critical",
            lifespan="off",
            timeout_graceful_shutdown=0,
            ssl_certfile=certificate,
        )
        self._server = uvicorn.Server(configuration)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        server = self._server
        wait_until(lambda: server.started)

    def vanish(self) -> None:
        """Nobody listens there any more."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = self._server.force_exit = True
            self._thread.join()
        self._server = self._thread = None

    async def _answer(self, request: Request) -> Response:
        path = "/" + request.path_params["path"]
        if self.authorization and request.headers.get("authorization") != self.authorization:
            return JSONResponse({"status": "fail", "message": "who are you?", "hint": "give a name"}, 401)
        if (request.method, path) in self.replies:
            status, body = self.replies[request.method, path]
            return Response(msgspec.json.encode(body), status, media_type="application/json")
        if request.method == "GET" and path == "/member":
            return JSONResponse(self.facts())
        if request.method == "GET" and path == "/records":
            return self._page(request)
        content = await request.body()
        self.asked.append((request.method, path, json.loads(content) if content else None))
        return JSONResponse({"status": "success", "message": "done"})

    def _page(self, request: Request) -> Response:
        uuid, seq = request.query_params.get("after_uuid", ""), int(request.query_params.get("after_seq", 0))
        complete, found = self._after(uuid, seq)
        some = found[: int(request.query_params.get("limit", 1000))]
        return Response(msgspec.json.encode({"complete": complete, "records": some}), media_type="application/json")

    def _after(self, uuid: str, seq: int) -> tuple[bool, list[Record]]:
        place = next((at for at, one in enumerate(self.records, 1) if (one.uuid, one.seq) == (uuid, seq)), 0)
        return place >= self.lost_before, self.records[max(place, self.lost_before) :]

    async def _events(self, stream: WebSocket) -> None:
        if self.authorization and stream.headers.get("authorization") != self.authorization:
            await stream.close()
            return
        await stream.accept()
        self.streams += 1
        uuid, _, seq = stream.query_params.get("after", ":0").partition(":")
        sent = len(self.records) - len(self._after(uuid, int(seq or 0))[1])
        hello = {"type": "hello", "label": self.label, "uuid": self.uuid, "run": self.run, "utc_origin_us": 0}
        with contextlib.suppress(WebSocketDisconnect, asyncio.CancelledError):
            await stream.send_json(hello)
            while True:
                fresh, sent = self.records[sent:], len(self.records)
                if any(record in self.skipped for record in fresh):
                    lost = self.skipped
                    gap = {"type": "gap", "uuid": lost[0].uuid, "from_seq": lost[0].seq, "to_seq": lost[-1].seq}
                    await stream.send_json(gap)
                    fresh = [record for record in fresh if record not in lost]
                if fresh:
                    batch = {"type": "records", "records": fresh}
                    await stream.send_text(msgspec.json.encode(batch).decode())
                await asyncio.sleep(0.005)  # the pace at which it looks for news


@contextmanager
def serving(*members: FakeMember) -> Iterator[None]:
    """All of them serve, to begin with."""
    for member in members:
        member.serve()
    try:
        yield
    finally:
        for member in members:
            member.vanish()


def form(*members: FakeMember) -> None:
    """Everybody has started and believes in the list of all."""
    for member in members:
        member.join_list = [member.address for member in members]
        member.begin()
    for member in members:
        member.install(len(members), members)

"""The event stream over real sockets: hello, resume, and clients that do not behave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import websockets
from starlette.applications import Starlette
from websockets.asyncio.client import ClientConnection, connect

from quarterdeck.backend.core.events import ProcessPaused
from quarterdeck.backend.live.security import file_watch
from quarterdeck.backend.service.application import console_routes
from quarterdeck.backend.service.configuration.process_configuration import Security, User, UserGroup
from quarterdeck.backend.service.console_api import event_stream
from quarterdeck.backend.service.console_api.event_stream import MOST_CLIENTS, EventFeed
from tests.service.single_member import SingleMemberFace, served
from tests.waiting import LIMIT_SECONDS, until

EVENTS = "/quarterdeck/v1/events"


def with_server(face: SingleMemberFace, story: Callable[[str], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), served(Starlette(routes=console_routes(face))) as place:
            await story(f"ws://{place}{EVENTS}")

    asyncio.run(run())


async def said(connection: ClientConnection) -> dict[str, Any]:
    return msgspec.json.decode(await connection.recv(), type=dict[str, Any])


async def once_allowed(url: str) -> ClientConnection:
    """A stream, however often it is denied because there are too many: one that ends is noticed a little later."""
    while True:
        try:
            return await connect(url)
        except websockets.InvalidStatus as denied:
            assert denied.response.status_code == 429


def test_hello_then_everything_then_what_happens() -> None:
    face = SingleMemberFace()

    async def story(url: str) -> None:
        async with connect(url) as connection:
            hello = await said(connection)
            assert hello["type"] == "hello" and (hello["label"], hello["uuid"]) == ("n1", face.uuid)
            first = await said(connection)
            assert first["type"] == "records" and first["records"][0]["event"]["kind"] == "member-started"
            noted = face.note(ProcessPaused("n1"))
            assert (await said(connection))["records"] == msgspec.to_builtins([noted])

    with_server(face, story)


def test_a_stream_ends_with_the_secret_of_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "REVOKED_SECONDS", 0.05)
    monkeypatch.setattr(file_watch, "LOOK_SECONDS", 0.05)
    secret = tmp_path / "token"
    secret.write_text("abc")
    face = SingleMemberFace(users=(User("rhea", "read", token="abc", by_token=True, secret_file=secret),))

    async def story(url: str) -> None:
        async with connect(url, additional_headers={"Authorization": "Bearer abc"}) as connection:
            assert (await said(connection))["type"] == "hello"
            assert (await said(connection))["type"] == "records"
            secret.unlink()
            async with asyncio.timeout(5):
                with pytest.raises(websockets.ConnectionClosed, match="no longer accepted"):
                    while True:
                        await said(connection)

    with_server(face, story)


@pytest.mark.parametrize("groups", [None, ("METRICS",)], ids=["gone", "limited"])
def test_a_stream_ends_when_a_reload_takes_its_user_away(
    groups: tuple[UserGroup, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "REVOKED_SECONDS", 0.05)
    rhea, wanda = User("rhea", "read", token="abc", by_token=True), User("wanda", "write", password="do")
    face = SingleMemberFace(users=(rhea, wanda))

    async def story(url: str) -> None:
        async with connect(url, additional_headers={"Authorization": "Bearer abc"}) as connection:
            assert (await said(connection))["type"] == "hello"
            left = (wanda,) if groups is None else (replace(rhea, groups=groups), wanda)
            face.configuration = replace(face.configuration, security=Security(users=left))
            async with asyncio.timeout(5):
                with pytest.raises(websockets.ConnectionClosed, match="no longer accepted"):
                    while True:
                        await said(connection)

    with_server(face, story)


def test_resume_behind_a_known_record() -> None:
    face = SingleMemberFace()

    async def story(url: str) -> None:
        async with connect(f"{url}?after={face.uuid}:2") as connection:
            await said(connection)
            assert (await said(connection))["records"][0]["seq"] == 3

    with_server(face, story)


@pytest.mark.parametrize("after", ["nonsense", ":3", "life:", "life:-1", "life:x", f"{'l' * 200}:1"])
def test_a_position_that_is_none_is_denied_with_a_reason(after: str) -> None:
    async def story(url: str) -> None:
        with pytest.raises(websockets.InvalidStatus) as denied:
            await connect(f"{url}?after={after}")
        response = denied.value.response
        assert response.status_code == 400 and "UUID:SEQ" in msgspec.json.decode(response.body or b"")["hint"]

    with_server(SingleMemberFace(), story)


def test_strangers_are_denied() -> None:
    face = SingleMemberFace(users=[User("reader", "read", token="t0ken")])

    async def story(url: str) -> None:
        with pytest.raises(websockets.InvalidStatus) as denied:
            await connect(url)
        assert denied.value.response.status_code == 401
        async with connect(url, additional_headers={"Authorization": "Bearer t0ken"}) as connection:
            assert (await said(connection))["type"] == "hello"

    with_server(face, story)


def test_who_talks_is_shown_the_door() -> None:
    async def story(url: str) -> None:
        async with connect(url) as connection:
            await connection.send("hello?")
            with pytest.raises(websockets.ConnectionClosedError):
                while True:
                    await connection.recv()
            assert connection.close_code == 1008

    with_server(SingleMemberFace(), story)


def test_more_streams_than_allowed_are_denied_until_one_ends() -> None:
    async def story(url: str) -> None:
        connections = [await connect(url) for _ in range(MOST_CLIENTS)]
        with pytest.raises(websockets.InvalidStatus) as denied:
            await connect(url)
        assert denied.value.response.status_code == 429
        await connections.pop().close()
        async with asyncio.timeout(LIMIT_SECONDS):
            connections.append(await once_allowed(url))
        for connection in connections:
            connection.transport.abort()

    with_server(SingleMemberFace(), story)


@pytest.mark.parametrize("compression", ["deflate", None])
def test_texts_arrive_as_they_are_also_at_clients_that_offer_compression(compression: str | None) -> None:
    face = SingleMemberFace()
    targets = ["Byzántion ▲" * 200, "n2", "\u0000" * 3_000, *(str(number) * 100 for number in range(500))]

    async def story(url: str) -> None:
        async with connect(url, compression=compression) as one, connect(url, compression=compression) as other:
            for target in targets:
                face.note(ProcessPaused(target))
            for connection in (one, other):
                heard: list[str] = []
                while len(heard) < len(targets):
                    message = await said(connection)
                    if message["type"] == "records":
                        heard += [
                            record["event"]["target"]
                            for record in message["records"]
                            if record["event"]["kind"] == "process-paused"
                        ]
                assert heard == targets

    with_server(face, story)


def test_a_client_that_takes_nothing_holds_nobody_up() -> None:
    face = SingleMemberFace(buffer_records=2_000)

    async def story(url: str) -> None:
        stuck = await connect(url, max_queue=1, compression=None, max_size=None)
        stuck.transport.pause_reading()
        async with connect(url, max_size=None) as quick:
            heard = 0
            for _ in range(40):
                for _ in range(200):
                    face.note(ProcessPaused("n" * 4_000))
                while heard < face.noted:
                    message = await said(quick)
                    assert message["type"] != "gap"
                    heard = max(
                        [heard, *(record["seq"] for record in message.get("records", ()) if record["uuid"] == "dev")]
                    )
        stuck.transport.resume_reading()
        expected, gaps = 1, 0
        while expected <= face.noted:
            message = await said(stuck)
            if message["type"] == "gap" and message["uuid"] == "dev":
                assert message["from_seq"] == expected
                expected, gaps = message["to_seq"] + 1, gaps + 1
            for record in message.get("records", ()):
                if record["uuid"] == "dev":
                    assert record["seq"] == expected
                    expected += 1
        assert gaps >= 1
        await stuck.close()

    with_server(face, story)


def test_a_stream_whose_client_reads_nothing_ends_with_its_user_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "REVOKED_SECONDS", 0.05)
    ended: list[EventFeed] = []
    monkeypatch.setattr(EventFeed, "unsubscribe", lambda feed: ended.append(feed))
    rhea, wanda = User("rhea", "read", token="abc", by_token=True), User("wanda", "write", password="do")
    face = SingleMemberFace(users=(rhea, wanda))
    lines = ("Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
    head = "\r\n".join((*lines, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Authorization: Bearer abc", "", ""))

    async def story(url: str) -> None:
        host, _, path = url.removeprefix("ws://").partition("/")
        reader, writer = await asyncio.open_connection(*host.split(":"), limit=1024)
        writer.write(f"GET /{path} HTTP/1.1\r\n{head}".encode())
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(80):  # more than the buffers of the system take
            face.note(ProcessPaused("x" * 100_000))
            await asyncio.sleep(0.01)
        face.configuration = replace(face.configuration, security=Security(users=(wanda,)))
        await until(lambda: ended)
        writer.transport.abort()

    with_server(face, story)

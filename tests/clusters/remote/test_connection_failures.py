"""Why a member is not reached: each reason in words that say what to do about it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from quarterdeck.backend.clusters.remote.access import MemberCredentials, no_process_listens
from quarterdeck.backend.clusters.remote.member_client import MemberClient
from quarterdeck.backend.core.commands import CommandRefused

WEB_PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<html>hi</html>"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
NOT_US = (
    b"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: 44\r\n\r\n"
    b'{"status":"fail","message":"wrong password"}'
)


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A port at which everybody is told the same."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            with client:
                client.recv(65_536)
                client.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]


def failure(url: str) -> CommandRefused:
    async def ask() -> CommandRefused:
        async with MemberClient(MemberCredentials(), answer_seconds=0.5) as client:
            with pytest.raises(CommandRefused) as refused:
                await client.facts(url)
        return refused.value

    return asyncio.run(ask())


def why(url: str) -> str:
    return str(failure(url))


@pytest.mark.parametrize(
    ("answer", "scheme", "reason"),
    [
        (WEB_PAGE, "http", "something else listens there, no member of Quarterdeck"),
        (NOT_FOUND, "http", "something else listens there, no member of Quarterdeck"),
        (b"", "http", "the connection ended without an answer, as where TLS is spoken; try https://"),
        (NOT_FOUND, "https", "no TLS is spoken there; try http://"),
        (NOT_US, "http", "wrong password; give --user and --password-file, or --token-file"),
    ],
    ids=["web-page", "not-found", "hangs-up", "no-tls", "wrong-password"],
)
def test_who_answers_otherwise_is_named(answer: bytes, scheme: str, reason: str) -> None:
    with answering(answer) as port:
        url = f"{scheme}://127.0.0.1:{port}"
        refused = failure(url)
    assert str(refused) == f"{url}: {reason}" and not no_process_listens(refused)


def test_nobody_there_and_no_such_host() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    refused = failure(url)
    assert str(refused) == f"{url}: connection refused: no process listens there" and no_process_listens(refused)
    assert why("http://athens.invalid:5701") == "http://athens.invalid:5701: no such host"

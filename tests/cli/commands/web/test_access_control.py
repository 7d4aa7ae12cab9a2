"""Who gets into the console by HTTP: the holder of the one-time token, from this machine, on the page that was served here."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

pytest.importorskip("textual_serve", reason="the extra [web] is not installed")

from quarterdeck.cli.web_server import MOST_SESSIONS
from tests.cli.commands.web.served_console import Served, serving
from tests.cli.conftest import Quarterdeck, quarterdeck
from tests.waiting import wait_until

__all__ = ["quarterdeck"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A server whose token was used, and the cookie that it was exchanged for."""
    with serving(tmp_path_factory.mktemp("home"), "--members", "1", "--no-journal") as served:
        with httpx.Client(trust_env=False) as client:
            assert client.get(served.origin).status_code == 403
            assert client.get(f"{served.origin}/?token=wrong").status_code == 403
            came = client.get(served.first_url)
            assert (came.status_code, came.headers["Location"]) == (303, "/")
            cookie = came.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
        yield served, cookie.partition(";")[0]


def get(url: str, **headers: str) -> httpx.Response:
    with httpx.Client(trust_env=False) as client:
        return client.get(url, headers=headers)


def opened(served: Served, **headers: str) -> AbstractContextManager[ClientConnection]:
    """A WebSocket with just these headers. Raises `InvalidStatus` when it is entered."""
    origin = headers.pop("Origin", None)
    url = f"{served.origin.replace('http', 'ws')}/ws?width=80&height=24"
    return connect(url, origin=origin, additional_headers=headers, proxy=None)  # type: ignore[arg-type]


def test_the_token_works_once(shared: tuple[Served, str]) -> None:
    served, cookie = shared
    again = get(served.first_url)
    assert again.status_code == 403
    assert "was used already" in again.text
    # Not even together with the cookie: whoever comes with an old URL is told.
    assert get(served.first_url, Cookie=cookie).status_code == 403


@pytest.mark.parametrize("path", ["/", "/static/js/textual.js", "/pages/page.css", "/download/x", "/nowhere"])
def test_without_the_cookie_there_is_nothing(shared: tuple[Served, str], path: str) -> None:
    served, cookie = shared
    assert get(f"{served.origin}{path}").status_code == 403
    assert get(f"{served.origin}{path}", Cookie=cookie[:-1] + "x").status_code == 403
    assert get(f"{served.origin}{path}", Cookie=cookie).status_code == (
        200 if path not in ("/download/x", "/nowhere") else 404
    )


def test_folders_are_not_listed(shared: tuple[Served, str]) -> None:
    served, cookie = shared
    assert get(f"{served.origin}/static/", Cookie=cookie).status_code in (403, 404)
    assert get(f"{served.origin}/pages/../web_gate.py", Cookie=cookie).status_code in (403, 404)


def test_the_page_loads_nothing_from_elsewhere(shared: tuple[Served, str]) -> None:
    served, cookie = shared
    page = get(served.origin, Cookie=cookie)
    assert served.token not in page.text
    assert not re.findall(r"(?:src|href)=\"(?!/|data:|http://127\.0\.0\.1)", page.text)
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("host", ["localhost:{port}", "evil.example:{port}", "127.0.0.1", "[::1]:{port}"])
def test_other_names_of_this_machine_are_refused(shared: tuple[Served, str], host: str) -> None:
    served, cookie = shared
    port = served.origin.rpartition(":")[2]
    answer = get(served.origin, Cookie=cookie, Host=host.format(port=port))
    assert answer.status_code == 403


def test_it_is_bound_to_loopback_alone(shared: tuple[Served, str]) -> None:
    port = int(shared[0].origin.rpartition(":")[2])
    listening = [
        line.split()[1]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]
        if line.split()[3] == "0A" and int(line.split()[1].rpartition(":")[2], 16) == port
    ]
    assert listening == [f"{socket.inet_aton('127.0.0.1')[::-1].hex().upper()}:{port:04X}"]


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://localhost:{port}"],
)
def test_a_websocket_of_another_page_is_refused(shared: tuple[Served, str], origin: str | None) -> None:
    served, cookie = shared
    port = served.origin.rpartition(":")[2]
    headers = {"Cookie": cookie} | ({"Origin": origin.format(port=port)} if origin else {})
    with pytest.raises(InvalidStatus) as refused, opened(served, **headers):
        pass
    assert refused.value.response.status_code == 403
    assert served.consoles() == []


def test_a_websocket_without_the_cookie_is_refused(shared: tuple[Served, str]) -> None:
    served, _ = shared
    for cookie in ({}, {"Cookie": "quarterdeck-1=x"}):
        with pytest.raises(InvalidStatus) as refused, opened(served, Origin=served.origin, **cookie):
            pass
        assert refused.value.response.status_code == 403


def test_a_console_runs_as_long_as_its_page_and_there_are_not_many(shared: tuple[Served, str]) -> None:
    served, cookie = shared
    with ExitStack() as pages:
        sockets = [
            pages.enter_context(opened(served, Origin=served.origin, Cookie=cookie)) for _ in range(MOST_SESSIONS)
        ]
        with pytest.raises(InvalidStatus) as refused, opened(served, Origin=served.origin, Cookie=cookie):
            pass
        assert refused.value.response.status_code == 503
        seen = b""
        while b"RO" not in seen:
            frame = sockets[0].recv(30)
            seen += frame if isinstance(frame, bytes) else frame.encode()
        assert served.consoles() != []
    wait_until(lambda: served.consoles() == [], "the consoles end with their pages")


@pytest.mark.long
def test_consoles_end_with_the_server(tmp_path: Path) -> None:
    with serving(tmp_path, "--members", "1", "--no-journal") as served:
        came = get(served.first_url)
        with opened(served, Origin=served.origin, Cookie=came.headers["Set-Cookie"].partition(";")[0]) as page:
            page.recv(30)
            consoles = served.consoles()
            assert consoles
            served.process.terminate()
            served.process.wait(30)
    wait_until(lambda: not any(Path(f"/proc/{console}").exists() for console in consoles), "no console is left behind")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--members", "0"], "--members"),
        (["--theme", "drak"], "there is no theme 'drak'"),
        (["--nonsense"], "--nonsense"),
        (["--port", "99999"], "--port"),
    ],
)
def test_bad_options_are_told_before_there_is_a_page(quarterdeck: Quarterdeck, options: list[str], told: str) -> None:
    done = quarterdeck("web", "--port", "0", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_told(quarterdeck: Quarterdeck) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = quarterdeck("web", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 3
    assert "cannot be served" in done.stderr

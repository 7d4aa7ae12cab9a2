"""What once got a member stuck, silenced or fooled over HTTP, done again over real sockets."""

from __future__ import annotations

import base64
import contextlib
import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from quarterdeck.backend.service.configuration.process_configuration import Security, User
from quarterdeck.backend.service.http import http_protocol
from tests.service.attacked_member import PORT, AttackedMember, attacked, heard, request, status_of
from tests.service.member_processes import MemberProcess, end, members
from tests.waiting import wait_until

UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
RESET = "/hazelcast/rest/log-level/reset"
EVENTS = "/quarterdeck/v1/events"


@pytest.fixture(scope="module")
def member() -> Iterator[AttackedMember]:
    with attacked() as found:
        yield found


def failure_of(answer: bytes) -> tuple[int, dict[str, str]]:
    """Status and body; the body has to have the form that all refusals have."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head.lower(), answer
    found = json.loads(body)
    assert found["status"] == "fail" and found["message"]
    return status_of(answer), found


# 1: requests that are never answered


@pytest.mark.parametrize("path", ["/", EVENTS, "/hazelcast/health", "/nowhere"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
@pytest.mark.parametrize("body", ["Content-Length: 1", "Transfer-Encoding: chunked", "Content-Length: 100000"])
def test_an_upgrade_with_a_body_is_refused_at_once(member: AttackedMember, path: str, method: str, body: str) -> None:
    began = time.monotonic()
    status, _ = failure_of(member.say(request(method, path, *UPGRADE, body) + b"x"))
    assert status == 400
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "headers",
    [
        UPGRADE[:2],
        UPGRADE[:3],
        (*UPGRADE[:3], "Sec-WebSocket-Key: short"),
        (*UPGRADE[:2], "Sec-WebSocket-Version: 12", UPGRADE[3]),
        (*UPGRADE, "X: " + "x" * 12_000),
        (*UPGRADE, *(f"X-{number}: 1" for number in range(400))),
        (*UPGRADE, "X: \x80\xff"),
        (*UPGRADE, UPGRADE[3]),
    ],
    ids=range(8),
)
def test_an_upgrade_that_is_none_is_refused_in_the_form_of_all_refusals(
    member: AttackedMember, headers: tuple[str, ...]
) -> None:
    raw = request("GET", EVENTS, *headers)
    with member.connect() as connection:
        connection.sendall(raw)
        first = connection.recv(65_536)
        if first.startswith(b"HTTP/1.1 101 "):
            return
        status, _ = failure_of(first + heard(connection))
    assert 400 <= status < 500


def test_upgrades_to_something_else_or_by_another_method_are_plain_requests(member: AttackedMember) -> None:
    path = "/hazelcast/health/node-state"
    assert member.status(request("GET", path, "Upgrade: h2c", "Connection: Upgrade, close")) == 200
    assert member.status(request("POST", path, *UPGRADE, "Connection: close")) == 405


def test_held_upgrades_shut_nobody_out_and_do_not_spoil_the_end(tmp_path: Path) -> None:
    with members(tmp_path, 1) as (process,):
        held = []
        for number in range(300):
            made = socket.create_connection(("127.0.0.1", process.port), 10)
            made.sendall(request("GET" if number % 2 else "PUT", "/any", *UPGRADE, "Content-Length: 1") + b"x")
            held.append(made)
        assert process.get("/hazelcast/health/ready").status_code == 200
        process.signal(signal.SIGTERM)
        assert process.ends_with() == 0
        assert "Traceback" not in process.log and "AssertionError" not in process.log
        for made in held:
            made.close()


def test_a_stop_ends_well_whoever_is_connected(tmp_path: Path) -> None:
    """Halves of requests, a body that does not come, a stream that is not read, and one that is."""
    with members(tmp_path, 1) as (process,):
        process.get("/quarterdeck/v1/member")
        halves = [
            b"G",
            request("GET", EVENTS, *UPGRADE)[:-2],
            request("GET", EVENTS, *UPGRADE),
            request("POST", "/quarterdeck/v1/state", "Content-Length: 100", "Content-Type: application/json") + b"{",
            request("GET", "/hazelcast/health") * 50,
            b"\x00\x00\x00\x05abc",
        ]
        held = []
        for half in halves:
            made = socket.create_connection(("127.0.0.1", process.port), 10)
            made.sendall(half)
            held.append(made)
        process.signal(signal.SIGTERM)
        assert process.ends_with() == 0
        assert "Traceback" not in process.log
        for made in held:
            made.close()


def test_an_answer_that_is_not_taken_is_not_waited_for_long(
    member: AttackedMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/hazelcast/rest/maps/m/long"
    put = request("PUT", path, "Connection: close", body=b"x" * 8_000_000)
    assert member.status(put) == 200
    monkeypatch.setattr(http_protocol, "ANSWER_SECONDS", 0.5)
    open_ones = member.look(lambda: len(member.service.http._protocols))
    with member.connect() as connection:
        connection.sendall(request("GET", path) * 3)
        wait_until(lambda: member.look(lambda: len(member.service.http._protocols)) > open_ones)
        wait_until(lambda: member.look(lambda: len(member.service.http._protocols)) <= open_ones, poll_seconds=0.1)


def test_who_does_not_read_a_goodbye_is_broken_off(member: AttackedMember) -> None:
    path = "/hazelcast/rest/maps/m/long"
    assert member.status(request("PUT", path, "Connection: close", body=b"x" * 8_000_000)) == 200

    def closing() -> list[object]:
        http = member.service.http
        found: list[object] = member.look(
            lambda: [protocol for protocol in http._protocols if protocol.transport.is_closing()]
        )
        return found

    with member.connect() as connection:
        connection.sendall(request("GET", path, "Connection: close"))
        wait_until(closing)
        for _ in range(2):  # the first sees that it is about to close, the second that it has not
            member.look(member.service.http._sweep)
        wait_until(lambda: not closing())


# 3: halves of requests, 6: more connections than there are descriptors


@pytest.mark.parametrize(
    "half", [b"", b"GET /hazel", request("POST", RESET, "Content-Length: 9") + b"dev"], ids=range(3)
)
def test_halves_of_requests_from_some_addresses_shut_nobody_out(member: AttackedMember, half: bytes) -> None:
    held = []
    for number in range(4):
        for _ in range(130):
            held.append(member.connect(f"127.0.1.{number + 1}"))
            held[-1].sendall(half)
    assert member.answers("127.0.2.1")
    assert member.answers("127.0.1.1"), "who completes requests is answered, whatever else comes from there"
    for made in held:
        made.close()


def test_idle_connections_from_some_addresses_shut_nobody_out(member: AttackedMember) -> None:
    held = []
    for number in range(4):
        for _ in range(257):
            held.append(member.connect(f"127.0.3.{number + 1}"))
            held[-1].sendall(request("GET", "/hazelcast/health/node-state"))
            held[-1].recv(65_536)
    assert member.answers("127.0.4.1") and member.answers("127.0.3.1")
    for made in held:
        made.close()


def test_more_connections_than_descriptors(tmp_path: Path) -> None:
    process = MemberProcess(tmp_path, "n1", within=("sh", "-c", 'ulimit -n 64; exec "$@"', "sh"))
    try:
        process.ready()
        assert "of 64 open files, 16 are for HTTP connections and 8 for connections" in process.log
        held = [socket.create_connection(("127.0.0.1", process.port), 10) for _ in range(150)]
        for place, made in enumerate(held):
            with contextlib.suppress(OSError):
                made.sendall(request("GET", "/hazelcast/health") if place % 2 else b"GET /")
        assert process.get("/hazelcast/health/ready").status_code == 200
        for made in held:
            made.close()
        assert process.get("/hazelcast/health/ready").status_code == 200
        process.signal(signal.SIGTERM)
        assert process.ends_with() == 0
        assert "Traceback" not in process.log
        assert process.log.count("connections were refused") <= 1
    finally:
        end(process)


# 4: pages in a browser of somebody who may, and 5: guessers beside somebody who may

USERS = (User("wanda", "write", password="do"), User("probe", "read", token="0123456789abcdef"))
WANDA = "Authorization: Basic " + base64.b64encode(b"wanda:do").decode()


@pytest.fixture(scope="module")
def guarded() -> Iterator[AttackedMember]:
    security = Security(users=USERS, allowed_origins=("https://dashboard.example",))
    with attacked(PORT + 1, security=security) as found:
        yield found


@pytest.mark.parametrize(("origin", "status"), [("http://evil.example", 403), ("https://dashboard.example", 101)])
def test_a_stream_is_opened_for_pages_of_configured_origins_only(
    guarded: AttackedMember, origin: str, status: int
) -> None:
    with guarded.connect() as connection:
        connection.sendall(request("GET", EVENTS, *UPGRADE, WANDA, f"Origin: {origin}"))
        assert status_of(connection.recv(65_536)) == status


@pytest.mark.parametrize("foreign", [{"headers": "Origin: http://evil.example"}, {"host": "evil.example"}])
def test_a_page_changes_nothing_with_the_credentials_of_its_reader(
    guarded: AttackedMember, foreign: dict[str, str]
) -> None:
    headers = [WANDA, "Connection: close", *([foreign["headers"]] if "headers" in foreign else [])]
    raw = request("POST", RESET, *headers, host=foreign.get("host", "localhost"), body=b"dev&")
    assert failure_of(guarded.say(raw))[0] == 403


def test_bad_attempts_do_not_lock_out_the_innocent(guarded: AttackedMember) -> None:
    def shown(secret: str) -> int:
        return guarded.status(request("GET", "/metrics", f"Authorization: {secret}", "Connection: close"))

    for number in range(8):
        wrong = base64.b64encode(f"wanda:{number}".encode()).decode()
        assert shown(f"Basic {wrong}") in (401, 429)
        assert shown(f"Bearer {number}") in (401, 429)
    assert shown("Bearer 0123456789abcdef") == 200
    wait_until(lambda: shown(WANDA.partition(": ")[2]) == 200, limit_seconds=2)


def test_a_token_changes_with_its_file_while_the_member_runs(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef\n")
    probe = User("probe", "read", token="0123456789abcdef", secret_file=file, by_token=True)
    with attacked(PORT + 2, security=Security(users=(probe,))) as guarded:

        def status(token: str) -> int:
            return guarded.status(request("GET", "/metrics", f"Authorization: Bearer {token}", "Connection: close"))

        assert (status("0123456789abcdef"), status("fedcba9876543210")) == (200, 401)
        file.write_text("fedcba9876543210\n")
        wait_until(lambda: status("fedcba9876543210") == 200, poll_seconds=0.3)
        assert status("0123456789abcdef") == 401
        file.unlink()
        wait_until(lambda: status("fedcba9876543210") == 401, poll_seconds=0.3)


# 9: what made a member answer 500, or log its own fault


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/maps/m/k", '{"value": "\\ud800"}'),
        ("PUT", "/maps/m/k", '{"value_base64": "\\udfff"}'),
        ("PUT", "/join-list", '{"addresses": ["\\ud800"]}'),
        ("PATCH", "/properties", '{"properties": {"\\ud800": 1}}'),
        ("PATCH", "/properties", '{"properties": {"hazelcast.max.join.seconds": "\\ud800"}}'),
        ("POST", "/state", '{"\\ud800": 1}'),
        ("POST", "/state", "[" * 100_000),
    ],
    ids=range(7),
)
def test_text_that_is_none_is_bad_input(member: AttackedMember, method: str, path: str, body: str) -> None:
    kind = "Content-Type: application/json"
    answer = member.say(request(method, "/quarterdeck/v1" + path, kind, "Connection: close", body=body.encode()))
    status, found = failure_of(answer)
    assert (status, "surrogates not allowed" in found["message"]) == (400, False)


def test_a_frame_of_text_that_is_not_utf_8_closes_the_stream(
    member: AttackedMember, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(f"ws://127.0.0.1:{member.port}{EVENTS}") as stream:
        stream.recv(10)
        stream.socket.sendall(b"\x81\x82\x00\x00\x00\x00\xff\xfe")
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                stream.recv(10)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1007
    assert "Traceback" not in caplog.text


# 11: targets and bodies


@pytest.mark.parametrize("origin", ["http://localhost:5701", "HTTP://127.0.0.1", "http://[::1]:5701"])
def test_a_target_may_be_a_whole_address(member: AttackedMember, origin: str) -> None:
    assert member.status(request("GET", f"{origin}/hazelcast/rest/cluster?x=1", "Connection: close")) == 200
    assert member.status(request("GET", f"{origin}/quarterdeck/v1/member", "Connection: close")) == 200
    assert member.status(request("GET", f"{origin}", "Connection: close")) == 404


def test_the_address_in_a_target_counts_and_not_the_host_header(member: AttackedMember) -> None:
    target = "http://evil.example/hazelcast/rest/cluster"
    assert member.status(request("GET", target, "Connection: close")) == 403
    ours = "http://localhost/hazelcast/rest/cluster"
    assert member.status(request("GET", ours, "Connection: close", host="evil.example")) == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/nine\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 300_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: a",
    ],
    ids=range(8),
)
def test_what_is_no_http_is_refused_in_the_form_of_all_refusals(member: AttackedMember, raw: bytes) -> None:
    status, _ = failure_of(member.say(raw))
    assert 400 <= status < 500


@pytest.mark.parametrize("path", ["/hazelcast/health", RESET, "/quarterdeck/v1/member"])
def test_a_request_with_two_lengths_is_refused_and_closed(member: AttackedMember, path: str) -> None:
    """What stands behind it is no second request: a proxy may have seen another end."""
    two = request("POST", path, "Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n"
    answer = member.say(two + request("GET", "/hazelcast/health"))
    assert (failure_of(answer)[0], answer.count(b"HTTP/1.1 ")) == (400, 1)
    assert b"connection: close" in answer.lower()


def test_a_broken_body_of_a_request_that_wants_no_body_back(
    member: AttackedMember, caplog: pytest.LogCaptureFixture
) -> None:
    raw = request("HEAD", "/hazelcast/health", "Transfer-Encoding: chunked") + b"zz\r\n"
    answer = member.say(raw)
    assert not answer or (status_of(answer) in (200, 400) and answer.endswith(b"\r\n\r\n"))
    assert "Traceback" not in caplog.text

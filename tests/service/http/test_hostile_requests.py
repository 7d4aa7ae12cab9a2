"""Requests that are too long, too slow, half, or nonsense: each gets an answer below 500, and the member lives on."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quarterdeck.backend.service.application import OPERATOR_PATHS
from quarterdeck.backend.service.http.request_guard import RequestLimits
from tests.service.served_members import Client, one_member
from tests.thoroughness import examples

LIST = "/hazelcast/rest/config/tcp-ip/member-list"
UPDATE = "/hazelcast/rest/config/update"
CHANGE = "/hazelcast/rest/management/cluster/changeState"
FUZZED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(150))


@pytest.fixture(scope="module")
def member() -> Iterator[Client]:
    with one_member(limits=RequestLimits(body_seconds=0.5)) as client:
        yield client
        assert client.get("/hazelcast/health").status_code == 200


def head(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_a_body_that_says_it_is_too_long_is_not_waited_for(member: Client) -> None:
    answer = member.raw(head("POST", LIST, "Content-Length: 99999999999") + b"dev")
    assert status(answer) == 413
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize("path", [LIST, "/hazelcast/rest/maps/m/k"])
def test_a_body_that_does_not_say_how_long_it_is_may_not_be_longer(path: str) -> None:
    """To a member that gives it time: how long it takes to come is another matter."""
    with one_member() as member, socket.create_connection(("127.0.0.1", member.port), 30) as connection:
        connection.sendall(head("POST", path, "Transfer-Encoding: chunked"))
        chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        for _ in range(200):
            connection.sendall(chunk)
        connection.sendall(b"0\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert status(answer) == 413 and b"the body is too long" in answer


@pytest.mark.parametrize("path", [LIST, "/hazelcast/rest/maps/m/k", "/quarterdeck/v1/maps/m/k", "/nothing"])
def test_a_refusal_reaches_a_client_that_sends_all_of_its_body_first(path: str) -> None:
    with one_member() as member, socket.create_connection(("127.0.0.1", member.port), 30) as connection:
        connection.sendall(head("PUT", path, "Content-Length: 20000000") + b"x" * 20_000_000)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert status(answer) == 413 and b"the body is too long" in answer


def test_a_body_that_comes_for_ever_after_its_refusal_ends_its_connection() -> None:
    limits = RequestLimits(dropped_bytes=200_000, dropped_seconds=0.3)
    with one_member(limits=limits) as member, socket.create_connection(("127.0.0.1", member.port), 30) as connection:
        connection.sendall(head("POST", LIST, "Content-Length: 99999999999"))
        assert status(b"".join(iter(lambda: connection.recv(65_536), b""))) == 413
    with one_member(limits=limits) as member, socket.create_connection(("127.0.0.1", member.port), 30) as connection:
        connection.sendall(head("POST", LIST, "Content-Length: 99999999999"))
        with pytest.raises(ConnectionError):
            while True:
                connection.sendall(b"x" * 65_536)


@pytest.mark.parametrize("field", ["cluster-name", "password", "member-list"])
def test_a_field_of_json_stands_once(member: Client, field: str) -> None:
    body = f'{{"cluster-name": "dev", "password": "", "member-list": "a:1", "{field}": "dev"}}'
    answer = member.post(LIST, body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, f"'{field}' is given twice" in answer.json()["message"]) == (400, True)


def test_a_body_in_chunks_is_read(member: Client) -> None:
    body = b"8\r\ndev&&a:1\r\n4\r\n,b:2\r\n0\r\n\r\n"
    answer = member.raw(head("POST", LIST, "Transfer-Encoding: chunked", "Connection: close") + body)
    assert status(answer) == 200
    assert answer.endswith(b'"member-list":["a:1","b:2"]}')


def test_a_client_that_waits_to_be_asked_for_the_body(member: Client) -> None:
    with socket.create_connection(("127.0.0.1", member.port), 30) as connection:
        connection.sendall(head("POST", LIST, "Expect: 100-continue", "Content-Length: 8", "Connection: close"))
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"dev&&a:1")
        assert status(connection.recv(65_536)) == 200


@pytest.mark.parametrize("path", [LIST, "/hazelcast/rest/maps/m/k", "/quarterdeck/v1/state"])
@pytest.mark.parametrize("sent", [b"", b"dev&&"])
def test_a_body_that_does_not_come_is_not_waited_for_long(member: Client, path: str, sent: bytes) -> None:
    method = "PUT" if "maps" in path else "POST"
    answer = member.raw(head(method, path, "Content-Length: 100", "Content-Type: application/json") + sent)
    assert status(answer) in (408, 400, 422), answer


def test_a_refused_request_does_not_keep_the_member_reading() -> None:
    with one_member(endpoint_groups={}, limits=RequestLimits(body_seconds=0.5)) as member:
        answer = member.raw(head("POST", LIST, "Content-Length: 100") + b"dev")
    assert status(answer) == 403


def test_whoever_leaves_in_the_middle_leaves_nothing_behind(member: Client) -> None:
    for cut in range(1, 60, 3):
        with socket.create_connection(("127.0.0.1", member.port), 30) as connection:
            connection.sendall((head("POST", LIST, "Content-Length: 100") + b"dev&&")[:cut])
    assert member.get("/hazelcast/health").status_code == 200


def test_requests_on_one_connection_are_answered_in_order(member: Client) -> None:
    """As many as came at once, the last with the body that it needs."""
    first = head("GET", "/hazelcast/health/cluster-size") * 3
    last = head("POST", CHANGE, "Content-Length: 11", "Connection: close") + b"dev&&active"
    answer = member.raw(first + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 4
    assert answer.endswith(b'"state":"active"}')


def test_http_1_0_without_headers(member: Client) -> None:
    assert status(member.raw(b"GET /hazelcast/rest/cluster HTTP/1.0\r\n\r\n")) == 200


def test_a_path_without_end(member: Client) -> None:
    assert member.get("/hazelcast/" + "x" * 20_000).status_code == 414


@pytest.mark.parametrize("length", ["-1", "1e3", "0x10", "9" * 4_400, "1, 2"])
def test_lengths_that_are_none(member: Client, length: str) -> None:
    assert 400 <= status(member.raw(head("POST", LIST, f"Content-Length: {length}") + b"dev")) < 500


def test_all_bodies_together_may_be_so_long_and_no_longer() -> None:
    with one_member(limits=RequestLimits(all_bodies_bytes=100_000)) as member:
        with socket.create_connection(("127.0.0.1", member.port), 30) as slow:
            slow.sendall(head("PUT", "/hazelcast/rest/maps/m/k", "Content-Length: 90000") + b"x" * 80_000)
            guard = member.guard._app
            member.until(lambda: guard.held_bytes == 80_000)
            refused = member.ask("PUT", "/hazelcast/rest/maps/m/l", b"x" * 30_000)
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
            assert member.ask("PUT", "/hazelcast/rest/maps/m/l", b"x" * 10_000).status_code == 200
        member.until(lambda: guard.held_bytes == 0)


POSTS = sorted({path.path for path in OPERATOR_PATHS if "POST" in path.methods and "{" not in path.path})
PATHS = sorted({path.path for path in OPERATOR_PATHS})


@pytest.mark.parametrize("path", POSTS)
@FUZZED
@given(body=st.binary(max_size=200) | st.binary(max_size=100).map(b"dev&&".__add__) | st.text().map(str.encode))
def test_no_bytes_of_a_body_break_a_path(member: Client, path: str, body: bytes) -> None:
    assert member.post(path, body).status_code < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize(("path", "third"), [(LIST, "member-list"), (UPDATE, "configuration"), (CHANGE, "state")])
@FUZZED
@given(value=JSON, more=st.dictionaries(st.sampled_from(["password", "x", "cluster-name"]), JSON, max_size=1))
def test_no_json_breaks_a_path(member: Client, path: str, third: str, value: object, more: dict[str, object]) -> None:
    body = json.dumps({"cluster-name": "dev", third: value} | more)
    assert member.post(path, body, headers={"Content-Type": "application/json"}).status_code < 500


@pytest.mark.parametrize("body", ["[" * 60_000, '{"a":' * 10_000, "1" * 60_000, '"\\ud800"', "NaN", "{} {}", "\x00"])
def test_json_that_is_none(member: Client, body: str) -> None:
    assert member.post(LIST, body, headers={"Content-Type": "application/json"}).status_code == 400


YAML = st.text("abhzelcst:-[]{}&*!|>%?,#'\"\n \t0129.~", max_size=80)
PROPERTY = st.sampled_from(["hazelcast.max.join.seconds", "hazelcast.partition.count", "quarterdeck.merge.policy", "x"])


@FUZZED
@given(text=YAML | YAML.map("hazelcast:\n  properties: ".__add__) | YAML.map("hazelcast: {network: ".__add__))
def test_no_yaml_breaks_an_update(member: Client, text: str) -> None:
    body = json.dumps({"cluster-name": "dev", "configuration": text})
    assert member.post(UPDATE, body, headers={"Content-Type": "application/json"}).status_code < 500


@FUZZED
@given(properties=st.dictionaries(PROPERTY | st.text(max_size=5), JSON, max_size=3), join=JSON)
def test_no_configuration_breaks_an_update(member: Client, properties: dict[str, object], join: object) -> None:
    document = {"hazelcast": {"properties": properties, "network": {"join": {"tcp-ip": {"member-list": join}}}}}
    body = json.dumps({"cluster-name": "dev", "configuration": document})
    assert member.post(UPDATE, body, headers={"Content-Type": "application/json"}).status_code < 500


TOKEN = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ-", min_size=1, max_size=10)


@FUZZED
@given(
    method=st.sampled_from(["GET", "HEAD", "PUT", "DELETE", "OPTIONS"]) | TOKEN, path=st.sampled_from(PATHS) | st.text()
)
def test_no_method_and_no_path_break_the_member(member: Client, method: str, path: str) -> None:
    from urllib.parse import quote

    request = f"{method} {quote(path) or '/'} HTTP/1.0\r\nHost: localhost\r\n\r\n"
    assert status(member.raw(request.encode())) < 500


@FUZZED
@given(st.binary(min_size=1, max_size=300))
def test_no_bytes_break_the_member(member: Client, raw: bytes) -> None:
    with socket.create_connection(("127.0.0.1", member.port), 30) as connection:
        connection.sendall(raw + b"\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        try:
            answer = connection.recv(65_536)
        except ConnectionError:
            return
    assert not answer or status(answer) < 500

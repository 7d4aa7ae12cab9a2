"""Entries of maps over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quarterdeck.backend.core.data.map_calls import MOST_ENTRY_BYTES
from quarterdeck.backend.core.properties import Settings
from tests.service.served_members import Client, ServedMembers, configured, one_member
from tests.thoroughness import examples

AT = "/hazelcast/rest/maps/"


@pytest.fixture(scope="module")
def member() -> Iterator[Client]:
    with one_member() as client:
        yield client


def test_an_entry_comes_and_goes(member: Client) -> None:
    assert member.get(AT + "m/k").status_code == 204
    for method, value in (("POST", "one"), ("PUT", "two")):
        answer = member.ask(method, AT + "m/k", value)
        assert (answer.status_code, answer.content) == (200, b"")
        assert member.get(AT + "m/k").text == value
    head = member.ask("HEAD", AT + "m/k")
    assert (head.status_code, head.headers["content-length"]) == (200, "3")
    assert [member.ask("DELETE", AT + "m/k").status_code for _ in range(2)] == [200, 200]
    assert member.get(AT + "m/k").status_code == 204


def test_what_comes_out_is_what_went_in(member: Client) -> None:
    text = member.ask("PUT", AT + "m/text", "Ἀθῆναι") and member.get(AT + "m/text")
    assert (text.headers["content-type"], text.text) == ("text/plain; charset=utf-8", "Ἀθῆναι")
    raw = member.ask("PUT", AT + "m/raw", b"\xff\x00") and member.get(AT + "m/raw")
    assert (raw.headers["content-type"], raw.content) == ("application/octet-stream", b"\xff\x00")
    assert raw.headers["x-content-type-options"] == "nosniff"
    assert (member.ask("PUT", AT + "m/empty", b"") and member.get(AT + "m/empty")).status_code == 200


@pytest.mark.parametrize("key", ["a/b", "a%2Fb", "%E1%BC%88", "a%20b", "a+b", "%25", "..%2F..", "a%00b"])
def test_keys_are_any_text(member: Client, key: str) -> None:
    assert member.ask("PUT", AT + "keys/" + key, key).status_code == 200
    assert member.get(AT + "keys/" + key).text == key


def test_a_slash_is_a_slash_however_it_is_written(member: Client) -> None:
    member.ask("PUT", AT + "slashes/a%2Fb", "v")
    assert member.get(AT + "slashes/a/b").text == "v"


@pytest.mark.parametrize(("path", "status"), [("m", 404), ("m/", 404), ("/k", 404), ("m/%ff", 400), ("m/%zz", 400)])
def test_what_names_no_entry(member: Client, path: str, status: int) -> None:
    for method in ("PUT", "DELETE"):
        answer = member.raw(f"{method} {AT}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer


def test_what_is_too_long_for_a_map(member: Client) -> None:
    assert member.ask("PUT", AT + "m/long", b"x" * (MOST_ENTRY_BYTES + 1)).status_code == 413
    entry = member.ask("PUT", AT + "m/long", b"x" * MOST_ENTRY_BYTES)  # its key is counted, too
    assert entry.status_code == 413 and "is too large" in entry.json()["message"]
    for path in ("maps/m/long", "maps/m/entries", "entries"):
        value = {"value": "x" * MOST_ENTRY_BYTES}
        body = value if path == "maps/m/long" else {"entries": [{"key": "a", "value": "1"}, {"key": "long", **value}]}
        body |= {"map": "m"} if path == "entries" else {}
        method = "PUT" if path == "maps/m/long" else "POST"
        answer = member.ask(method, f"/quarterdeck/v1/{path}", json=body)
        assert answer.status_code == 413 and "is too large" in answer.json()["message"], path
    assert [member.get(AT + "m/" + key).status_code for key in ("long", "a")] == [204, 204]


def test_operations_that_are_not_served_say_whether_anything_was_done() -> None:
    few = Settings.of({"quarterdeck.minimum.cluster.size": 2}, preset="training")
    with ServedMembers() as served:
        answer = served.joined(configured(settings=few)).ask("PUT", AT + "m/k", "v")
        assert (answer.status_code, answer.json()["untouched"]) == (409, True)
        assert "not enough members" in answer.json()["message"]


@given(name=st.text(min_size=1), key=st.text(min_size=1), value=st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
def test_any_entry_comes_back(member: Client, name: str, key: str, value: bytes) -> None:
    from urllib.parse import quote

    path = f"{AT}{quote(name, safe='', errors='replace')}/{quote(key, safe='', errors='replace')}"
    request = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(value)}\r\nConnection: close\r\n\r\n"
    assert member.raw(request.encode() + value).startswith(b"HTTP/1.1 200 ")
    answer = member.raw(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    assert answer.endswith(b"\r\n\r\n" + value)

"""Which path is suggested to somebody who asked for one at which there is nothing."""

from __future__ import annotations

import msgspec
import pytest

from quarterdeck.backend.service.application import KNOWN_PATHS
from quarterdeck.backend.service.http.responses import failure_body, nearest
from tests.service.served_members import one_member


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/health", "/hazelcast/health"),
        ("/hazelcast", "/hazelcast/health"),
        ("/hazelcast/rest/config/tcp-ip", "/hazelcast/rest/config/tcp-ip/member-list"),
        ("/hazelcast/rest/config/tcp-ip/memberlist", "/hazelcast/rest/config/tcp-ip/member-list"),
        ("/hazelcast/rest/config/relaod", "/hazelcast/rest/config/reload"),
        ("/hazelcast/rest/cluster/state", "/hazelcast/rest/management/cluster/state"),
        ("/hazelcast/rest/management/cluster/stat", "/hazelcast/rest/management/cluster/state"),
        ("/quarterdeck/v1/membrs", "/quarterdeck/v1/members"),
        ("/v1/members", "/quarterdeck/v1/members"),
        ("/metric", "/metrics"),
        ("/quarterdeck/v1/nothing", None),
        ("/quarterdeck/v1", None),
        ("/hazelcast/rest/management/cluster/foo", None),
        ("/favicon.ico", None),
        ("/", None),
        ("/" + "x/" * 5_000, None),
    ],
)
def test_the_suggestion_is_near(path: str, near: str | None) -> None:
    assert nearest(path, KNOWN_PATHS) == near


def test_every_part_of_the_face_suggests() -> None:
    with one_member() as member:
        for path, near in (("/quarterdeck/v1/membrs", "/quarterdeck/v1/members"), ("/helth", "/hazelcast/health")):
            answer = member.get(path)
            assert (answer.status_code, answer.json()["hint"]) == (404, f"did you mean {near}?")


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/hazelcast/rest/cluster", "GET, HEAD, OPTIONS"),
        ("/hazelcast/rest/config/tcp-ip/member-list", "GET, HEAD, OPTIONS, POST"),
        ("/hazelcast/rest/maps/m/k", "DELETE, GET, HEAD, OPTIONS, POST, PUT"),
        ("/metrics", "GET, HEAD, OPTIONS"),
    ],
)
def test_a_path_says_all_that_can_be_done_there(path: str, methods: str) -> None:
    with one_member() as member:
        asked, wrong = member.ask("OPTIONS", path), member.ask("PATCH", path)
        assert (asked.status_code, asked.headers["Allow"]) == (204, methods)
        assert (wrong.status_code, wrong.headers["Allow"], wrong.json()["status"]) == (405, methods, "fail")


def test_an_answer_that_quotes_a_request_steers_no_terminal() -> None:
    body = msgspec.json.decode(failure_body("unknown \u202e\x1b[2J", "or \u2066this\u2069"))
    assert all(text.isprintable() for text in body.values())

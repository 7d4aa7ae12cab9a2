"""Every request that changes something or is refused is in the audit log, on both interfaces."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any, cast

import pytest
from starlette.routing import Mount
from starlette.types import Message, Receive, Scope, Send

from quarterdeck.backend.journal.audit_log import AuditEntry
from quarterdeck.backend.service.application import OPERATOR_PATHS, ROUTERS
from quarterdeck.backend.service.configuration.process_configuration import Security, User
from quarterdeck.backend.service.console_api.route_classes import GuardedRoute
from quarterdeck.backend.service.http.audited_requests import AuditedRequests
from quarterdeck.backend.service.meters import Meters
from tests.service.served_members import Client, one_member

USERS = (
    User("rhea", "read", password="see"),
    User("wanda", "write", password="do"),
    User("robot", "write", token="0123456789abcdef"),
)
WANDA = ("wanda", "do")
V1 = "/quarterdeck/v1"
CHANGING = [
    *((method, path.path) for path in OPERATOR_PATHS if path.role not in (None, "read") for method in path.methods),
    *(
        (method, V1 + route.path)
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, GuardedRoute) and route.role != "read"
        for method in sorted(route.methods)
    ),
]
"""Every method and path that takes a role beyond reading."""


@pytest.fixture(scope="module")
def secured() -> Iterator[Client]:
    with one_member(security=Security(users=USERS)) as client:
        yield client


def asked(client: Client, method: str, path: str, body: str | None = None, **more: Any) -> tuple[int, list[AuditEntry]]:
    """The status of the answer, and what came into the audit log."""
    before = len(client.face.audit)
    status = client.ask(method, path, body, **more).status_code
    client.until(lambda: True)
    return status, client.face.audit[before:]


def test_there_are_changing_paths() -> None:
    assert len(CHANGING) > 25 and not any(isinstance(route, Mount) for router in ROUTERS for route in router.routes)


@pytest.mark.parametrize(("method", "path"), CHANGING)
def test_every_path_that_changes_something_leaves_a_line(secured: Client, method: str, path: str) -> None:
    path = re.sub(r"\{entry:any\}", "m/k", re.sub(r"\{(map|key:map_key|partition)\}", "1", path))
    status, lines = asked(secured, method, path, "dev&wrong&x", auth=("mallory", "no"))
    assert status in (401, 403, 429)
    assert [(line.what, line.user, line.identified, line.outcome) for line in lines] == [
        (f"{method} {path}", "mallory", False, "refused")
    ]
    status, lines = asked(secured, method, path, "{", auth=("rhea", "see"))
    assert status in (400, 403)
    assert [(line.user, line.identified, line.status) for line in lines] == [("rhea", status == 403, status)]


@pytest.mark.parametrize(
    ("method", "path", "body", "more"),
    [
        ("POST", "/hazelcast/rest/maps/orders/7", "v", {}),
        ("PUT", "/hazelcast/rest/maps/orders/7", "v", {}),
        ("DELETE", "/hazelcast/rest/maps/orders/7", None, {}),
        ("PUT", f"{V1}/maps/orders/7", None, {"json": {"value": "v"}}),
        ("DELETE", f"{V1}/maps/orders/7", None, {}),
        ("POST", f"{V1}/maps/orders/entries", None, {"json": {"entries": [{"key": "k", "value": "hush"}]}}),
        ("POST", "/hazelcast/rest/log-level", "dev&do&INFO", {}),
        ("POST", "/hazelcast/rest/log-level/reset", "dev&do", {}),
        ("POST", "/hazelcast/rest/config/update", "dev&do&hazelcast: {cluster-name: x}", {}),
        ("POST", "/hazelcast/rest/config/tcp-ip/member-list", "dev&do&127.0.0.1:5701", {}),
        ("POST", "/hazelcast/rest/management/cluster/changeState", "dev&do&ACTIVE", {}),
        ("POST", f"{V1}/state", None, {"json": {"state": "ACTIVE"}}),
    ],
)
def test_what_is_done_leaves_a_line_without_the_value(
    secured: Client, method: str, path: str, body: str | None, more: dict[str, Any]
) -> None:
    status, lines = asked(secured, method, path, body, auth=WANDA, **more)
    assert status < 300
    (line,) = lines
    assert (line.what, line.user, line.identified, line.role) == (f"{method} {path}", "wanda", True, "write")
    assert (line.outcome, line.status, line.member) == ("done", status, "athens")
    assert line.address.startswith("127.0.0.1:") and "hush" not in repr(line) and "&do" not in repr(line)


def test_a_reload_without_effect_says_so(secured: Client) -> None:
    _, (line,) = asked(secured, "POST", "/hazelcast/rest/config/update", "dev&do&hazelcast: {cluster-name: x}")
    assert (line.detail, line.user) == ("takes effect: nothing; 1 others are ignored", "wanda")
    status, (line,) = asked(secured, "POST", "/hazelcast/rest/config/reload", "dev&do")
    assert (status, line.outcome, "without a configuration file" in line.reason) == (409, "refused", True)


def test_reading_leaves_no_line_unless_it_is_refused(secured: Client) -> None:
    for path in ("/hazelcast/health", "/hazelcast/rest/cluster", f"{V1}/member", f"{V1}/maps/m/none", f"{V1}/nothing"):
        assert asked(secured, "GET", path, auth=WANDA)[1] == []
    status, lines = asked(secured, "POST", "/hazelcast/rest/management/cluster/state", "dev&see")
    assert (status, lines) == (200, []), "it reads, too"
    for more in ({}, {"auth": ("eve", "x")}, {"auth": WANDA, "headers": {"Host": "evil.example"}}):
        status, (line,) = asked(secured, "GET", f"{V1}/member", **more)
        assert (line.outcome, line.status) == ("refused", status) and status in (401, 403)
    assert line.reason == "the Host header names a host that is not this member's"


def test_text_of_strangers_is_plain(secured: Client) -> None:
    _, (line,) = asked(secured, "DELETE", "/\u202eevil%0a\x1b[31m".replace("\x1b", "%1b"), auth=("\u202ebob", "x"))
    assert all(letter.isprintable() for text in (line.what, line.user, line.reason) for letter in text)
    _, (line,) = asked(secured, "DELETE", "/" + "x" * 5_000)
    assert len(line.what) <= 300


def test_whoever_may_do_all_is_a_client_without_a_name() -> None:
    with one_member() as member:
        _, (line,) = asked(member, "PUT", "/hazelcast/rest/maps/m/k", "v")
        assert (line.user, line.identified, line.role, line.outcome) == ("", False, "write", "done")
        too_long = member.raw(
            b"POST /hazelcast/rest/maps/m/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"
        )
        assert b" 413 " in too_long
        assert (member.face.audit[-1].status, member.face.audit[-1].outcome) == (413, "refused")


def test_a_password_in_the_target_of_a_request_is_not_recorded() -> None:
    lines: list[AuditEntry] = []

    class Recording:
        label, meters = "athens", Meters()

        def audited(self, entry: AuditEntry, kind: str) -> None:
            lines.append(entry)
            assert "swordfish" not in kind

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 401})

    async def sent(message: Message) -> None:
        pass

    scope = {"type": "http", "method": "GET", "path": "http://ann:swordfish@athens:5701/hazelcast/health"}
    asyncio.run(AuditedRequests(refuse, cast("Any", Recording()))(scope, cast("Any", None), sent))
    assert [line.what for line in lines] == ["GET http://…@athens:5701/hazelcast/health"]

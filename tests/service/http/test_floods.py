"""Floods of requests that need no user: none costs much, and others are answered beside them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.service.attacked_member import PORT, AttackedMember, attacked, request

CONNECTIONS, ADDRESSES, PIPELINED = 400, 200, 200
PROBE_CPU_SECONDS = 1.0
HEALTH = "/hazelcast/health"


@pytest.fixture(scope="module")
def member() -> Iterator[AttackedMember]:
    with attacked(PORT + 70) as member:
        yield member


def cpu_seconds(member: AttackedMember) -> float:
    """Return what the thread of the member's loop has used: the same on a busy machine."""
    thread = member.look(threading.get_native_id)
    return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0]) / 1e9


def cost(member: AttackedMember, method: str, path: str, count: int = 40) -> float:
    """Return the least CPU time of one of `count` requests over three rounds, after some to warm up."""
    raw, rounds = request(method, path), []
    with member.connect() as connection:
        answers = connection.makefile("rb")

        def ask(times: int) -> None:
            for _ in range(times):
                connection.sendall(raw)
                head = iter(answers.readline, b"\r\n")
                lengths = [int(line.split(b":")[1]) for line in head if line.lower().startswith(b"content-length")]
                answers.read(0 if method == "HEAD" else sum(lengths))

        ask(20)
        for _ in range(3):
            began = cpu_seconds(member)
            ask(count)
            rounds.append((cpu_seconds(member) - began) / count)
    return min(rounds)


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
@pytest.mark.parametrize(
    "path",
    [
        *(HEALTH + "/cluster-safe", "/quarterdeck/v1/openapi.json", "/hazelcast/rest/manag/cluster/state"),
        *("/quarterdeck/v1/nothing", "/quarterdeck/v1/" + "memer/" * 30, "/a" * 2_000),
    ],
)
def test_no_request_without_a_user_costs_more_than_five_for_health(
    member: AttackedMember, method: str, path: str
) -> None:
    assert cost(member, method, path) < 5 * cost(member, "GET", HEALTH)


@pytest.mark.parametrize("path", [HEALTH, "/quarterdeck/v1/openapi.json", "/nothing"])
def test_probes_are_answered_beside_a_flood_of_pipelined_requests(member: AttackedMember, path: str) -> None:
    with ExitStack() as open_ones:
        for number in range(CONNECTIONS):
            flood: socket.socket = open_ones.enter_context(member.connect(f"127.0.{1 + number % ADDRESSES}.1"))
            flood.setblocking(False)
            flood.send(request("GET", path) * PIPELINED)
        for _ in range(10):
            began = cpu_seconds(member)
            assert member.answers("127.0.0.9")
            assert cpu_seconds(member) - began < PROBE_CPU_SECONDS


def test_pipelined_requests_are_all_answered_in_their_order(member: AttackedMember) -> None:
    paths = [HEALTH, "/nothing", HEALTH + "/node-state"] * 20
    raw = b"".join(request("GET", path) for path in paths) + request("GET", "/last", "Connection: close")
    answer = member.say(raw)
    statuses = [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [200, 404, 200] * 20 + [404]

"""No request holds the member's loop, whatever it asks and however long its body is (Decisions: No request holds the loop)."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from quarterdeck.backend.service.application import console_app, openapi_description
from quarterdeck.backend.service.process.member_service import MOST_LINKS
from tests.service.attacked_member import PORT, AttackedMember, attacked
from tests.service.http.loop_steps import LoopSteps, watched_steps
from tests.service.single_member import SingleMemberFace
from tests.thoroughness import examples

V1 = "/quarterdeck/v1"
MOST_MS = 50.0
ENTRIES = 320_000 if examples(8) == 8 else 60_000
LONG = 9_000_000
JSON = {"Content-Type": "application/json"}


def many(name: str = "m", count: int = ENTRIES) -> bytes:
    entries = [{"key": f"k{number}", "value": ""} for number in range(count)]
    return json.dumps({"map": name, "entries": entries}, separators=(",", ":")).encode()


def link_body(sources: int, targets: int) -> bytes:
    named = {"sources": [f"10.1.{n // 250}.{n % 250}:1" for n in range(sources)]}
    named["targets"] = [f"10.2.{n // 250}.{n % 250}:1" for n in range(targets)]
    return json.dumps({"do": "cut", **named}).encode()


NUMBERS = b"1," * (LONG // 2 - 20) + b"1]}"
REQUESTS: dict[str, tuple[str, str, bytes]] = {
    "many entries": ("POST", f"{V1}/entries", many()),
    "many entries of a named map": ("POST", f"{V1}/maps/m/entries", many()[:-1].replace(b'"map":"m",', b"") + b"}"),
    "no entries but numbers": ("POST", f"{V1}/entries", b'{"entries":[' + NUMBERS),
    "another list of numbers": ("POST", f"{V1}/entries", b'{"x":[' + NUMBERS),
    "an entry of numbers": ("POST", f"{V1}/entries", b'{"entries":[{"key":[' + NUMBERS),
    "brackets": ("POST", f"{V1}/entries", b"[" * LONG),
    "blanks": ("POST", f"{V1}/entries", b" " * LONG),
    "a large value": ("PUT", f"{V1}/maps/m/large", b'{"value":"' + b"x" * 8_300_000 + b'"}'),
    "a value of numbers": ("PUT", f"{V1}/maps/m/large", b'{"value":[' + NUMBERS),
    "a large value for operators": ("PUT", "/hazelcast/rest/maps/m/large", b"x" * 8_300_000),
    "the large value": ("GET", f"{V1}/maps/m/large", b""),
    "the large value for operators": ("GET", "/hazelcast/rest/maps/m/large", b""),
    "its removal": ("DELETE", f"{V1}/maps/m/large", b""),
    "all keys": ("GET", f"{V1}/maps/m/keys", b""),
    "their number": ("GET", f"{V1}/maps/m/size", b""),
    "entries of a partition": ("GET", f"{V1}/partitions/0/entries", b""),
    "a snapshot": ("GET", f"{V1}/snapshot", b""),
    "metrics": ("GET", "/metrics", b""),
    "the records": ("GET", f"{V1}/records?limit=10000", b""),
    "many links": ("POST", f"{V1}/faults", link_body(700, MOST_LINKS // 700)),
    "too many links": ("POST", f"{V1}/faults", link_body(3_000, 3_000)),
    "links in a long body": ("POST", f"{V1}/faults", link_body(200_000, 1)),
    "a long join list": ("PUT", f"{V1}/join-list", json.dumps({"addresses": ["10.0.0.1:5701"] * 500_000}).encode()),
    "many properties": (
        "PUT",
        f"{V1}/properties",
        json.dumps({"properties": {f"p{n}": 1 for n in range(9_000)}}).encode(),
    ),
    "a long path": ("GET", f"{V1}/{'x/' * 3_900}", b""),
    "a long join list for operators": (
        "POST",
        "/hazelcast/rest/config/tcp-ip/member-list",
        b"dev&&" + b"10.0.0.1," * 7_000,
    ),
    "a long configuration": ("POST", "/hazelcast/rest/config/update", b"dev&&" + b"a: b\n" * 12_000),
    "a nested configuration": ("POST", "/hazelcast/rest/config/update", b"dev&&" + b"[" * 60_000),
    "an update of many": ("POST", "/hazelcast/rest/config/update", b"dev&&{" + b"a: {b: c}, " * 5_000 + b"}"),
}


@pytest.fixture(scope="module")
def member() -> Iterator[AttackedMember]:
    with attacked(PORT + 7, allow_faults=True) as attacked_member:
        yield attacked_member


@pytest.fixture(scope="module")
def steps(member: AttackedMember) -> Iterator[LoopSteps]:
    with watched_steps(member.look(threading.get_ident)) as watched:
        with httpx.Client(base_url=f"http://127.0.0.1:{member.port}", timeout=120) as client:
            client.get(f"{V1}/openapi.json")
            client.post(f"{V1}/entries", content=many(), headers=JSON)
        yield watched


def ask(member: AttackedMember, steps: LoopSteps, method: str, path: str, body: bytes) -> httpx.Response:
    """Ask, and print the row of the table."""
    with httpx.Client(base_url=f"http://127.0.0.1:{member.port}", timeout=120) as client:
        client.get("/hazelcast/health/ready")
        steps.begin()
        answer = client.request(method, path, content=body, headers=JSON if path.startswith(V1) else {})
        client.get("/hazelcast/health/ready")
    row = (
        f"{steps.longest_ms:7.1f} ms  {answer.status_code}  {len(body):9}  {method:6} {path[:60]}  {steps.longest[:90]}"
    )
    print(row)
    if path_of_table := os.environ.get("QUARTERDECK_LOOP_STEPS"):
        with Path(path_of_table).open("a", encoding="utf-8") as table:
            table.write(row + "\n")
    return answer


@pytest.mark.parametrize("name", REQUESTS)
def test_no_step_of_the_loop_is_long_under_a_large_request(member: AttackedMember, steps: LoopSteps, name: str) -> None:
    answer = ask(member, steps, *REQUESTS[name])
    assert answer.status_code < 500
    assert steps.longest_ms < MOST_MS, steps.longest


READS = [
    path
    for path, operations in openapi_description(console_app(SingleMemberFace()))["paths"].items()
    if "get" in operations and "{" not in path
]


@pytest.mark.parametrize("path", READS)
def test_no_step_of_the_loop_is_long_under_a_question(member: AttackedMember, steps: LoopSteps, path: str) -> None:
    ask(member, steps, "GET", V1 + path, b"")
    assert steps.longest_ms < MOST_MS, steps.longest


def test_what_a_large_request_stores_is_there(member: AttackedMember, steps: LoopSteps) -> None:
    answer: Any = ask(member, steps, "POST", f"{V1}/entries", many("whole")).json()
    assert answer == {"stored": ENTRIES}
    with httpx.Client(base_url=f"http://127.0.0.1:{member.port}", timeout=120) as client:
        assert client.get(f"{V1}/maps/whole/size").json() == {"size": ENTRIES}

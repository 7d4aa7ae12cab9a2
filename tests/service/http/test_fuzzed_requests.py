"""Requests by the thousand, made of right ones by chance: each is answered or hung up on, soon, and none with a 500."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from quarterdeck.backend.service.application import KNOWN_PATHS
from quarterdeck.backend.service.member_log import LEVEL_LOGGER
from tests.service.attacked_member import AttackedMember, attacked

AT_A_TIME = 60

HANG_SECONDS = 30.0
"""Longer than the deadline of the first half of a request, on any machine."""

QUICK, LONG = 300, 20_000

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "BREW")
PATHS = [
    *(path for path in KNOWN_PATHS if not any(word in path.lower() for word in ("shutdown", "stop", "fault"))),
    *("/hazelcast/rest/maps/m/k", "/quarterdeck/v1/maps/m/k", "/quarterdeck/v1/maps/m/keys", "/quarterdeck/v1/events"),
    *(
        "*",
        "/",
        "//",
        "/..",
        "/%00",
        "/%ff",
        "/%",
        "http://localhost/hazelcast/health",
        "localhost:80",
        "?",
        "/?a=%ff&b",
    ),
]
HEADERS = (
    *("Connection: Upgrade", "Upgrade: websocket", "Upgrade: h2c", "Sec-WebSocket-Version: 13", "Expect: 100-continue"),
    *(
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=99",
    ),
    *("Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked", "Content-Length: 0", "Content-Length: 5"),
    *(
        "Content-Length: -1",
        "Content-Length: 99999999999999999999",
        "Content-Type: application/json",
        "Content-Type: \xff",
    ),
    *(
        "Authorization: Basic !",
        "Authorization: Bearer x",
        "Origin: null",
        "Host: evil.example",
        "Cookie: " + "x" * 9_000,
    ),
    *(
        "Accept: application/openmetrics-text; version=9",
        "Range: bytes=0-1",
        "X:",
        "Content-Encoding: gzip",
        "Connection: close",
    ),
)
WORDS = ("dev", "", "&", "\ud800", "FROZEN", "127.0.0.1:1", 0, -1, 1e308, None, True, [], {}, "x" * 3_000)
FIELDS = (
    *("cluster-name", "password", "member-list", "configuration", "state", "addresses", "properties", "value"),
    *(
        "value_base64",
        "members",
        "suspicions",
        "current",
        "target",
        "local",
        "remote",
        "partitions",
        "backups",
        "table",
    ),
)


class Fuzzer:
    """Makes requests; the same seed, the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def request(self) -> bytes:
        chance = self._random
        body = self._body()
        headers = ["Host: localhost", *chance.choices(HEADERS, k=chance.choice((0, 0, 1, 2, 4)))]
        if chance.random() < 0.7:
            headers += [f"Content-Length: {len(body)}", "Connection: close"]
        if chance.random() < 0.5:
            headers.append("Content-Type: application/json")
        target = chance.choice(PATHS) + (
            "?" + chance.choice(("after=x:1", "explain=1", "limit=-1", "%")) * (chance.random() < 0.1)
        )
        line = f"{chance.choice(METHODS)} {target} HTTP/1.{chance.choice('1110')}"
        raw = "\r\n".join([line, *headers, "", ""]).encode("latin-1") + body
        return self._damaged(raw) if chance.random() < 0.3 else raw

    def _body(self) -> bytes:
        chance = self._random
        kind = chance.random()
        if kind < 0.3:
            return b""
        if kind < 0.5:
            return "&".join(str(word) for word in chance.choices(WORDS, k=3)).encode(errors="surrogatepass")
        if kind < 0.6:
            return chance.randbytes(chance.randrange(200))
        return json.dumps(self._value(3)).encode()

    def _value(self, depth: int) -> object:
        chance = self._random
        kind = chance.random()
        if depth == 0 or kind < 0.2:
            return chance.choice(WORDS)
        if kind < 0.4:
            return [self._value(depth - 1) for _ in range(chance.randrange(4))]
        return {chance.choice(FIELDS): self._value(depth - 1) for _ in range(chance.randrange(1, 4))}

    def _damaged(self, raw: bytes) -> bytes:
        chance = self._random
        place = chance.randrange(len(raw))
        match chance.randrange(5):
            case 0:
                return raw[: place + 1]
            case 1:
                return raw[:place] + chance.randbytes(chance.randrange(1, 9)) + raw[place:]
            case 2:
                return raw[:place] + raw[place + chance.randrange(1, 9) :] or b"\r\n"
            case 3:
                return raw * 2
            case _:
                return raw.replace(b"\r\n", b"\n")


@pytest.fixture(scope="module")
def member() -> Iterator[AttackedMember]:
    level = logging.getLogger(LEVEL_LOGGER).level
    with attacked() as found:
        yield found
    logging.getLogger(LEVEL_LOGGER).setLevel(level)


async def outcome(port: int, raw: bytes) -> str:
    """How one request ends: the status of its first answer, or `closed`, or `hangs`."""
    try:
        async with asyncio.timeout(HANG_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(raw)
                line = await reader.readline()
                while line.startswith(b"HTTP/1.1 100 "):
                    await reader.readline()
                    line = await reader.readline()
            finally:
                writer.close()
    except TimeoutError:
        return "hangs"
    except OSError:
        return "closed"
    return line.split(b" ")[1].decode() if line.startswith(b"HTTP/") else "closed"


async def outcomes(port: int, count: int) -> dict[bytes, str]:
    """How so many requests end, some at a time."""
    fuzzer, found = Fuzzer(16), dict[bytes, str]()
    requests = iter([fuzzer.request() for _ in range(count)])

    async def ask() -> None:
        for raw in requests:
            found[raw] = await outcome(port, raw)

    await asyncio.gather(*(ask() for _ in range(AT_A_TIME)))
    return found


@pytest.mark.parametrize("count", [QUICK, pytest.param(LONG, marks=pytest.mark.long)])
def test_no_request_of_many_is_left_hanging_or_answered_with_500(
    member: AttackedMember, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    found = asyncio.run(outcomes(member.port, count))
    bad = {raw: how for raw, how in found.items() if how == "hangs" or (how.startswith("5") and how != "503")}
    assert not bad, repr(sorted(bad.items())[:3])
    counts = Counter(found.values())
    assert {"200", "400", "404", "405"} <= set(counts), counts
    assert not [record for record in caplog.records if record.exc_info], caplog.text[-3_000:]
    assert member.answers()

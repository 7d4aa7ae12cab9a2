"""What the gate calls itself, and whom it takes for whom."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

pytest.importorskip("aiohttp", reason="the extra [web] is not installed")

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from quarterdeck.cli.web_gate import Gate


@pytest.mark.parametrize(("port", "host"), [(80, "127.0.0.1"), (8321, "127.0.0.1:8321")])
def test_it_answers_to_its_address_as_browsers_write_it(port: int, host: str) -> None:
    gate = Gate(port)
    assert gate.origin == f"http://{host}"
    path = gate.first_url.removeprefix(gate.origin)
    assert answer(gate, path, {"Host": host}).status == 303


def test_a_cookie_that_is_no_text_is_refused_like_any_other() -> None:
    request = SimpleNamespace(
        headers={"Host": "127.0.0.1:8321"}, query={}, path="/", cookies={"quarterdeck-8321": "\udcff"}
    )
    assert asyncio.run(Gate(8321).guard(cast(web.Request, request), nothing)).status == 403


def answer(gate: Gate, path: str, headers: dict[str, str]) -> web.StreamResponse:
    return asyncio.run(gate.guard(make_mocked_request("GET", path, headers), nothing))


async def nothing(request: web.Request) -> web.StreamResponse:
    return web.Response(status=200)

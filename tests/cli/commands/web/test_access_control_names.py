"""What the gate calls itself, and whom it takes for whom."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

pytest.importorskip("aiohttp", reason="the extra [web] is not installed")

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from quarterdeck.cli.web_server import AccessControl


@pytest.mark.parametrize(("port", "host"), [(80, "127.0.0.1"), (8321, "127.0.0.1:8321")])
def test_it_answers_to_its_address_as_browsers_write_it(port: int, host: str) -> None:
    access_control = AccessControl(port)
    assert access_control.origin == f"http://{host}"
    path = access_control.first_url.removeprefix(access_control.origin)
    assert answer(access_control, path, {"Host": host}).status == 303


def test_a_cookie_that_is_no_text_is_refused_like_any_other() -> None:
    request = SimpleNamespace(
        headers={"Host": "127.0.0.1:8321"}, query={}, path="/", cookies={"quarterdeck-8321": "\udcff"}
    )
    assert asyncio.run(AccessControl(8321).guard(cast(web.Request, request), nothing)).status == 403


def answer(access_control: AccessControl, path: str, headers: dict[str, str]) -> web.StreamResponse:
    return asyncio.run(access_control.guard(make_mocked_request("GET", path, headers), nothing))


async def nothing(request: web.Request) -> web.StreamResponse:
    return web.Response(status=200)

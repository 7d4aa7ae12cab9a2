"""Every path of the console's interface under whatever its description allows, and much that it does not: schemathesis."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from quarterdeck.backend.member_api.answers import ROOT
from quarterdeck.backend.service.application import application, console_app, openapi_description
from tests.service.single_member import Client, SingleMemberFace, served
from tests.thoroughness import examples


def bad_input_is_refused(context: Any, response: Any, case: Any) -> bool | None:
    """As what it is, or because the path is too long to be looked at."""
    return None if response.status_code == 414 else negative_data_rejection(context, response, case)


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    bad_input_is_refused,
    positive_data_acceptance,
    unsupported_method,
]


OPERATIONS = [
    (path, method)
    for path, operations in openapi_description(console_app(SingleMemberFace()))["paths"].items()
    for method in operations
]


@pytest.fixture(scope="module")
def description() -> Iterator[str]:
    """Where the description of a served member is; the member is alone, and commands that end members do nothing."""
    face = SingleMemberFace()
    app = application(face)
    ready, over = threading.Event(), asyncio.Event()
    found: dict[str, Any] = {}

    async def serve() -> None:
        async with served(app) as place:
            found["place"], found["loop"] = place, asyncio.get_running_loop()
            ready.set()
            await over.wait()

    server = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    server.start()
    assert ready.wait(20)
    yield f"http://{found['place']}{ROOT}/openapi.json"
    found["loop"].call_soon_threadsafe(over.set)
    server.join(20)


@pytest.fixture(scope="module")
def schema(description: str) -> Any:
    """What the description says."""
    return schemathesis.openapi.from_url(description)


@pytest.mark.hypothesis  # as its inner function is, so that `make test-long` does it with more examples
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=[f"{method} {path}" for path, method in OPERATIONS])
def test_no_server_error_and_answers_as_described(schema: Any, path: str, method: str, mode: GenerationMode) -> None:
    operation = schema[path][method]
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query or operation.path_parameters):
        pytest.skip("takes nothing that could be wrong")

    @given(operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=examples(10),
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS)

    ask()


def test_bounds_of_numbers_are_those_of_the_standard() -> None:
    text = msgspec.json.encode(openapi_description(console_app(SingleMemberFace())))
    assert not any(b'"%s":' % word in text for word in (b"ge", b"gt", b"le", b"lt"))


@pytest.mark.long
def test_the_whole_interface_keeps_its_contract(description: str, tmp_path: Path) -> None:
    """All that schemathesis checks, run with nothing but the description.

    A key may be called as a path of its map is. So `Allow` of that path has the methods of the key, too, which is documented.
    """
    command = ["run", description, "--checks=all", "--max-examples=100", "--no-color", "--seed=16"]
    program = Path(sys.executable).with_name("schemathesis")
    done = subprocess.run([program, *command], capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert set(re.findall(r"^_+ (.+?) _+$", done.stdout, re.M)) == {
        f"OPTIONS /maps/{{map}}/{name}" for name in ("entries", "keys", "size")
    }, done.stdout
    assert set(re.findall(r"^- (.+)$", done.stdout, re.M)) == {"ST205 Allow header mismatch"}, done.stdout


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/join-list", "GET, OPTIONS, PUT"),
        ("/faults", "DELETE, GET, OPTIONS, POST"),
        ("/member", "GET, OPTIONS"),
        ("/maps/m/k", "DELETE, GET, OPTIONS, PUT"),
        ("/maps/m/size", "DELETE, GET, OPTIONS, PUT"),
        ("/maps/m/entries", "DELETE, GET, OPTIONS, POST, PUT"),
    ],
)
def test_a_path_says_all_that_can_be_done_there(path: str, methods: str) -> None:
    client = Client(application(SingleMemberFace()))
    asked, wrong = client.request("OPTIONS", ROOT + path), client.request("TRACE", ROOT + path)
    assert (asked.status_code, asked.headers["Allow"], asked.content) == (204, methods, b"")
    assert (wrong.status_code, wrong.headers["Allow"], wrong.json()["status"]) == (405, methods, "fail")

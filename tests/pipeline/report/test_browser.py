"""The page in a real Chromium: quiet, alone, readable in light and dark, and without its script."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from quarterdeck.backend.pipeline.report.output import write_report
from tests.cli.commands.web.chromium import Page, browsing, installed
from tests.pipeline.report.handmade_rows import finding, report_of, rows_of
from tests.waiting import wait_until

if installed() is None:
    pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)", allow_module_level=True)

TIMEOUT_SECONDS = 60.0
NAME = '<script>document.title = "caught"</script>'
GROUNDS = {"light": "rgb(251, 251, 250)", "dark": "rgb(16, 20, 24)"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, str]]:
    folder = tmp_path_factory.mktemp("browser")
    write_report(report_of(rows_of(NAME, name=NAME), finding(NAME, NAME)), folder / "report.html")
    with browsing(folder / "profile") as opened:
        yield opened, (folder / "report.html").as_uri()


def shown(page: tuple[Page, str]) -> Page:
    opened, address = page
    opened.open(address)
    wait_until(lambda: opened.evaluate("document.readyState + location.protocol") == "completefile:")
    return opened


def test_it_is_quiet_and_asks_for_nothing(page: tuple[Page, str]) -> None:
    opened = shown(page)
    assert opened.evaluate("document.title") == "Quarterdeck: report of an audit"
    assert [url for url in opened.requested() if url != page[1] and not url.startswith("data:")] == []
    wrong = [event for event in opened.events if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
    assert wrong == []


def test_its_policy_stops_what_got_in(page: tuple[Page, str]) -> None:
    opened = shown(page)
    opened.evaluate("document.body.append(Object.assign(document.createElement('img'), {src: 'http://127.0.0.1:9/x'}))")
    opened.evaluate(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
    )
    assert opened.evaluate("window.ran === undefined")
    answer = opened.evaluate("fetch('http://127.0.0.1:9/x').then(() => 'came', error => error.name)")
    assert answer == "TypeError"
    opened.evaluate("0")
    blocked = [event for event in opened.events if event["method"] == "Log.entryAdded"]
    assert any("Content Security Policy" in entry["params"]["entry"]["text"] for entry in blocked)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(page: tuple[Page, str], scheme: str) -> None:
    opened = shown(page)
    opened.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == GROUNDS[scheme]
    assert opened.screenshot().startswith(b"\x89PNG")


def test_landmarks_headings_and_drawings_can_be_heard(page: tuple[Page, str]) -> None:
    opened = shown(page)
    for landmark in ("header", "main", "nav[aria-labelledby]", "section.run[aria-labelledby]"):
        assert opened.evaluate(f"document.querySelectorAll({landmark!r}).length") >= 1, landmark
    levels = opened.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    mute = opened.evaluate(
        "[...document.querySelectorAll('svg:not([aria-hidden])')].filter(one => one.getAttribute('role') !== 'img' || "
        "!one.getAttribute('aria-labelledby').split(' ').every(id => document.getElementById(id).textContent)).length"
    )
    assert mute == 0
    assert opened.evaluate("document.querySelectorAll('svg.full').length") == 3
    identities = opened.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(identities) == len(set(identities))
    assert opened.evaluate("[...document.querySelectorAll('th')].every(one => one.scope)")


def markup_of(opened: Page, selector: str) -> str:
    """The first element that fits, as HTML; empty while there is none. Needs no script."""
    root = opened.call("DOM.getDocument", depth=0)["root"]["nodeId"]
    node = opened.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
    return str(opened.call("DOM.getOuterHTML", nodeId=node)["outerHTML"]) if node else ""


def markup_once_there(opened: Page) -> str:
    """The main part; empty while the browser replaces the document, for then a node is gone as soon as it is found."""
    try:
        return markup_of(opened, "main")
    except AssertionError as problem:
        assert "Could not find node" in str(problem)
        return ""


def test_commands_can_be_copied(page: tuple[Page, str]) -> None:
    opened = shown(page)
    assert opened.evaluate("[...document.querySelectorAll('button.copy')].every(one => !one.hidden)")
    opened.evaluate("document.querySelector('button.copy').click()")
    wait_until(lambda: opened.evaluate("document.querySelector('button.copy').textContent") != "copy")


def test_it_says_the_same_without_its_script(page: tuple[Page, str]) -> None:
    opened = shown(page)
    with_script = opened.evaluate("document.querySelector('main').textContent")
    opened.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        before = opened.call("DOM.getDocument", depth=0)["root"]["backendNodeId"]
        opened.open(page[1])
        wait_until(lambda: opened.call("DOM.getDocument", depth=0)["root"]["backendNodeId"] != before)
        wait_until(lambda: markup_once_there(opened).count("<details open") >= 7)
        markup = markup_of(opened, "main")
        assert markup.count("<svg") >= 3
        assert "quarterdeck console --replay" in with_script
        assert "quarterdeck console --replay" in markup
    finally:
        opened.call("Emulation.setScriptExecutionDisabled", value=False)

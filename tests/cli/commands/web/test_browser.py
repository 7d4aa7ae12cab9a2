"""The console in a real Chromium: what is to be seen, in which colours, and that keys arrive."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.commands.web.chromium import Page, browsing, installed

pytest.importorskip("textual_serve", reason="the extra [web] is not installed")
if installed() is None:
    pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)", allow_module_level=True)

from quarterdeck.app.themes import PALETTES
from tests.cli.commands.web.served_console import Served, serving
from tests.waiting import wait_until

COLOURS = {palette.name: palette for palette in PALETTES}
TIMEOUT_SECONDS = 60.0

ENDED = "getComputedStyle(document.querySelector('.ended')).display"

HELP = "Show which members each"
"""Stands near the top of the help."""

COUNT_COLOURS = """
new Promise((done, failed) => {
  const image = new Image();
  image.onerror = failed;
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = image.width; canvas.height = image.height;
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const pixels = context.getImageData(0, 0, image.width, image.height).data;
    const counts = {};
    for (let at = 0; at < pixels.length; at += 4) {
      const name = "#" + [0, 1, 2].map((one) => pixels[at + one].toString(16).padStart(2, "0")).join("");
      counts[name] = (counts[name] || 0) + 1;
    }
    done(counts);
  };
  image.src = "data:image/png;base64,%s";
})
"""


@contextmanager
def looking(tmp_path: Path, *options: str) -> Iterator[tuple[Served, Page]]:
    with (
        serving(tmp_path / "home", "--no-journal", "--members", "3", *options) as served,
        browsing(tmp_path / "profile") as page,
    ):
        page.open(served.first_url)
        wait_for(page, "3 members (master athens)")
        yield served, page


def received(page: Page) -> str:
    """All that the console has painted so far, as it came."""
    page.evaluate("0")  # lets the browser hand over what it has
    frames = (
        event["params"]["response"] for event in page.events if event["method"] == "Network.webSocketFrameReceived"
    )
    return b"".join(
        base64.b64decode(frame["payloadData"]) if frame["opcode"] == 2 else frame["payloadData"].encode()
        for frame in frames
    ).decode(errors="replace")


def wait_for(page: Page, text: str, after: int = 0) -> None:
    wait_until(lambda: text in received(page)[after:], f"no {text!r} came", poll_seconds=0.1)


def colours(page: Page) -> dict[str, int]:
    """How many pixels of each colour are in sight."""
    return dict(page.evaluate(COUNT_COLOURS % base64.b64encode(page.screenshot()).decode("ascii")))


def settled_colours(page: Page, wanted: str) -> dict[str, int]:
    """The same, when `wanted` has come into sight: painting follows the frames a little later."""
    wait_until(lambda: wanted in colours(page), poll_seconds=0.1)
    return colours(page)


def test_it_is_seen_takes_keys_changes_nothing_and_says_when_it_has_ended(tmp_path: Path) -> None:
    with looking(tmp_path) as (served, page):
        assert page.evaluate("location.href") == f"{served.origin}/"
        painted = received(page)
        assert "RO" in painted
        assert " start" not in painted.partition("help")[2][:400]

        dark = COLOURS["dark"]
        counts = settled_colours(page, dark.good)
        total = sum(counts.values())
        assert counts[dark.background] > total / 2
        assert counts[dark.panel] > total / 50
        assert counts[dark.good] > 20
        assert counts[dark.strong] > 20
        assert page.screenshot().startswith(b"\x89PNG")

        before = len(received(page))
        for key in "xKsX":
            page.press(key)
        page.press("?")
        wait_for(page, HELP, before)
        assert re.search(r"(Stop|Kill|End) \w+\?|cancel", received(page)[before:].partition(HELP)[0]) is None
        assert settled_colours(page, dark.surface)[dark.surface] > total / 20

        assert [url for url in page.requested() if not url.startswith((served.origin, "data:"))] == []
        wrong = [
            event
            for event in page.events
            if event["method"] == "Runtime.exceptionThrown"
            or (event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error")
        ]
        assert wrong == []
        assert page.evaluate("document.cookie") == ""

        assert page.evaluate(ENDED) == "none"
        for key in "?Qy":
            page.press(key)
        wait_until(lambda: "-closed" in page.evaluate("document.body.className"), poll_seconds=0.1)
        assert page.evaluate(ENDED) == "block"


def test_themes_and_writing_when_asked(tmp_path: Path) -> None:
    with looking(tmp_path, "--theme", "light", "--write") as (_, page):
        light = COLOURS["light"]
        counts = settled_colours(page, light.good)
        assert counts[light.background] > sum(counts.values()) / 2
        assert counts[light.good] > 20
        assert "RW" in received(page)
        before = len(received(page))
        page.press("j")
        page.press("x")
        wait_for(page, "stop byzantium", before)

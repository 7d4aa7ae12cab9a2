"""A demo as a film in one SVG."""

from __future__ import annotations

import asyncio
from xml.etree import ElementTree

from docs.generators.film import Moment, film_of, joined
from quarterdeck.backend.training.demos import load_demo

SVG = "{http://www.w3.org/2000/svg}"


def test_screens_stand_one_after_the_other_and_the_last_where_nothing_moves() -> None:
    screen = '<svg class="rich-terminal" viewBox="0 0 9 5" xmlns="http://www.w3.org/2000/svg"><text>{}</text></svg>'
    root = ElementTree.fromstring(joined([screen.format(number) for number in range(3)]))
    parts = list(root)
    assert root.get("viewBox") == "0 0 9 5"
    assert [part.get("visibility") for part in parts] == ["hidden", "hidden", "visible"]
    animations = [part.find(f"{SVG}animate") for part in parts]
    assert [animation.get("values") for animation in animations if animation is not None] == [
        "visible;hidden",
        "hidden;visible;hidden",
        "hidden;visible",
    ]


def test_the_console_draws_a_split_without_a_net() -> None:
    moments = [Moment(1.0, ("8",)), Moment(0.5)]
    drawn = asyncio.run(film_of(load_demo("split"), "split", 1, 1.0, moments, size=(90, 24)))
    first, last = list(ElementTree.fromstring(drawn))
    assert ["what\xa0happened:" in "".join(screen.itertext()) for screen in (first, last)] == [False, True]
    assert "athens" in drawn and "url(http" not in drawn and "@font-face" not in drawn

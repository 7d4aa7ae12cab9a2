"""The prompt lists what a line may become and what it would do; a part of a name finds it; errors go when one types on."""

from __future__ import annotations

import pytest
from textual.widgets import Input

from quarterdeck.app.actions.action import EVERYTHING
from quarterdeck.app.commands.prompt_lines import Vocabulary, best, candidates, effect
from quarterdeck.app.console import Console
from quarterdeck.backend.core.commands import Command, CutLink, Heal, KillMember, Partition
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.console_driver import type_line
from tests.app.fakes.fake_cluster import FIVE, formed
from tests.app.fakes.screen_text import screen_text, settle

CITIES = ("athens", "byzantium", "cyrene", "delphi", "euphesus")


def test_a_name_is_found_by_its_beginning_then_by_a_part_then_by_its_letters() -> None:
    assert best("e", CITIES)[0] == "euphesus"
    assert best("phes", CITIES) == ["euphesus"]
    assert best("byz", CITIES) == best("bzm", CITIES) == ["byzantium"]
    assert best("ath", CITIES)[0] == "athens" and best("athens", CITIES) == []
    assert best("", CITIES) == list(CITIES) and best("xq", CITIES) == []


def test_words_come_with_their_usage_and_meaning_and_own_words_with_what_they_stand_for() -> None:
    found = candidates("part", Vocabulary(CITIES, EVERYTHING, aliases={"parts": "partitions"}))
    assert {suggestion.shown for suggestion in found} >= {"partition A,B|C,D", "partitions", "parts"}
    assert next(suggestion for suggestion in found if suggestion.line == "parts").meaning == "your word for: partitions"
    assert [candidate.line for candidate in candidates("kill hens", Vocabulary(CITIES, EVERYTHING))] == ["kill athens"]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (Partition((CITIES[:3], CITIES[3:])), "would cut 6 links"),
        (CutLink(("athens",), ("delphi",)), "would cut one link"),
        (CutLink(("athens",), ("delphi",), one_way=True), "would cut one link, one way"),
        (Heal(), "would heal 0 one-way links"),
        (KillMember("athens"), "0 of 0 running members would end; 0 would be left."),
    ],
)
def test_the_effect_of_a_line(command: Command, told: str) -> None:
    assert effect(Picture(), command) == told


async def test_what_is_typed_is_judged_while_it_is_typed() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("colon")
        await pilot.pause()
        assert "tab completes it" in app.top.candidates.text
        await pilot.press(*"parti", "tab")
        await pilot.pause()
        assert app.top.prompt.query_one("#prompt-input", Input).value == "partition "
        assert "partition A,B|C,D" in app.top.candidates.text
        await pilot.press(*"n1,n2", "vertical_line", *"n3,n4,n5")
        await pilot.pause()
        assert "would cut 6 links" in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert not app.top.candidates.display and "would cut" not in screen_text(app)


async def test_an_error_goes_when_one_types_on() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await type_line(pilot, "stop n9")
        assert "there is no member 'n9'" in app.top.message.text
        await pilot.press("colon", "s")
        await pilot.pause()
        assert "n9" not in app.top.message.text
        assert cluster.labels == FIVE

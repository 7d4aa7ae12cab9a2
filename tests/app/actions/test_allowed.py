"""What a cluster cannot do is nowhere: no key, no word, no line of help."""

from __future__ import annotations

import pytest

from quarterdeck.app.actions.action import EVERYTHING, Allowed, allowed_on
from quarterdeck.app.actions.registry import ACTIONS, available_actions, command_words
from quarterdeck.app.commands.grammar import BadLine, parse_line
from quarterdeck.app.console import Console
from quarterdeck.app.key_map import keys_of
from quarterdeck.backend.clusters.cluster import NOT_REMOTE, SNAPSHOTS
from quarterdeck.backend.commands.catalogue import CATALOGUE
from tests.app.fakes.fake_cluster import FIVE, FakeCluster
from tests.app.fakes.screen_text import screen_text, settle

STATES_ONLY = frozenset({SNAPSHOTS, *(row.tag for row in CATALOGUE)}) - {"change-state"}
"""What is lacking where nothing but the state of the cluster can be changed."""


class LimitedFake(FakeCluster):
    """Its members know one command."""

    lacks = STATES_ONLY


def test_all_that_a_command_could_be_needed_for_says_so() -> None:
    changing = {action.id for action in ACTIONS if action.needs_write}
    assert {action.id for action in ACTIONS if action.needs} == changing | {"time-fork"}
    assert {action.id for action in available_actions(Allowed(lacks=STATES_ONLY)) if action.needs} == {"state"}


def test_an_action_with_several_commands_stays_with_those_that_are_left() -> None:
    remote = Allowed(lacks=NOT_REMOTE)
    words = command_words(remote)
    assert "kill" in words and "kill-at" not in words
    assert set(command_words(EVERYTHING)) - set(words) == {"start", "kill-at", "operate", "diagnose"}
    with pytest.raises(BadLine, match="start cannot be done by this cluster"):
        parse_line("start n1", FIVE, allowed=remote)
    with pytest.raises(BadLine, match="this cluster is read-only"):
        parse_line("kill n1", FIVE, allowed=Allowed(writable=False, lacks=NOT_REMOTE))


async def test_keys_footer_and_help_of_a_limited_cluster() -> None:
    cluster = LimitedFake(FIVE)
    cluster.form()
    assert {action.id for action in keys_of("network", allowed=allowed_on(cluster)).values() if action.needs} == {
        "state"
    }

    app = Console(cluster)
    async with app.run_test(size=(160, 50)) as pilot:
        await settle(pilot)
        await pilot.press("K", "x", "c")
        assert not cluster.commands and app.screen is app.top
        app.action_act("kill")
        assert "kill cannot be done by this cluster" in app.top.message.text
        footer = screen_text(app).splitlines()[-1]
        assert "state" in footer and "kill" not in footer and "heal" not in footer
        await pilot.press("question_mark")
        await pilot.pause()
        assert "without a goodbye" not in screen_text(app)

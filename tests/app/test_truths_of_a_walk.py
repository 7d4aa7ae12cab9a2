"""What a stranger found untrue or in the way on the screens, a test for each; where one stands elsewhere, the table names it."""

from __future__ import annotations

from importlib import import_module

import pytest
from textual.pilot import Pilot

from quarterdeck.app.console import Console
from quarterdeck.app.event_lines import facts_of
from quarterdeck.backend.clusters.simulated.simulated_cluster import ScenarioProgress
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.membership.events import MemberStarted, NotMerging
from quarterdeck.backend.picture.events.catalogue import describe_event
from quarterdeck.backend.training.demos import load_demo
from quarterdeck.cli.output import Format, write_result
from tests.app.fakes.fake_cluster import FakeCluster
from tests.app.fakes.long_run_cluster import LongRunCluster
from tests.app.fakes.screen_text import screen_text, settle
from tests.app.test_small_truths import CITIES, in_console

ELSEWHERE = {
    "leaving a lesson leads back to where one came from": (
        "app.test_tabs.test_a_tab_that_is_closed_leads_back_to_where_it_was_opened"
    ),
    "a sign of lost partitions says whether entries are gone, of which maps, since when, and when it goes": (
        "judgement.losses.test_ledger.test_a_loss_is_healed_when_its_owner_has_merged_back_with_the_entries"
    ),
    "marks are counted in the first line, used up by an action, and cleared by Esc": (
        "app.test_console_settings.test_on_a_cluster_of_this_machine_the_same_is_asked_without_typing"
    ),
    "`b` on a member explains what made its row what it is": (
        "app.test_small_truths.test_because_knows_what_happened_while_the_events_were_out_of_sight"
    ),
    "a command of the operator is named as a cause": "picture.explain.test_causes.test_who_asked_is_named_as_the_cause",
    "there are no findings only after an audit": (
        "app.test_small_truths.test_an_audit_that_did_not_run_has_found_nothing_out"
    ),
    "the leader and the count come before the name of the run": (
        "app.test_header.test_the_leader_and_the_count_stand_before_the_name_of_the_run"
    ),
    "an alarm comes first at every size": "app.test_header.test_an_alarm_has_the_first_columns_of_every_view",
    "a lesson in a plain terminal has no marks of emphasis": (
        "training.test_tutor.test_marks_of_emphasis_are_left_out"
    ),
    "a view does not go on waiting for a copy": (
        "app.views.test_copies.test_a_cluster_that_refuses_to_report_gives_no_copy_and_no_view_goes_on_waiting"
    ),
    "a line that is about one link or about groups names the other": (
        "app.commands.test_grammar.test_bad_lines_get_one_line_of_explanation"
    ),
    "lines of the shell can be typed at the prompt": (
        "app.commands.test_shell_lines.test_each_line_that_the_console_shows_can_be_typed_into_it"
    ),
    "the footer has the keys of typing while one types": (
        "app.test_small_truths.test_while_a_command_is_typed_the_footer_has_the_keys_of_typing"
    ),
    "the digit of the open view changes nothing, and Esc goes one level back": (
        "app.test_small_truths.test_the_key_of_a_view_that_is_open_changes_nothing"
    ),
    "the lesson of the split says what its own cluster does": (
        "training.test_demos.test_a_lesson_that_speaks_of_the_search_says_how_long_its_own_masters_wait"
    ),
    "no cell is cut within a figure or a name": (
        "widgets.test_cut_texts.test_a_whole_column_is_left_out_where_it_would_be_cut_and_comes_when_scrolled_to"
    ),
    "the palette has a title for every action": (
        "app.test_palette.test_letters_in_order_find_a_title_and_every_action_has_one"
    ),
    "the palette puts names before meanings": (
        "app.test_palette.test_names_come_before_meanings_and_meanings_before_scattered_letters"
    ),
}


@pytest.mark.parametrize("test", ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_is_tested_elsewhere_still_is(test: str) -> None:
    module, _, name = test.rpartition(".")
    assert callable(getattr(import_module(f"tests.{module}"), name))


def test_a_search_that_finds_nothing_to_merge_with_is_no_failure() -> None:
    """After a full merge every address is a member; after a kill nobody answers at the address of the dead."""
    for cause in ("nobody-known", "nobody-answers"):
        words = describe_event(NotMerging("there is none", cause=cause))
        assert words == "finds no other cluster: there is none"


def test_in_a_split_nobody_of_the_other_side_is_in_time() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        await pilot.press("2")
        await settle(pilot)
        assert screen_text(app).count("✓ in time") == 5
        cluster.split(CITIES[:3], CITIES[3:])
        await settle(pilot)
        assert "✓ in time" not in screen_text(app)

    in_console(scenario, size=(160, 50))


def test_who_is_down_has_no_links_that_are_up() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        await pilot.press("6")
        cluster.happen("", ProcessKilled("athens"))
        await settle(pilot)
        assert "athens: killed" in screen_text(app) and "links are up" not in app.top.below.text

    in_console(scenario)


def test_what_a_scenario_says_in_the_view_of_time_has_no_marks_of_emphasis() -> None:
    scenario = load_demo("split")
    progress = ScenarioProgress(scenario)
    for number, step in enumerate(scenario.steps):
        progress.begins(number, step)
        assert not {"*", "`"} & set(" ".join(progress.lines())), step.say


def test_what_lacks_words_says_what_it_needs() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        for line in ("load", "map load"):
            assert "load RATE [keys=N]" in app.suggestions(line).effect
        app.answered(":", "map load")
        await settle(pilot)
        assert app.top.prompt.sign == ":" and "load RATE [keys=N]" in screen_text(app)

    in_console(scenario)


def test_a_lesson_on_a_terminal_ends_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its result in JSON is for programs: into a pipe, or where it is asked for."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    write_result({"passed": True}, None)
    assert capsys.readouterr().out == ""
    write_result({"passed": True}, Format.JSON)
    assert "passed" in capsys.readouterr().out


def test_the_detail_of_an_event_is_in_words() -> None:
    """Nothing of how it is recorded: no braces, no quotes, no fields that say nothing, and members by their names."""
    cluster = LongRunCluster()
    names = {cluster.address(label): label for label in cluster.labels}
    for record in cluster.drain():
        said = {
            fact.heading: fact.text for fact in facts_of(record, "", lambda address: names.get(address, str(address)))
        }
        assert not any(mark in text for text in said.values() for mark in ('{"', "[{", "null")), said
        assert isinstance(record.event, MemberStarted) or not any("127.0.0.1" in text for text in said.values()), said


def test_beside_the_detail_a_line_of_events_is_as_long_as_its_room() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        await pilot.press("8", "k")
        await settle(pilot)
        await settle(pilot)
        assert app.top.row_detail.display
        assert " event" in screen_text(app).splitlines()[3]
        assert all("…" not in line for line in screen_text(app).splitlines()[3:10])

    in_console(scenario, size=(300, 80))

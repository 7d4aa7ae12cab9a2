"""Every action of the registry, in every view that knows it: by key and by word; and what all views do alike."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from textual.screen import ModalScreen

from quarterdeck.app.actions.action import EVERYTHING, Action, Allowed, ViewName
from quarterdeck.app.actions.registry import ACTIONS, action_called, available_actions, command_words
from quarterdeck.app.actions.views import VIEW_NAMES
from quarterdeck.app.commands.confirmation import ConfirmScreen
from quarterdeck.app.commands.palette import ActionsProvider
from quarterdeck.app.key_map import display_of, keys_for, keys_of
from quarterdeck.backend.clusters.cluster import NO_DIAGNOSTICS
from tests.app.fakes.console_driver import ConsoleDriver, console
from tests.app.fakes.screen_text import screen_text, settle, until
from tests.app.views.action_outcomes import LINES, OUTCOMES
from tests.thoroughness import long_after

DIGITS: dict[ViewName, str] = {view: action_called(view).key_display for view in VIEW_NAMES if view != "member"}

SMALL = (80, 24)
"""What keys and words lead to does not depend on the room that there is."""

STARTS_A_CLUSTER = ("demo-go", "demo-simulate")
"""Tried elsewhere: a demo is played in tests/app/test_demos.py."""

DONE_TWICE = ("reverse", "suspicions-whole")
"""The second time undoes what the first did, so that those after them find all rows in their places."""


def test_every_action_has_an_outcome_and_no_outcome_is_left_over() -> None:
    assert {action.id for action in ACTIONS} == set(OUTCOMES)


def clear(folder: Path) -> None:
    for left_over in folder.iterdir():
        left_over.unlink()


async def yes(driver: ConsoleDriver) -> None:
    """Answer what is asked, if anything is."""
    if isinstance(driver.app.screen, ConfirmScreen):
        driver.app.screen.dismiss(True)
        await driver.idle()


def every_action_of(view: ViewName) -> list[tuple[ViewName, Action]]:
    return [(view, action) for action in available_actions(EVERYTHING, view)]


def every_action_once() -> list[tuple[ViewName, Action]]:
    """Each in the first view that knows it."""
    first = {
        action.id: tried for view in reversed(VIEW_NAMES) for tried in every_action_of(view) for action in tried[1:]
    }
    return sorted(first.values(), key=lambda tried: VIEW_NAMES.index(tried[0]))


@pytest.mark.parametrize(
    "tried", long_after(1, [every_action_once(), *map(every_action_of, VIEW_NAMES)]), ids=["once", *VIEW_NAMES]
)
async def test_every_action_does_what_it_says_in_every_view_that_knows_it(
    tried: list[tuple[ViewName, Action]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # for screenshots without a name

    async with console() as driver:
        in_sight: ViewName = "overview"
        for view, action in tried:
            if action.id in STARTS_A_CLUSTER:
                continue
            if view != in_sight:  # an action of the view before may have opened this one, and something in it
                await driver.open("overview")
                in_sight = view
            await driver.open(view)
            clear(tmp_path)
            driver.app.action_act(action.id)
            await driver.idle()
            await yes(driver)
            assert OUTCOMES[action.id](driver), (
                view,
                action.id,
                driver.said,
                driver.typed,
                driver.app.top.view,
                driver.cluster.commands,
            )
            driver.app.top.filter_by("")
            if action.id in DONE_TWICE:
                driver.app.action_act(action.id)


@pytest.mark.parametrize("writable", long_after(1, [False, True]), ids=["RO", "RW"])
async def test_every_key_of_every_view_leads_to_its_action_and_to_no_other(writable: bool) -> None:
    """On a read-only cluster, keys of what would change it lead nowhere."""

    async with console(writable=writable, size=SMALL, story=False) as driver:
        done: list[str] = []
        for view in VIEW_NAMES:
            await driver.open(view)
            driver.app.action_act = lambda action_id, text="": done.append(action_id)  # type: ignore[method-assign]
            done.clear()
            keys = keys_of(view, allowed=EVERYTHING)
            await driver.press(*keys)
            bound = keys_of(view, allowed=driver.app.allowed)
            leads = [
                bound[key].id for key in keys if key in bound and (view == "member" or key not in ("left", "right"))
            ]
            assert done == leads, view
            if not writable:
                assert not any(action_called(action).needs_write for action in done)
            del driver.app.action_act  # type: ignore[method-assign]
            assert not driver.cluster.commands


# Words


def test_every_word_has_a_line_and_no_line_is_left_over() -> None:
    assert set(command_words(EVERYTHING)) == set(LINES)


@pytest.mark.long  # what the words do is tried by every action, and what they mean by tests of the grammar
@pytest.mark.parametrize("view", ["overview", "migrations", "audit", "member"])
async def test_every_word_is_obeyed_wherever_it_is_typed(view: ViewName) -> None:
    wrong = []

    async with console() as driver:
        for word in command_words(driver.app.allowed):
            if word in STARTS_A_CLUSTER:
                continue
            line, fits = LINES[word]
            await driver.open(view)
            driver.app.answered(":", line)
            await driver.idle()
            await yes(driver)
            with suppress(AssertionError):  # a screenshot is taken when the prompt has gone
                await until(driver.pilot, partial(fits, driver))
            if not fits(driver):
                wrong.append((line, driver.said, driver.typed, driver.app.top.view, tuple(driver.cluster.commands)))
    assert not wrong


async def test_no_word_changes_a_read_only_cluster_or_the_past() -> None:
    allowed = Allowed(lacks=NO_DIAGNOSTICS)
    changing = [word for word, (action, _) in command_words(allowed).items() if action.needs_write]
    assert len(changing) > 20

    async def refused(driver: ConsoleDriver, why: str) -> None:
        for word in changing:
            driver.app.top.message.show()
            driver.app.answered(":", LINES[word][0])
            assert driver.said.startswith("✕ error") and why in driver.said, word
        await driver.idle()
        assert not driver.cluster.commands and not isinstance(driver.app.screen, ModalScreen)

    async with console(writable=False, size=SMALL, story=False) as driver:
        await refused(driver, "read-only")
    async with console(size=SMALL, story=False) as driver:
        driver.app.session.playhead.go(500_000)
        await refused(driver, "what is shown is the past")


async def test_no_key_changes_a_cluster_whose_past_is_shown() -> None:
    said: list[str] = []

    async with console(size=SMALL, story=False) as driver:
        for view in VIEW_NAMES:
            await driver.open(view)
            driver.app.session.playhead.go(500_000)
            driver.app.top.repaint()
            said.clear()
            driver.app.show_message = lambda text, *, error=False: said.append(text)  # type: ignore[method-assign]
            changing = [key for key, action in keys_of(view, allowed=EVERYTHING).items() if action.needs_write]
            await driver.press(*changing)
            assert len(said) == len(changing) and all("what is shown is the past" in line for line in said), view
            assert not driver.typed and not driver.cluster.commands
            assert not isinstance(driver.app.screen, ModalScreen)
            del driver.app.show_message  # type: ignore[method-assign]


# What all views do alike


async def test_each_view_opens_by_digit_by_name_and_from_the_palette_and_escape_goes_back() -> None:
    async with console(size=SMALL, story=False) as driver:
        app = driver.app
        palette = ActionsProvider(app.screen)
        offered = {action.id for action in palette._actions()}
        for view, key in DIGITS.items():
            assert view in offered
            if view == "overview":
                continue
            await driver.press(key)
            assert app.top.view == view and app.screen is app.top, view
            await driver.press("escape", "escape")  # the first one may be for what is open or selected in the view
            assert app.top.view == "overview", view
            # A name and the palette act at once, so that nothing has to be painted in between.
            by_name, by_palette = partial(app.answered, ":", view), palette._run(action_called(view))
            for way, opened in (("name", by_name), ("palette", by_palette)):
                opened()
                assert app.top.view == view, (view, way)
                app.back()
                assert app.top.view == "overview", (view, way)
            await driver.idle()


@pytest.mark.long
@pytest.mark.parametrize("writable", long_after(1, [True, False]), ids=["RW", "RO"])
async def test_help_lists_exactly_the_keys_of_each_view(writable: bool) -> None:
    async with console(writable=writable, size=(120, 200)) as driver:
        for view in VIEW_NAMES:
            await driver.open(view)
            driver.app.action_act("help")
            await driver.idle()
            inside = [
                max(line.split("│"), key=len) for line in screen_text(driver.app).splitlines() if line.count("│") >= 2
            ]
            keys_only = inside[: next(place for place, line in enumerate(inside) if line.strip() == "Moving")]
            rows = [line[3:] for line in keys_only if line.startswith("   ")]
            shown = [row.split("  ")[0].strip() for row in rows if row[:1].strip()]
            listed = sorted(key for key in shown if key not in ("See", "Costs", "Now", "For good"))  # of a runbook
            known = {action.id: action for action in keys_of(view, allowed=driver.app.allowed).values()}
            assert listed == sorted(display_of(action) for action in known.values()), view
            driver.app.screen.dismiss(None)
            await driver.idle()


@pytest.mark.parametrize("view", long_after(4, sorted(VIEW_NAMES)))
async def test_filter_sort_copy_and_export_of_a_view(view: ViewName, tmp_path: Path) -> None:
    async with console() as driver:
        app = driver.app
        await driver.open(view)
        await settle(driver.pilot)  # what happened is read in the course of a few ticks
        for suffix in ("csv", "json"):
            app.answered(":", f"export {tmp_path / f'whole.{suffix}'}")
            await driver.idle()
            assert "written to" in driver.said
        whole = json.loads((tmp_path / "whole.json").read_text(encoding="utf-8"))
        assert len((tmp_path / "whole.csv").read_text(encoding="utf-8").splitlines()) >= min(1, len(whole))
        if view not in ("audit", "demos"):
            assert whole, "a view of this story has something to tell"
        await driver.press("slash", *"zzz")
        await settle(driver.pilot)
        assert driver.typed == "/zzz"
        if view not in ("member", "questions", "time"):
            assert app.top.filter_text == "zzz"
        if app.top.sort_filter is not None and view not in ("overview", "partitions"):
            assert not app.top.sort_filter.keys
        await driver.press("escape")
        await settle(driver.pilot)
        assert app.top.filter_text == "" and not driver.typed
        sort_filter = app.top.sort_filter
        if sort_filter is not None:
            for title in sort_filter.titles:
                app.action_act("sort", f"{title} desc")
                await driver.idle()
                assert driver.said == f"sorted by {title}"
                assert len(sort_filter.keys) == len(sort_filter.inner.keys)
            app.action_act("columns", f"hide {sort_filter.titles[-1]}")
            await driver.idle()
            assert all(sort_filter.titles[-1] not in row for row in app.top.rows()) or view in (
                "overview",
                "partitions",
                "events",
            )
            app.action_act("columns", "reset")
        if whole:
            await driver.press("y")
            assert "copied" in driver.said and app.clipboard.strip()
            await driver.press("Y")
            assert isinstance(json.loads(app.clipboard), list)


def test_keys_that_were_changed_are_the_keys_that_work() -> None:
    """The registry's own tests see to clashes; here, that a view is bound anew."""
    changed: dict[str, str] = {"network": "f6", "kill": ""}
    assert [keys_for(action_called(key), changed) for key in changed] == [("f6",), ()]
    bound = keys_of("overview", allowed=EVERYTHING, configured=changed)
    assert bound["f6"].id == "network" and "6" not in bound and "K" not in bound

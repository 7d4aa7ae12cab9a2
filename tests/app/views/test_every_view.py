"""Every action of the registry, in every view that knows it: by key and by word; and what all views do alike."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.events import Key
from textual.keys import key_to_character
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input

from quarterdeck.app.actions.action import VIEW_NAMES, Action, ViewName
from quarterdeck.app.actions.registry import ACTIONS, action_called, available_actions, command_words
from quarterdeck.app.commands.confirm_screens import ConfirmScreen, ConfirmTypedScreen
from quarterdeck.app.commands.palette import ActionsProvider
from quarterdeck.app.console import Console
from quarterdeck.app.help_screen import HelpScreen
from quarterdeck.app.key_map import display_of, keys_for, keys_of
from quarterdeck.app.output.command_lines_screen import CommandLinesScreen
from quarterdeck.app.views.events.screen import EventsScreen
from quarterdeck.app.views.join_lists.editor import JoinListEditor
from quarterdeck.app.views.network.screen import NetworkScreen
from quarterdeck.app.views.partitions.screen import PartitionsScreen
from quarterdeck.app.views.suspicions.screen import SuspicionsScreen
from quarterdeck.backend.core import commands as core
from quarterdeck.backend.core.commands import Command
from tests.app.fakes.long_run_cluster import LongRunCluster
from tests.app.fakes.screen_text import screen_text, settle
from tests.thoroughness import long_after

MEMBERS_LISTED = ("member", "members", "suspicions", "network", "join-lists")

DIGITS: dict[ViewName, str] = {view: action_called(view).key_display for view in VIEW_NAMES if view != "member"}


class ConsoleDriver:
    """A console on the story, in one of its views, with the cursor on a member that runs."""

    def __init__(self, app: Console, cluster: LongRunCluster, pilot: Pilot[None]) -> None:
        self.app, self.cluster, self.pilot = app, cluster, pilot

    async def press(self, *keys: str) -> None:
        """Without the pilot's waiting for the screen to be painted."""
        for key in keys:
            self.app.post_message(Key(key, key_to_character(key)))
        await self.idle()

    async def idle(self) -> None:
        await asyncio.sleep(0)
        await self.pilot.pause()

    async def open(self, view: ViewName) -> None:
        """That view above the first one, and nothing above it."""
        while isinstance(self.app.screen, ModalScreen):
            self.app.screen.dismiss(None)
            await self.idle()
        if self.app.top.prompt.sign:
            self.app.top.prompt.dismiss()
        self.app.session.playhead.follow()
        while self.app.top.view not in ("beliefs", view):
            self.app.back()  # what is open in the view itself
            await self.idle()
        self.app.beliefs.table.point_at("byzantium")
        self.app.goto(view, member="byzantium" if view in MEMBERS_LISTED else "")
        await self.idle()
        self.app.top.message.show(())
        self.cluster.commands.clear()

    @property
    def said(self) -> str:
        return self.app.top.message.text

    @property
    def typed(self) -> str:
        """What stands at the prompt, with its sign."""
        prompt = self.app.top.prompt
        return f"{prompt.sign}{prompt.query_one('#prompt-input', Input).value}" if prompt.sign else ""


@asynccontextmanager
async def console(*, writable: bool = True, size: tuple[int, int] = (120, 40)) -> AsyncIterator[ConsoleDriver]:
    cluster = LongRunCluster(writable=writable)
    app = Console(cluster)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app._handlers["quit"] = lambda _: app.show_message("the console would end here")
        yield ConsoleDriver(app, cluster, pilot)
    app.close_owned()


def run(
    talk: Callable[[ConsoleDriver], Awaitable[None]], *, writable: bool = True, size: tuple[int, int] = (120, 40)
) -> None:
    async def scenario() -> None:
        async with console(writable=writable, size=size) as driver:
            await talk(driver)

    asyncio.run(scenario())


# What each action comes to. A new action has to be written down here.

Outcome = Callable[[ConsoleDriver], bool]


def asks(*kinds: type[Command]) -> Outcome:
    """The cluster is asked for these, perhaps after a question."""

    def outcome(driver: ConsoleDriver) -> bool:
        return {type(command) for command in driver.cluster.commands} == set(kinds)

    return outcome


def says(text: str) -> Outcome:
    return lambda driver: text in driver.said


def types(line: str) -> Outcome:
    return lambda driver: driver.typed.startswith(line)


def opens(view: ViewName) -> Outcome:
    return lambda driver: driver.app.top.view == view


def covers(kind: type[ModalScreen]) -> Outcome:  # type: ignore[type-arg]
    return lambda driver: isinstance(driver.app.screen, kind)


def either(*outcomes: Outcome) -> Outcome:
    return lambda driver: any(outcome(driver) for outcome in outcomes)


def network(check: Callable[[NetworkScreen], bool]) -> Outcome:
    return lambda driver: isinstance(driver.app.top, NetworkScreen) and check(driver.app.top)


def events(check: Callable[[EventsScreen], bool]) -> Outcome:
    return lambda driver: isinstance(driver.app.top, EventsScreen) and check(driver.app.top)


NO_LESSON = either(says("no demo runs here"), says("nothing is asked here"), says("answers nothing here"))
IN_THE_PAST: Outcome = lambda driver: not driver.app.session.live  # noqa: E731
STILL: Outcome = lambda driver: driver.app.session.live  # noqa: E731
NO_TABLE = says("there is no table")
SORTED = either(says("sorted by "), says("as it comes"), NO_TABLE)

OUTCOMES: dict[str, Outcome] = {
    "start": asks(core.StartMember),
    "stop": asks(core.StopMember),
    "kill": asks(core.KillMember),
    "stop-all": asks(core.StopMember),
    "pause": asks(core.PauseMember),
    "detail": either(opens("member"), opens("beliefs")),
    "next-member": lambda driver: driver.app.top.targets() == ("cyrene",),
    "previous-member": lambda driver: driver.app.top.targets() == ("athens",),
    "list-text": lambda driver: any("Members [" in row["fact"] for row in driver.app.top.rows()),
    "cut": asks(core.Partition),
    "link": says("a link has two ends"),
    "worsen": types(":lose "),
    "heal": asks(core.Heal),
    "suspicions-whole": lambda driver: (
        isinstance(driver.app.top, SuspicionsScreen) and driver.app.top._everybody is False
    ),
    "fault-preset": network(lambda view: view._preset == "halves"),
    "fault-side": network(lambda view: "byzantium" in view._sides),
    "fault-mode": network(lambda view: view._mode == "reset"),
    "fault-build": either(says("nothing is planned"), asks(core.Partition)),
    "fault-clear": network(lambda view: view._plan is None),
    "fault-undo": asks(core.StartMember),
    "network-layout": network(lambda view: view._layout == "matrix"),
    "join-list": types(":join-list byzantium "),
    "state": types(":state byzantium "),
    "search": asks(core.SearchClusters),
    "operate": asks(core.Operate),
    "arrange": asks(core.ArrangePartitions),
    "data": types(":put "),
    "unblock": asks(core.HealLink),
    "edit-list": covers(JoinListEditor),
    "edit-all-lists": covers(JoinListEditor),
    "map-observer": lambda driver: (
        isinstance(driver.app.top, PartitionsScreen) and driver.app.top._observer == "athens"
    ),
    "map-zoom": lambda driver: isinstance(driver.app.top, PartitionsScreen) and driver.app.top.map.zoom != "wide",
    "map-trouble": lambda driver: (
        isinstance(driver.app.top, PartitionsScreen) and driver.app.top.map.partition is not None
    ),
    "map-trouble-before": opens("partitions"),
    "map-partition": says("there is no partition ''"),
    "time-back": IN_THE_PAST,
    "time-on": says("nothing has happened after this yet"),
    "time-second-back": IN_THE_PAST,
    "time-second-on": STILL,
    "time-pause": IN_THE_PAST,
    "time-live": STILL,
    "time-at": types(":at "),
    "time-bookmark": says("bookmark "),
    "time-speed": types(":speed "),
    "time-slower": says("speed "),
    "time-faster": says("speed "),
    "time-violation": says("invariants are not watched here"),
    "time-violation-before": says("invariants are not watched here"),
    "time-mark": says("there is no mark after this"),
    "time-mark-before": IN_THE_PAST,
    "time-here": IN_THE_PAST,
    "time-zoom-in": lambda driver: "1/2 of the run in sight" in screen_text(driver.app),
    "time-zoom-out": lambda driver: "the whole run in sight" in screen_text(driver.app),
    "time-whole": lambda driver: "the whole run in sight" in screen_text(driver.app),
    "time-fork": says("only a simulated run can be forked"),
    "event-fields": events(lambda view: view.pane.content is view.pane.fields),
    "event-because": events(lambda view: view.pane.display),
    "event-story": events(lambda view: view.pane.content is view.pane.story),
    "space-time": events(lambda view: bool(view.diagram.display)),
    "event-jump": either(opens("time")),
    "event-follow": events(lambda view: not view._following),
    "event-next": says("type what to look for"),
    "event-previous": says("type what to look for"),
    "event-marking": says("the filter marks what matches"),
    "event-utc": says("times are UTC"),
    "event-zoom": events(lambda view: view._zoom_us > 0),
    "event-zoom-in": events(lambda view: view._zoom_us == 0),
    "audit-run": says("no journal of this run is known here"),
    "audit-jump": says("there is no finding to go to"),
    "demo-go": lambda driver: len(driver.app._tabs) == 2,
    "demo-simulate": lambda driver: len(driver.app._tabs) == 2,
    **{f"demo-answer-{letter}": NO_LESSON for letter in "abcdef"},
    "demo-answer": NO_LESSON,
    "demo-free": NO_LESSON,
    "demo-restart": NO_LESSON,
    **{view: opens(view) for view in VIEW_NAMES if view != "member"},
    "follow": lambda driver: not driver.app.beliefs.tail.following,
    "filter": types("/"),
    "sort": SORTED,
    "reverse": lambda driver: driver.app.top.sort_filter is None or driver.app.top.sort_filter.table_settings.reverse,
    "columns": either(types(":hide "), NO_TABLE),
    "copy": either(says("copied"), says("nothing under the cursor")),
    "copy-json": either(says("copied"), says("nothing under the cursor")),
    "export": types(":export "),
    "screenshot": says("written to "),
    "prompt": types(":"),
    "help": covers(HelpScreen),
    "cli": covers(CommandLinesScreen),
    "cluster": STILL,
    "theme": types(":theme "),
    "back": either(opens("beliefs"), events(lambda view: not view.pane.display)),
    "quit": says("the console would end here"),
}

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
    if isinstance(driver.app.screen, ConfirmScreen | ConfirmTypedScreen):
        driver.app.screen.dismiss(True)
        await driver.idle()


def every_action_of(view: ViewName) -> list[tuple[ViewName, Action]]:
    return [(view, action) for action in available_actions(True, view)]


def every_action_once() -> list[tuple[ViewName, Action]]:
    """Each in the first view that knows it."""
    first = {
        action.id: tried for view in reversed(VIEW_NAMES) for tried in every_action_of(view) for action in tried[1:]
    }
    return sorted(first.values(), key=lambda tried: VIEW_NAMES.index(tried[0]))


@pytest.mark.parametrize(
    "tried", long_after(1, [every_action_once(), *map(every_action_of, VIEW_NAMES)]), ids=["once", *VIEW_NAMES]
)
def test_every_action_does_what_it_says_in_every_view_that_knows_it(
    tried: list[tuple[ViewName, Action]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # for screenshots without a name

    async def talk(driver: ConsoleDriver) -> None:
        for view, action in tried:
            if action.id in STARTS_A_CLUSTER:
                continue
            await driver.open(view)
            clear(tmp_path)
            driver.app.action_act(action.id)
            await driver.idle()
            await yes(driver)
            fits = OUTCOMES[action.id]
            if action.id == view:  # the key of a view that is in sight closes it
                fits = opens("beliefs")
            assert fits(driver), (
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

    run(talk)


@pytest.mark.parametrize("writable", long_after(1, [False, True]), ids=["RO", "RW"])
def test_every_key_of_every_view_leads_to_its_action_and_to_no_other(writable: bool) -> None:
    """On a read-only cluster, keys of what would change it lead nowhere."""

    async def talk(driver: ConsoleDriver) -> None:
        done: list[str] = []
        for view in VIEW_NAMES:
            await driver.open(view)
            driver.app.action_act = lambda action_id, text="": done.append(action_id)  # type: ignore[method-assign]
            for key, action in keys_of(view, writable=True).items():
                done.clear()
                await driver.press(key)
                now = keys_of(view, writable=writable).get(key)
                wanted = [now.id] if now is not None else []
                if key in ("left", "right"):
                    wanted = wanted if view == "member" else []
                assert done == wanted, (view, key, action.id)
                if not writable:
                    assert not any(action_called(one).needs_write for one in done)
            del driver.app.action_act  # type: ignore[method-assign]
            assert not driver.cluster.commands

    run(talk, writable=writable)


# Words

LINES: dict[str, tuple[str, Outcome]] = {
    "start": ("start athens", asks(core.StartMember)),
    "stop": ("stop fez", asks(core.StopMember)),
    "kill": ("kill fez", asks(core.KillMember)),
    "kill-at": ("kill-at fez list-installed after", asks(core.KillAt)),
    "stop-all": ("stop-all", asks(core.StopMember)),
    "pause": ("pause fez", asks(core.PauseMember)),
    "resume": ("resume euphesus", asks(core.ResumeMember)),
    "look": ("look fez", opens("member")),
    "partition": ("partition athens,fez|cyrene", asks(core.Partition)),
    "cut": ("cut athens fez one-way", asks(core.CutLink)),
    "lose": ("lose athens fez 0.3", asks(core.LoseOnLink)),
    "delay": ("delay athens fez 250ms", asks(core.DelayLink)),
    "duplicate": ("duplicate athens fez 0.3", asks(core.DuplicateOnLink)),
    "drop-messages": ("drop-messages athens fez heartbeat", asks(core.DropMessages)),
    "heal": ("heal athens fez", asks(core.HealLink)),
    "everybody": ("everybody off", opens("suspicions")),
    "preset": ("preset racks 2", opens("network")),
    "cut-mode": ("cut-mode reset", says("planned cuts: reset")),
    "build": ("build", either(says("nothing is planned"), asks(core.Partition))),
    "no-plan": ("no-plan", opens("network")),
    "undo": ("undo 1", lambda driver: len(driver.cluster.commands) > 0),
    "layout": ("layout drawing", opens("network")),
    "join-list": ("join-list fez athens,10.1.2.3:5701", asks(core.SetJoinList)),
    "state": ("state fez FROZEN", asks(core.ChangeState)),
    "search": ("search byzantium", asks(core.SearchClusters)),
    "operate": ("operate fez", asks(core.Operate)),
    "arrange": ("arrange fez", asks(core.ArrangePartitions)),
    "put": ("put map key value fez", asks(core.CallMap)),
    "get": ("get map key fez", asks(core.CallMap)),
    "remove": ("remove map key fez", asks(core.CallMap)),
    "unblock": ("unblock", asks(core.HealLink)),
    "edit-list": ("edit-list byzantium", covers(JoinListEditor)),
    "edit-all-lists": ("edit-all-lists", covers(JoinListEditor)),
    "table-of": ("table-of fez", opens("partitions")),
    "zoom": ("zoom halves", opens("partitions")),
    "show-partition": ("show-partition 7", opens("partitions")),
    "live": ("live", STILL),
    "at": ("at 12.5", IN_THE_PAST),
    "bookmark": ("bookmark here", says("bookmark here is at ")),
    "speed": ("speed 4", says("speed 4")),
    "fork": ("fork kill fez", says("only a simulated run can be forked")),
    "because": ("because", opens("events")),
    "story": ("story fez", opens("events")),
    "space-time": ("space-time", opens("events")),
    "mark": ("mark suspects", opens("events")),
    "zoom-rows": ("zoom-rows 10ms", opens("events")),
    "audit-run": ("audit-run", says("no journal of this run is known here")),
    "demo": ("demo nobody-knows-it", either(says("nobody-knows-it"))),
    "answer": ("answer anything", NO_LESSON),
    "restart-demo": ("restart-demo", NO_LESSON),
    **{view: (view, opens(view)) for view in VIEW_NAMES if view != "member"},
    "filter": ("filter byz", lambda driver: driver.app.top.filter_text in ("byz", "")),
    "sort": ("sort member desc", either(SORTED, says("there is no column"))),
    "hide": ("hide nothing-such", either(NO_TABLE, says("there is no column"))),
    "show": ("show", either(NO_TABLE, lambda driver: not driver.said)),
    "save": ("save", either(NO_TABLE, says("opens like this from now on"))),
    "reset": ("reset", either(NO_TABLE, says("as it was made"))),
    "export": ("export x.doc", says("no format of tables")),
    "screenshot": ("screenshot x.doc", says("no format of screens")),
    "help": ("help", covers(HelpScreen)),
    "cli": ("cli", covers(CommandLinesScreen)),
    "cluster": ("cluster nowhere", says("there is no cluster 'nowhere'")),
    "close": ("close", says("what the console was opened on")),
    "theme": ("theme plaid", says("plaid")),
    "quit": ("quit", lambda driver: not driver.app.is_running or driver.app._exit),
}


def test_every_word_has_a_line_and_no_line_is_left_over() -> None:
    assert set(command_words(writable=True)) == set(LINES)


@pytest.mark.parametrize("view", long_after(1, ["beliefs", "migrations", "audit", "member"]))
def test_every_word_is_obeyed_wherever_it_is_typed(view: ViewName) -> None:
    async def talk(driver: ConsoleDriver) -> None:
        for word in sorted(command_words(writable=True), key="quit".__eq__):
            line, fits = LINES[word]
            await driver.open(view)
            driver.app.answered(":", line)
            await driver.idle()
            await yes(driver)
            if word == view:
                fits = opens("beliefs")
            assert fits(driver), (view, line, driver.said, driver.typed, driver.app.top.view, driver.cluster.commands)

    run(talk)


def test_no_word_changes_a_read_only_cluster_or_the_past() -> None:
    changing = [word for word, (action, _) in command_words(writable=True).items() if action.needs_write]
    assert len(changing) > 20

    async def read_only(driver: ConsoleDriver) -> None:
        for word in changing:
            await driver.open("beliefs")
            driver.app.answered(":", LINES[word][0])
            await driver.idle()
            assert driver.said.startswith("✕ error") and "read-only" in driver.said
            assert not driver.cluster.commands and not isinstance(driver.app.screen, ModalScreen)

    async def past(driver: ConsoleDriver) -> None:
        for word in changing:
            await driver.open("beliefs")
            driver.app.session.playhead.go(12_000_000)
            driver.app.answered(":", LINES[word][0])
            await driver.idle()
            assert driver.said.startswith("✕ error") and "what is shown is the past" in driver.said, word
            assert not driver.cluster.commands and not isinstance(driver.app.screen, ModalScreen)

    run(read_only, writable=False)
    run(past)


def test_no_key_changes_a_cluster_whose_past_is_shown() -> None:
    async def talk(driver: ConsoleDriver) -> None:
        for view in VIEW_NAMES:
            await driver.open(view)
            driver.app.session.playhead.go(12_000_000)
            driver.app.top.repaint()
            for key, action in keys_of(view, writable=True).items():
                if action.needs_write:
                    driver.app.top.message.show(())
                    await driver.press(key)
                    assert "what is shown is the past" in driver.said, (view, key)
                    assert not driver.typed and not driver.cluster.commands
                    assert not isinstance(driver.app.screen, ModalScreen)

    run(talk)


# What all views do alike


def test_each_view_opens_by_digit_by_name_and_from_the_palette_and_escape_goes_back() -> None:
    async def talk(driver: ConsoleDriver) -> None:
        app = driver.app
        palette = ActionsProvider(app.screen)
        offered = {action.id for action in palette._actions()}
        for view, key in DIGITS.items():
            assert view in offered
            if view == "beliefs":
                continue
            for way in ("digit", "name", "palette"):
                await driver.open("beliefs")
                if way == "digit":
                    await driver.press(key)
                elif way == "name":
                    app.answered(":", view)
                else:
                    palette._run(action_called(view))()
                await driver.idle()
                assert app.top.view == view and app.screen is app.top, (view, way)
                await driver.press("escape", "escape")  # the first one may be for what is open or selected in the view
                assert app.top.view == "beliefs", (view, way)

    run(talk)


@pytest.mark.parametrize("writable", long_after(1, [True, False]), ids=["RW", "RO"])
def test_help_lists_exactly_the_keys_of_each_view(writable: bool) -> None:
    async def talk(driver: ConsoleDriver) -> None:
        for view in VIEW_NAMES:
            await driver.open(view)
            driver.app.action_act("help")
            await driver.idle()
            inside = [line.split("│")[1] for line in screen_text(driver.app).splitlines() if line.count("│") >= 2]
            keys_only = inside[: next(place for place, line in enumerate(inside) if line.strip() == "Moving")]
            rows = [line[3:] for line in keys_only if line.startswith("   ")]
            listed = sorted(row.split("  ")[0].strip() for row in rows if row[:1].strip())
            known = {action.id: action for action in keys_of(view, writable=writable).values()}
            assert listed == sorted(display_of(action) for action in known.values()), view
            driver.app.screen.dismiss(None)
            await driver.idle()

    run(talk, writable=writable, size=(200, 200))


@pytest.mark.parametrize("view", long_after(4, sorted(VIEW_NAMES)))
def test_filter_sort_copy_and_export_of_a_view(view: ViewName, tmp_path: Path) -> None:
    async def talk(driver: ConsoleDriver) -> None:
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
        if view not in ("member", "time"):
            assert app.top.filter_text == "zzz"
        if app.top.sort_filter is not None and view not in ("beliefs", "partitions"):
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
                "beliefs",
                "partitions",
                "events",
            )
            app.action_act("columns", "reset")
        if whole:
            await driver.press("y")
            assert "copied" in driver.said and app.clipboard.strip()
            await driver.press("Y")
            assert isinstance(json.loads(app.clipboard), list)

    run(talk)


def test_keys_that_were_changed_are_the_keys_that_work() -> None:
    """The registry's own tests see to clashes; here, that a view is bound anew."""
    changed: dict[str, str] = {"network": "f6", "kill": ""}
    assert [keys_for(action_called(one), changed) for one in changed] == [("f6",), ()]
    bound = keys_of("beliefs", writable=True, wanted=changed)
    assert bound["f6"].id == "network" and "6" not in bound and "K" not in bound

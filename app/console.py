"""The console: one clock, a session for each cluster, one way to act. It does not know what kind a cluster is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import App
from textual.command import Provider
from textual.driver import Driver
from textual.events import Key

from quarterdeck.app.actions.action import Allowed, ViewName, WordKind, allowed_on
from quarterdeck.app.actions.registry import action_called
from quarterdeck.app.actions.views import VIEW_OF
from quarterdeck.app.commands.palette import ActionsProvider, ConsolePalette
from quarterdeck.app.commands.requests import CallKey, Requests
from quarterdeck.app.console_interface import (
    ClusterOpener,
    Handler,
    NoOtherClusters,
    OpenedCluster,
    Pointed,
    Suggestions,
)
from quarterdeck.app.console_state import ConsoleSettings, ConsoleState
from quarterdeck.app.key_map import bindings_of, why_unbound
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.tabs import HOME, Tab, Tabs, leave
from quarterdeck.app.terminal import driver_for
from quarterdeck.app.themes import ANSI, THEMES, theme_called
from quarterdeck.app.views.overview.screen import OverviewScreen
from quarterdeck.backend.clusters.cluster import Cluster
from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.replay.tape import Tape
from quarterdeck.backend.picture.text.formatting import Refusal
from quarterdeck.widgets.line_table import TableCell

if TYPE_CHECKING:
    from quarterdeck.app.commands.prompt_lines import PromptLines
    from quarterdeck.backend.training.results import ScoreBook

CLOCK_SECONDS = 0.1
"""The period of the console's only clock."""


HANDLERS_ROOM = "quarterdeck.app.handlers"
HANDLERS = ("members", "tables", "time")
"""The modules of what every view can do, the one that takes longest to import last."""


class Console(App[None]):
    """Watches clusters, one in each tab, and acts on the one in sight."""

    CSS_PATH = Path(__file__).with_name("console.tcss")
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {ActionsProvider}
    TITLE = "Quarterdeck"

    def __init__(
        self,
        cluster: Cluster,
        starting: Future[None] | None = None,
        *,
        cluster_opener: ClusterOpener | None = None,
        settings: ConsoleSettings | None = None,
        state_file: Path | None = None,
    ) -> None:
        """Create a console. `starting` is done when the cluster has started its members; if that fails, the operator is informed.

        `cluster_opener` opens other clusters. How views are arranged is kept in `state_file`, or without one until the
        console ends. The caller closes `cluster` after `run` has returned; `close_owned` closes those that were opened here.
        """
        self.settings = settings or ConsoleSettings()
        # With NO_COLOR, Textual makes colours grey. Only from the terminal's own it leaves all colours out.
        theme_name = ANSI.name if "NO_COLOR" in os.environ else self.settings.theme
        super().__init__(ansi_color=theme_called(theme_name).ansi or None)
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = theme_name
        self._early_messages: list[str] = []
        """Problems from before there was a screen."""
        self.state = ConsoleState(state_file, self._report_problem)
        self._state_file = state_file
        self._keys = self.settings.keys
        self._cluster_opener: ClusterOpener = cluster_opener or NoOtherClusters()
        self._tabs = Tabs(self, self._new_tab(ConsoleSession(cluster, starting)), self._new_view)

    @on(Driver.SignalResume)
    def _resumed(self) -> None:
        """Draw all of the screen again: the shell has written over it."""
        self.refresh(layout=True)

    def get_driver_class(self) -> type[Driver]:
        return driver_for(super().get_driver_class())

    def get_default_screen(self) -> OverviewScreen:
        """Return the first view: an empty screen below it would be styled and laid out before it."""
        return self.home

    def refresh_css(self, animate: bool = True) -> None:
        """Before there is a screen, set only the colours of the theme: style sheets are read at their first use."""
        if self.screen_stack:
            super().refresh_css(animate)
        else:
            self.stylesheet.set_variables(self.get_css_variables())

    @property
    def session(self) -> ConsoleSession:
        return self._tabs.current.session

    @property
    def cluster(self) -> Cluster:
        return self.session.cluster

    @property
    def allowed(self) -> Allowed:
        return allowed_on(self.cluster)

    @property
    def picture(self) -> Picture:
        return self.session.picture

    @property
    def home(self) -> OverviewScreen:
        """The first view of the current session."""
        return cast(OverviewScreen, self._tabs.view(self._tabs.current, HOME))

    @property
    def top(self) -> ViewScreen:
        """The view in sight, or the one below a dialog."""
        return self._tabs.top

    @property
    def tabs(self) -> Sequence[TableCell]:
        return self._tabs.cells if len(self._tabs) > 1 else ()

    @property
    def has_way_back(self) -> bool:
        tab = self._tabs.current
        return len(tab.stack) > 1 or (tab.origin is not None and tab.origin in self._tabs)

    @property
    def last_commands(self) -> Sequence[Command]:
        return self._tabs.current.requests.last

    def on_mount(self) -> None:
        # Members start when they are looked at first; their modules are read after the first picture.
        self.home.call_after_refresh(self.set_interval, CLOCK_SECONDS, self._tick)
        for tab in self._tabs:
            self._report_failed_start(tab)
        for sentence in self._early_messages:
            self.call_after_refresh(self.show_message, sentence, error=True)

    def open_tab(
        self, opened: OpenedCluster, title: str, *, past: Tape | None = None, origin: ConsoleSession | None = None
    ) -> None:
        """Show another cluster in a tab of its own, which closes it in the end."""
        session = ConsoleSession(opened.cluster, opened.starting, owned=True, past=past, is_copy=origin is not None)
        opened_from = next((tab for tab in self._tabs if tab.session is origin), self._tabs.current)
        tab = self._new_tab(session, title, opened_from)
        tab.origin = opened_from if origin is not None else None
        self._report_failed_start(tab)
        self._tabs.open(tab)

    def close_tab(self) -> None:
        if not self.session.owned:
            self.show_message("the console was opened on this cluster; quit closes it", error=True)
            return
        closed = self._tabs.close()
        # Closing may take seconds, so it is done in the background.
        self.run_worker(closed.session.close, thread=True, exit_on_error=False)

    def close_owned(self) -> None:
        """Close the clusters that were opened here, and wait until that is done."""
        for tab in self._tabs:
            tab.session.close()

    def show_message(self, text: str, *, error: bool = False) -> None:
        for view in self._open_views():  # an older one would be found there again, and be taken for news
            view.message.show()
        self.top.show_message(text, error=error)

    def withdraw_message(self, text: str) -> None:
        for view in self._open_views():
            if any(part.text == text for part in view.message.parts):
                view.message.show()

    def _open_views(self) -> Iterator[ViewScreen]:
        return (view for tab in self._tabs for view in tab.views.values())

    def request(self, action_id: str, commands: Sequence[Command]) -> None:
        """Do `commands`; if they are dangerous, ask first."""
        if not commands:
            return
        requests = self._tabs.current.requests
        from quarterdeck.app.commands.confirmation import confirmation_for

        asked, view = confirmation_for(self.session, action_called(action_id), commands), self.top

        def execute() -> None:
            view.use_up_selection()
            requests.execute(commands, self.show_message)

        if asked is None:
            execute()
            return

        def answered(confirmed: bool | None) -> None:
            if confirmed:
                execute()
            else:
                self.show_message("cancelled")

        self.push_screen(asked, answered)

    def begin_load(self, text: str) -> None:
        """Put the load that `text` describes on the cluster in sight, as far as its members take calls."""
        from quarterdeck.backend.clusters.traffic import Traffic, load_of

        session = self.session
        session.traffic = Traffic(session.cluster, load_of(text, session.labels), session.cluster.now_us())

    def type_line(self, line: str) -> None:
        self.top.prompt.ask(":", line)

    def goto(self, view: ViewName, *, member: str = "", at_us: int | None = None, event: Pointed | None = None) -> None:
        self._tabs.open_view(view)
        self.top.aim(member, event)
        if at_us is not None:
            self.session.playhead.go(at_us)

    def back(self) -> None:
        if len(self._tabs.current.stack) > 1:
            looked_at = self.top.targets() if self.top.view == "member" else ()
            self._tabs.close_view()
            for member in looked_at:
                self.top.point_at(member)
        elif (origin := self._tabs.current.origin) is not None and origin in self._tabs:
            self._tabs.show(origin)
        else:
            self.show_message("this is the first view; Q leaves the console")

    def complete(self, beginning: str) -> str | None:
        return self._prompt_lines.complete(beginning)

    def suggestions(self, beginning: str) -> Suggestions:
        return self._prompt_lines.suggestions(beginning, next(iter(self.top.targets()), ""))

    def answered(self, sign: str, text: str) -> None:
        self.state.add_to_history(sign, text)
        if sign == ":" and text.strip():
            self._prompt_lines.execute(text, next(iter(self.top.targets()), ""))

    @cached_property
    def scores(self) -> ScoreBook:
        from quarterdeck.backend.training.results import SCORES_FILE, ScoreBook

        return ScoreBook(self._state_file and self._state_file.with_name(SCORES_FILE))

    @cached_property
    def _prompt_lines(self) -> PromptLines:
        from quarterdeck.app.commands.prompt_lines import PromptLines

        def words() -> Mapping[WordKind, Sequence[str]]:
            clusters = (*(tab.title for tab in self._tabs), *self._cluster_opener.names)
            return {"cluster": clusters, "theme": tuple(THEMES), **self.top.words()}

        return PromptLines(self, lambda: self.session, words, self.settings)

    def action_command_palette(self) -> None:
        """Open the palette, except above a question: what is chosen there is done to the current view."""
        if self.screen is self.top:
            self.push_screen(ConsolePalette())

    def action_act(self, action_id: str, text: str = "") -> None:
        action = action_called(action_id)
        if refusal := self.allowed.refusal(action):
            self.show_message(refusal, error=True)
            return
        if action.needs_write and not self.session.live:
            self.show_message(f"{action.title} is refused: what is shown is the past; go to its end first", error=True)
            return
        if action.views and self.top.view not in action.views:
            self.goto(action.views[0], member=next(iter(self.top.targets()), ""))
            self.top.call_after_refresh(self.action_act, action_id, text)  # a view has no data before it is painted
            return
        if held_back := self.top.holds_back(action):
            self.show_message(held_back, error=True)
            return
        if action_id == "back" and self.top.clear_filter():
            self.show_message("filter removed")
            return
        try:
            handled_as, _, given = (action.handler or action.id).partition(" ")
            self._handler(handled_as)(text or given)
        except Refusal as refusal:
            self.show_message(str(refusal), error=True)

    def _handler(self, action_id: str) -> Handler:
        """Return what does an action: the view, the console, or one of the modules, which are read when they are needed first.

        `do_time_on` does the action `time-on`.
        """
        name = f"do_{action_id.replace('-', '_')}"
        for own in (self.top, self):
            if (method := getattr(own, name, None)) is not None:
                return cast(Handler, method)
        if action_id in VIEW_OF:
            return lambda _: self.goto(action_id)
        for module in HANDLERS:
            if (function := getattr(import_module(f"{HANDLERS_ROOM}.{module}"), name, None)) is not None:
                return partial(function, self.top)
        from quarterdeck.app.handlers.members import do_command

        return lambda _: do_command(self.top, action_id)

    def on_key(self, event: Key) -> None:
        """Hand stray letters to the prompt, and show why a key does nothing.

        Letters typed in one burst with the sign of the prompt were on their way to another widget. The prompt keeps the letters
        that it receives itself.
        """
        top = self.top
        if self.screen is not top:
            return
        if not top.prompt.sign and event.key not in top.bound_keys:
            self.show_message(why_unbound(top.view, event.key, self.allowed, self._keys))
        elif top.prompt.sign and event.is_printable and event.character:
            top.prompt.type_in(event.character)
            event.prevent_default()

    def _tick(self) -> None:
        for tab in self._tabs:
            session, shown = tab.session, tab.shown
            fresh = session.poll()
            tab.shown = (session.epoch, session.playhead.mode, session.playhead.shown_us if not session.live else 0)
            if fresh:
                for view in tab.views.values():
                    view.receive(fresh)
            for outcome in tab.requests.call_outcomes(session.arrived):
                self.show_message(outcome.text, error=outcome.error)
            if tab is self._tabs.current:
                self.top.tick(news=bool(fresh) or tab.shown != shown)

    def _new_view(self, tab: Tab, view: ViewName) -> ViewScreen:
        plain: type[ViewScreen] = VIEW_OF[view].screen_class()
        keys = bindings_of(view, allowed=allowed_on(tab.session.cluster), configured=self._keys)
        bound = type(plain.__name__, (plain,), {"BINDINGS": [*plain.BINDINGS, *keys], "__module__": plain.__module__})
        made: ViewScreen = bound(tab.session, self)
        made.fit(self.size)
        if made.sort_filter is not None:
            made.sort_filter.table_settings = self.state.table_settings_of(view)
        return made

    def _new_tab(self, session: ConsoleSession, title: str = "", opened_from: Tab | None = None) -> Tab:
        session.clock.chosen = self.settings.clock
        return Tab(session, Requests(session, self._command_ended), title, opened_from)

    def _report_failed_start(self, tab: Tab) -> None:
        def ended(starting: Future[None]) -> None:
            if not starting.cancelled() and starting.exception() is not None:
                tab.requests.finish("starting the members", None, starting)

        if tab.session.starting is not None:
            tab.session.starting.add_done_callback(ended)

    def do_cluster(self, text: str) -> None:
        """With `close`, close the current tab.

        Otherwise go to the named cluster, which is opened if necessary, or to the next.
        """
        word, _, name = text.partition(" ")
        if word == "close":
            self.close_tab()
        elif not name:
            self._tabs.show(self._tabs.next)
        elif (known := self._tabs.named(name)) is not None:
            self._tabs.show(known)
        else:
            self.open_tab(self._cluster_opener.open(name), name)

    def do_filter(self, text: str) -> None:
        if text:
            self.top.filter_by(text)
        else:
            self.top.prompt.ask("/", self.top.filter_text)

    def do_theme(self, name: str) -> None:
        if not name:
            self.type_line("theme ")
            return
        theme = theme_called(name)
        if self.no_color and not theme.ansi:
            remedy = f"env -u NO_COLOR quarterdeck console --theme {name}"
            raise Refusal(f"NO_COLOR is set, so there are no colours to choose: {remedy}")
        self.ansi_color = theme.ansi or None
        self.theme = theme.name

    def _report_problem(self, sentence: str) -> None:
        if self.is_running:
            self.show_message(sentence, error=True)
        else:
            self._early_messages.append(sentence)

    def do_help(self, _: str) -> None:
        from quarterdeck.app.help_screen import HelpScreen

        top = self.top
        self.push_screen(HelpScreen(top.view, top.runbooks(), allowed=self.allowed, configured_keys=self._keys))

    def do_prompt(self, _: str) -> None:
        self.type_line("")

    def do_back(self, _: str) -> None:
        self.back()

    def do_suspend(self, _: str) -> None:
        self.action_suspend_process()

    def do_quit(self, _: str) -> None:
        leave(self, self._tabs)

    def action_help_quit(self) -> None:
        """Answer the terminal's key for an interrupt in the line of messages, where the next message replaces the answer."""
        self.show_message("Q leaves the console")

    async def action_quit(self) -> None:
        """Do what the terminal's own key for leaving does."""
        leave(self, self._tabs)

    def _command_ended(
        self, requests: Requests, what: str, failure: BaseException | None, call: CallKey | None
    ) -> None:
        """Show how a command ended. Called from any thread."""

        def show() -> None:
            if (outcome := requests.outcome(what, failure, call)) is not None:
                self.show_message(outcome.text, error=outcome.error)

        if self.is_running:
            self.call_later(show)

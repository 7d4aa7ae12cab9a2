"""What leaves the console: rows to the clipboard, tables and pictures to files, and equivalent command lines to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from textual.app import App

from quarterdeck.app.actions.registry import action_called
from quarterdeck.app.commands.command_text import connect_options, line_of_action, line_of_load, lines_of
from quarterdeck.app.console_interface import ConsoleInterface, Handler, Refusal
from quarterdeck.app.export import (
    BadExport,
    CommandLinesScreen,
    as_json,
    as_text,
    copy,
    export_rows,
    export_screen,
    target_of,
)
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.backend.core.commands.commands import Command
from quarterdeck.backend.picture.text.formatting import counted

EXPORT_USAGE = "export FILE.csv or FILE.json"
SCREENSHOT_USAGE = "screenshot FILE.svg or FILE.txt"


class OutputHandlers:
    """Actions that take something out of the current view."""

    def __init__(
        self,
        app: App[Any],
        console: ConsoleInterface,
        view: Callable[[], ViewScreen],
        last_commands: Callable[[], Sequence[Command]],
    ) -> None:
        """Create the handlers.

        `last_commands` returns what the operator requested last. `app` is the console as Textual knows it.
        """
        self._app, self._console, self._view, self._last_commands = app, console, view, last_commands
        self.handlers: Mapping[str, Handler] = {
            "copy": lambda _: self._copy(as_text),
            "copy-json": lambda _: self._copy(as_json),
            "export": self._export,
            "screenshot": self._screenshot,
            "cli": lambda _: self._show_lines(),
        }

    def _copy(self, form: Callable[[Sequence[Mapping[str, str]]], str]) -> None:
        rows = self._view().copied_rows()
        if not rows:
            raise Refusal("there is nothing under the cursor to copy")
        copied = copy(self._app, form(rows))
        self._console.show_message(f"{counted(len(rows), 'row')}: {copied.sentence}")

    def _export(self, text: str) -> None:
        if not text:
            self._console.type_line("export ")
            return
        self._deliver(lambda: export_rows(self._app, self._view().rows(), target_of(text, EXPORT_USAGE)))

    def _screenshot(self, text: str) -> None:
        """Write to the named file; without a name to one in the working directory, named by the time."""
        named = text or f"{datetime.now():%Y-%m-%dT%H-%M-%S}.svg"
        self._deliver(lambda: export_screen(self._app, target_of(named, SCREENSHOT_USAGE)))

    def _deliver(self, export: Callable[[], str]) -> None:
        try:
            self._console.show_message(export())
        except BadExport as problem:
            self._console.show_message(str(problem), error=True)

    def _show_lines(self) -> None:
        view = self._view()
        options = connect_options(view.session.cluster)
        load = line_of_load(view.session.traffic, options) if view.session.traffic is not None else ""
        done = [*([load] if load else ()), *lines_of(self._last_commands(), options)]
        shows = line_of_action(action_called(view.view), options) if view.view != "member" else ""
        self._app.push_screen(CommandLinesScreen(done, shows))

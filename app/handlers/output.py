"""What leaves the console: rows to the clipboard, tables and pictures to files, and the command line that does the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from quarterdeck.app.actions.registry import action_called
from quarterdeck.app.commands.command_line import connect_options, line_of_action, lines_of
from quarterdeck.app.output.clipboard import copy
from quarterdeck.app.output.command_lines_screen import CommandLinesScreen
from quarterdeck.app.output.export import BadExport, as_json, as_text, export_rows, export_screen, target_of
from quarterdeck.app.views.view_screen import Handler, ViewScreen
from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.picture.text.formatting import counted

if TYPE_CHECKING:
    from quarterdeck.app.console import Console

EXPORT_USAGE = "export FILE.csv or FILE.json"
SCREENSHOT_USAGE = "screenshot FILE.svg or FILE.txt"


class OutputHandlers:
    """Deeds that take something out of the view in sight."""

    def __init__(self, console: Console, view: Callable[[], ViewScreen], last: Callable[[], Sequence[Command]]) -> None:
        """`last` are the commands that were asked for last."""
        self._console, self._view, self._last = console, view, last
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
            self._console.show_message("there is nothing under the cursor to copy", error=True)
            return
        copied = copy(self._console, form(rows))
        self._console.show_message(f"{counted(len(rows), 'row')}: {copied.sentence}")

    def _export(self, text: str) -> None:
        if not text:
            self._console.type_line("export ")
            return
        self._deliver(lambda: export_rows(self._console, self._view().rows(), target_of(text, EXPORT_USAGE)))

    def _screenshot(self, text: str) -> None:
        """To the named file; without a name to one named by the time, where the console was started."""
        named = text or f"{datetime.now():%Y-%m-%dT%H-%M-%S}.svg"
        self._deliver(lambda: export_screen(self._console, target_of(named, SCREENSHOT_USAGE)))

    def _deliver(self, export: Callable[[], str]) -> None:
        try:
            self._console.show_message(export())
        except BadExport as problem:
            self._console.show_message(str(problem), error=True)

    def _show_lines(self) -> None:
        reach = connect_options(self._console.cluster)
        done = lines_of(self._last(), reach)
        shows = line_of_action(action_called(view), reach) if (view := self._view().view) != "member" else ""
        self._console.push_screen(CommandLinesScreen(done, shows))

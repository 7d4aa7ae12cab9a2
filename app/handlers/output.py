"""What leaves the console: rows to the clipboard, tables and pictures to files, and equivalent command lines to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from quarterdeck.app.actions.registry import action_called
from quarterdeck.app.commands.command_text import connect_options, line_of_action, line_of_load, lines_of
from quarterdeck.app.export import (
    CommandLinesScreen,
    as_json,
    as_text,
    copy,
    export_rows,
    export_screen,
    target_of,
)
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.backend.picture.text.formatting import Refusal, counted

EXPORT_USAGE = "export FILE.csv or FILE.json"
SCREENSHOT_USAGE = "screenshot FILE.svg or FILE.txt"


def do_copy(view: ViewScreen, _: str) -> None:
    _copy(view, as_text)


def do_copy_json(view: ViewScreen, _: str) -> None:
    _copy(view, as_json)


def do_export(view: ViewScreen, text: str) -> None:
    if text:
        view.console.show_message(export_rows(view.app, view.rows(), target_of(text, EXPORT_USAGE)))
    else:
        view.console.type_line("export ")


def do_screenshot(view: ViewScreen, text: str) -> None:
    """Write to the named file; without a name to one in the working directory, named by the time."""
    named = text or f"{datetime.now():%Y-%m-%dT%H-%M-%S}.svg"
    view.console.show_message(export_screen(view.app, target_of(named, SCREENSHOT_USAGE)))


def do_cli(view: ViewScreen, _: str) -> None:
    options = connect_options(view.session.cluster)
    load = line_of_load(view.session.traffic, options) if view.session.traffic is not None else ""
    done = [*([load] if load else ()), *lines_of(view.console.last_commands, options)]
    shows = line_of_action(action_called(view.view), options) if view.view != "member" else ""
    view.app.push_screen(CommandLinesScreen(done, shows))


def _copy(view: ViewScreen, form: Callable[[Sequence[Mapping[str, str]]], str]) -> None:
    rows = view.copied_rows()
    if not rows:
        raise Refusal("there is nothing under the cursor to copy")
    view.console.show_message(f"{counted(len(rows), 'row')}: {copy(view.app, form(rows)).sentence}")

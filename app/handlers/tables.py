"""The rows of the view in sight: sorted, hidden, copied, exported; the screen as a file; equivalent command lines to read."""

from __future__ import annotations

from datetime import datetime

from quarterdeck.app.actions.registry import action_called
from quarterdeck.app.commands.command_text import connect_options, line_of_action, line_of_load, lines_of
from quarterdeck.app.console_state import TableSettings
from quarterdeck.app.export import CommandLinesScreen, as_json, as_text, copy, export_rows, export_screen, target_of
from quarterdeck.app.screen.columns import SortFilterModel
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.backend.picture.text.formatting import Refusal, counted


def do_sort(view: ViewScreen, text: str) -> None:
    """Sort by the named column, or by the next one; after the last, restore the original order."""
    sort_filter = _sort_filter(view)
    column = text.removesuffix(" desc")
    titles = ("", *(title for title in sort_filter.titles if title not in sort_filter.table_settings.hidden))
    if text and column not in titles:
        raise Refusal(f"there is no column {column!r}; there are {', '.join(titles[1:])}")
    if not text:
        now = sort_filter.table_settings.sort
        column = titles[(titles.index(now) + 1) % len(titles)] if now in titles else ""
    sort_filter.change_settings(sort=column, reverse=text.endswith(" desc"))
    _show_and_keep(view, sort_filter)
    view.console.show_message(f"sorted by {column}" if column else "in the original order")


def do_reverse(view: ViewScreen, _: str) -> None:
    sort_filter = _sort_filter(view)
    sort_filter.change_settings(reverse=not sort_filter.table_settings.reverse)
    _show_and_keep(view, sort_filter)


def do_columns(view: ViewScreen, text: str) -> None:
    sort_filter = _sort_filter(view)
    word, _, column = text.partition(" ")
    hidden = sort_filter.table_settings.hidden
    if column and column not in sort_filter.titles:
        raise Refusal(f"there is no column {column!r}; there are {', '.join(sort_filter.titles)}")
    if word == "hide" and column:
        sort_filter.change_settings(hidden=(*(title for title in hidden if title != column), column))
    elif word == "show":
        sort_filter.change_settings(hidden=tuple(title for title in hidden if column and title != column))
    elif word == "save":
        view.console.state.keep(view.view, sort_filter.table_settings, with_filter=True)
        view.console.show_message("this view opens like this from now on, filter and all; reset undoes it")
        return
    elif word == "reset":
        sort_filter.table_settings = TableSettings()
        view.console.state.forget(view.view)
        view.repaint()
        view.console.show_message("sort, columns and filter of this view are reset")
        return
    else:
        view.console.type_line("hide ")
        return
    _show_and_keep(view, sort_filter)


def _sort_filter(view: ViewScreen) -> SortFilterModel:
    if view.sort_filter is None:
        raise Refusal("there is no table here")
    return view.sort_filter


def _show_and_keep(view: ViewScreen, sort_filter: SortFilterModel) -> None:
    view.console.state.keep(view.view, sort_filter.table_settings)
    view.repaint()


EXPORT_USAGE = "export FILE.csv or FILE.json"
SCREENSHOT_USAGE = "screenshot FILE.svg or FILE.txt"


def do_copy(view: ViewScreen, form: str) -> None:
    """Copy the selected rows, or the one under the cursor, as text or in the form `json`."""
    rows = view.copied_rows()
    if not rows:
        raise Refusal("there is nothing under the cursor to copy")
    copied = copy(view.app, as_json(rows) if form else as_text(rows))
    view.console.show_message(f"{counted(len(rows), 'row')}: {copied.sentence}")


def do_export(view: ViewScreen, text: str) -> None:
    if text:
        view.console.show_message(export_rows(view.app, view.rows(), target_of(text, EXPORT_USAGE)))
    else:
        view.console.type_line("export ")


def do_screenshot(view: ViewScreen, text: str) -> None:
    """Write to the named file; without a name to one in the working directory, named by the time."""
    target = target_of(text or f"{datetime.now():%Y-%m-%dT%H-%M-%S}.svg", SCREENSHOT_USAGE)

    def take() -> None:
        try:
            view.console.show_message(export_screen(view.app, target))
        except Refusal as refusal:
            view.console.show_message(str(refusal), error=True)

    view.call_after_refresh(take)  # when the prompt at which it was typed has gone


def do_cli(view: ViewScreen, _: str) -> None:
    options = connect_options(view.session.cluster)
    load = line_of_load(view.session.traffic, options) if view.session.traffic is not None else ""
    done = [*([load] if load else ()), *lines_of(view.console.last_commands, options)]
    shows = line_of_action(action_called(view.view), options) if view.view != "member" else ""
    view.app.push_screen(CommandLinesScreen(done, shows))

"""Sorting and hiding the columns of the view in sight, and remembering how its reader wants it."""

from __future__ import annotations

from quarterdeck.app.console_state import TableSettings
from quarterdeck.app.screen.sort_filter_model import SortFilterModel
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.backend.picture.text.formatting import Refusal


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

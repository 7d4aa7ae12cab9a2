"""Sorting and hiding the columns of the current view, and remembering how its reader wants it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quarterdeck.app.console_interface import ConsoleInterface, Handler, Refusal
from quarterdeck.app.console_state import ConsoleState
from quarterdeck.app.screen.sort_filter_model import TableSettings
from quarterdeck.app.screen.view_screen import ViewScreen


class TableHandlers:
    """Actions on the table of the current view."""

    def __init__(self, console: ConsoleInterface, view: Callable[[], ViewScreen], state: ConsoleState) -> None:
        self._console, self._view, self._state = console, view, state
        self.handlers: Mapping[str, Handler] = {
            "sort": self._sort,
            "reverse": lambda _: self._reverse(),
            "columns": self._columns,
        }

    def recall(self, view: ViewScreen) -> None:
        """Arrange a view that is being opened as it was last time."""
        if view.sort_filter is not None:
            view.sort_filter.table_settings = self._state.table_settings_of(view.view)

    def _sort(self, text: str) -> None:
        """Sort by the named column, or by the next one; after the last, restore the original order."""
        sort_filter = self._view().sort_filter
        if sort_filter is None:
            raise Refusal("there is no table to sort here")
        column = text.removesuffix(" desc")
        titles = ("", *(title for title in sort_filter.titles if title not in sort_filter.table_settings.hidden))
        if text and column not in titles:
            raise Refusal(f"there is no column {column!r}; there are {', '.join(titles[1:])}")
        if not text:
            now = sort_filter.table_settings.sort
            column = titles[(titles.index(now) + 1) % len(titles)] if now in titles else ""
        sort_filter.change_settings(sort=column, reverse=text.endswith(" desc"))
        self._show_and_keep()
        self._console.show_message(f"sorted by {column}" if column else "in the original order")

    def _reverse(self) -> None:
        sort_filter = self._view().sort_filter
        if sort_filter is not None:
            sort_filter.change_settings(reverse=not sort_filter.table_settings.reverse)
            self._show_and_keep()

    def _columns(self, text: str) -> None:
        sort_filter = self._view().sort_filter
        word, _, column = text.partition(" ")
        if sort_filter is None:
            raise Refusal("there is no table here")
        hidden = sort_filter.table_settings.hidden
        if column and column not in sort_filter.titles:
            raise Refusal(f"there is no column {column!r}; there are {', '.join(sort_filter.titles)}")
        if word == "hide" and column:
            sort_filter.change_settings(hidden=(*(title for title in hidden if title != column), column))
        elif word == "show":
            sort_filter.change_settings(hidden=tuple(title for title in hidden if column and title != column))
        elif word == "save":
            self._state.keep(self._view().view, sort_filter.table_settings, with_filter=True)
            self._console.show_message("this view opens like this from now on, filter and all; reset undoes it")
            return
        elif word == "reset":
            sort_filter.table_settings = TableSettings()
            self._state.forget(self._view().view)
            self._view().repaint()
            self._console.show_message("sort, columns and filter of this view are reset")
            return
        else:
            self._console.type_line("hide ")
            return
        self._show_and_keep()

    def _show_and_keep(self) -> None:
        view = self._view()
        if view.sort_filter is not None:
            self._state.keep(view.view, view.sort_filter.table_settings)
        view.repaint()

"""What keys do to the view in sight whatever it shows: sort, hide, and remember how its reader wanted it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quarterdeck.app.arranged_model import Arrangement
from quarterdeck.app.live_screen import Deed, Desk, LiveScreen
from quarterdeck.app.view_state import ViewState


class TableDeeds:
    """Deeds on the table of the view in sight."""

    def __init__(self, desk: Desk, view: Callable[[], LiveScreen], state: ViewState) -> None:
        self._desk, self._view, self._state = desk, view, state
        self.deeds: Mapping[str, Deed] = {
            "sort": self._sort,
            "reverse": lambda _: self._reverse(),
            "columns": self._columns,
        }

    def recall(self, view: LiveScreen) -> None:
        """Arrange a view that is opened as it was the last time."""
        if view.arranged is not None:
            view.arranged.arrangement = self._state.arrangement_of(view.view)

    def _sort(self, text: str) -> None:
        """By the named column, or by the next one; after the last as it comes."""
        arranged = self._view().arranged
        if arranged is None:
            self._desk.say("there is no table to sort here", error=True)
            return
        column, _, order = text.partition(" ") if not text.endswith(" desc") else (text[:-5], "", "desc")
        titles = ("", *(title for title in arranged.titles if title not in arranged.arrangement.hidden))
        if text and column not in titles:
            self._desk.say(f"there is no column {column!r}; there are {', '.join(titles[1:])}", error=True)
            return
        if not text:
            now = arranged.arrangement.sort
            column = titles[(titles.index(now) + 1) % len(titles)] if now in titles else ""
        arranged.arrange(sort=column, reverse=order == "desc")
        self._show_and_keep()
        self._desk.say(f"sorted by {column}" if column else "as it comes")

    def _reverse(self) -> None:
        arranged = self._view().arranged
        if arranged is not None:
            arranged.arrange(reverse=not arranged.arrangement.reverse)
            self._show_and_keep()

    def _columns(self, text: str) -> None:
        """`hide COLUMN`, `show [COLUMN]`, `save` or `reset`."""
        arranged = self._view().arranged
        word, _, column = text.partition(" ")
        if arranged is None:
            self._desk.say("there is no table here", error=True)
            return
        hidden = arranged.arrangement.hidden
        if column and column not in arranged.titles:
            self._desk.say(f"there is no column {column!r}; there are {', '.join(arranged.titles)}", error=True)
            return
        if word == "hide" and column:
            arranged.arrange(hidden=(*(one for one in hidden if one != column), column))
        elif word == "show":
            arranged.arrange(hidden=tuple(one for one in hidden if column and one != column))
        elif word == "save":
            self._state.keep(self._view().view, arranged.arrangement, with_filter=True)
            self._desk.say("this view opens like this from now on, filter and all; reset undoes it")
            return
        elif word == "reset":
            arranged.arrangement = Arrangement()
            self._state.forget(self._view().view)
            self._view().repaint()
            self._desk.say("as it was made")
            return
        else:
            self._desk.type_line("hide ")
            return
        self._show_and_keep()

    def _show_and_keep(self) -> None:
        view = self._view()
        if view.arranged is not None:
            self._state.keep(view.view, view.arranged.arrangement)
        view.repaint()

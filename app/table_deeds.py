"""What keys do to the view in sight whatever it shows: sort, hide, copy, export, screenshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.live_screen import Deed, Desk, LiveScreen


class TableDeeds:
    """Deeds on the table of the view in sight."""

    def __init__(self, desk: Desk, view: Callable[[], LiveScreen]) -> None:
        self._desk, self._view = desk, view
        self.deeds: Mapping[str, Deed] = {
            "sort": self._sort,
            "reverse": lambda _: self._reverse(),
            "columns": self._columns,
            "screenshot": self._screenshot,
        }

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
        self._view().repaint()
        self._desk.say(f"sorted by {column}" if column else "as it comes")

    def _reverse(self) -> None:
        arranged = self._view().arranged
        if arranged is not None:
            arranged.arrange(reverse=not arranged.arrangement.reverse)
            self._view().repaint()

    def _columns(self, text: str) -> None:
        """`hide COLUMN`, `show [COLUMN]` or `reset`."""
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
        elif word == "reset":
            arranged.arrange(sort="", reverse=False, hidden=(), filter="")
        else:
            self._desk.type_line("hide ")
            return
        self._view().repaint()

    def _screenshot(self, file: str) -> None:
        try:
            path = self._view().app.save_screenshot(file or None)
        except OSError as problem:
            self._desk.say(f"no screenshot: {problem}", error=True)
            return
        self._desk.say(f"saved {path}")

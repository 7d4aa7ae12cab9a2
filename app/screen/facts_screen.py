"""A view that is one sheet of facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.picture.text.fact import Fact, fact_rows
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import TableCell


class FactsScreen(ViewScreen):
    """A title and facts, kept up to date."""

    columns: ClassVar[tuple[str, str]] = ("about", "fact")
    """The titles of headings and texts in an export."""

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._facts: tuple[Fact, ...] = ()
        self.sheet = FactSheet(id="detail-sheet")

    def about(self) -> tuple[str, str]:
        """Return the subject, and what the sheet says of it."""
        raise NotImplementedError

    def facts(self) -> Iterable[Fact]:
        """Yield the facts as they are now."""
        raise NotImplementedError

    def body(self) -> Iterable[Widget]:
        return self.title_line, self.sheet

    @property
    def focused_first(self) -> Widget:
        return self.sheet

    def paint(self) -> None:
        subject, what = self.about()
        self.title_line.show([TableCell(subject, "strong"), TableCell(what, "faint")])
        self._facts = tuple(self.facts())
        self.sheet.show(self._facts)

    def rows(self) -> Iterable[Mapping[str, str]]:
        return fact_rows(self._facts, *self.columns)

    def copied_rows(self) -> Sequence[Mapping[str, str]]:
        return tuple(self.rows())

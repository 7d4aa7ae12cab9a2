"""The detail of the row under the cursor, beside or below the tables of a view."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.widgets.fact_sheet import FactSheet


class RowDetail(FactSheet):
    """The facts about the row under the cursor. They are computed only while they are in sight and something has changed."""

    def __init__(self, session: ConsoleSession) -> None:
        super().__init__(id="row-detail")
        self._session = session
        self._row: Hashable = None
        self._about: Hashable = None
        self._asked: tuple[Hashable, Callable[[], Sequence[Fact]]] = None, tuple

    def show_facts(self, row: Hashable, facts: Callable[[], Sequence[Fact]]) -> None:
        """Show the `facts` of this row; none for None."""
        self._asked = row, facts
        if (row is None) != self.has_class("-about-nothing"):
            self.set_class(row is None, "-about-nothing")
        if not self.display or not self.size.width:
            return
        subject = (row, self._session.detail_beat)
        if subject != self._about:
            moved = row != self._row
            self._about, self._row = subject, row
            self.show(facts() if row is not None else ())
            if moved:
                self.scroll_home(animate=False)

    def on_resize(self) -> None:
        self._about = None
        self.show_facts(*self._asked)

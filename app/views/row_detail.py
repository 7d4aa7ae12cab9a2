"""What is known of the row under the cursor, beside the tables of a view where there is room."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.widgets.fact_sheet import FactSheet

MOST_FOLLOWED = 30
"""In a cluster of more members a detail is told anew at most once a second."""


class RowDetail(FactSheet):
    """Asks for the facts only when it is in sight, and something has changed that they are about."""

    def __init__(self, session: ConsoleSession) -> None:
        super().__init__(id="row-detail")
        self._session = session
        self._row: Hashable = None
        self._about: Hashable = None
        """For which row, when and at which news it was told last."""
        self._asked: tuple[Hashable, Callable[[], Sequence[Fact]]] = None, tuple

    def tell(self, row: Hashable, facts: Callable[[], Sequence[Fact]]) -> None:
        """Show the `facts` of this row; none for None."""
        self._asked = row, facts
        if not self.display or not self.size.width:
            return
        session = self._session
        picture = session.picture
        news = picture.at if len(picture.members) <= MOST_FOLLOWED else 0
        about = (row, session.now_us() // SECOND_US, session.epoch, news)
        if about != self._about:
            moved = row != self._row
            self._about, self._row = about, row
            self.show(facts() if row is not None else ())
            if moved:
                self.scroll_home(animate=False)

    def on_resize(self) -> None:
        super().on_resize()
        self._about = None
        self.tell(*self._asked)

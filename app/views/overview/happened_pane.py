"""What happened, the latest at the bottom, as a pane of the overview: a line for each episode, as a person would tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quarterdeck.app.events.levels import Entry, LevelFeed, LevelFormat
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.overview.panes import OverviewPane
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.widgets.line_table import TableCell
from quarterdeck.widgets.tail_log import TailLog


class HappenedPane(OverviewPane):
    """Follows what happens; `f`, or moving up, pauses it."""

    view, pane_name = "events", "happened"

    def __init__(self, session: ConsoleSession, key: str) -> None:
        self._format = LevelFormat(self._name_of)
        self.tail: TailLog[Entry] = TailLog(
            self._format.entry_line,
            title="",
            headed=False,
            cursor=True,
            matcher_of=self._format.entry_matcher,
            id="tail",
        )
        self._feed = LevelFeed(session, self.tail)
        super().__init__(session, key, "what happened", self.tail)

    def take(self, records: Sequence[Record]) -> None:
        self._feed.extend(records)

    def restart(self, records: Sequence[Record]) -> None:
        self._feed.restart(records)

    @property
    def pointed(self) -> Record | None:
        """What the line under the cursor began with; None while the end is followed."""
        entry = self.tail.pointed
        return entry.record if entry is not None else None

    @property
    def latest(self) -> Record | None:
        """That of the line under the cursor, else of the last one."""
        return self.pointed or (self.tail.shown[-1].record if self.tail.shown else None)

    @property
    def stale(self) -> bool:
        """Whether there is more to tell than is told."""
        return self._feed.stale

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        self._fit()
        self._feed.grow(())
        self.say()

    def on_resize(self) -> None:
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        """Lines are made for a width, and nobody else paints them anew when nothing happens."""
        if self._format.width != self.tail.size.width:
            self._format.width = self.tail.size.width
            self.tail.refresh()

    def say(self) -> None:
        """Whether it follows, and what is filtered; folded the latest of it."""
        parts = [TableCell(self.tail.title_text, "faint" if self.tail.following else "strong")]
        if self.folded and self.tail.shown:
            latest = self._format.entry_line(self.tail.shown[-1])
            parts = [TableCell(latest.text.strip(), latest.tone)]
        self.edge.show(parts)

    def _name_of(self, address: Address) -> str:
        return self.session.picture.label_of(address)

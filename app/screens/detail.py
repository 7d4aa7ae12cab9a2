"""All that is known of one member: its list as its log would have it, whom it suspects, and why its cluster does not heal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer

from backend.core.properties import SECOND_US
from backend.picture.fact import Fact
from backend.picture.member_detail import member_detail
from backend.picture.one_line import one_line
from backend.picture.picture import Picture
from widgets.fact_sheet import FactSheet
from widgets.line_table import TableCell
from widgets.status_line import StatusLine


class DetailScreen(Screen[None]):
    """Shows one member and stays up to date. Actions done here are done to that member."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,i,enter,q", "close", "back", key_display="esc"),
        Binding("left", "other(-1)", "other member", key_display="← →"),
        Binding("right", "other(1)", "Next member", show=False),
        Binding("t", "other_text", "list text"),
    ]

    def __init__(
        self,
        picture: Picture,
        now_us: Callable[[], int],
        reached: Callable[[str], Iterable[Fact]],
        step: Callable[[int], str | None],
    ) -> None:
        """`reached` says how a member is reached, if there is anything to say about that.

        `step` moves the cursor of the screen below by so many members and gives the one it is on.
        """
        super().__init__()
        self._picture, self._now_us, self._reached, self._step = picture, now_us, reached, step
        self._legacy = False
        self._painted_second = -1
        self.label = step(0) or ""
        self.title_line = StatusLine(id="detail-title")
        self.sheet = FactSheet(id="detail-sheet")
        self.message = StatusLine(id="detail-message")

    def compose(self) -> ComposeResult:
        yield self.title_line
        yield self.sheet
        yield self.message
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.sheet.focus()
        self.show()

    def tick(self, *, news: bool) -> None:
        """Called at the console's clock: ages change once a second, all else only with `news`."""
        if news or self._now_us() // SECOND_US != self._painted_second:
            self.show()

    def show(self) -> None:
        """Say what is known now; what has not changed is not painted again."""
        now_us = self._now_us()
        self._painted_second = now_us // SECOND_US
        self.title_line.show([TableCell(one_line(self.label), "strong"), TableCell("as it sees its cluster", "faint")])
        facts = member_detail(self._picture, self.label, now_us, legacy=self._legacy)
        self.sheet.show((*self._reached(self.label), *facts))

    def action_close(self) -> None:
        self.dismiss()

    def action_other(self, members: int) -> None:
        self.label = self._step(members) or ""
        self.show()

    def action_other_text(self) -> None:
        self._legacy = not self._legacy
        self.show()

"""The keys of a screen in one line at the bottom: what Textual's footer shows, painted as one widget instead of one a key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from quarterdeck.widgets.component_styles import ComponentStyles

GAP = " "


class Hint(NamedTuple):
    """A key as people read it, the word for what it does, and what Textual calls the key."""

    key: str
    word: str
    name: str

    @property
    def width(self) -> int:
        return cell_len(f"{self.key}{GAP}{self.word}{GAP}")


class HintLine(ComponentStyles):
    """A line of as many hints as fit, followed by some that are always shown. A click on a hint presses its key."""

    PREFIX = "hint-line"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._hints: tuple[Hint, ...] = ()
        self._kept: tuple[Hint, ...] = ()

    @property
    def text(self) -> str:
        """All hints, including those that do not fit."""
        return GAP.join(f"{hint.key}{GAP}{hint.word}" for hint in (*self._hints, *self._kept))

    def show(self, hints: Sequence[Hint], kept: Sequence[Hint] = ()) -> None:
        """Show `hints` and behind them `kept`, which take precedence. If nothing is new, this costs only a comparison."""
        if (tuple(hints), tuple(kept)) != (self._hints, self._kept):
            self._hints, self._kept = tuple(hints), tuple(kept)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        plain = self.rich_style
        segments = []
        if y == 0:
            key, word = self.part_style("key"), self.part_style("word")
            for hint in self._placed():
                segments += [Segment(f"{hint.key}{GAP}", key), Segment(f"{hint.word}{GAP}", word)]
        return Strip(segments).crop_extend(0, self.size.width, plain)

    def on_click(self, event: events.Click) -> None:
        left = event.x
        for hint in self._placed():
            left -= hint.width
            if left < 0:
                self.app.simulate_key(hint.name)
                return

    def _placed(self) -> Iterator[Hint]:
        """Yield the hints that fit, from left to right. The gap behind the last one may be missing."""
        kept = list(self._kept)
        while kept and sum(hint.width for hint in kept) > self.size.width + len(GAP):
            kept.pop(0)
        room = self.size.width + len(GAP) - sum(hint.width for hint in kept)
        for hint in self._hints:
            room -= hint.width
            if room < 0:
                break
            yield hint
        yield from kept

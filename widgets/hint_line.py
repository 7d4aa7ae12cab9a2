"""Keys and what they do in one line, each a widget as a whole: the hints at the bottom of a screen, and the bar of views.

Textual's footer is a widget for each key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from quarterdeck.widgets.component_styles import ComponentStyles

GAP = " "

VIEW_GAPS = ("  ", " ")
"""Gaps between two views; the narrow one is tried before short names."""


class KeyPart(NamedTuple):
    """A text, its component class, and the key that a click on it presses; empty for none."""

    text: str
    style: str
    key_name: str


class KeyLine(ComponentStyles):
    """A line of parts. A click on a part presses its key."""

    def key_parts(self) -> Iterator[KeyPart]:
        """Yield the painted parts, from left to right."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        parts = self.key_parts() if y == 0 else ()
        segments = [Segment(part.text, self.part_style(part.style)) for part in parts]
        return Strip(segments).crop_extend(0, self.size.width, self.rich_style)

    def on_click(self, event: events.Click) -> None:
        left = event.x
        for part in self.key_parts():
            left -= cell_len(part.text)
            if left < 0:
                if part.key_name:
                    self.app.simulate_key(part.key_name)
                return


class Hint(NamedTuple):
    """A key as people read it, the word for its effect, and Textual's name of the key."""

    key: str
    word: str
    name: str

    @property
    def width(self) -> int:
        return cell_len(f"{self.key}{GAP}{self.word}{GAP}")


class HintLine(KeyLine):
    """A line of as many hints as fit, followed by some that are always shown."""

    PREFIX = "hint-line"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._hints: tuple[Hint, ...] = ()
        self._kept: tuple[Hint, ...] = ()

    @property
    def text(self) -> str:
        """All hints, including the hints that do not fit."""
        return GAP.join(f"{hint.key}{GAP}{hint.word}" for hint in (*self._hints, *self._kept))

    def show(self, hints: Sequence[Hint], kept: Sequence[Hint] = ()) -> None:
        """Show `hints` and behind them `kept`, which take precedence. If nothing is new, this costs only a comparison."""
        if (tuple(hints), tuple(kept)) != (self._hints, self._kept):
            self._hints, self._kept = tuple(hints), tuple(kept)
            self.refresh()

    def key_parts(self) -> Iterator[KeyPart]:
        for hint in self._placed():
            yield KeyPart(f"{hint.key}{GAP}", "key", hint.name)
            yield KeyPart(f"{hint.word}{GAP}", "word", hint.name)

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


class BarView(NamedTuple):
    """A view: the key that opens it, as operators read it and as Textual names it, and its names."""

    key: str
    key_name: str
    id: str
    title: str
    short: str


class ViewBar(KeyLine):
    """A bar of views: full names, short names or keys alone, the longest form that fits."""

    PREFIX = "view-bar"

    def __init__(self, views: Sequence[BarView], in_sight: str, *, id: str | None = None) -> None:
        """Create the bar of the view whose id is `in_sight`."""
        super().__init__(id=id)
        self._views, self._in_sight = tuple(views), in_sight

    def key_parts(self) -> Iterator[KeyPart]:
        gap, texts = self._written()
        yield KeyPart(" ", "plain", "")
        for view, text in zip(self._views, texts, strict=True):
            yield KeyPart(text, "in-sight" if view.id == self._in_sight else "view", view.key_name)
            yield KeyPart(gap, "plain", "")

    def _written(self) -> tuple[str, list[str]]:
        """Return the gap and the longest texts that all fit; as a last resort, only the view in sight has a name."""
        short = [f"{view.key} {view.short}" for view in self._views]
        named = [text if view.id == self._in_sight else view.key for view, text in zip(self._views, short, strict=True)]
        for texts in ([f"{view.key} {view.title}" for view in self._views], short, named):
            for gap in VIEW_GAPS:
                if 1 + sum(map(cell_len, texts)) + len(gap) * (len(texts) - 1) <= self.size.width:
                    return gap, texts
        return VIEW_GAPS[-1], [view.key for view in self._views]

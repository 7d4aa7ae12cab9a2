"""Styles of the component classes of a widget, each looked up in the style sheet when it is painted first.

Textual looks up all that are declared whenever the style of the widget may have changed, as at each change of the focus. A
table has fifteen and paints in four, and the first view has thirty widgets: that was half of the time between the imports and
the first picture. So none is declared here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, get_args

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.css.styles import RenderStyles
from textual.dom import DOMNode
from textual.filter import ANSIToTruecolor, LineFilter
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.backend.picture.text.fact import Tone

TONES = frozenset(get_args(Tone))


class ComponentStyles(Widget):
    """A widget that paints each of its parts in the style of the component class ``PREFIX--part``; tones look alike in all."""

    PREFIX: ClassVar[str]

    def __init__(self, *children: Widget, **options: Any) -> None:
        super().__init__(*children, **options)
        self._part_styles: dict[tuple[str, ...], Style] = {}

    def part_style(self, *parts: str) -> Style:
        """Return the style of a part, with the styles of the other `parts` laid over it; an empty one adds nothing."""
        style = self._part_styles.get(parts)
        if style is None:
            style = self.rich_style
            for part in parts:
                if part in ("", "plain"):  # no rule is for them
                    continue
                name = f"tone--{part}" if part in TONES else f"{self.PREFIX}--{part}"
                style += self.get_component_rich_style(name, partial=True)
            self._part_styles[parts] = style
        return style

    def toned(self, cells: Iterable[tuple[str, str]], *over: str) -> list[Segment]:
        """Return letters with their tones as segments, one for each run of a tone."""
        runs = groupby(cells, itemgetter(1))
        return [Segment("".join(letter for letter, _ in run), self.part_style(tone, *over)) for tone, run in runs]

    def forget_painted(self) -> None:
        """Drop cached lines that were painted in the former styles."""

    def get_component_styles(self, *names: str) -> RenderStyles:
        for name in names:
            if name not in self._component_styles:
                node = DOMNode(classes=name)
                node._attach(self)
                self.app.stylesheet.apply(node)
                self._component_styles[name] = node.styles
        return super().get_component_styles(*names)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Leave out the filter for colours of the terminal: outside the ANSI theme, which has none, all colours are RGB."""
        return [known for known in super().get_line_filters() if not isinstance(known, ANSIToTruecolor)]

    def notify_style_update(self) -> None:
        self._part_styles.clear()
        self.forget_painted()
        if self._component_styles:  # painted with styles that may be out of date now
            self._component_styles.clear()
            self.refresh()
        super().notify_style_update()

    def on_focus(self) -> None:
        self._restyle()

    def on_blur(self) -> None:
        self._restyle()

    def _restyle(self) -> None:
        self._part_styles.clear()
        self.forget_painted()
        self.refresh()


@lru_cache(maxsize=4096)
def fit(text: str, width: int, gap: int = 1) -> str:
    """Return `text` in exactly `width` cells, the last ones a gap; an ellipsis marks a text that was cut."""
    if cell_len(text) + gap <= width:
        return set_cell_size(text, width)
    return set_cell_size(set_cell_size(text, max(0, width - gap - 1)) + "…", width)


def slid(runs: list[tuple[str, Style]], hidden: int) -> list[tuple[str, Style]]:
    """Return `runs` without the first `hidden` cells; an ellipsis marks text that was cut."""
    if not hidden or not runs:
        return runs
    text, style = runs[0]
    before, after = Segment(text).split_cells(hidden)
    shown = after.text
    if before.text.strip():
        shown = set_cell_size(f"…{shown[1:]}", cell_len(shown))
    return [(shown, style), *runs[1:]]


def merge_runs(runs: Iterable[tuple[str, Style]]) -> list[Segment]:
    """Join neighbours of one style into segments: the fewer segments, the cheaper the frame."""
    return [Segment("".join(text for text, _ in alike), style) for style, alike in groupby(runs, itemgetter(1))]


def painted_line(runs: list[tuple[str, Style]], width: int, rest: Style) -> Strip:
    """Return `runs` as a strip of exactly `width` cells, filled up in the style `rest`."""
    return Strip(merge_runs(trim_runs(runs, width, rest)), width)


def trim_runs(runs: list[tuple[str, Style]], width: int, rest: Style) -> list[tuple[str, Style]]:
    """Cut `runs` to exactly `width` cells, which an ellipsis marks, or fill them up in the style `rest`."""
    filled = sum(cell_len(text) for text, _ in runs)
    if filled < width:
        runs.append((" " * (width - filled), rest))
    while filled > width and runs:
        text, style = runs.pop()
        filled -= cell_len(text)
        if filled < width:
            runs.append((fit(text.rstrip(), width - filled, gap=0), style))
            break
    return runs

"""The lines that the prompt's line may become, shown above it with their meanings and with what the line would do now."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from quarterdeck.widgets.component_styles import ComponentStyles
from quarterdeck.widgets.line_runs import fit, painted_line

MOST_ROWS = 6
"""Candidates that are shown at once."""

MOST_WIDTH = 40
"""Cells of the first column."""


class CandidateList(ComponentStyles):
    """A list of candidates, hidden while there is nothing to show. Tab completes to the first one."""

    PREFIX = "candidate-list"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: tuple[tuple[str, str], ...] = ()
        self._more = 0
        self._effect = ""

    def on_mount(self) -> None:
        self.display = False

    @property
    def text(self) -> str:
        """All text that it shows, line by line."""
        return "\n".join([*(f"{name}  {meaning}".rstrip() for name, meaning in self._rows), self._effect])

    def show(self, rows: Sequence[tuple[str, str]], effect: str) -> None:
        """Show these names with their meanings, and the effect of the line as it is."""
        self._rows, self._more, self._effect = tuple(rows[:MOST_ROWS]), max(0, len(rows) - MOST_ROWS), effect
        self.styles.height = len(self._rows) + bool(self._effect)
        self.display = bool(self._rows or self._effect)
        self.refresh(layout=True)

    def hide(self) -> None:
        self.display = False

    def render_line(self, y: int) -> Strip:
        plain, width = self.rich_style, self.size.width

        def painted(text: str, part: str) -> tuple[str, Style]:
            return text, self.part_style(part)

        if y < len(self._rows):
            name, meaning = self._rows[y]
            room = min(MOST_WIDTH, max(cell_len(one) for one, _ in self._rows))
            mark = "▸ " if y == 0 else "  "
            more = f"  … {self._more} more" if self._more and y == len(self._rows) - 1 else ""
            runs = [
                painted(f" {mark}{fit(name, room, gap=0)}  ", "first" if y == 0 else "name"),
                painted(f"{meaning}{more}", "meaning"),
            ]
        else:
            runs = [painted(f"   {self._effect}", "effect")]
        return painted_line(runs, width, plain)

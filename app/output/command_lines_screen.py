"""The command lines that do what was done last, and show what is in sight, to read and to copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from quarterdeck.app.output.export import copy
from quarterdeck.backend.picture.text.formatting import one_line


class CommandLinesScreen(ModalScreen[None]):
    """Shows the lines whole, wrapped to the width."""

    DEFAULT_CSS = """
    CommandLinesScreen { align: center middle; }
    #lines-box {
        width: 110; max-width: 95%; height: auto; max-height: 90%; border: round $primary; background: $surface; padding: 0 1;
    }
    #lines-text { height: auto; }
    #lines-hint { height: 1; margin: 1 0 0 0; color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,dollar_sign", "close", "Close"),
        Binding("y", "copy", "Copy"),
    ]

    def __init__(self, done: Sequence[str], shows: str) -> None:
        """Create the screen.

        `done` are the lines of what was done last, `shows` is the one of the current view; either may be empty.
        """
        super().__init__()
        self._done, self._shows = tuple(done), shows

    def compose(self) -> ComposeResult:
        with Vertical(id="lines-box"):
            yield Static(self._text(), id="lines-text")
            yield Static("y copies, esc closes", id="lines-hint", markup=False)

    def action_close(self) -> None:
        self.dismiss()

    def action_copy(self) -> None:
        lines = [*self._done, *([self._shows] if self._shows else [])]
        if lines:
            copied = copy(self.app, "".join(f"{line}\n" for line in lines))
            self.query_one("#lines-hint", Static).update(Text(copied.sentence))

    def _text(self) -> Text:
        text = Text()
        text.append("What was done last\n", "bold")
        text.append("".join(f"$ {one_line(line)}\n" for line in self._done) or "nothing that a command line can do\n")
        text.append("What is in sight\n", "bold")
        text.append(f"$ {one_line(self._shows)}" if self._shows else "only the console shows this")
        return text

"""Asks again before something destructive, says what it would hit, and leans towards no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from quarterdeck.backend.picture.one_line import one_line

LINES_SHOWN = 3


def spelt_out(lines: Sequence[str]) -> str:
    """Command lines below one another; of many only the first."""
    more = [f"… and {len(lines) - LINES_SHOWN} more"] if len(lines) > LINES_SHOWN else []
    return "\n".join([*(f"$ {one_line(line)}" for line in lines[:LINES_SHOWN]), *more])


class ConfirmScreen(ModalScreen[bool]):
    """Ends with True only when the button that names the deed is pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n,q", "cancel", "Cancel"),
        Binding("left,right", "app.focus_next", "Other", show=False),
    ]

    def __init__(self, question: str, consequences: str, deed: str, lines: Sequence[str] = ()) -> None:
        """`deed` is the word on the button that does it, `lines` are the command lines that do the same."""
        super().__init__()
        self._question, self._consequences, self._deed = question, consequences, deed
        self._lines = spelt_out(lines)

    def compose(self) -> ComposeResult:
        with Vertical(id="confirm-box"):
            yield Static(self._question, id="confirm-question", markup=False)
            if self._consequences:
                yield Static(self._consequences, id="confirm-consequences", markup=False)
            if self._lines:
                yield Static(self._lines, id="confirm-lines", markup=False)
            with Horizontal(id="confirm-buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button(self._deed, id="confirm", variant="error", compact=True)

    def on_mount(self) -> None:
        self.query_one("#cancel", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "confirm")

    def action_cancel(self) -> None:
        self.dismiss(False)

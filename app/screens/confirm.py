"""Asks again before something destructive, says what it would hit, and leans towards no."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static


class ConfirmScreen(ModalScreen[bool]):
    """Ends with True only when the button that names the deed is pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n,q", "cancel", "Cancel"),
        Binding("left,right", "app.focus_next", "Other", show=False),
    ]

    def __init__(self, question: str, consequences: str, deed: str) -> None:
        """`deed` is the word on the button that does it."""
        super().__init__()
        self._question, self._consequences, self._deed = question, consequences, deed

    def compose(self) -> ComposeResult:
        with Vertical(id="confirm-box"):
            yield Static(self._question, id="confirm-question", markup=False)
            yield Static(self._consequences, id="confirm-consequences", markup=False)
            with Horizontal(id="confirm-buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button(self._deed, id="confirm", variant="error", compact=True)

    def on_mount(self) -> None:
        self.query_one("#cancel", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "confirm")

    def action_cancel(self) -> None:
        self.dismiss(False)

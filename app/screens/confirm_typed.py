"""Asks before the worst: what it would hit, and then the name of the cluster, typed by hand. Enter alone does nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from quarterdeck.app.screens.confirm import spelt_out
from quarterdeck.backend.picture.one_line import one_line


class ConfirmTypedScreen(ModalScreen[bool]):
    """Ends with True only after the cluster's name was typed as it is; the button that does it is dead until then."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel", priority=True)]

    def __init__(self, question: str, consequences: str, deed: str, name: str, lines: Sequence[str] = ()) -> None:
        """`deed` is the word on the button, `name` what has to be typed, `lines` the command lines that do the same."""
        super().__init__()
        self._question, self._consequences, self._deed = question, consequences, deed
        self._wanted, self._lines = one_line(name), spelt_out(lines)

    def compose(self) -> ComposeResult:
        with Vertical(id="confirm-box"):
            yield Static(self._question, id="confirm-question", markup=False)
            if self._consequences:
                yield Static(self._consequences, id="confirm-consequences", markup=False)
            if self._lines:
                yield Static(self._lines, id="confirm-lines", markup=False)
            yield Static(f"Type the name of the cluster, {self._wanted}, to go on:", id="confirm-asked", markup=False)
            yield Input(id="confirm-name", compact=True)
            with Horizontal(id="confirm-buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button(self._deed, id="confirm", variant="error", compact=True, disabled=True)

    def on_mount(self) -> None:
        self.query_one("#confirm-name", Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one("#confirm", Button).disabled = event.value.strip() != self._wanted

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip() == self._wanted:
            self.dismiss(True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "confirm")

    def action_cancel(self) -> None:
        self.dismiss(False)

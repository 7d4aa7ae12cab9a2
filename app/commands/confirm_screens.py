"""Asks again before something destructive, says what it would hit, and leans towards no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from quarterdeck.backend.picture.text.formatting import one_line

LINES_SHOWN = 3


def shown_lines(lines: Sequence[str]) -> str:
    """Command lines below one another; of many only the first."""
    more = [f"… and {len(lines) - LINES_SHOWN} more"] if len(lines) > LINES_SHOWN else []
    return "\n".join([*(f"$ {one_line(line)}" for line in lines[:LINES_SHOWN]), *more])


class ConfirmDialog(ModalScreen[bool]):
    """A question with two buttons, one of which says no."""

    def __init__(self, question: str, consequences: str, verb: str, lines: Sequence[str] = ()) -> None:
        """`verb` is the word on the button that does it, `lines` are the command lines that do the same."""
        super().__init__()
        self._question, self._consequences, self._verb = question, consequences, verb
        self._lines = shown_lines(lines)

    def compose(self) -> ComposeResult:
        with Vertical(id="confirm-box"):
            yield Static(self._question, id="confirm-question", markup=False)
            if self._consequences:
                yield Static(self._consequences, id="confirm-consequences", markup=False)
            if self._lines:
                yield Static(self._lines, id="confirm-lines", markup=False)
            yield from self._typed()
            with Horizontal(id="confirm-buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button(self._verb, id="confirm", variant="error", compact=True)
            yield Static(self.keys_text(), id="confirm-keys", markup=False)

    def keys_text(self) -> str:
        """The keys of the dialog, in words."""
        raise NotImplementedError

    def _typed(self) -> ComposeResult:
        """What has to be typed first: nothing."""
        yield from ()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "confirm")

    def action_cancel(self) -> None:
        self.dismiss(False)


class ConfirmScreen(ConfirmDialog):
    """Ends with True only when the button is pressed that names what is done, or `y`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "confirm", "Yes"),
        Binding("escape,n,q", "cancel", "Cancel"),
        Binding("left,right", "app.focus_next", "Other", show=False),
    ]

    def keys_text(self) -> str:
        return f"y {self._verb.lower()}   n cancel   ← → choose, enter does what is chosen"

    def action_confirm(self) -> None:
        self.dismiss(True)

    def on_mount(self) -> None:
        self.query_one("#cancel", Button).focus()


class ConfirmTypedScreen(ConfirmDialog):
    """Ends with True only after the cluster's name was typed as it is; the button that does it is dead until then."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel", priority=True)]

    def __init__(self, question: str, consequences: str, verb: str, name: str, lines: Sequence[str] = ()) -> None:
        """`name` is what has to be typed."""
        super().__init__(question, consequences, verb, lines)
        self._wanted = one_line(name)

    def keys_text(self) -> str:
        return f"enter {self._verb.lower()}, once the name stands there   esc cancel"

    def _typed(self) -> ComposeResult:
        yield Static(f"Type the name of the cluster, {self._wanted}, to go on:", id="confirm-asked", markup=False)
        yield Input(id="confirm-name", compact=True)

    def on_mount(self) -> None:
        self.query_one("#confirm", Button).disabled = True
        self.query_one("#confirm-name", Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one("#confirm", Button).disabled = event.value.strip() != self._wanted

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip() == self._wanted:
            self.dismiss(True)

"""Asks before a dangerous command is done: with a button that says no, or with the cluster's name to type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from quarterdeck.app.actions.action import Action
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.clusters.connection_status import ConnectionStatusSource
from quarterdeck.backend.core.commands.commands import Command
from quarterdeck.backend.picture.text.formatting import one_line

if TYPE_CHECKING:
    from textual.screen import ModalScreen

LINES_SHOWN = 3


def shown_lines(lines: Sequence[str]) -> str:
    """Return command lines one below the other; of many only the first."""
    more = [f"… and {len(lines) - LINES_SHOWN} more"] if len(lines) > LINES_SHOWN else []
    return "\n".join([*(f"$ {one_line(line)}" for line in lines[:LINES_SHOWN]), *more])


class ConfirmDialog(ModalScreen[bool]):
    """A question with two buttons, of which one says no."""

    DEFAULT_CSS = """
    ConfirmDialog { align: center middle; }
    #confirm-lines { margin: 0 0 1 0; color: $text-muted; }
    #confirm-name { width: 1fr; margin: 0 0 1 0; background: $panel; }
    #confirm-box {
        width: 64; max-width: 90%; height: auto; border: thick $error; background: $surface; padding: 0 1;
    }
    #confirm-question { text-style: bold; margin: 0 0 1 0; }
    #confirm-consequences { margin: 0 0 1 0; }
    #confirm-buttons { height: 1; }
    #confirm-keys { color: $text-muted; }
    #confirm-buttons Button { margin: 0 2 0 0; }
    """

    def __init__(self, question: str, consequences: str, verb: str, lines: Sequence[str] = ()) -> None:
        """Create a dialog. `verb` is the word on the button that does it, `lines` are the command lines that do the same."""
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
        raise NotImplementedError

    def _typed(self) -> ComposeResult:
        """Yield the widgets in which something has to be typed first."""
        yield from ()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "confirm")

    def action_cancel(self) -> None:
        self.dismiss(False)


class ConfirmScreen(ConfirmDialog):
    """A dialog that ends with True only when its button is pressed, or `y`."""

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
    """A dialog that ends with True only after the cluster's name was typed; the button is disabled until then."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel", priority=True)]

    def __init__(self, question: str, consequences: str, verb: str, name: str, lines: Sequence[str] = ()) -> None:
        """Create a dialog. `name` is what has to be typed."""
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


def confirmation_for(session: ConsoleSession, action: Action, commands: Sequence[Command]) -> ModalScreen[bool] | None:
    """Return the dialog to show before `commands` are done. Return None if they are done at once, as always in a copy."""
    if session.cluster.source == "copy":
        return None
    # Imported at the first question, so that the console is on the screen sooner.
    from quarterdeck.app.commands.command_text import connect_options, lines_of, question
    from quarterdeck.backend.picture.what_if.blast_radius import blast_radius
    from quarterdeck.backend.picture.what_if.confirmation_level import confirmation_level

    cluster = session.cluster
    danger = confirmation_level(session.picture, commands, remote=isinstance(cluster, ConnectionStatusSource))
    if danger == "none" and not action.destructive:
        return None

    asked, verb = question(commands)
    consequences = blast_radius(session.picture, commands)
    lines = lines_of(commands, connect_options(cluster))
    if danger == "type-name":
        return ConfirmTypedScreen(asked, consequences, verb, cluster.name, lines)
    return ConfirmScreen(asked, consequences, verb, lines)

"""Asks before a dangerous command is done: with a button that says no, or with the cluster's name to type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Static

from quarterdeck.app.actions.action import Action
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.clusters.cluster import ConnectionStatusSource
from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.dialog import Dialog

LINES_SHOWN = 3
"""Command lines; of more only the first are shown."""


class ConfirmScreen(Dialog[bool]):
    """A question that ends with True only when its button is pressed, or `y`.

    Where the name of the cluster has to be typed first, the button is disabled until it stands there.
    """

    DEFAULT_CSS = """
    ConfirmScreen { align: center middle; }
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

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "confirm", "Yes"),
        Binding("n,q", "dismiss(False)", "Cancel"),
        Binding("escape", "dismiss(False)", "Cancel", priority=True),
        Binding("left,right", "app.focus_next", "Other", show=False),
    ]

    def __init__(
        self, question: str, consequences: str, verb: str, lines: Sequence[str] = (), *, typed: str = ""
    ) -> None:
        """Create a dialog. `verb` is the word on the button that does it, `lines` are the command lines that do the same.

        `typed` is the name that has to be typed first; empty for none.
        """
        super().__init__()
        self._question, self._consequences, self._verb = question, consequences, verb
        more = [f"… and {len(lines) - LINES_SHOWN} more"] if len(lines) > LINES_SHOWN else []
        self._lines = "\n".join([*(f"$ {one_line(line)}" for line in lines[:LINES_SHOWN]), *more])
        self.typed = one_line(typed)

    def compose(self) -> ComposeResult:
        with Vertical(id="confirm-box"):
            yield Static(self._question, id="confirm-question", markup=False)
            if self._consequences:
                yield Static(self._consequences, id="confirm-consequences", markup=False)
            if self._lines:
                yield Static(self._lines, id="confirm-lines", markup=False)
            if self.typed:
                yield Static(f"Type the name of the cluster, {self.typed}, to go on:", id="confirm-asked", markup=False)
                yield Input(id="confirm-name", compact=True)
            with Horizontal(id="confirm-buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button(self._verb, id="confirm", variant="error", compact=True, disabled=bool(self.typed))
            keys = "y {}   n cancel   ← → choose, enter does what is chosen"
            if self.typed:
                keys = "enter {}, once the name stands there   esc cancel"
            yield Static(keys.format(self._verb.lower()), id="confirm-keys", markup=False)

    def on_mount(self) -> None:
        self.query_one("#confirm-name" if self.typed else "#cancel").focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one("#confirm", Button).disabled = event.value.strip() != self.typed

    @on(Button.Pressed, "#cancel")
    def cancel(self) -> None:
        self.dismiss(False)  # on this dialog, whatever is on the screen by then

    @on(Input.Submitted)
    @on(Button.Pressed, "#confirm")
    def action_confirm(self) -> None:
        if not self.query_one("#confirm", Button).disabled:
            self.dismiss(True)


def confirmation_for(session: ConsoleSession, action: Action, commands: Sequence[Command]) -> ConfirmScreen | None:
    """Return the dialog to show before `commands` are done. Return None if they are done at once, as always in a copy."""
    if session.is_copy:
        return None
    # Imported at the first question, so that the console is on the screen sooner.
    from quarterdeck.app.commands.command_text import connect_options, lines_of, question
    from quarterdeck.backend.judgement.what_if.blast_radius import blast_radius
    from quarterdeck.backend.judgement.what_if.prediction import confirmation_level

    cluster = session.cluster
    danger = confirmation_level(session.picture, commands, remote=isinstance(cluster, ConnectionStatusSource))
    if danger == "none" and not action.destructive:
        return None

    asked, verb = question(commands)
    consequences = blast_radius(session.picture, commands)
    lines = lines_of(commands, connect_options(cluster))
    return ConfirmScreen(asked, consequences, verb, lines, typed=cluster.name if danger == "type-name" else "")

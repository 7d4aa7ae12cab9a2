"""Every key and every command, read from the registry and so always true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from app.actions.action import ViewName
from app.actions.registry import available_actions
from app.key_map import display_of, keys_of
from backend.picture.beliefs import CELLS, DISSENT_GLYPH

MOVING = (
    ("j k ↑ ↓", "move the cursor, or scroll the events"),
    ("g G", "first and last row; oldest event, newest event and follow"),
    ("← →", "scroll the members sideways; while looking at a member, go to another one"),
    ("t", "while looking at a member, the older text of its list and back"),
    ("space", "select the row under the cursor, or take it out of the selection"),
    ("tab", "go to the events and back"),
    ("esc", "select none, show all events, close what is open"),
    ("^p", "palette"),
)

STATES = (
    "   ".join(cell.text for cell in CELLS.values())
    + f"   {DISSENT_GLYPH} another list than most, or another table than its master"
)

KEY_WIDTH = 12
USAGE_WIDTH = 30


class HelpScreen(ModalScreen[None]):
    """Shows what can be done to this cluster: on a read-only one nothing that changes it is listed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "close", "Close")]

    def __init__(self, view: ViewName, *, writable: bool, wanted_keys: Mapping[str, str]) -> None:
        """`wanted_keys` are those that the operator wants instead of the registry's."""
        super().__init__()
        self._view, self._writable, self._wanted = view, writable, wanted_keys

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help-box"):
            yield Static(self._text(), id="help-text")

    def action_close(self) -> None:
        self.dismiss()

    def _text(self) -> Text:
        actions = available_actions(self._writable)
        text = Text()
        known = keys_of(self._view, writable=self._writable, wanted=self._wanted)
        shown = {action.id: action for action in known.values()}
        ordered = sorted(shown.values(), key=lambda action: not action.views)
        for heading in dict.fromkeys("Here" if action.views else action.group for action in ordered):
            text.append(f"{heading}\n", "bold")
            for action in ordered:
                if heading == ("Here" if action.views else action.group):
                    display = display_of(action, self._wanted)
                    text.append(f"  {display:<{KEY_WIDTH}}{action.meaning}")
                    text.append(" Asks first.\n" if action.destructive else "\n")
        text.append("Moving\n", "bold")
        for keys, meaning in MOVING:
            text.append(f"  {keys:<{KEY_WIDTH}}{meaning}\n")
        text.append("Commands after :\n", "bold")
        for word in (word for action in actions for word in action.words):
            text.append(f"  {word.usage:<{USAGE_WIDTH}}{word.meaning}\n")
        text.append("How one member sees another\n", "bold")
        text.append(f"  {STATES}\n")
        return text

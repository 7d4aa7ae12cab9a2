"""Every key and every command, read from the registry and so always true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.actions.allowed import Allowed
from quarterdeck.app.actions.registry import available_actions
from quarterdeck.app.key_map import FIXED_GROUP, FIXED_KEYS, display_of, keys_of
from quarterdeck.backend.picture.boards.belief_matrix import BELIEF_CELLS, DISSENT_GLYPH

STATES = (
    "   ".join(cell.text for cell in BELIEF_CELLS.values())
    + f"   {DISSENT_GLYPH} another list than most, or another table than its master"
)

KEY_WIDTH = 12
USAGE_WIDTH = 30


class HelpScreen(ModalScreen[None]):
    """Shows what can be done to this cluster: on a read-only one nothing that changes it is listed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "close", "Close"),
        Binding("j", "scroll('scroll_down')", show=False),
        Binding("k", "scroll('scroll_up')", show=False),
        Binding("g", "scroll('scroll_home')", show=False),
        Binding("G", "scroll('scroll_end')", show=False),
    ]

    def __init__(self, view: ViewName, *, allowed: Allowed, configured_keys: Mapping[str, str]) -> None:
        """`configured_keys` are those that the operator wants instead of the registry's."""
        super().__init__()
        self._view, self._allowed, self._configured = view, allowed, configured_keys

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help-box"):
            yield Static(self._text(), id="help-text")

    def action_close(self) -> None:
        self.dismiss()

    def action_scroll(self, how: str) -> None:
        """By the keys that move elsewhere."""
        getattr(self.query_one("#help-box", VerticalScroll), how)(animate=False)

    def _text(self) -> Group:
        """Tables without lines: what is wrapped goes on under its own beginning."""
        actions = available_actions(self._allowed)
        known = keys_of(self._view, allowed=self._allowed, configured=self._configured)
        shown = {action.id: action for action in known.values()}
        ordered = sorted(shown.values(), key=lambda action: not action.views)
        parts: list[Text | Table] = []
        for heading in dict.fromkeys("Here" if action.views else action.group for action in ordered):
            here = [action for action in ordered if heading == ("Here" if action.views else action.group)]
            told = [
                (display_of(action, self._configured), action.meaning + " Asks first." * action.destructive)
                for action in here
            ]
            parts += _section(heading, told, KEY_WIDTH)
        parts += _section(FIXED_GROUP, FIXED_KEYS, KEY_WIDTH)
        words = [(word.usage, word.meaning) for action in actions for word in action.words]
        parts += _section("Commands after :", words, USAGE_WIDTH)
        parts += [Text("How one member sees another", "bold"), Text(f"  {STATES}")]
        return Group(*parts)


def _section(heading: str, lines: Iterable[tuple[str, str]], width: int) -> tuple[Text, Table]:
    """Names, the first column `width` wide where there is room, and beside them what they mean."""
    table = Table.grid(padding=(0, 0, 0, 2), pad_edge=True, expand=True)
    table.add_column(min_width=KEY_WIDTH, max_width=width)
    table.add_column(ratio=1)
    for name, meaning in lines:
        table.add_row(Text(name), Text(meaning))
    return Text(heading, "bold"), table

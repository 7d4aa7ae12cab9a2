"""Runbooks of what is wrong now; every key and command, read from the registry and so always true; and what glyphs mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input, Static

from quarterdeck.app.actions.action import Allowed, ViewName
from quarterdeck.app.actions.registry import available_actions
from quarterdeck.app.actions.views import VIEW_NAMES
from quarterdeck.app.key_map import FIXED_GROUP, FIXED_KEYS, display_of, keys_of
from quarterdeck.backend.boards.belief_matrix import BELIEF_CELLS, DISSENT_GLYPH
from quarterdeck.backend.boards.member_board import STATE_SIGNS
from quarterdeck.backend.boards.migration_board import SIGNS as MIGRATION_SIGNS
from quarterdeck.backend.boards.network_board import LINK_SIGNS
from quarterdeck.backend.picture.text.formatting import text_filter
from quarterdeck.widgets.dialog import Dialog

_HERE = Path(__file__).resolve()
PAGE = next(
    page
    for page in (_HERE.with_name("runbooks.md"), *(folder / "docs/operators/runbooks.md" for folder in _HERE.parents))
    if page.is_file()
)
"""Beside the code in a wheel; in a checkout it stands among the documents."""

_LABEL = re.compile(r"(?:\* )?\*\*(See|Costs|Now|For good):\*\* ")
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")

Runbook = list[tuple[str, str]]
"""What to do about one thing: headings, of which the first is empty, each with its text."""


def runbook_of(name: str) -> Runbook:
    """Return the section on a condition or a kind of observation; empty if there is none."""
    return _sections().get(name, [])


@cache
def _sections() -> dict[str, Runbook]:
    found: dict[str, Runbook] = {}
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = re.sub(r"^# .*", "", section, flags=re.MULTILINE).partition("\n")
        first, *labelled = _LABEL.split(_LINK.sub(r"\1", " ".join(text.split())).replace("`", ""))
        parts = [("", first), *zip(labelled[::2], labelled[1::2], strict=True)]
        found[name] = [(label, said.strip().removesuffix(" *")) for label, said in parts if said.strip()]
    return found


KEY_WIDTH = 12
USAGE_WIDTH = 30
TWO_COLUMNS = 150
"""The width of the screen from which sections stand side by side."""

CLOSING = "/ search   j k scroll   esc closes   : and a word does the same as a key"

LEGEND = (
    ("how members see others", "   ".join(cell.text for cell in BELIEF_CELLS.values())),
    ("what members do", "   ".join(f"{sign.glyph} {state}" for state, sign in STATE_SIGNS.items())),
    ("migrations", "   ".join(f"{sign.glyph} {state}" for state, sign in MIGRATION_SIGNS.items())),
    ("links", "   ".join(f"{sign.glyph} {word}" for word, sign in LINK_SIGNS.items())),
    ("clusters", "∦ do not merge   ⊘ out of reach of this console"),
    ("lists and tables", f"{DISSENT_GLYPH} another list than most, or another table than its master"),
    ("rows", "▸ cursor   ■ selected   ↑ ↓ sorted by this column"),
)
"""Groups of glyphs with their words."""


class HelpSection(NamedTuple):
    """Lines under one heading: names and their meanings."""

    heading: str
    lines: list[tuple[str, str]]
    width: int = KEY_WIDTH
    """The width of the first column, where there is room."""


class HelpScreen(Dialog[None]):
    """Shows what can be done to this cluster, and nothing else."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    #help-box { width: 95%; max-width: 180; height: 90%; border: round $primary; background: $surface; padding: 0 1; }
    #help-text { height: auto; }
    #help-search { height: 1; }
    #help-scroll { height: 1fr; scrollbar-size: 1 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "close", "Close"),
        Binding("slash", "search", show=False),
        Binding("j", "scroll('scroll_down')", show=False),
        Binding("k", "scroll('scroll_up')", show=False),
        Binding("g", "scroll('scroll_home')", show=False),
        Binding("G", "scroll('scroll_end')", show=False),
    ]

    def __init__(
        self, view: ViewName, runbooks: Sequence[str] = (), *, allowed: Allowed, configured_keys: Mapping[str, str]
    ) -> None:
        """Create the screen. `runbooks` come first; `configured_keys` are those that replace the registry's."""
        super().__init__()
        self._runbooks = runbooks
        self._view, self._allowed, self._configured = view, allowed, configured_keys

    def compose(self) -> ComposeResult:
        with Vertical(id="help-box") as box:
            box.border_title, box.border_subtitle = f"Keys in {self._view.replace('-', ' ')}", CLOSING
            yield Input(placeholder="search: text, !text or /expression/", compact=True, id="help-search")
            with VerticalScroll(id="help-scroll"):
                yield Static(id="help-text")

    def on_mount(self) -> None:
        self.query_one("#help-search").display = False
        self.query_one("#help-scroll").focus()
        self._show("")

    def on_resize(self) -> None:
        self._show(self.query_one("#help-search", Input).value)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._show(event.value)

    def on_input_submitted(self) -> None:
        self.query_one("#help-scroll").focus()

    def action_search(self) -> None:
        search = self.query_one("#help-search", Input)
        search.display = True
        search.focus()

    def action_close(self) -> None:
        """Close the search, or the screen if there is none."""
        search = self.query_one("#help-search", Input)
        if search.display:
            search.value, search.display = "", False
            self.query_one("#help-scroll").focus()
        else:
            self.dismiss()

    def action_scroll(self, how: str) -> None:
        """Scroll by one of the keys that move the cursor elsewhere."""
        getattr(self.query_one("#help-scroll", VerticalScroll), how)(animate=False)

    def _show(self, wanted: str) -> None:
        selects = text_filter(wanted) if wanted.strip() else lambda _: True
        found = [
            section._replace(lines=[line for line in section.lines if selects(" ".join((section.heading, *line)))])
            for section in self._sections()
        ]
        shown = [section for section in found if section.lines]
        text = self.query_one("#help-text", Static)
        if not shown:
            text.update(Text("no key or command matches"))
        elif self.app.size.width < TWO_COLUMNS:
            text.update(Group(*map(_drawn, shown)))
        else:
            # two parts of similar length, in the order of the sections
            lengths = [len(section.lines) + 1 for section in shown]
            place = min(range(len(shown) + 1), key=lambda split: abs(sum(lengths[:split]) - sum(lengths[split:])))
            first, second = shown[:place], shown[place:]
            beside = Table.grid(padding=(0, 2, 0, 0), expand=True)
            beside.add_column(ratio=1)
            beside.add_column(ratio=1)
            beside.add_row(Group(*map(_drawn, first)), Group(*map(_drawn, second)))
            text.update(beside)

    def _sections(self) -> Iterable[HelpSection]:
        """Yield what helps now, what can be done in this view, everywhere, and in the other views; then words and glyphs."""
        for name in self._runbooks:
            yield HelpSection(f"Runbook: {name}", runbook_of(name))
        known = keys_of(self._view, allowed=self._allowed, configured=self._configured)
        shown = {action.id: action for action in known.values()}
        ordered = sorted(shown.values(), key=lambda action: not action.views)
        for heading in dict.fromkeys("Here" if action.views else action.group for action in ordered):
            here = [action for action in ordered if heading == ("Here" if action.views else action.group)]
            yield HelpSection(
                heading,
                [
                    (display_of(action, self._configured), action.meaning + " Asks first." * action.destructive)
                    for action in here
                ],
            )
        yield HelpSection(FIXED_GROUP, list(FIXED_KEYS))
        yield HelpSection("What the glyphs mean", list(LEGEND), USAGE_WIDTH)
        actions = available_actions(self._allowed)
        for view in VIEW_NAMES:
            own = [action for action in actions if view in action.views and view != self._view and action.keys]
            lines = [(display_of(action, self._configured), action.meaning) for action in own]
            yield HelpSection(f"In {view.replace('-', ' ')}", lines)
        words = [(word.usage, word.meaning) for action in actions for word in action.words]
        yield HelpSection("Commands after :", words, USAGE_WIDTH)


def _drawn(section: HelpSection) -> RenderableType:
    """Return a table without lines; wrapped text continues below its own beginning."""
    table = Table.grid(padding=(0, 0, 0, 2), pad_edge=True, expand=True)
    table.add_column(min_width=KEY_WIDTH, max_width=section.width)
    table.add_column(ratio=1)
    for name, meaning in section.lines:
        table.add_row(Text(name), Text(meaning))
    return Group(Text(section.heading, "bold"), table)

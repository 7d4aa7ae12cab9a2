"""The line at the bottom for typed words: commands after ``:``, a filter after ``/``; completion and history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import Hide, Key
from textual.message import Message
from textual.strip import Strip
from textual.suggester import Suggester
from textual.widgets import Input, Static

from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.component_styles import ComponentStyles, fit, painted_line

Completion = Callable[[str], str | None]
"""Returns the line that a beginning most likely becomes, or None."""


class TypedText(Message):
    """The text in a prompt after its sign."""

    def __init__(self, sign: str, text: str = "") -> None:
        super().__init__()
        self.sign, self.text = sign, text


class Prompt(Horizontal):
    """A line that is hidden until `ask`, and then has the focus until it is answered or dismissed."""

    class Changed(TypedText):
        """The text has changed."""

    class Answered(TypedText):
        """Enter was pressed."""

    class Dismissed(TypedText):
        """Escape was pressed."""

    def __init__(
        self, complete: Completion, typed_before: Callable[[str], Sequence[str]], *, id: str | None = None
    ) -> None:
        """Create a prompt. `typed_before` returns the answers so far to a sign, oldest first."""
        super().__init__(id=id)
        self.sign = ""
        """The sign before the line; empty while the prompt is hidden."""
        self._complete = complete
        self._typed_before = typed_before
        # Made here, not on mount: the prompt may be opened in the first instant of the screen.
        self._sign_shown = Static("", id="prompt-sign", markup=False)
        self._line = PromptInput(_Completer(self.suggest), id="prompt-input")
        self._back = 0
        """How many answers the line is back in the history; 0 is the one being written."""
        self.offered = ""
        """The text with which the line was opened last."""

    def compose(self) -> ComposeResult:
        yield self._sign_shown
        yield self._line

    def on_mount(self) -> None:
        self.display = bool(self.sign)
        if self.sign:
            self.screen.set_focus(self._line)

    def ask(self, sign: str, text: str = "") -> None:
        self.sign, self._back, self.offered = sign, 0, text
        self._sign_shown.update(sign)
        self.display = True
        self._line.value = text
        self._line.cursor_position = len(text)
        if self.is_mounted:
            # At once, not by `focus`, which is deferred: the next keys would still act in the widget that had the focus.
            self.screen.set_focus(self._line)
        if sign == ":" and not text:
            self.post_message(self.Changed(sign, text))  # show the candidates at once

    def type_in(self, letters: str) -> None:
        """Insert `letters` at the cursor."""
        self._line.insert_text_at_cursor(letters)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.sign and event.value == self._line.value:  # else the line was answered and opened again meanwhile
            self.post_message(self.Changed(self.sign, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        sign, text = self.sign, event.value
        self._hide()
        self.post_message(self.Answered(sign, text))

    def dismiss(self) -> None:
        sign = self.sign
        self._hide()
        self.post_message(self.Dismissed(sign))

    def recall(self, steps: int) -> None:
        """Show an earlier answer, or with negative `steps` a later one."""
        past = self._typed_before(self.sign)
        self._back = min(max(self._back + steps, 0), len(past))
        self._line.value = past[-self._back] if self._back else ""
        self._line.cursor_position = len(self._line.value)

    def _hide(self) -> None:
        self.sign = ""
        self.display = False

    def suggest(self, beginning: str) -> str | None:
        """Return the line that `beginning` most likely becomes; only commands are completed."""
        return self._complete(beginning) if self.sign == ":" else None


class PromptInput(Input):
    """The line itself: tab completes, up and down walk through the history."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", show=False),
        Binding("up", "recall(1)", "Earlier", show=False),
        Binding("down", "recall(-1)", "Later", show=False),
        Binding("tab", "complete", "Complete", show=False),
    ]

    def __init__(self, suggester: Suggester, *, id: str) -> None:
        super().__init__(id=id, suggester=suggester, compact=True, select_on_focus=False)

    def on_hide(self, event: Hide) -> None:
        """Keep the focus if the line was opened again before the news that it was hidden: Textual would take it away."""
        if self.parent is not None and self.parent.display:
            event.prevent_default()

    async def on_key(self, event: Key) -> None:
        """Do what the line's own key does at once: letters typed after it would overtake a key that bubbles up first."""
        bound = self._bindings.key_to_bindings.get(event.key)
        if bound:
            event.stop()
            event.prevent_default()
            await self.run_action(bound[0].action)

    def render_line(self, y: int) -> Strip:
        """Paint control characters of a name visibly, so that they cannot steer the terminal. The text keeps them."""
        strip = super().render_line(y)
        if strip.text.isprintable():
            return strip
        return Strip([Segment(one_line(segment.text), segment.style) for segment in strip])

    @property
    def prompt(self) -> Prompt:
        parent = self.parent
        assert isinstance(parent, Prompt)
        return parent

    def action_dismiss(self) -> None:
        self.prompt.dismiss()

    def action_recall(self, steps: int) -> None:
        self.prompt.recall(steps)

    def action_complete(self) -> None:
        # The suggestion painted behind the cursor comes late and disappears after a change of focus.
        whole = self.prompt.suggest(self.value) if self.cursor_at_end else None
        if whole is not None:
            self.value = whole
            self.cursor_position = len(whole)


class _Completer(Suggester):
    def __init__(self, complete: Completion) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        return self._complete(value)


MOST_ROWS = 6
"""Candidates that are shown at once."""

MOST_WIDTH = 40
"""Cells of the first column."""


class CandidateList(ComponentStyles):
    """A list of candidates, hidden while it has none. Tab completes to the first candidate."""

    PREFIX = "candidate-list"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: tuple[tuple[str, str], ...] = ()
        self._more = 0
        self._effect = ""

    def on_mount(self) -> None:
        self.display = False

    @property
    def text(self) -> str:
        """All text that it shows, line by line."""
        return "\n".join([*(f"{name}  {meaning}".rstrip() for name, meaning in self._rows), self._effect])

    def show(self, rows: Sequence[tuple[str, str]], effect: str) -> None:
        """Show these names with their meanings, and the effect of the line as it is."""
        self._rows = tuple((one_line(name), one_line(meaning)) for name, meaning in rows[:MOST_ROWS])
        self._more, self._effect = max(0, len(rows) - MOST_ROWS), one_line(effect)
        self.styles.height = len(self._rows) + bool(self._effect)
        self.display = bool(self._rows or self._effect)
        self.refresh(layout=True)

    def hide(self) -> None:
        self.display = False

    def render_line(self, y: int) -> Strip:
        plain, width = self.rich_style, self.size.width

        def painted(text: str, part: str) -> tuple[str, Style]:
            return text, self.part_style(part)

        if y < len(self._rows):
            name, meaning = self._rows[y]
            room = min(MOST_WIDTH, max(cell_len(one) for one, _ in self._rows))
            mark = "▸ " if y == 0 else "  "
            more = f"  … {self._more} more" if self._more and y == len(self._rows) - 1 else ""
            runs = [
                painted(f" {mark}{fit(name, room, gap=0)}  ", "first" if y == 0 else "name"),
                painted(f"{meaning}{more}", "meaning"),
            ]
        else:
            runs = [painted(f"   {self._effect}", "effect")]
        return painted_line(runs, width, plain)

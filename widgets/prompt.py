"""The line at the bottom that asks for words: commands after ``:``, a filter after ``/``; completion and history."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.strip import Strip
from textual.suggester import Suggester
from textual.widgets import Input, Static

from quarterdeck.backend.picture.text.formatting import one_line

Completion = Callable[[str], str | None]
"""Gives the whole line that a beginning of it most likely becomes, or None."""

HISTORY_LENGTH = 100


class Prompt(Horizontal):
    """Hidden until `ask`; then it takes the focus until it is answered or dismissed."""

    class Changed(Message):
        """The words so far, at each change."""

        def __init__(self, sign: str, text: str) -> None:
            super().__init__()
            self.sign, self.text = sign, text

    class Answered(Message):
        """Enter was pressed."""

        def __init__(self, sign: str, text: str) -> None:
            super().__init__()
            self.sign, self.text = sign, text

    class Dismissed(Message):
        """Escape was pressed."""

        def __init__(self, sign: str) -> None:
            super().__init__()
            self.sign = sign

    def __init__(
        self, complete: Completion, history: dict[str, list[str]] | None = None, *, id: str | None = None
    ) -> None:
        """`history` has the answers so far by sign, oldest first; several prompts may share it."""
        super().__init__(id=id)
        self._sign = ""
        self._complete = complete
        self._history = history if history is not None else {}
        # Made here, not when it is mounted: somebody may ask in the first instant of the screen.
        self._sign_shown = Static("", id="prompt-sign", markup=False)
        self._line = PromptInput(_Completer(self.suggest), id="prompt-input")
        self._back = 0
        """How many answers back in the history the line stands; 0 is the one being written."""

    def compose(self) -> ComposeResult:
        yield self._sign_shown
        yield self._line

    def on_mount(self) -> None:
        self.display = bool(self._sign)
        if self._sign:
            self.screen.set_focus(self._line)

    @property
    def sign(self) -> str:
        """The sign it asks after, empty while it is hidden."""
        return self._sign

    def ask(self, sign: str, text: str = "") -> None:
        """Show the line after `sign` with `text` on it and take the focus."""
        self._sign, self._back = sign, 0
        self._sign_shown.update(sign)
        self.display = True
        self._line.value = text
        self._line.cursor_position = len(text)
        if self.is_mounted:
            # At once, not `focus`, which waits its turn: the next keys would still go to whoever had the focus and act there.
            self.screen.set_focus(self._line)
        if sign == ":" and not text:
            self.post_message(self.Changed(sign, text))  # there is something to choose from at once

    def type_in(self, letters: str) -> None:
        """Put `letters` on the line where its cursor stands."""
        self._line.insert_text_at_cursor(letters)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._sign:
            self.post_message(self.Changed(self._sign, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        sign, text = self._sign, event.value
        past = self._history.setdefault(sign, [])
        if text and past[-1:] != [text]:
            past.append(text)
            del past[:-HISTORY_LENGTH]
        self._hide()
        self.post_message(self.Answered(sign, text))

    def dismiss(self) -> None:
        """Hide the line unanswered."""
        sign = self._sign
        self._hide()
        self.post_message(self.Dismissed(sign))

    def recall(self, steps: int) -> None:
        """Put an earlier (or again a later) answer on the line."""
        past = self._history.get(self._sign, [])
        self._back = min(max(self._back + steps, 0), len(past))
        self._line.value = past[-self._back] if self._back else ""
        self._line.cursor_position = len(self._line.value)

    def _hide(self) -> None:
        self._sign = ""
        self.display = False

    def suggest(self, beginning: str) -> str | None:
        """The whole line that `beginning` most likely becomes; only commands are completed."""
        return self._complete(beginning) if self._sign == ":" else None


class PromptInput(Input):
    """The line itself: tab completes, up and down walk the history."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", show=False),
        Binding("up", "recall(1)", "Earlier", show=False),
        Binding("down", "recall(-1)", "Later", show=False),
        Binding("tab", "complete", "Complete", show=False),
    ]

    def __init__(self, suggester: Suggester, *, id: str) -> None:
        super().__init__(id=id, suggester=suggester, compact=True, select_on_focus=False)

    def render_line(self, y: int) -> Strip:
        """A name that was put on the line stays as it is, whatever it holds, and is painted so that it steers no terminal."""
        strip = super().render_line(y)
        if strip.text.isprintable():
            return strip
        return Strip([Segment(one_line(segment.text), segment.style) for segment in strip])

    @property
    def prompt(self) -> Prompt:
        """The prompt that this input line belongs to."""
        parent = self.parent
        assert isinstance(parent, Prompt)
        return parent

    def action_dismiss(self) -> None:
        self.prompt.dismiss()

    def action_recall(self, steps: int) -> None:
        self.prompt.recall(steps)

    def action_complete(self) -> None:
        # Asked for anew: the suggestion painted behind the cursor comes late, and is gone after a change of focus.
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

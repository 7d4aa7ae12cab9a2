"""An editor for join lists: one entry on a line, checked while typing, with the changes beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Button, Static, TextArea

from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.merging.join_list_edit import SIGN_TONES, Draft, EditPlan, plan_edit, read_draft
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import counted, one_line
from quarterdeck.widgets.fact_sheet import FactSheet

JUDGE_SECONDS = 0.05
"""How long typing has to rest before the list is checked: with a thousand entries that takes a while."""

UNCHANGED_SHOWN = 40
"""If more entries than this stay, they are only counted."""


class JoinListEditor(ModalScreen[tuple[EditPlan, ...] | None]):
    """A dialog that returns the changes to apply, or None. It does not change the cluster itself."""

    DEFAULT_CSS = """
    JoinListEditor { align: center middle; }
    #list-box { width: 130; max-width: 96%; height: 85%; border: thick $warning; background: $surface; padding: 0 1; }
    #list-question { height: 1; text-style: bold; }
    #list-sides { height: 1fr; }
    #list-text { width: 2fr; height: 1fr; border: none; padding: 0; }
    #list-changes { width: 3fr; height: 1fr; scrollbar-size: 1 1; margin: 0 0 0 1; }
    #list-buttons { height: 1; }
    #list-buttons Button { margin: 0 2 0 0; }
    #list-keys { width: 1fr; height: 1; color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel", key_display="esc"),
        Binding("ctrl+s", "apply", "apply", key_display="^s", priority=True),
        Binding("ctrl+t", "others", "one or all", key_display="^t", priority=True),
    ]

    def __init__(
        self, picture: Callable[[], Picture], masters: Sequence[str], all_masters: Sequence[str], text: str
    ) -> None:
        """Edit `text`. `masters` are those of the clusters to edit, `everybody` are the masters of all clusters."""
        super().__init__()
        self._picture, self._masters, self._everybody = picture, tuple(masters), tuple(all_masters)
        self._draft = Draft((), ())
        self._plans: tuple[EditPlan, ...] = ()
        self._timer: Timer | None = None
        self.question = Static("", id="list-question", markup=False)
        self.area = TextArea(text, id="list-text", soft_wrap=False, tab_behavior="focus", show_line_numbers=True)
        self.changes = FactSheet(id="list-changes")

    def compose(self) -> ComposeResult:
        with Vertical(id="list-box"):
            yield self.question
            with Horizontal(id="list-sides"):
                yield self.area
                yield self.changes
            with Horizontal(id="list-buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button("Apply", id="apply", variant="warning", compact=True)
                yield Static("esc cancel  ^s apply  ^t this cluster or all  tab buttons", id="list-keys", markup=False)

    def on_mount(self) -> None:
        self.area.focus()
        self.judge()

    def on_text_area_changed(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(JUDGE_SECONDS, self.judge)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "apply":
            self.action_apply()
        else:
            self.action_cancel()

    def action_cancel(self) -> None:
        self.dismiss(None)

    def action_others(self) -> None:
        """Edit all clusters instead of one; or one, the first, instead of all."""
        others = self._everybody if len(self._masters) < len(self._everybody) else self._masters[:1]
        if others:
            self._masters = others
            self.judge()

    def action_apply(self) -> None:
        self.judge()
        plans = tuple(plan for plan in self._plans if not plan.nothing_new)
        if self._draft.problem is None and plans:
            self.dismiss(plans)

    def judge(self) -> None:
        """Read the text and show what it would change."""
        picture = self._picture()
        self._draft = read_draft(self.area.text.split("\n"), picture)
        leading = [picture.members[label] for label in self._masters if label in picture.members]
        self._plans = tuple(plan_edit(picture, master, self._draft.addresses) for master in leading)
        self.question.update(self._asked())
        self.changes.show(tuple(self._facts()))
        able = self._draft.problem is None and any(not plan.nothing_new for plan in self._plans)
        self.query_one("#apply", Button).disabled = not able

    def _asked(self) -> str:
        names = ", ".join(f"{one_line(label)}'s" for label in self._masters[:4])
        more = f" and {len(self._masters) - 4} more" if len(self._masters) > 4 else ""
        what = "cluster" if len(self._masters) == 1 else "clusters"
        return f"Join list of {names}{more} {what}: {counted(len(self._draft.addresses), 'address', 'addresses')}"

    def _facts(self) -> Iterator[Fact]:
        for remark in self._draft.remarks:
            mark = "✕ " if remark.tone == "bad" else "! "
            yield Fact(f"line {remark.line}", f"{mark}{remark.text}", remark.tone)
        shown: list[tuple[object, ...]] = []
        for plan in self._plans:
            yield Fact("cluster", plan.counts(), "strong")
            signs = tuple((change.sign, change.address) for change in plan.changes)
            if signs in shown:
                yield Fact("", "the same changes", "faint")
                continue
            shown.append(signs)
            kept = sum(change.sign == "=" for change in plan.changes)
            for change in plan.changes:
                if change.sign != "=" or kept <= UNCHANGED_SHOWN:
                    yield Fact("", change.text, SIGN_TONES[change.sign])
            if kept > UNCHANGED_SHOWN:
                yield Fact("", f"= {kept} stay", "faint")

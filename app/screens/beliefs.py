"""The first screen: what every member believes, side by side, and what happens, line by line."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer

from app.event_tones import tone_of
from app.matrix_model import MatrixModel
from app.reach_view import ReachView
from backend.clusters.cluster import Cluster
from backend.core.events import Record
from backend.picture.amounts import counted
from backend.picture.migration_board import progress_text
from backend.picture.narration import narrate
from backend.picture.one_line import one_line
from backend.picture.picture import Picture
from widgets.line_table import LineTable, TableCell
from widgets.prompt import Completion, Prompt
from widgets.status_line import StatusLine
from widgets.tail_log import TailLine, TailLog

MASTERS_QUOTED = 2
"""How many masters are quoted on why they do not merge; each of them takes a line."""


class BeliefsScreen(Screen[None]):
    """Paints what `show` gives it; holds no state of the cluster but the picture that the console folds."""

    def __init__(self, cluster: Cluster, picture: Picture, complete: Completion) -> None:
        super().__init__()
        self._cluster = cluster
        self._picture = picture
        self._matrix = MatrixModel(picture)
        self.reach = ReachView(cluster)
        self._marks: dict[str, str] = {}
        self.header = StatusLine(id="header")
        self.verdict = StatusLine(id="verdict")
        self.apart = tuple(StatusLine(id=f"apart-{place}", classes="apart") for place in range(MASTERS_QUOTED))
        self.message = StatusLine(id="message")
        self.table = LineTable(self._matrix, id="matrix")
        self.tail: TailLog[Record] = TailLog(self._line_of, title="events", id="tail")
        self.prompt = Prompt(complete, id="prompt")

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.verdict
        yield from self.apart
        yield self.table
        yield self.tail
        yield self.message
        yield self.prompt
        yield Footer(show_command_palette=False, compact=True)

    @property
    def behind(self) -> bool:
        """Whether there is something new to show besides records: other members, or news that have become older."""
        return tuple(self._cluster.labels) != tuple(self._matrix.keys) or self.reach.marks() != self._marks

    def on_mount(self) -> None:
        self.show(())
        if not self.prompt.sign:  # else somebody types already
            self.table.focus()

    def show(self, records: Sequence[Record]) -> None:
        """Paint the picture as it is now; `records` are those that came since the last time."""
        self._marks = self.reach.marks()
        self._matrix.update(self._cluster.labels, self._marks)
        self.header.show(self._header_parts())
        survey = self._matrix.survey
        agreed = not survey.dissenters
        self.verdict.show([TableCell("=" if agreed else "≠", "good" if agreed else "warning"), *self._verdict_parts()])
        self._show_apart(survey.apart)
        self.table.show()
        self.tail.extend(records)

    def say(self, text: str, *, error: bool = False) -> None:
        """Put one line above the footer; it stays until the next."""
        parts = [TableCell("✕ error", "bad")] if error else []
        self.message.show([*parts, TableCell(one_line(text), "bad" if error else "plain")])

    def targets(self) -> tuple[str, ...]:
        """The selected members; the one under the cursor when none is selected."""
        return self.table.selection or ((self.table.cursor_key,) if self.table.cursor_key is not None else ())

    def on_prompt_changed(self, message: Prompt.Changed) -> None:
        if message.sign == "/":
            self.tail.set_filter(message.text)

    def on_prompt_dismissed(self, message: Prompt.Dismissed) -> None:
        if message.sign == "/":
            self.tail.set_filter("")
        self.table.focus()

    def _header_parts(self) -> list[TableCell]:
        cluster, picture = self._cluster, self._picture
        running = sum(belief.running for belief in picture.members.values())
        badges = self.reach.badges()
        masters, lost = picture.masters(), picture.history.lost_count
        named = ", ".join(one_line(label) for label in masters[:4]) + (", …" if len(masters) > 4 else "")
        return [
            TableCell(one_line(cluster.name), "strong"),
            TableCell(cluster.source, "faint"),
            *badges,
            TableCell(f"members {running}/{len(cluster.labels)}"),
            TableCell(
                f"master{'s' if len(masters) > 1 else ''} {named or 'none'}", "warning" if len(masters) > 1 else "plain"
            ),
            *self.reach.troubles(),
            TableCell(progress_text(picture)),
            TableCell(f"∅ {counted(lost, 'partition')} lost" if lost else "", "bad"),
            *([] if badges else [TableCell("RW" if cluster.writable else "RO", "strong")]),
        ]

    def _verdict_parts(self) -> list[TableCell]:
        links = self._picture.links.values()
        cut = sum(bool(link.blocked) for link in links)
        worse = len(links) - cut
        parts = [TableCell(self._matrix.survey.sentence, "warning" if self._matrix.survey.dissenters else "plain")]
        if cut:
            parts.insert(0, TableCell(f"✂ {cut} one-way links cut", "bad"))
        if worse:
            parts.insert(0, TableCell(f"~ {worse} one-way links slow or lossy", "warning"))
        return parts

    def _show_apart(self, sentences: Sequence[str]) -> None:
        """Quote the masters that do not merge, one a line; the lines are there only while there is something to quote."""
        for place, line in enumerate(self.apart):
            wanted = place < len(sentences)
            if wanted:
                more = len(sentences) - len(self.apart) if place == len(self.apart) - 1 else 0
                rest = [TableCell(f"({more} more masters)", "faint")] if more > 0 else []
                line.show([TableCell("∦", "warning"), TableCell(sentences[place]), *rest])
            if line.display != wanted:
                line.display = wanted

    def _line_of(self, record: Record) -> TailLine:
        return TailLine(narrate(record, self._picture.label_of), tone_of(record.event))

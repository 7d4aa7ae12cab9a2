"""The columns of the links, from the member of the row to that of the column; and of the faults in force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from quarterdeck.app.commands.command_text import describe
from quarterdeck.app.screen.columns import WIDEST_FACT, BoardModel, ColumnOf, MatrixModel
from quarterdeck.backend.boards.belief_matrix import state_word
from quarterdeck.backend.boards.network_board import LINK_SIGNS, LinkWord, link_word, measured_links
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.network.faults import ActiveFault, FaultKind
from quarterdeck.backend.picture.text.fact import Fact, Tone
from quarterdeck.backend.picture.text.formatting import letter_of, one_line
from quarterdeck.widgets.line_table import MARKER_WIDTH, Column, TableCell

LONGEST_NAME = 18
UNDO_SHOWN = 2
"""The number of commands with which the undoing of a fault is described."""
UNDO_LENGTH = 80

LINK_CELLS = {word: TableCell(f"{sign.glyph} {word}", sign.tone) for word, sign in LINK_SIGNS.items()}
LINK_GLYPHS = {word: TableCell(sign.glyph, sign.tone) for word, sign in LINK_SIGNS.items()}
"""Where there is no room for words; the title of the view has both."""

ITSELF = TableCell("—", "faint")

FAULT_TONES: dict[FaultKind, Tone] = {
    "partition": "bad",
    "cut": "bad",
    "one-way": "bad",
    "killed": "bad",
    "slow": "warning",
    "lossy": "warning",
    "doubling": "warning",
    "dropping": "warning",
    "paused": "warning",
}


class SourceRow(NamedTuple):
    """The member at the beginning of links. `side` is its side in a plan by hand; 0 if it has none."""

    label: str
    letter: str
    state: str
    down: bool
    side: int

    @property
    def tone(self) -> str:
        return "faint" if self.down else "strong" if self.state == "master" else "plain"


LINK_COLUMNS: tuple[ColumnOf[SourceRow], ...] = (
    ColumnOf("", lambda row: row.letter, widest=1),
    ColumnOf("member", lambda row: one_line(row.label)),
    ColumnOf("state", lambda row: row.state, widest="held back"),
)

SIDE_COLUMN: ColumnOf[SourceRow] = ColumnOf(
    "side", lambda row: str(row.side or "·"), lambda row: "strong" if row.side else "faint"
)
"""Shown while sides are chosen by hand."""


class LinkModel(MatrixModel[SourceRow]):
    """Rows are sources, columns are targets; the title of a column is the letter of its member."""

    def __init__(self) -> None:
        super().__init__(LINK_COLUMNS, self._links_from, tone=lambda row: row.tone)
        self._picture = Picture()
        self._letters: dict[str, str] = {}
        self._down: frozenset[str] = frozenset()
        self._words: set[LinkWord] = {"up"}
        self._laid_out: object = None
        self._cells = LINK_CELLS
        self.width = 0
        """The width that the columns were laid out for."""
        self._plain: LinkWord = "up"

    def update(
        self,
        picture: Picture,
        labels: Sequence[str],
        words: Sequence[LinkWord],
        sides: Mapping[str, int],
        width: int = 0,
    ) -> None:
        """Show the links of `picture`, with words where `width` has room for them.

        `words` are the states that links may have now; `sides` are those of a plan by hand.
        """
        self._picture, self.width = picture, width
        members = picture.members
        silent = ("stopped", "killed", "paused")
        self._down = frozenset(label for label in labels if label not in members or members[label].status in silent)
        self._plain = "up" if picture.without("links") is None else "not reported"
        self._words |= {*words, self._plain}
        if self._plain != "up":
            for label in members.keys() & labels:
                self._words |= {*measured_links(members[label]).values()}
        if self._down:
            self._words.add("down")
        keys = tuple(labels)
        if (keys, len(self._words), bool(sides), width) != self._laid_out:
            self._laid_out = (keys, len(self._words), bool(sides), width)
            self._letters = {label: letter_of(place) for place, label in enumerate(keys)}
            self.declare((*LINK_COLUMNS, SIDE_COLUMN) if sides else LINK_COLUMNS)
            self.widen("", self._letters.values())
            self.widen("member", map(one_line, keys), LONGEST_NAME)
            self._cells = LINK_CELLS
            self._show_targets()
            if width and MARKER_WIDTH + sum(column.width for column in self.columns) - 1 > width:
                self._cells = LINK_GLYPHS
                self._show_targets()

        def row_of(key: str) -> SourceRow:
            return SourceRow(key, self._letters[key], self._state(key), key in self._down, sides.get(key, 0))

        self.show_rows(keys, row_of)

    def _show_targets(self) -> None:
        widest = max(len(self._cells[word].text) for word in self._words)
        letters = self._letters.items()
        self.show_members({label: Column(text, max(widest, len(text)) + 1, whole=True) for label, text in letters})

    def _links_from(self, row: SourceRow, targets: Sequence[str]) -> Iterator[TableCell]:
        picture, down, members = self._picture, self._down, self._picture.members
        measured = measured_links(members[row.label]) if self._plain != "up" and row.label in members else {}
        for target in targets:
            if target == row.label:
                yield ITSELF
            elif picture.links:
                yield self._cells[link_word(picture, row.label, target)]
            else:  # nothing was done to any link: the common case, and quick
                word = measured.get(members[target].address, self._plain) if target in members else self._plain
                yield self._cells["down" if row.down or target in down else word]

    def _state(self, label: str) -> str:
        belief = self._picture.members.get(label)
        if belief is None:
            return "not up"
        return state_word(belief) or ("master" if belief.is_master else "")


class FaultModel(BoardModel[ActiveFault]):
    """Rows are faults in force, the latest first."""

    def __init__(self) -> None:
        self._now_us = 0
        columns: tuple[ColumnOf[ActiveFault], ...] = (
            ColumnOf(
                "fault",
                lambda fault: f"{fault.glyph} {fault.kind}",
                lambda fault: FAULT_TONES[fault.kind],
                "⊘ partition",
                lambda fault: fault.kind,
            ),
            ColumnOf(
                "age",
                lambda fault: fault.age(self._now_us),
                widest="119 min",
                rank=lambda fault: None if fault.since_us is None else -fault.since_us,
            ),
            ColumnOf("what", lambda fault: fault.text, widest=WIDEST_FACT, longest=UNDO_LENGTH),
            ColumnOf("undone by", undo_text, "faint", 40),
        )
        super().__init__(columns, fixed=1)

    def update(self, faults: Sequence[ActiveFault], now_us: int) -> None:
        self._now_us = now_us
        by_key = {fault.key: fault for fault in faults}
        self.show_rows(tuple(by_key), by_key.__getitem__, measured=None)


def undo_text(fault: ActiveFault) -> str:
    """Return the commands that undo a fault, the first of them."""
    lines = [one_line(describe(command)) for command in fault.undo[:UNDO_SHOWN]]
    more = len(fault.undo) - UNDO_SHOWN
    spelt = [line if len(line) <= UNDO_LENGTH else f"{line[:UNDO_LENGTH]}…" for line in lines]
    return "; ".join(spelt) + (f"; {more} more" if more > 0 else "")


def fault_facts(fault: ActiveFault, now_us: int) -> tuple[Fact, ...]:
    """Return a fault in full, with all commands that undo it."""
    undo = (Fact("" if place else "undone by", one_line(describe(command))) for place, command in enumerate(fault.undo))
    return (
        Fact("fault", f"{fault.glyph} {fault.kind}", FAULT_TONES[fault.kind]),
        Fact("since", fault.age(now_us)),
        Fact("what", fault.text),
        *undo,
    )

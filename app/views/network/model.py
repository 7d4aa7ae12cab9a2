"""The links as a `TableModel`, from the member of the row to that of the column; and the faults in force as another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from quarterdeck.app.commands.command_text import describe
from quarterdeck.backend.picture.boards.belief_matrix import state_word
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.network.faults import Fault, FaultKind
from quarterdeck.backend.picture.network.network_board import WORD_GLYPHS, WORD_TONES, LinkWord, link_word
from quarterdeck.backend.picture.replicas.replica_cell import letter_of
from quarterdeck.backend.picture.text.fact import Tone
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.line_table import Column, TableCell

LONGEST_NAME = 18

STATE_WIDTH = len("held back") + 1

LINK_CELLS: dict[LinkWord, TableCell] = {
    word: TableCell(f"{glyph} {word}", WORD_TONES[word]) for word, glyph in WORD_GLYPHS.items()
}

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


class LinkModel:
    """Rows are sources, columns targets; a column goes by the letter of its member."""

    def __init__(self) -> None:
        self._picture = Picture()
        self._labels: tuple[str, ...] = ()
        self._letters: dict[str, str] = {}
        self._down: frozenset[str] = frozenset()
        self._sides: Mapping[str, int] = {}
        self._words: set[LinkWord] = {"up"}
        self._name_width = len("member") + 1
        self._laid_out: object = None
        self.columns: tuple[Column, ...] = ()

    @property
    def fixed_columns(self) -> int:
        return 4 if self._sides else 3

    @property
    def keys(self) -> Sequence[str]:
        return self._labels

    def update(
        self, picture: Picture, labels: Sequence[str], words: Sequence[LinkWord], sides: Mapping[str, int]
    ) -> None:
        """Show the links of `picture`. `words` are those that any link may have now; `sides` those of a plan made by hand."""
        self._picture, self._sides = picture, sides
        if len(labels) != len(self._labels) or tuple(labels) != self._labels:
            self._labels = tuple(labels)
            self._letters = {label: letter_of(place) for place, label in enumerate(labels)}
            names = max((cell_len(one_line(label)) for label in labels), default=0)
            self._name_width = max(self._name_width, min(names, LONGEST_NAME) + 1)
        members = picture.members
        self._down = frozenset(
            label
            for label in labels
            if label not in members or members[label].status in ("stopped", "killed", "paused")
        )
        self._words.update(words)
        if self._down:
            self._words.add("down")
        shown = (self._labels, len(self._words), bool(sides))
        if shown != self._laid_out:
            self._laid_out = shown
            width = max(len(LINK_CELLS[word].text) for word in self._words) + 1
            self.columns = (
                Column("", max(map(len, self._letters.values()), default=1) + 1),
                Column("member", self._name_width),
                Column("state", STATE_WIDTH),
                *([Column("side", len("side") + 1)] if sides else []),
                *(Column(letter, max(width, len(letter) + 1)) for letter in self._letters.values()),
            )

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        fixed = self.fixed_columns
        found: list[TableCell] = []
        if first < fixed:
            state = self._state(key)
            tone = "faint" if key in self._down else "strong" if state == "master" else "plain"
            side = self._sides.get(key)
            still = (
                TableCell(self._letters[key], tone),
                TableCell(one_line(key), tone),
                TableCell(state, tone),
                *([TableCell(str(side) if side else "·", "strong" if side else "faint")] if self._sides else []),
            )
            found.extend(still[first:last])
        targets = self._labels[max(first - fixed, 0) : max(last - fixed, 0)]
        links = self._picture.links
        if not links:
            up, down = LINK_CELLS["up"], LINK_CELLS["down"]
            gone = key in self._down
            found.extend(ITSELF if label == key else down if gone or label in self._down else up for label in targets)
        else:
            found.extend(
                ITSELF if label == key else LINK_CELLS[link_word(self._picture, key, label)] for label in targets
            )
        return found

    def outlier(self, key: str) -> bool:
        return False

    def _state(self, label: str) -> str:
        belief = self._picture.members.get(label)
        if belief is None:
            return "not up"
        return state_word(belief) or ("master" if belief.is_master else "")


class FaultModel:
    """Rows are faults in force, the latest first."""

    fixed_columns = 1

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}
        self._now_us = 0
        self.columns: tuple[Column, ...] = (
            Column("fault", len("⊘ partition") + 1),
            Column("age", len("119 min") + 1),
            Column("what", 44),
            Column("undone by", 60),
        )

    @property
    def keys(self) -> Sequence[str]:
        return tuple(self._faults)

    def update(self, faults: Sequence[Fault], now_us: int) -> None:
        """Show `faults`."""
        self._faults = {fault.key: fault for fault in faults}
        self._now_us = now_us

    def fault(self, key: str | None) -> Fault | None:
        """The fault of this key, if it is still in force."""
        return self._faults.get(key) if key is not None else None

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        fault = self._faults[key]
        return (
            TableCell(f"{fault.glyph} {fault.kind}", FAULT_TONES[fault.kind]),
            TableCell(fault.age(self._now_us)),
            TableCell(fault.text),
            TableCell(undo_text(fault), "faint"),
        )[first:last]

    def outlier(self, key: str) -> bool:
        return False

    def rank(self, key: str, title: str) -> object:
        """The oldest last; all else by its text."""
        fault = self._faults[key]
        if title == "age":
            return None if fault.since_us is None else -fault.since_us
        return {"fault": fault.kind, "what": fault.text}.get(title, undo_text(fault))


UNDO_SHOWN = 2
UNDO_LENGTH = 80


def undo_text(fault: Fault) -> str:
    """The commands that end a fault, the first of them."""
    lines = [one_line(describe(command)) for command in fault.undo[:UNDO_SHOWN]]
    more = len(fault.undo) - UNDO_SHOWN
    spelt = [line if len(line) <= UNDO_LENGTH else f"{line[:UNDO_LENGTH]}…" for line in lines]
    return "; ".join(spelt) + (f"; {more} more" if more > 0 else "")

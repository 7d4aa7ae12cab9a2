"""Join lists, and pairs of clusters that do not merge, as `TableModel`s."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.merging.join_list_board import JoinListBoard, ListRow
from quarterdeck.backend.picture.merging.why_not_merging import GLYPHS, TONES, Pair
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.line_table import Column, TableCell

LONGEST_NAME = 22
SOURCE_WIDTH = 34
NAMES_WIDTH = 32
SENTENCE_WIDTH = 150
STATE_WIDTH = max(len(f"{glyph} {state}") for state, glyph in GLYPHS.items()) + 1
RULE_WIDTH = len("remote-is-my-member") + 1


class JoinListModel:
    """Rows are members. They are made when a table asks for them, and once only in a moment."""

    fixed_columns = 2

    def __init__(self) -> None:
        self._shown = (Picture(), 0)
        """The picture that the rows were made from, and its time then."""
        self._board = JoinListBoard(self._shown[0])
        self._rows: dict[str, ListRow] = {}
        self._labels: tuple[str, ...] = ()
        self._name_width = len("member") + 1
        self.columns: tuple[Column, ...] = ()

    @property
    def keys(self) -> Sequence[str]:
        return self._labels

    def update(self, picture: Picture, labels: Sequence[str]) -> None:
        """Show the lists of `labels` from now on. Columns only ever grow wider."""
        if self._shown[0] is not picture or self._shown[1] != picture.at:
            self._shown = (picture, picture.at)
            self._board, self._rows = JoinListBoard(picture), {}
        if len(labels) == len(self._labels) and tuple(labels) == self._labels:
            return
        self._labels = tuple(labels)
        longest = max((cell_len(one_line(label)) for label in labels), default=0)
        self._name_width = max(self._name_width, min(longest, LONGEST_NAME) + 1)
        self.columns = (
            Column("member", self._name_width),
            Column("master", self._name_width),
            Column("list", NAMES_WIDTH),
            Column("nobody answers at", NAMES_WIDTH),
            Column("remembers", NAMES_WIDTH),
            Column("from", SOURCE_WIDTH),
            Column("does not list", NAMES_WIDTH),
        )

    def sentence(self, key: str) -> str:
        """The row of this key in words."""
        return self._board.sentence(key)

    def row(self, key: str) -> ListRow:
        """The row of this key."""
        known = self._rows.get(key)
        if known is None:
            known = self._rows[key] = self._board.row(key)
        return known

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        row = self.row(key)
        tone = "faint" if row.greyed else "plain"
        return (
            TableCell(row.label, tone),
            TableCell(row.cluster, tone),
            TableCell(row.entries, tone),
            TableCell(row.silent, "faint" if row.greyed else "warning"),
            TableCell(row.remembered, tone),
            TableCell(row.source, "warning" if row.differs else tone),
            TableCell(row.missing, tone),
        )[first:last]

    def outlier(self, key: str) -> bool:
        return False


class PairModel:
    """Rows are pairs of clusters."""

    fixed_columns = 1

    def __init__(self) -> None:
        self._pairs: dict[str, Pair] = {}
        self._name_width = len("cluster of") + 1
        self.columns: tuple[Column, ...] = ()

    @property
    def keys(self) -> Sequence[str]:
        return tuple(self._pairs)

    def update(self, pairs: Sequence[Pair]) -> None:
        """Show `pairs` from now on. Columns only ever grow wider."""
        self._pairs = {pair.key: pair for pair in pairs}
        names = max((cell_len(one_line(name)) for pair in pairs for name in (pair.smaller, pair.greater)), default=0)
        self._name_width = max(self._name_width, min(names, LONGEST_NAME) + 1)
        self.columns = (
            Column("state", STATE_WIDTH),
            Column("cluster of", self._name_width),
            Column("into that of", max(self._name_width, len("into that of") + 1)),
            Column("rule", RULE_WIDTH),
            Column("why", SENTENCE_WIDTH),
        )

    def pair(self, key: str | None) -> Pair | None:
        """The pair of this key, if there is one."""
        return self._pairs.get(key) if key is not None else None

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        pair = self._pairs[key]
        return (
            TableCell(pair.state_text, TONES[pair.state]),
            TableCell(one_line(pair.smaller)),
            TableCell(one_line(pair.greater)),
            TableCell(pair.rule),
            TableCell(pair.sentence),
        )[first:last]

    def outlier(self, key: str) -> bool:
        return False

"""The columns of the join lists: where each member looks for others; and of the pairs of clusters that stay apart."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.app.views.columns import BoardModel, ColumnOf
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.merging.join_list_board import JoinListBoard, ListRow
from quarterdeck.backend.picture.merging.why_not_merging import GLYPHS, TONES, Pair
from quarterdeck.backend.picture.text.formatting import one_line

LONGEST_NAME = 22
SOURCE_WIDTH = 33
NAMES_WIDTH = 31
SENTENCE_WIDTH = 149
STATE_WIDTH = max(len(f"{glyph} {state}") for state, glyph in GLYPHS.items())


def tone_of(row: ListRow) -> str:
    """Of what is said of a member without any warning."""
    return "faint" if row.greyed else "plain"


LIST_COLUMNS: tuple[ColumnOf[ListRow], ...] = (
    ColumnOf("member", lambda row: row.label),
    ColumnOf("master", lambda row: row.cluster),
    ColumnOf("list", lambda row: row.entries, widest=NAMES_WIDTH),
    ColumnOf(
        "nobody answers at", lambda row: row.silent, lambda row: "faint" if row.greyed else "warning", NAMES_WIDTH
    ),
    ColumnOf("remembers", lambda row: row.remembered, widest=NAMES_WIDTH),
    ColumnOf("from", lambda row: row.source, lambda row: "warning" if row.differs else tone_of(row), SOURCE_WIDTH),
    ColumnOf("does not list", lambda row: row.missing, widest=NAMES_WIDTH),
)

PAIR_COLUMNS: tuple[ColumnOf[Pair], ...] = (
    ColumnOf("state", lambda pair: pair.state_text, lambda pair: TONES[pair.state], STATE_WIDTH),
    ColumnOf("cluster of", lambda pair: one_line(pair.smaller)),
    ColumnOf("into that of", lambda pair: one_line(pair.greater)),
    ColumnOf("rule", lambda pair: pair.rule, widest="remote-is-my-member"),
    ColumnOf("why", lambda pair: pair.sentence, widest=SENTENCE_WIDTH),
)


class JoinListModel(BoardModel[ListRow]):
    """Rows are members."""

    def __init__(self) -> None:
        super().__init__(LIST_COLUMNS, fixed=2, tone=tone_of)
        self._board = JoinListBoard(Picture())
        self._shown: tuple[Picture, int, tuple[str, ...]] | None = None

    def update(self, picture: Picture, labels: Sequence[str]) -> None:
        """Show the lists of these members. Rows are made anew only when something has happened."""
        keys = tuple(labels)
        if self._shown is not None and self._shown[0] is picture and self._shown[1:] == (picture.at, keys):
            return
        self._shown = picture, picture.at, keys
        self._board = JoinListBoard(picture)
        self.show_rows(keys, self._board.row)
        for title in ("member", "master"):
            self.widen(title, map(one_line, keys), LONGEST_NAME)

    def sentence(self, key: str) -> str:
        """The row of this key in words."""
        return self._board.sentence(key)


class PairModel(BoardModel[Pair]):
    """Rows are pairs of clusters."""

    def __init__(self) -> None:
        super().__init__(PAIR_COLUMNS, fixed=1)

    def update(self, pairs: Sequence[Pair]) -> None:
        """Show these pairs."""
        by_key = {pair.key: pair for pair in pairs}
        self.show_rows(tuple(by_key), by_key.__getitem__)
        names = [one_line(name) for pair in pairs for name in (pair.smaller, pair.greater)]
        for title in ("cluster of", "into that of"):
            self.widen(title, names, LONGEST_NAME)

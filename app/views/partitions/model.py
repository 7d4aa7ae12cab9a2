"""The columns of what each member holds; the first of them is the legend of the replica map too."""

from __future__ import annotations

from typing import NamedTuple

from quarterdeck.app.views.columns import BoardModel, ColumnOf, told_text
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.table_belief import TableBelief
from quarterdeck.backend.picture.replicas.replica_map import ReplicaMap
from quarterdeck.backend.picture.replicas.replica_text import DIGEST_SHOWN, HolderRow, holder_row, holders
from quarterdeck.backend.picture.text.not_told import NOT_TOLD
from quarterdeck.widgets.replica_style import HUES

LONGEST_NAME = 22


class PartitionBoardRow(NamedTuple):
    """What a member holds by the table that the map shows, and the table that it has itself."""

    holder: HolderRow
    own: TableBelief | None

    @property
    def version(self) -> int | None:
        return self.own.version if self.own is not None else None

    @property
    def age_rank(self) -> int | None:
        """The youngest table comes first."""
        return -self.own.since_us if self.own is not None else None

    def differing(self, tone: str) -> str:
        """A warning when the table is not that of the member's master."""
        return "warning" if self.holder.differs else tone


COLUMNS: tuple[ColumnOf[PartitionBoardRow], ...] = (
    ColumnOf("", lambda row: row.holder.letter, lambda row: f"hue{row.holder.hue % HUES}", 1),
    ColumnOf("member", lambda row: row.holder.name, rank=lambda row: row.holder.hue),
    ColumnOf("owned", lambda row: told_text(row.holder.owned), "plain"),
    ColumnOf("backups", lambda row: told_text(row.holder.backups), "plain"),
    ColumnOf(
        "table",
        lambda row: row.holder.table,
        lambda row: row.differing(row.holder.tone),
        "≠ v9999999",
        lambda row: row.version,
    ),
    ColumnOf("digest", lambda row: row.holder.digest, lambda row: row.differing("faint"), DIGEST_SHOWN),
    ColumnOf("age", lambda row: row.holder.age, "faint", "119 min", lambda row: row.age_rank),
    ColumnOf("behind", lambda row: f"~ {row.holder.out_of_step}" if row.holder.out_of_step else "", "warning"),
    ColumnOf("state", lambda row: row.holder.state, widest="held back"),
)


class HoldersModel(BoardModel[PartitionBoardRow]):
    """Rows are members that hold replicas, or might."""

    def __init__(self, shown: ReplicaMap) -> None:
        super().__init__(COLUMNS, fixed=2, tone=lambda row: row.holder.tone, outlier=lambda row: row.holder.differs)
        self._map = shown

    def update(self, picture: Picture, now_us: int) -> None:
        """Show the members of `picture` by the table that the map shows."""
        places = {label: place for place, label in enumerate(picture.members)}
        self.show_rows(
            holders(picture, self._map),
            lambda key: PartitionBoardRow(
                holder_row(picture, self._map, key, places[key], now_us), picture.members[key].table
            ),
        )
        self.widen("", ["A" * self._map.letter_width])
        if picture.nobody_tells("backups") is not None:
            for title in ("owned", "backups"):
                self.widen(title, [NOT_TOLD])
        self.widen("member", self.keys, LONGEST_NAME)

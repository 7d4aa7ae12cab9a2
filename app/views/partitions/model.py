"""The content of each member as a `TableModel`; it is the legend of the replica map too."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.replicas.replica_map import ReplicaMap
from quarterdeck.backend.picture.replicas.replica_text import DIGEST_SHOWN, HolderRow, holder_row, holders
from quarterdeck.widgets.line_table import Column, TableCell
from quarterdeck.widgets.replica_style import HUES

LONGEST_NAME = 22


class HoldersModel:
    """Rows are members. Call `update` before the table is shown."""

    fixed_columns = 2

    def __init__(self, shown: ReplicaMap) -> None:
        self._map = shown
        self._picture = Picture()
        self._now_us = 0
        self._places: dict[str, int] = {}
        self._rows: dict[str, HolderRow] = {}
        self._name_width = len("member") + 1
        self.keys: Sequence[str] = ()
        self.columns: tuple[Column, ...] = ()

    def update(self, picture: Picture, now_us: int) -> None:
        """Show the members of `picture` by the table that the map shows."""
        self._picture, self._now_us = picture, now_us
        self._places = {label: place for place, label in enumerate(picture.members)}
        self._rows.clear()
        self.keys = holders(picture, self._map)
        self._name_width = max(self._name_width, min(max(map(cell_len, self.keys), default=0), LONGEST_NAME) + 1)
        self.columns = (
            Column("", self._map.letter_width + 1),
            Column("member", self._name_width),
            Column("owned", len("50021") + 1),
            Column("backups", len("backups") + 1),
            Column("table", len("≠ v9999999") + 1),
            Column("digest", DIGEST_SHOWN + 1),
            Column("age", len("119 min") + 1),
            Column("behind", len("behind") + 1),
            Column("state", len("held back") + 1),
        )

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        row = self._row(key)
        return (
            TableCell(row.letter, f"hue{row.hue % HUES}"),
            TableCell(row.name, row.tone),
            TableCell(str(row.owned)),
            TableCell(str(row.backups)),
            TableCell(row.table, "warning" if row.differs else row.tone),
            TableCell(row.digest, "warning" if row.differs else "faint"),
            TableCell(row.age, "faint"),
            TableCell(f"~ {row.out_of_step}" if row.out_of_step else "", "warning"),
            TableCell(row.state, row.tone),
        )[first:last]

    def rank(self, key: str, title: str) -> object:
        """What a column is sorted by; numbers are sorted as numbers."""
        row = self._row(key)
        match title:
            case "owned":
                return row.owned
            case "backups":
                return row.backups
            case "behind":
                return row.out_of_step or None
            case "age":
                table = self._picture.members[key].table
                return -table.since_us if table is not None else None
            case "table":
                table = self._picture.members[key].table
                return table.version if table is not None else None
            case "digest":
                return row.digest or None
            case "state":
                return row.state or None
            case _:
                return self._places[key]

    def outlier(self, key: str) -> bool:
        return self._row(key).differs

    def _row(self, key: str) -> HolderRow:
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = holder_row(self._picture, self._map, key, self._places[key], self._now_us)
        return row

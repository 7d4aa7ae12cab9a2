"""The members as a `TableModel`: rows are made only when a table asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len

from quarterdeck.backend.picture.boards.member_board import (
    STATE_GLYPHS,
    HeartbeatObservers,
    ListOrder,
    MemberRow,
    heartbeat_observers,
    member_row,
)
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.line_table import Column, TableCell

SECOND_US = 1_000_000

LONGEST_NAME = 22
LONGEST_ZONE = 16
HEARTBEAT_WIDTH = len("◔ silent 119 min, suspected in 119 min") + 1


class MemberModel:
    """Rows are members in order of first appearance. Call `update` before the table is shown."""

    fixed_columns = 1

    def __init__(self) -> None:
        self._picture = Picture()
        self._now_us = 0
        self._watching = HeartbeatObservers((), ())
        self._places = ListOrder()
        self._marks: Mapping[str, str] = {}
        self._rows: dict[str, tuple[object, MemberRow]] = {}
        """Rows as they were made last, each with all that it was made of."""
        self._fresh: set[str] = set()
        """Whose rows were looked at since the last update."""
        self._widths = {"member": len("member") + 1, "address": len("127.0.0.1:5701") + 1, "zone": len("zone") + 1}
        self.keys: Sequence[str] = ()
        self.columns: tuple[Column, ...] = ()

    def update(self, picture: Picture, labels: Sequence[str], marks: Mapping[str, str], now_us: int) -> None:
        """Show these members. Columns only ever grow wider. `marks` says whose news are old, and how old."""
        self._picture, self._now_us, self._marks = picture, now_us, marks
        self._watching = heartbeat_observers(picture)
        self._fresh.clear()
        if len(labels) != len(self.keys):
            self.keys = tuple(labels)
            self._widen("member", map(one_line, labels), LONGEST_NAME)
        self._widen("address", (belief.address for belief in picture.members.values()), 48)
        zones = {member.zone for belief in picture.members.values() if belief.is_master for member in belief.members}
        self._widen("zone", zones, LONGEST_ZONE)
        state = max(map(len, STATE_GLYPHS)) + 3
        self.columns = (
            Column("member", self._widths["member"]),
            Column("role", len("▲ master") + 1),
            Column("state", max([state, *(len(mark) + 1 for mark in marks.values())])),
            Column("list", len("v99999") + 1),
            Column("table", len("≠ v999999") + 1),
            Column("heartbeat", HEARTBEAT_WIDTH),
            Column("owned", len("50021") + 1),
            Column("backups", len("backups") + 1),
            Column("up", len("119 min") + 1),
            Column("order", len("order") + 1),
            Column("kind", len("data") + 1),
            Column("zone", self._widths["zone"]),
            Column("address", self._widths["address"]),
            Column("uuid", 9),
        )

    def row(self, key: str) -> MemberRow:
        """The row of a member as it is shown."""
        known = self._rows.get(key)
        if known is not None and key in self._fresh:
            return known[1]
        self._fresh.add(key)
        made_of = self._made_of(key)
        if known is not None and known[0] == made_of and not any(self._watching):
            return known[1]
        row = member_row(self._picture, key, self._watching, self._places, self._now_us)
        self._rows[key] = (made_of, row)
        return row

    def _made_of(self, key: str) -> object:
        """What a row depends on while nobody is late or suspected."""
        belief, master = self._picture.members.get(key), self._picture.master_of(key)
        if belief is None:
            return None
        table = master.table if master is not None else None
        held = (table.version, table.digest) if table is not None else None
        listed = master is not None and belief.address in master.listed
        return self._now_us // SECOND_US, belief.uuid, belief.at, belief.status, held, listed, any(self._watching)

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        row = self.row(key)
        mark = self._marks.get(key, "")
        tone = "faint" if mark else row.tone
        return (
            TableCell(row.label, tone),
            TableCell(row.role, "strong" if row.role.endswith("master") else tone),
            TableCell(mark or row.state, "warning" if mark else row.state_tone),
            TableCell(row.list_version, tone),
            TableCell(row.table_version, "warning" if row.table_differs else tone),
            TableCell(row.heartbeat.text, row.heartbeat.tone if not mark else "faint"),
            TableCell(str(row.owned) if row.owned else "", tone),
            TableCell(str(row.backups) if row.backups else "", tone),
            TableCell(row.age, "faint"),
            TableCell(str(row.order) if row.order else "", tone),
            TableCell(row.kind, tone),
            TableCell(row.zone, tone),
            TableCell(row.address, "faint"),
            TableCell(row.uuid, "faint"),
        )[first:last]

    def rank(self, key: str, title: str) -> object:
        """What a column is sorted by: ages and numbers by their size, the heartbeat by how close it is to a suspicion."""
        row, belief = self.row(key), self._picture.members.get(key)
        match title:
            case "heartbeat":
                return row.heartbeat.left_us
            case "owned":
                return row.owned or None
            case "backups":
                return row.backups or None
            case "order":
                return row.order or None
            case "up":
                return -belief.started_us if belief is not None else None
            case "list":
                return belief.version if belief is not None else None
            case "table":
                return belief.table.version if belief is not None and belief.table is not None else None
            case "member":
                return self.keys.index(key)
            case _:
                place = next((place for place, column in enumerate(self.columns) if column.title == title), 0)
                return self.cells(key, place, place + 1)[0].text or None

    def outlier(self, key: str) -> bool:
        return self.row(key).heartbeat.left_us is not None

    def _widen(self, title: str, texts: Iterable[str], most: int) -> None:
        widest = max(map(cell_len, texts), default=0)
        self._widths[title] = max(self._widths[title], min(widest, most) + 1)

"""Who holds which replica of which partition: the map of one member's table, its faults, and what would be lost."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence

from rich.style import Style
from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface, choice_of, switched
from quarterdeck.app.screen.columns import BoardModel, ColumnOf, SortFilterModel, known_text
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.boards.data_board import HEAT, heat_of, partition_rates, partition_text, rate_text
from quarterdeck.backend.boards.replicas.replica_map import NO_ROW, SIGNS, ReplicaMap
from quarterdeck.backend.boards.replicas.replica_text import (
    DIGEST_SHOWN,
    BadFilter,
    HolderRow,
    ReplicaCensus,
    census_facts,
    holder_row,
    holders,
    map_facts,
    partition_sentence,
)
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.what_if.blast_radius import incarnations_left, loss_facts, loss_of
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.fold.table_belief import NO_HOLDER
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Fact
from quarterdeck.backend.picture.text.formatting import Refusal, one_line
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.replica_map import HUES, ReplicaMapView
from quarterdeck.widgets.status_line import StatusLine, StatusLines

LONGEST_NAME = 22


COLUMNS: tuple[ColumnOf[HolderRow], ...] = (
    ColumnOf("", lambda row: row.letter, lambda row: f"hue{row.hue % HUES}", 1),
    ColumnOf("member", lambda row: row.name, rank=lambda row: row.hue),
    ColumnOf("owned", lambda row: known_text(row.owned), "plain"),
    ColumnOf("backups", lambda row: known_text(row.backups), "plain"),
    ColumnOf(
        "table",
        lambda row: row.table,
        lambda row: "warning" if row.differs else row.tone,
        "≠ v9999999",
        lambda row: row.own.version if row.own is not None else None,
    ),
    ColumnOf("digest", lambda row: row.digest, lambda row: "warning" if row.differs else "faint", DIGEST_SHOWN),
    # The youngest table comes first.
    ColumnOf("age", lambda row: row.age, "faint", "119 min", lambda row: -row.own.since_us if row.own else None),
    ColumnOf("behind", lambda row: f"~ {row.out_of_step}" if row.out_of_step else "", "warning"),
    ColumnOf("state", lambda row: row.state, widest="held back"),
)


LOSS_LINES = 4
"""Lines for what would be lost, shown only while members are selected."""

COUNTED_AT_ONCE = 5_003
"""A table of more partitions is counted at most once a second."""

COUNTING_PAUSE_SECONDS = 0.1
"""The pause between two parts of a large table."""


class HoldersTable(LineTable):
    """The members, each in the colour that its replicas have in the map."""

    def cell_style(self, tone: str, over: tuple[str, ...]) -> Style:
        """Keep a colour of the map under the cursor, because its black letter is readable on no other ground."""
        if not tone.startswith("hue"):
            return super().cell_style(tone, over)
        marked = "cursor" in over
        return self.part_style(tone) + Style(bold=marked or None, underline=marked or "selected" in over or None)


class PartitionsScreen(ViewScreen):
    """The map and the members.

    A filter is for the map. Members are selected in the table, or with space on one of their replicas.
    """

    view = "partitions"
    detailed = True
    filter_text = ""
    DEFAULT_CSS = """
    PartitionsScreen #map-census { height: 1; }
    PartitionsScreen #map { height: 1fr; min-height: 4; scrollbar-size: 1 1; }
    PartitionsScreen #holders { height: auto; max-height: 35%; min-height: 3; scrollbar-size: 1 1; }
    PartitionsScreen.-no-partitions #map { height: 0; min-height: 0; }
    PartitionsScreen.-no-partitions #holders { height: 1fr; max-height: 100%; }
    """

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._map = ReplicaMap()
        self._census = ReplicaCensus(self._map)
        self._observer = ""
        """Whose table is shown; empty for the master's."""
        self._shows_heat = False
        self._bad_filter = ""
        self._found: Sequence[int] = ()
        self._counted_second = -1
        self._loss_of: object = None
        self._model = BoardModel(COLUMNS, fixed=2, tone=lambda row: row.tone, outlier=lambda row: row.differs)
        self.census_line = StatusLine(id="map-census")
        self.map = ReplicaMapView(self._map, id="map")
        self.loss_lines = StatusLines(LOSS_LINES, id="loss")
        self.main = self.holders = HoldersTable(SortFilterModel(self._model), id="holders")

    def body(self) -> Iterable[Widget]:
        return self.title_line, self.census_line, self.map, self.loss_lines, self.holders

    @property
    def focused_first(self) -> Widget:
        return self.map

    def targets(self) -> tuple[str, ...]:
        under = self.member_under_cursor
        return self.holders.selection or ((under,) if under else ())

    @property
    def member_under_cursor(self) -> str:
        """The holder of the replica under the cursor of the map, while the map has the focus."""
        if self.holders.has_focus or self.map.partition is None:
            return self.holders.cursor_key or ""
        return self._holder(self.map.partition, self.map.index)

    def paint(self) -> None:
        picture, now_us = self.session.picture, self.session.now_us()
        if self._observer not in picture.members:
            self._observer = ""
        self._map.follow(picture, self._observer)
        heat = self._show_digits(now_us)
        second = now_us // SECOND_US
        if self._map.partitions <= COUNTED_AT_ONCE or second != self._counted_second or self._census.counting:
            self._counted_second = second
            self._census.count()
            if self._census.counting:
                self.set_timer(COUNTING_PAUSE_SECONDS, self.paint)
        self._find()
        self.set_class(not self._map.partitions, "-no-partitions")
        self.map.show(self._found)
        facts = [*heat, *map_facts(picture, self._map, now_us)]
        self.title_line.show(*(TableCell(fact.text, fact.tone) for fact in facts))
        self.census_line.show(*self._census_parts())
        self._show_holders(picture, now_us)
        self._show_loss()

    def sentence(self) -> Sequence[TableCell]:
        partition = self.map.partition
        if partition is None or not self._map.partitions:
            return ()
        picture, now_us = self.session.picture, self.session.now_us()
        stored = partition_text(picture, self._holder(partition, 0), partition, now_us)
        text = partition_sentence(picture, self._map, partition, self.map.index, now_us)
        return (TableCell(f"{text}; {stored}" if stored else text),)

    def row_pointed(self) -> Hashable:
        at_holders = self.holders.has_focus or self.map.partition is None
        return self.member_under_cursor if at_holders else (self.map.partition, self.map.index)

    def row_facts(self) -> Sequence[Fact]:
        """Return all about a member; of a partition, its replicas and all about the holder of the one under the cursor."""
        partition = self.map.partition
        of_member = super().row_facts() if self.member_under_cursor else ()
        if self.holders.has_focus or partition is None:
            return of_member
        row = self._row(partition)
        roles = [role for role in row if f"{role} state" in row]
        held = (Fact(role, f"{one_line(row[role]) or 'none'}: {row[f'{role} state']}") for role in roles)
        return (Fact("partition", f"p{partition}, version {row['version']}", "strong"), *held, Fact("", ""), *of_member)

    def filter_by(self, text: str) -> None:
        self.filter_text = text
        self.paint()
        self._say_below()

    def rows(self) -> Iterable[Mapping[str, str]]:
        return map(self._row, self._found)

    def copied_rows(self) -> Sequence[Mapping[str, str]]:
        if self.holders.has_focus or self.map.partition is None:
            return super().copied_rows()
        return [self._row(self.map.partition)]

    def on_replica_map_view_moved(self) -> None:
        self._say_below()

    def on_replica_map_view_chosen(self) -> None:
        """Select the holder of the replica."""
        label = self.member_under_cursor
        if label:
            self.holders.point_at(label)
            self.holders.action_mark()

    def on_line_table_selected(self) -> None:
        self._show_loss()

    # What to show

    def _show_digits(self, now_us: int) -> Sequence[Fact]:
        if not self._shows_heat:
            self._map.show_heat({})
            return ()
        rates = partition_rates(self.session.picture, self._map.observer, now_us)
        greatest = max((rate.both for rate in rates.values()), default=0.0)
        at_rest = dict.fromkeys(range(self._map.partitions), HEAT[0])
        self._map.show_heat(at_rest | {partition: heat_of(rate.both, greatest) for partition, rate in rates.items()})
        hottest = max(rates, key=lambda partition: rates[partition].both, default=None)
        most = f"9 busiest: p{hottest} with {rate_text(greatest)} operations/s" if rates else "no operations"
        return (Fact("", f"heat: 0 at rest, {most}", "strong"),)

    def _show_holders(self, picture: Picture, now_us: int) -> None:
        """Show the members that hold replicas, or might. They are also the legend of the map."""
        places = {label: place for place, label in enumerate(picture.members)}
        keys = holders(picture, self._map)
        self._model.show_rows(keys, lambda key: holder_row(picture, self._map, key, places[key], now_us))
        self._model.widen("", ["A" * self._map.letter_width])
        if picture.without("backups") is not None:
            for title in ("owned", "backups"):
                self._model.widen(title, [NOT_REPORTED])
        self._model.widen("member", keys, LONGEST_NAME)
        self.holders.show()

    def _find(self) -> None:
        try:
            self._found = self._census.found(self.session.picture, self.filter_text)
            self._bad_filter = ""
        except BadFilter as problem:  # perhaps not typed to the end yet
            self._found, self._bad_filter = range(self._map.partitions), str(problem)

    def _census_parts(self) -> list[TableCell]:
        if self._bad_filter:
            return [TableCell(f"✕ {self._bad_filter}", "bad")]
        found = (
            f"/{self.filter_text}: {len(self._found)} of {self._map.partitions} in sight" if self.filter_text else ""
        )
        observer = self.session.picture.members.get(self._map.observer)
        facts = census_facts(self._census, observer) if self._map.partitions else ()
        return [TableCell(found, "strong"), *(TableCell(fact.text, fact.tone) for fact in facts)]

    def _show_loss(self) -> None:
        picture, table, selected = self.session.picture, self._map.table, self.holders.selection
        decides = (selected, table.version, table.digest, incarnations_left(picture) if selected else None)
        if decides == self._loss_of:
            return
        self._loss_of = decides
        facts = loss_facts(picture, loss_of(picture, table, selected), selected) if selected else ()
        if len(facts) > LOSS_LINES:
            facts = (*facts[: LOSS_LINES - 1], facts[-1])
        self.loss_lines.show([[TableCell(fact.heading, fact.tone), TableCell(fact.text, fact.tone)] for fact in facts])

    def _holder(self, partition: int, index: int) -> str:
        row = self._map.table.rows.get(partition, NO_ROW)
        number = row[index + 1] if index + 1 < len(row) else NO_HOLDER
        if number == NO_HOLDER:
            return ""
        label = self.session.picture.label_of(self._map.table.holders[number].address)
        return label if label in self.session.picture.members else ""

    def _row(self, partition: int) -> dict[str, str]:
        row = {"partition": str(partition), "version": str(self._map.table.rows.get(partition, NO_ROW)[0])}
        for index, cell in enumerate(self._map.column(partition)):
            role = f"backup {index}" if index else "owner"
            row[role] = self._holder(partition, index)
            row[f"{role} state"] = cell.state
        return row

    # What keys do

    def do_map_observer(self, member: str) -> None:
        """Show the table of the named member; by key, of the next member that has one, then again the master's."""
        picture = self.session.picture
        if member and member not in picture.members:
            raise Refusal(f"there is no news of {member}")
        having = [label for label, belief in picture.members.items() if belief.table is not None]
        order = ["", *having]
        here = order.index(self._observer) if self._observer in order else 0
        self._observer = member or order[(here + 1) % len(order)]
        self.repaint()

    def do_map_zoom(self, zoom: str) -> None:
        self.map.set_zoom(choice_of(zoom, self.map.zooms, self.map.zoom, "zoom"))

    def do_map_heat(self, text: str) -> None:
        self._shows_heat = switched(text, self._shows_heat)
        if self._shows_heat and self.map.zoom == "halves":  # which has no digits
            self.map.set_zoom("letters")
        self.repaint()

    def do_map_trouble(self, back: str) -> None:
        """Go to the next partition with something wrong, or `back` to the previous one."""
        wrong = set().union(*self._census.partitions.values())
        places = sorted(wrong.intersection(self._found) if self.filter_text else wrong)
        if not places:
            self.console.show_message("nothing is wrong in this table")
            return
        here = self.map.partition or 0
        place = bisect_left(places, here) - 1 if back else bisect_right(places, here)
        partition = places[place % len(places)]
        states = [cell.state for cell in self._map.column(partition)]
        index = next((one for one, state in enumerate(states) if SIGNS[state].mark and state != "vacant"), 0)
        self.map.point_at(partition, index)
        self.map.focus()

    def do_map_partition(self, text: str) -> None:
        number = text.strip().removeprefix("p")
        if not number.isdecimal() or int(number) >= self._map.partitions:
            raise Refusal(f"there is no partition {text!r}; use a number below {self._map.partitions}")
        self.map.point_at(int(number), self.map.index)
        self.map.focus()

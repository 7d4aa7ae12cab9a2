"""What migrates: the queue of every master, what runs, how the last ones ended and why some failed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.screen.columns import BoardModel, ColumnOf, SortFilterModel
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.boards.migration_board import SIGNS, MigrationRow, migration_board
from quarterdeck.backend.clusters.observed_story import round_text
from quarterdeck.backend.clusters.recorded.recorded_run import LoggedCluster
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Fact
from quarterdeck.backend.picture.text.formatting import counted, one_line
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLines

STATES = tuple(SIGNS)
LONGEST_NAME = 22
ROWS_MEASURED = 50
"""Rows that columns are fitted to."""

STATE_WIDTH = max(len(f"{sign.glyph} {state}") for state, sign in SIGNS.items())

COLUMNS: tuple[ColumnOf[MigrationRow], ...] = (
    ColumnOf(
        "state",
        lambda row: row.state_text,
        lambda row: SIGNS[row.state].tone,
        STATE_WIDTH,
        lambda row: STATES.index(row.state),
    ),
    ColumnOf("part", lambda row: row.partition, widest="p99999"),
    ColumnOf("kind", lambda row: row.kind, longest=LONGEST_NAME),
    ColumnOf("to", lambda row: row.destination, longest=LONGEST_NAME),
    ColumnOf("index", lambda row: row.index),
    ColumnOf("in place of", lambda row: row.displaced, longest=LONGEST_NAME),
    ColumnOf("age", lambda row: row.age, widest="119 min", rank=lambda row: row.age_us),
    ColumnOf("note", lambda row: row.note, widest=79),
)


HEADS_SHOWN = 8
"""Sentences above the table; each takes a line."""
ROUNDS_SHOWN = HEADS_SHOWN - 1


class MigrationsScreen(ViewScreen):
    """The migrations. The sentence below the table describes the one under the cursor."""

    view = "migrations"
    detailed = True

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._model = BoardModel(COLUMNS, fixed=2)
        self._measured: tuple[str, ...] = ()
        """The rows that the columns are fitted to."""
        self._awaited = ""
        """The member whose migration the cursor is to go to once there are rows."""
        self.heads = StatusLines(HEADS_SHOWN, id="heads")
        self.main = self.board = LineTable(SortFilterModel(self._model), id="board")

    def body(self) -> Iterable[Widget]:
        return self.title_line, self.heads, self.board

    def targets(self) -> tuple[str, ...]:
        """Return the destination of the migration under the cursor."""
        row = self._model.row(self.board.cursor_key)
        return (row.destination,) if row is not None and row.destination in self.session.cluster.labels else ()

    @property
    def member_under_cursor(self) -> str:
        return next(iter(self.targets()), "")

    def point_at(self, label: str) -> None:
        """Move the cursor to the first migration that this member takes part in."""
        self._awaited = label
        self._go_to_awaited()

    def _go_to_awaited(self) -> None:
        rows = ((key, self._model.row(key)) for key in self._model.keys) if self._awaited else ()
        for key, row in rows:
            if row is not None and self._awaited in (row.destination, row.displaced.partition("→")[0]):
                self.board.point_at(key)
                break
        if self._model.keys:
            self._awaited = ""

    def paint(self) -> None:
        picture = self.session.picture
        board = migration_board(self.session.judge, self.session.now_us())
        history = picture.history
        ended = f"{history.done_count} done, {history.failed_count} failed, {history.lost_count} lost in this run"
        if not history.done_count and picture.without("migration-ends") is not None:
            ended = f"{history.lost_count} lost in this run; how many are done and failed is {NOT_REPORTED}"
        self.title_line.show(TableCell("migrations", "strong"), TableCell(ended, "faint"))
        self.heads.show([[TableCell(head.text, head.tone)] for head in self._rounds() or board.heads])
        keys = tuple(board.entries)
        same, self._measured = keys[:ROWS_MEASURED] == self._measured, keys[:ROWS_MEASURED]
        self._model.show_rows(keys, board.row, measured=0 if same else ROWS_MEASURED)
        self.board.show()
        self._go_to_awaited()

    def row_pointed(self) -> Hashable:
        return self.board.cursor_key

    def row_facts(self) -> Sequence[Fact]:
        row = self._model.row(self.board.cursor_key)
        return row.facts if row is not None else ()

    def sentence(self) -> Sequence[TableCell]:
        row = self._model.row(self.board.cursor_key)
        return [TableCell(row.sentence if row is not None else self._silence(), "faint")]

    def _silence(self) -> str:
        unknown = self.session.picture.without("migration-ends")
        return "nothing has migrated yet" if unknown is None else f"single migrations are {NOT_REPORTED}"

    def _rounds(self) -> tuple[Fact, ...]:
        """Return the rounds that logs report, the latest first, up to the moment shown. Single migrations are not logged."""
        cluster, now_us = self.session.cluster, self.session.now_us()
        if not isinstance(cluster, LoggedCluster):
            return ()
        begun = [migration_round for migration_round in cluster.story.migrations if migration_round.start_us <= now_us]
        latest = reversed(begun[-ROUNDS_SHOWN:])
        rounds = [Fact("", one_line(round_text(shown, now_us))) for shown in latest]
        count = f"{counted(len(begun), 'round')} of migrations in the logs; single migrations are {NOT_REPORTED}"
        return (Fact("", count, "faint"), *rounds)

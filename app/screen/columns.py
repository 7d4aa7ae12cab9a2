"""Tables whose columns are declared over rows, shown as their reader wants them: sorted, filtered, without some columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len

from quarterdeck.app.console_state import TableSettings
from quarterdeck.backend.picture.text.fact import NOT_REPORTED
from quarterdeck.backend.picture.text.formatting import text_filter
from quarterdeck.widgets.line_table import Column, TableCell, TableModel

Row = TypeVar("Row")

NUMBER = re.compile(r"(\d+)")

WIDEST_FACT = 24
"""A column that is no wider has a name, a figure or a state, which is shown whole or not at all; a wider one has a sentence."""


class ColumnOf(Struct, Generic[Row], frozen=True):
    """A column over rows of one type."""

    title: str
    text: Callable[[Row], str]
    tone: str | Callable[[Row], str] | None = None
    """The tone of a cell; that of the row if it is None."""
    widest: str | int = ""
    """The widest expected text, or its width in cells. The title fits in any case."""
    rank: Callable[[Row], object] | None = None
    """The value to sort rows by, None for rows that come last; without it they are sorted by the text of the cell."""
    longest: int = 0
    """The width up to which it grows with the texts of its rows; 0 for a column that does not."""

    @property
    def width(self) -> int:
        """The width in cells, including the gap; `BoardModel.widen` may make the column wider."""
        widest = self.widest if isinstance(self.widest, int) else cell_len(self.widest)
        return max(cell_len(self.title), widest) + 1


class SortableModel(TableModel, Protocol):
    """A `TableModel` whose rows can be sorted."""

    def rank(self, key: str, title: str) -> object: ...


class BoardModel(Generic[Row]):
    """A `SortableModel` of declared columns. A row is computed when a table first asks for it, and kept until `show_rows`."""

    def __init__(
        self,
        columns: Iterable[ColumnOf[Row]],
        *,
        fixed: int = 0,
        tone: Callable[[Row], str] = lambda _: "plain",
        outlier: Callable[[Row], bool] = lambda _: False,
    ) -> None:
        """Declare the columns. The first `fixed` ones never scroll sideways. Rows that are an `outlier` stand out."""
        self.fixed_columns = fixed
        self.keys: Sequence[str] = ()
        self.columns: tuple[Column, ...] = ()
        self._tone, self._outlier = tone, outlier
        self._rows: dict[str, Row] = {}
        self._make_row: Callable[[str], Row] = self._rows.__getitem__
        self._widths: dict[str, int] = {}
        self.declare(columns)

    def declare(self, columns: Iterable[ColumnOf[Row]]) -> None:
        """Show these columns; those that were shown before keep their widths."""
        self._declared = tuple(columns)
        self._widths = {column.title: column.width for column in self._declared} | self._widths
        self._lay_out()

    def show_rows(self, keys: Sequence[str], row_of: Callable[[str], Row], *, measured: int | None = 0) -> None:
        """Show a row for each key. Columns are fitted to the first `measured` rows, for None to all."""
        self.keys, self._make_row = keys, row_of
        self._rows.clear()
        if measured != 0:
            rows = [self._row(key) for key in keys[:measured]]
            for column in self._declared:
                if column.longest:
                    self.widen(column.title, map(column.text, rows), column.longest)

    def widen(self, title: str, texts: Iterable[str], most: int | None = None, *, gap: int = 1) -> None:
        longest = max(map(cell_len, texts), default=0)
        width = (longest if most is None else min(longest, most)) + gap
        if width > self._widths[title]:
            self._widths[title] = width
            self._lay_out()

    def narrow(self) -> None:
        """Give every column its declared width again."""
        self._widths = {column.title: column.width for column in self._declared}
        self._lay_out()

    def refit(self, title: str, texts: Iterable[str]) -> None:
        """Make a column as wide as its title and these texts, also if it was wider."""
        declared = max(column.width for column in self._declared if column.title == title)
        width = max(declared, max(map(cell_len, texts), default=0) + 1)
        if width != self._widths[title]:
            self._widths[title] = width
            self._lay_out()

    def row(self, key: str | None) -> Row | None:
        return self._row(key) if key is not None and key in self.keys else None

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        row = self._row(key)
        return [self._cell(column, row) for column in self._declared[first:last]]

    def rank(self, key: str, title: str) -> object:
        column = next((column for column in self._declared if column.title == title), None)
        if column is None:
            return None
        row = self._row(key)
        return column.rank(row) if column.rank is not None else text_rank(column.text(row))

    def outlier(self, key: str) -> bool:
        return self._outlier(self._row(key))

    def _row(self, key: str) -> Row:
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._make_row(key)
        return row

    def _cell(self, column: ColumnOf[Row], row: Row) -> TableCell:
        tone = self._tone if column.tone is None else column.tone
        return TableCell(column.text(row), tone if isinstance(tone, str) else tone(row))

    def _lay_out(self) -> None:
        widths = [(column.title, self._widths[column.title]) for column in self._declared]
        self.columns = tuple(Column(title, width, width <= WIDEST_FACT) for title, width in widths)


class MatrixModel(BoardModel[Row]):
    """A model of declared columns, which stay in sight, followed by one column for each of some members."""

    def __init__(
        self,
        columns: Iterable[ColumnOf[Row]],
        cells_of: Callable[[Row, Sequence[str]], Iterable[TableCell]],
        *,
        rank_of: Callable[[Row, str], object] | None = None,
        tone: Callable[[Row], str] = lambda _: "plain",
        outlier: Callable[[Row], bool] = lambda _: False,
    ) -> None:
        """Declare the columns.

        `cells_of` returns the cells of a row in the columns of these members; `rank_of` ranks one of them.
        """
        self._members: dict[str, Column] = {}
        self._labels: tuple[str, ...] = ()
        self._cells_of, self._rank_of = cells_of, rank_of
        super().__init__(columns, tone=tone, outlier=outlier)

    def show_members(self, columns: Mapping[str, Column]) -> None:
        """Show these columns, by the label of their member."""
        self._members, self._labels = dict(columns), tuple(columns)
        self._lay_out()

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        fixed = self.fixed_columns
        labels = self._labels[max(first - fixed, 0) : max(last - fixed, 0)]
        return [*super().cells(key, first, last), *self._cells_of(self._row(key), labels)]

    def rank(self, key: str, title: str) -> object:
        label = next((label for label, column in self._members.items() if column.title == title), None)
        if label is None or any(column.title == title for column in self._declared):
            return super().rank(key, title)
        row = self._row(key)
        if self._rank_of is not None:
            return self._rank_of(row, label)
        return next((text_rank(cell.text) for cell in self._cells_of(row, (label,))), None)

    def _lay_out(self) -> None:
        super()._lay_out()
        self.fixed_columns = len(self.columns)
        self.columns += tuple(self._members.values())


def known_text(count: int | None, *, zero: str = "0") -> str:
    """Return a count as a cell; None means that it is not known."""
    return NOT_REPORTED if count is None else str(count) if count else zero


def text_rank(text: str) -> object:
    """Return what a cell is sorted by if only its text is known; None for an empty cell."""
    return natural(text) or None


def natural(text: str) -> tuple[tuple[bool, int, str], ...]:
    """Return what to compare texts by so that `n10` comes after `n9`."""
    return tuple(
        (False, int(part), "") if part.isdecimal() else (True, 0, part.casefold())
        for part in NUMBER.split(text)
        if part
    )


SORT_MARKS = ("↑", "↓")
"""Marks behind the title of the column that is sorted by: ascending, and reversed."""

SEARCHED_COLUMNS = 16
"""A filter searches at most this many columns: a matrix may have as many as there are members."""


class SortFilterModel:
    """A model that sorts and filters another one for the table that paints it."""

    def __init__(self, inner: SortableModel) -> None:
        self.inner = inner
        self.table_settings = TableSettings()
        self._known: tuple[tuple[str, ...], TableSettings] | None = None
        self._keys: tuple[str, ...] = ()
        self._shown: tuple[int, ...] = ()
        self._laid_out: tuple[tuple[Column, ...], TableSettings] | None = None
        self._columns: tuple[Column, ...] = ()

    @property
    def titles(self) -> tuple[str, ...]:
        """Titles of all columns that have one, including hidden ones."""
        return tuple(column.title for column in self.inner.columns if column.title)

    @property
    def chip(self) -> str:
        """The filter in force and how many rows it leaves; empty without one."""
        text = self.table_settings.filter
        return f"/{text}  {len(self.keys)} of {len(self.inner.keys)}" if text else ""

    def order_after_click(self, place: int) -> str:
        """Return the order wanted by a click on the title of the column at this place, as it is typed after `sort`."""
        title = [column.title for column in self.inner.columns if column.title not in self.table_settings.hidden][place]
        now = self.table_settings
        return f"{title} desc" if title and title == now.sort and not now.reverse else title

    def change_settings(self, **changes: str | bool | tuple[str, ...]) -> None:
        """Change the settings; `LineTable.show` makes it visible."""
        self.table_settings = replace(self.table_settings, **changes)

    def renew(self) -> None:
        self._known = None

    @property
    def columns(self) -> Sequence[Column]:
        columns = tuple(self.inner.columns)
        if self._laid_out != (columns, self.table_settings):
            self._laid_out = (columns, self.table_settings)
            hidden = self.table_settings.hidden
            self._shown = tuple(place for place, column in enumerate(columns) if column.title not in hidden)
            self._columns = tuple(self._titled(columns[place]) for place in self._shown)
        return self._columns

    @property
    def fixed_columns(self) -> int:
        fixed, hidden = self.inner.fixed_columns, self.table_settings.hidden
        if not hidden:
            return fixed
        return sum(column.title not in hidden for column in self.inner.columns[:fixed])

    @property
    def keys(self) -> Sequence[str]:
        inner = tuple(self.inner.keys)
        if not self.table_settings.filter and not self.table_settings.sort:
            return tuple(reversed(inner)) if self.table_settings.reverse else inner
        if self._known != (inner, self.table_settings):
            self._known = (inner, self.table_settings)
            self._keys = self._sorted_and_filtered(inner)
        return self._keys

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        if not self.table_settings.hidden:
            return self.inner.cells(key, first, last)
        places = self._shown[first:last]
        if not places:
            return ()
        cells = self.inner.cells(key, places[0], places[-1] + 1)
        return tuple(cells[place - places[0]] for place in places)

    def outlier(self, key: str) -> bool:
        return self.inner.outlier(key)

    def row(self, key: str) -> dict[str, str]:
        """Return the cells of a row by the titles of their columns, to copy or export."""
        columns = self.inner.columns
        hidden = self.table_settings.hidden
        cells = self.inner.cells(key, 0, len(columns))
        return {
            column.title: cell.text
            for column, cell in zip(columns, cells, strict=True)
            if column.title and column.title not in hidden
        }

    def _titled(self, column: Column) -> Column:
        if column.title != self.table_settings.sort or not column.title:
            return column
        arrow = SORT_MARKS[self.table_settings.reverse]
        title = f"{column.title}{arrow}"
        return column._replace(title=title, width=max(column.width, len(title) + 1))

    def _sorted_and_filtered(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        if self.table_settings.filter:
            selects = text_filter(self.table_settings.filter)
            keys = tuple(key for key in keys if selects(self._text_of(key)))
        if self.table_settings.sort:
            return tuple(sorted(keys, key=self._rank, reverse=self.table_settings.reverse))
        return tuple(reversed(keys)) if self.table_settings.reverse else keys

    def _text_of(self, key: str) -> str:
        cells = self.inner.cells(key, 0, min(len(self.inner.columns), SEARCHED_COLUMNS))
        return " ".join(cell.text for cell in cells)

    def _rank(self, key: str) -> tuple[bool, object]:
        """Return the rank; rows without one come last, or first in reversed order."""
        rank = self.inner.rank(key, self.table_settings.sort)
        return rank is None, 0 if rank is None else rank

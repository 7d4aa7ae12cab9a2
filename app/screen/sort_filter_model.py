"""Any table as its reader wants it: sorted by a column, filtered by a text, without some of its columns."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from quarterdeck.app.console_state import TableSettings
from quarterdeck.app.screen.columns import SortableModel
from quarterdeck.backend.picture.text.formatting import text_filter
from quarterdeck.widgets.line_table import Column, TableCell

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
            self._shown = tuple(
                place for place, column in enumerate(columns) if column.title not in self.table_settings.hidden
            )
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

"""Sorting, filtering and hiding over any table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.app.views.sort_filter_model import SortFilterModel, natural
from quarterdeck.widgets.line_table import Column, TableCell

COLUMNS = (Column("name", 8), Column("age", 6), Column("note", 10))


class Rows:
    """Each row: name, age, note; the name is the key."""

    fixed_columns = 1
    columns = COLUMNS

    def __init__(self, rows: Sequence[tuple[str, str, str]]) -> None:
        self.rows = {row[0]: row for row in rows}

    @property
    def keys(self) -> Sequence[str]:
        return tuple(self.rows)

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        return tuple(map(TableCell, self.rows[key]))[first:last]

    def outlier(self, key: str) -> bool:
        return False


class RankedRows(Rows):
    def rank(self, key: str, title: str) -> object:
        return int(self.rows[key][1].removesuffix(" min")) * 60 if "min" in self.rows[key][1] else 30


THREE = (("n10", "2 min", "late"), ("n9", "30 s", ""), ("n1", "1 min", "Late"))


def test_texts_sort_as_people_count_and_empty_cells_come_last() -> None:
    model = SortFilterModel(Rows(THREE))
    assert model.keys == ("n10", "n9", "n1")
    model.change_settings(sort="name")
    assert model.keys == ("n1", "n9", "n10")
    assert [column.title for column in model.columns] == ["name▲", "age", "note"]
    model.change_settings(sort="note")
    assert model.keys[-1] == "n9"
    model.change_settings(sort="name", reverse=True)
    assert model.keys == ("n10", "n9", "n1")


def test_a_model_may_know_better_what_its_texts_are_worth() -> None:
    model = SortFilterModel(RankedRows(THREE))
    model.change_settings(sort="age")
    assert model.keys == ("n9", "n1", "n10")


def test_a_filter_looks_at_every_cell_and_heeds_no_case() -> None:
    model = SortFilterModel(Rows(THREE))
    model.change_settings(filter="late")
    assert model.keys == ("n10", "n1")


def test_hidden_columns_are_neither_painted_nor_exported() -> None:
    model = SortFilterModel(Rows(THREE))
    model.change_settings(hidden=("age",))
    assert [column.title for column in model.columns] == ["name", "note"]
    assert [cell.text for cell in model.cells("n10", 0, 2)] == ["n10", "late"]
    assert model.row("n10") == {"name": "n10", "note": "late"}
    model.change_settings(hidden=("name",))
    assert model.fixed_columns == 0


@given(
    st.lists(st.text(), max_size=8), st.sampled_from(["", "name", "age", "gone"]), st.booleans(), st.text(max_size=2)
)
def test_nothing_is_lost_or_doubled(names: list[str], sort: str, reverse: bool, wanted: str) -> None:
    rows = [(name, name[::-1], "") for name in dict.fromkeys(names)]
    model = SortFilterModel(Rows(rows))
    model.change_settings(sort=sort, reverse=reverse)
    assert sorted(model.keys) == sorted(row[0] for row in rows)
    model.change_settings(filter=wanted)
    assert set(model.keys) <= {row[0] for row in rows}


@given(st.lists(st.text(), max_size=6))
def test_any_texts_can_be_compared(texts: list[str]) -> None:
    ranked = sorted(texts, key=natural)
    assert all(natural(before) <= natural(after) for before, after in pairwise(ranked))

"""Sorting, filtering and hiding over any table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.app.screen.columns import BoardModel, ColumnOf, SortFilterModel, natural

Line = tuple[str, str, str]
"""A name, which is the key, an age and a note."""


def seconds(row: Line) -> int:
    return int(row[1].removesuffix(" min")) * 60 if "min" in row[1] else 30


NAME: ColumnOf[Line] = ColumnOf("name", lambda row: row[0])
AGE: ColumnOf[Line] = ColumnOf("age", lambda row: row[1])
RANKED_AGE: ColumnOf[Line] = ColumnOf("age", lambda row: row[1], rank=seconds)
NOTE: ColumnOf[Line] = ColumnOf("note", lambda row: row[2])


def board(rows: Sequence[Line], *, age: ColumnOf[Line] = AGE) -> BoardModel[Line]:
    model = BoardModel((NAME, age, NOTE), fixed=1)
    by_name = {row[0]: row for row in rows}
    model.show_rows(tuple(by_name), by_name.__getitem__)
    return model


THREE = (("n10", "2 min", "late"), ("n9", "30 s", ""), ("n1", "1 min", "Late"))


def test_texts_sort_as_people_count_and_empty_cells_come_last() -> None:
    model = SortFilterModel(board(THREE))
    assert model.keys == ("n10", "n9", "n1")
    model.change_settings(sort="name")
    assert model.keys == ("n1", "n9", "n10")
    assert [column.title for column in model.columns] == ["name↑", "age", "note"]
    model.change_settings(sort="note")
    assert model.keys[-1] == "n9"
    model.change_settings(sort="name", reverse=True)
    assert model.keys == ("n10", "n9", "n1")


def test_a_click_on_a_title_sorts_by_it_and_another_one_turns_the_order() -> None:
    model = SortFilterModel(board(THREE))
    model.change_settings(hidden=("age",))
    assert model.order_after_click(1) == "note"
    model.change_settings(sort="note")
    assert model.order_after_click(1) == "note desc" and model.order_after_click(0) == "name"
    model.change_settings(reverse=True)
    assert model.order_after_click(1) == "note"


def test_a_model_may_know_better_what_its_texts_are_worth() -> None:
    model = SortFilterModel(board(THREE, age=RANKED_AGE))
    model.change_settings(sort="age")
    assert model.keys == ("n9", "n1", "n10")


def test_a_filter_looks_at_every_cell_and_heeds_no_case() -> None:
    model = SortFilterModel(board(THREE))
    model.change_settings(filter="late")
    assert model.keys == ("n10", "n1")


def test_hidden_columns_are_neither_painted_nor_exported() -> None:
    model = SortFilterModel(board(THREE))
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
    model = SortFilterModel(board(rows))
    model.change_settings(sort=sort, reverse=reverse)
    assert sorted(model.keys) == sorted(row[0] for row in rows)
    model.change_settings(filter=wanted)
    assert set(model.keys) <= {row[0] for row in rows}


@given(st.lists(st.text(), max_size=6))
def test_any_texts_can_be_compared(texts: list[str]) -> None:
    ranked = sorted(texts, key=natural)
    assert all(natural(before) <= natural(after) for before, after in pairwise(ranked))

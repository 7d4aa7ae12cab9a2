"""Where the panes of the overview stand, in terminals of all sizes."""

from __future__ import annotations

import pytest
from textual.geometry import Size

from quarterdeck.app.console import Console
from quarterdeck.app.views.overview.panes import PANES, arrange
from tests.app.fakes.fake_cluster import formed
from tests.app.fakes.screen_text import screen_text, settle

SIZES = [(40, 7), (80, 20), (80, 60), (120, 31), (160, 45), (200, 38), (300, 75), (300, 20)]


@pytest.mark.parametrize("members", [1, 5, 40, 1_000])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("around", [0, 5, 20])
def test_all_panes_have_room(size: tuple[int, int], members: int, around: int) -> None:
    height = max(size[1] - around, 4)
    found = arrange(Size(*size), height, members)
    assert sum(found.rows) <= height
    if found.shape == "lines":
        shown = [name for name in PANES if name not in found.hidden]
        assert len(found.rows) == len(shown) and found.rows.count(0) == 1
        assert all(rows == 1 for name, rows in zip(shown, found.rows, strict=True) if name in found.folded)
    else:
        assert not found.folded and found.rows[2] == 0 and height - sum(found.rows) >= 4


@pytest.mark.parametrize(
    ("size", "shape"),
    [((80, 20), "lines"), ((120, 31), "two"), ((160, 45), "two"), ((300, 75), "two")],
)
def test_shapes(size: tuple[int, int], shape: str) -> None:
    assert arrange(Size(*size), size[1] - 4, 5).shape == shape
    assert arrange(Size(*size), size[1] - 13, 5).shape == shape, "a long verdict takes no pane away"
    assert ("detail" in arrange(Size(*size), size[1] - 4, 5).hidden) == (size[0] < 150)


def test_lists_of_which_many_agree_leave_their_room_to_what_happened() -> None:
    for size in ((120, 31), (160, 45)):
        whole, agreed = arrange(Size(*size), size[1], 50), arrange(Size(*size), size[1], 50, lists=4)
        assert sum(agreed.rows) < sum(whole.rows) and agreed.rows[1] == whole.rows[1]


async def test_forty_columns_and_ten_rows_keep_header_footer_and_a_line_for_each_pane() -> None:
    app = Console(formed())
    async with app.run_test(size=(40, 10)) as pilot:
        await settle(pilot)
        lines = screen_text(app).splitlines()
        assert lines[0].startswith(" healthy") and "open" in lines[-1]
        for title in ("member lists", "suspicions", "partition tables", "migrations", "▸   n1"):
            assert any(title in line for line in lines), (title, lines)

"""The line-painted widgets on their own."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import App, ComposeResult

from quarterdeck.backend.picture.text.formatting import text_filter
from quarterdeck.widgets.component_styles import fit
from quarterdeck.widgets.line_table import Column, LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine
from quarterdeck.widgets.tail_log import TailLine, TailLog
from tests.app.fakes.screen_text import screen_text, until, until_shown


class Numbers:
    """A model of `count` rows and twenty columns, which notes the cells that it was asked for."""

    fixed_columns = 1

    def __init__(self, count: int) -> None:
        self.keys: Sequence[str] = [f"row{place}" for place in range(count)]
        self.columns = [Column("name", 8), *(Column(f"c{place}", 6) for place in range(20))]
        self.changed: set[str] = set()
        self.asked: set[str] = set()

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        self.asked.add(key)
        sign = "!" if key in self.changed else ""
        return [TableCell(key if place == 0 else f"{place}{sign}") for place in range(first, last)]

    def outlier(self, key: str) -> bool:
        return False


class Stage(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.model = Numbers(100)
        self.table = LineTable(self.model)
        self.tail: TailLog[str] = TailLog(TailLine, title="tail", matcher_of=text_filter, capacity=50)
        self.line = StatusLine()
        for widget, height in ((self.table, 10), (self.tail, 6), (self.line, 1)):
            widget.styles.height = height

    def compose(self) -> ComposeResult:
        yield self.table
        yield self.tail
        yield self.line

    def on_mount(self) -> None:
        self.table.show()
        self.table.focus()


def test_fit_leaves_a_gap_and_marks_what_it_cuts() -> None:
    assert fit("abc", 5) == "abc  "
    assert fit("abcdef", 5) == "abc… "
    assert fit("多播多播", 5) == "多 … "


async def test_only_rows_in_sight_are_asked_for_and_only_changed_ones_repainted() -> None:
    stage = Stage()
    async with stage.run_test(size=(60, 20)) as pilot:
        await until(pilot, lambda: stage.model.asked)
        await pilot.pause()
        assert len(stage.model.asked) < 12
        regions: list[object] = []
        refresh = stage.table.refresh
        stage.table.refresh = lambda *args, **how: regions.append(args) or refresh(*args, **how)  # type: ignore
        stage.table.show()
        assert not regions
        stage.model.changed = {"row2", "row90"}
        stage.table.show()
        assert len(regions) == 1
        await until_shown(pilot, lambda text: "1!" in text)


async def test_only_the_bars_follow_when_rows_and_columns_of_a_table_of_given_height_change() -> None:
    """To lay out all of a screen takes longer than to paint it, and beliefs change the widths of columns every second."""

    stage = Stage()
    async with stage.run_test(size=(60, 20)) as pilot:
        await until(pilot, lambda: stage.model.asked)
        await pilot.pause()
        stage.table.scroll_to(y=80, animate=False)
        await pilot.pause()
        layouts: list[object] = []
        stage.screen._refresh_layout = lambda *size, **_: layouts.append(size)  # type: ignore[method-assign]
        stage.model.columns = [Column("name", 9), *stage.model.columns[1:]]
        stage.model.keys = stage.model.keys[:60]
        stage.table.show()
        await pilot.pause()
        assert not layouts
        assert stage.table.vertical_scrollbar.window_virtual_size == stage.table.virtual_size.height == 61
        assert stage.table.scroll_y == stage.table.max_scroll_y == 61 - stage.table.scrollable_content_region.height
        assert "row59" in screen_text(stage)


async def test_cursor_and_selection_hold_on_to_keys() -> None:
    stage = Stage()
    async with stage.run_test(size=(60, 20)) as pilot:
        await pilot.press("j", "space", "j", "space")
        stage.model.keys = list(reversed(stage.model.keys))
        stage.table.show()
        assert stage.table.cursor_key == "row2"
        assert [stage.table._column_at(x) for x in (0, 9, 10, 15, 16)] == [0, 0, 1, 1, 2]
        assert stage.table.selection == ("row2", "row1")
        stage.model.keys = [key for key in stage.model.keys if key != "row2"]
        stage.table.show()
        assert stage.table.cursor_key == "row1" and stage.table.selection == ("row1",)
        stage.model.keys = []
        stage.table.show()
        await pilot.press("j", "space", "G")
        assert stage.table.cursor_key is None


async def test_header_and_fixed_columns_stay_while_the_rest_scrolls() -> None:
    stage = Stage()
    async with stage.run_test(size=(60, 20)) as pilot:
        await pilot.press("G", "right", "right")
        await pilot.pause()
        lines = screen_text(stage).splitlines()
        assert lines[0].split() == ["name", *(f"c{place}" for place in range(2, 10))]
        assert any("▸" in line and "row99" in line and line.split()[2] == "3" for line in lines)
        await pilot.press("g", "pagedown", "home", "left", "left", "left")
        await pilot.pause()
        assert screen_text(stage).splitlines()[1].split()[:3] == ["▸", "row0", "1"]
        await pilot.click(LineTable, offset=(4, 3))
        assert stage.table.cursor_key == "row2"
        assert [stage.table._column_at(x) for x in (0, 9, 10, 15, 16)] == [0, 0, 1, 1, 2]


async def test_tail_follows_pauses_and_survives_the_end_of_its_ring() -> None:
    stage = Stage()
    async with stage.run_test(size=(60, 20)) as pilot:
        tail = stage.tail
        tail.extend(f"line {place}" for place in range(30))
        await pilot.pause()
        assert "line 29" in screen_text(stage) and "line 24" not in screen_text(stage)
        tail.focus()
        await pilot.press("up")
        tail.extend(["line 30"])
        await pilot.pause()
        assert tail.unseen == 1
        assert "line 29" in screen_text(stage) and "line 30" not in screen_text(stage)
        tail.extend(f"line {place}" for place in range(31, 200))
        await pilot.pause()
        assert "line 150" in screen_text(stage) and not tail.following
        await pilot.press("home")
        await pilot.press("end")
        await pilot.pause()
        assert "line 199" in screen_text(stage) and tail.following


async def test_tail_filter_covers_what_was_and_what_comes() -> None:
    stage = Stage()
    async with stage.run_test(size=(60, 20)) as pilot:
        stage.tail.extend(["Alpha [b]", "beta", "gamma"])
        stage.tail.set_filter("ALPHA")
        stage.tail.extend(["beta", "another alpha"])
        await pilot.pause()
        text = screen_text(stage)
        assert "Alpha [b]" in text and "another alpha" in text and "gamma" not in text
        stage.tail.focus()
        await pilot.press("escape")
        await pilot.pause()
        assert "gamma" in screen_text(stage)


async def test_status_line_repaints_only_news_and_cuts_what_is_too_long() -> None:
    stage = Stage()
    async with stage.run_test(size=(20, 20)) as pilot:
        stage.line.show(TableCell("[/]x"), TableCell("a long tale that never ends", "bad"))
        await pilot.pause()
        assert screen_text(stage).splitlines()[16].endswith("…")
        assert stage.line.text == "[/]x  a long tale that never ends"

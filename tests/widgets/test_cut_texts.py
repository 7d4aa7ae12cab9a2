"""What does not fit shows an ellipsis: a number that is cut is never read as a smaller one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from textual.app import App, ComposeResult
from textual.widget import Widget

from quarterdeck.backend.picture.explain.event_index import EventIndex
from quarterdeck.backend.picture.explain.space_time import SpaceTime
from quarterdeck.backend.picture.replay.tape import Tape
from quarterdeck.backend.picture.replay.timeline import draw_timeline
from quarterdeck.backend.picture.text.formatting import text_filter
from quarterdeck.widgets.component_styles import fit
from quarterdeck.widgets.line_table import Column, LineTable, TableCell
from quarterdeck.widgets.pane import PaneEdge
from quarterdeck.widgets.prompt import CandidateList
from quarterdeck.widgets.space_time import SpaceTimeDiagram
from quarterdeck.widgets.status_line import StatusLine
from quarterdeck.widgets.tail_log import TailLine, TailLog
from quarterdeck.widgets.timeline import TimelineStrip
from tests.app.fakes.screen_text import screen_text
from tests.picture.replay.random_records import EVENTS, records_of

NUMBER = "123456"


class LongNumbers:
    """Ten columns of one number; the widths are not all the same."""

    fixed_columns = 1
    keys: Sequence[str] = ("row",)
    columns = (Column("name", 6), *(Column(f"c{place}", width) for place, width in enumerate((7, 9, 8, 12, 7, 7))))

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        return [TableCell(key if place == 0 else NUMBER) for place in range(first, last)]

    def outlier(self, key: str) -> bool:
        return False


class Stage(App[None]):
    def __init__(self, widget: Widget, height: int) -> None:
        super().__init__()
        self.widget = widget
        widget.styles.height = height

    def compose(self) -> ComposeResult:
        yield self.widget


def numbers_in(line: str) -> set[str]:
    """All that looks like a number, with the ellipsis that it has at one of its ends."""
    return set(re.findall(r"…?\d+…?", line))


async def test_a_cell_that_is_cut_says_so_wherever_a_table_is_scrolled_to() -> None:
    for width in range(16, 40):
        table = LineTable(LongNumbers())
        app = Stage(table, 5)
        async with app.run_test(size=(width, 6)):
            table.show()
            for hidden in range(30):
                table.scroll_to(x=hidden, animate=False, force=True)
                table._forget_looks()
                told = numbers_in(table.render_line(1).text)
                whole = {text for text in told if "…" not in text}
                assert whole <= {NUMBER}, (width, hidden, table.render_line(1).text)
                assert table.render_line(1).cell_length == table.scrollable_content_region.width


class WholeFigures(LongNumbers):
    columns = tuple(column._replace(whole=place > 0) for place, column in enumerate(LongNumbers.columns))


async def test_a_whole_column_is_left_out_where_it_would_be_cut_and_comes_when_scrolled_to() -> None:
    for width in range(16, 40):
        table = LineTable(WholeFigures())
        app = Stage(table, 5)
        async with app.run_test(size=(width, 5)) as pilot:
            table.show()
            await pilot.pause()
            figures = numbers_in(screen_text(app).splitlines()[1])
            assert figures == {NUMBER}, width
            table.scroll_to(x=table.max_scroll_x, animate=False, immediate=True)
            await pilot.pause()
            last = max(numbers_in(screen_text(app).splitlines()[1]), key=len)
            assert last.lstrip("…") == NUMBER, width  # behind the rest of the column before it


async def test_the_strip_of_time_tells_how_many_events_its_busiest_column_has() -> None:
    for count in (7, 115, 12_345):
        tape = Tape()
        tape.append(records_of([("n1", 1, EVENTS[5])] * count, [0] * count))
        strip = TimelineStrip()
        async with Stage(strip, 9).run_test(size=(60, 10)) as pilot:
            strip.show(draw_timeline(tape, [], (0, 10_000_000), 0, strip.columns))
            await pilot.pause()
            assert f"{count} events" in strip.render_line(1).text


async def test_a_title_a_candidate_and_the_words_of_a_row_end_with_an_ellipsis() -> None:
    tail: TailLog[str] = TailLog(TailLine, title="what happened", matcher_of=text_filter)
    app = Stage(tail, 4)
    async with app.run_test(size=(28, 6)) as pilot:
        tail.extend(["one", "two"])
        tail.set_following(False)
        tail.extend(["more"] * 115)
        await pilot.pause()
        assert tail.title_text.endswith("+115 new")
        assert screen_text(app).splitlines()[0].endswith("…")
    candidates = CandidateList()
    app = Stage(candidates, 3)
    async with app.run_test(size=(60, 6)) as pilot:
        candidates.show([("x" * 38 + NUMBER, "")], "")
        await pilot.pause()
        assert "x1…" in candidates.render_line(0).text
        candidates.show([("stop \x1b[2J", "\x1b]0;title\x07")], "\u202erevealed")
        assert candidates.text.replace("\n", "").isprintable(), "a name steers no terminal"
    diagram = SpaceTimeDiagram(lambda at_us: str(at_us).rjust(9), lambda row: "a" * 60 + NUMBER)
    app = Stage(diagram, 6)
    async with app.run_test(size=(60, 8)) as pilot:
        trail = EventIndex(records_of([("n1", 1, EVENTS[5])], [0]), str)
        drawn = SpaceTime(trail, ("n1",), 0)
        drawn.extend(trail.records)
        diagram.show(drawn)
        await pilot.pause()
        assert "a…" in screen_text(app)


async def test_the_edge_of_a_pane_leaves_out_figures_that_it_has_no_room_for() -> None:
    edge = PaneEdge("5", "migrations")
    app = Stage(edge, 1)
    async with app.run_test(size=(60, 3)) as pilot:
        edge.show(TableCell("7 of 216, about 29 s left, 20 running, 7.05/s"))
        await pilot.pause()
        assert "─ 7 of 216, about 29 s left, 20 running ─" in edge.render_line(0).text


async def test_a_line_is_as_high_as_the_last_text_asks_for_however_fast_texts_follow_each_other() -> None:
    line = StatusLine(most_lines=2)
    app = Stage(line, 1)
    async with app.run_test(size=(30, 6)) as pilot:
        long, short = [TableCell("word " * 9)], [TableCell("word")]
        line.show(*long)
        await pilot.pause()
        assert line.size.height == 2
        line.show(*short)
        line.show(TableCell("other " * 8))
        await pilot.pause()
        assert line.size.height == 2


def test_without_a_gap_all_of_the_width_is_used() -> None:
    assert fit("abc", 3, gap=0) == "abc"
    assert fit("abcd", 3, gap=0) == "ab…"
    assert fit("多播多播", 4, gap=0) == "多 …"
    assert fit("a", 0, gap=0) == ""

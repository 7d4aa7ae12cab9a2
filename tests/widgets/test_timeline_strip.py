"""The strip, painted: every line as wide as the widget, marks under their columns, the playhead through all of them."""

from __future__ import annotations

import asyncio

from textual.app import App, ComposeResult

from quarterdeck.backend.picture.replay.tape import Tape
from quarterdeck.backend.picture.replay.timeline import Landmark, Timeline, draw_timeline
from quarterdeck.widgets.timeline import LABEL_WIDTH, LINES, TimelineStrip
from tests.picture.replay.random_records import EVENTS, records_of


class OneStrip(App[None]):
    CSS = "TimelineStrip { height: 9; }"

    def __init__(self) -> None:
        super().__init__()
        self.strip = TimelineStrip()
        self.chosen: list[int] = []

    def compose(self) -> ComposeResult:
        yield self.strip

    def on_timeline_strip_chosen(self, message: TimelineStrip.Chosen) -> None:
        self.chosen.append(message.column)


def strip_of(width: int) -> Timeline:
    tape = Tape()
    tape.append(records_of([("n1", 1, EVENTS[5])] * 4, [0, 10, 10, 5_000_000]))
    marks = [Landmark(0, "faults", "K", "bad", ""), Landmark(5_000_000, "bookmarks", "B", "strong", "")]
    return draw_timeline(tape, marks, (0, 10_000_000), 5_000_000, width)


async def test_lines_marks_and_playhead() -> None:
    app = OneStrip()
    async with app.run_test(size=(LABEL_WIDTH + 80, 12)) as pilot:
        width = app.strip.columns
        assert width == 80
        app.strip.show(strip_of(width))
        await pilot.pause()
        lines = [app.strip.render_line(y) for y in range(LINES)]
        assert all(line.cell_length == LABEL_WIDTH + 80 for line in lines)
        texts = [line.text[LABEL_WIDTH:] for line in lines]
        assert texts[0].index("▼") == 40
        assert texts[2][0] == "█" and texts[2][40] == "▁"
        assert texts[3][40] == "B" and texts[7][0] == "K" and texts[7][40] == "│"
        assert texts[8].startswith("╵0 s")
        await pilot.click(TimelineStrip, offset=(LABEL_WIDTH + 17, 3))
        await pilot.click(TimelineStrip, offset=(2, 3))
        assert app.chosen == [17]


def test_what_looks_the_same_is_not_painted_again() -> None:
    async def scenario() -> None:
        app = OneStrip()
        async with app.run_test(size=(60, 12)) as pilot:
            app.strip.show(strip_of(48))
            await pilot.pause()
            painted = 0
            paint = app.strip.render_line

            def counting(y: int) -> object:
                nonlocal painted
                painted += 1
                return paint(y)

            app.strip.render_line = counting  # type: ignore[method-assign, assignment]
            app.strip.show(strip_of(48))
            await pilot.pause()
            assert painted == 0

    asyncio.run(scenario())

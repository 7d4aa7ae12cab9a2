"""The drawing of the network: everything has its place, whatever the room and the names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult

from quarterdeck.backend.boards.network_board import Edge, NetworkDrawing, NetworkNode
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.topology import Topology, laid_out
from tests.app.fakes.screen_text import screen_text

SQUARE = NetworkDrawing(
    tuple(NetworkNode(name, "plain", False) for name in ("A north", "B east", "C south", "D west")),
    (Edge(0, 1, "faint", "", "", 1), Edge(0, 2, "bad", "✕", "", 3), Edge(1, 3, "warning", "~", "~", 2)),
)


def text_of(drawing: NetworkDrawing, width: int, height: int) -> str:
    return "\n".join("".join(letter for letter, _ in row) for row in laid_out(drawing, width, height))


def test_members_stand_on_a_circle_the_first_at_the_top() -> None:
    rows = text_of(SQUARE, 40, 15).split("\n")
    assert "A north" in rows[0] and "C south" in rows[14]
    assert "D west" in rows[7][:8] and "B east" in rows[7][-8:]


def test_a_glyph_stands_at_the_end_where_it_is_noticed() -> None:
    text = text_of(SQUARE, 40, 15)
    assert text.count("✕") == 1 and text.count("~") == 2
    assert "✕" in "".join(text.split("\n")[1:7])


names = st.text(max_size=12).map(lambda text: one_line(text) or "x")
tones = st.sampled_from(["faint", "bad", "warning"])


@given(st.lists(names, max_size=9), st.data(), st.integers(0, 60), st.integers(0, 20))
def test_every_row_is_as_wide_as_the_widget(labels: list[str], data: st.DataObject, width: int, height: int) -> None:
    nodes = tuple(NetworkNode(label, "plain", False) for label in labels)
    ends = [(number, other) for other in range(len(labels)) for number in range(other)]
    edges = tuple(
        Edge(one, other, data.draw(tones), data.draw(st.sampled_from(["", "✕"])), "", data.draw(st.integers(1, 3)))
        for one, other in ends
    )
    rows = laid_out(NetworkDrawing(nodes, edges), width, height)
    assert len(rows) == height
    for row in rows:
        assert cell_len("".join(letter for letter, _ in row)) == width


class Stage(App[None]):
    def compose(self) -> ComposeResult:
        self.topology = Topology()
        yield self.topology


async def test_it_is_laid_out_once_for_each_drawing() -> None:
    stage = Stage()
    async with stage.run_test(size=(60, 20)) as pilot:
        stage.topology.show(SQUARE)
        await pilot.pause()
        assert "A north" in screen_text(stage) and "✕" in screen_text(stage)
        refreshed: list[object] = []
        stage.topology.refresh = lambda *args, **how: refreshed.append(args)  # type: ignore
        stage.topology.show(NetworkDrawing(SQUARE.nodes, SQUARE.edges))
        assert not refreshed
        stage.topology.show(NetworkDrawing(SQUARE.nodes, ()))
        assert len(refreshed) == 1

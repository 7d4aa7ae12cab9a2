"""The list of demos as a `TableModel`. Scripts are read one by one, as each takes a moment."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.backend.training.demos import Scenario, demo_names, load_demo
from quarterdeck.backend.training.scores import ScoreBook
from quarterdeck.widgets.line_table import Column, TableCell

TITLE_WIDTH = 52
CHAPTER_WIDTH = 28


class DemoModel:
    """Rows are demos, in order of their names."""

    fixed_columns = 1

    def __init__(self, scores: ScoreBook) -> None:
        self.scores = scores
        self.keys: Sequence[str] = demo_names()
        self.scenarios: dict[str, Scenario] = {}
        """Those that were read."""
        self.columns = (
            Column("demo", max(map(len, self.keys)) + 1),
            Column("done", 5),
            Column("best", len("10 of 10") + 1),
            Column("min", 4),
            Column("asks", 5),
            Column("title", TITLE_WIDTH),
            Column("chapter", CHAPTER_WIDTH),
        )

    @property
    def complete(self) -> bool:
        """Whether all are read."""
        return len(self.scenarios) == len(self.keys)

    def read_all(self) -> None:
        """Read those that are not yet; may be called from another thread."""
        for name in self.keys:
            self.scenarios.setdefault(name, load_demo(name))

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        scenario, attempts = self.scenarios.get(key), self.scores.of(key)
        done = TableCell(f"✓ {attempts.finished}" if attempts.finished else "", "good")
        if scenario is None:
            blank = TableCell("…", "faint")
            return (TableCell(key), done, TableCell(attempts.text()), blank, blank, blank, blank)[first:last]
        asks = sum(step.ask is not None for step in scenario.steps)
        return (
            TableCell(key, "strong"),
            done,
            TableCell(attempts.text()),
            TableCell(f"{scenario.minutes:g}" if scenario.minutes else ""),
            TableCell(str(asks) if asks else ""),
            TableCell(scenario.title),
            TableCell(scenario.chapter),
        )[first:last]

    def outlier(self, key: str) -> bool:
        return False

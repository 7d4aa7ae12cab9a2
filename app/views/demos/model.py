"""The columns of the list of demos. Scripts are read one by one, as each takes a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from quarterdeck.app.views.columns import BoardModel, ColumnOf
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import counted, one_line
from quarterdeck.backend.training.demos import Scenario, demo_names, load_demo
from quarterdeck.backend.training.scores import Attempts, ScoreBook

TITLE_WIDTH = 51
CHAPTER_WIDTH = 27
NAMES = demo_names()


class DemoRow(NamedTuple):
    """A demo, its script once that is read, and how it went so far."""

    name: str
    scenario: Scenario | None
    attempts: Attempts


def minutes(scenario: Scenario) -> str:
    """How long a demo takes, as far as its script says."""
    return f"{scenario.minutes:g}" if scenario.minutes else ""


def questions(scenario: Scenario) -> str:
    """How many predictions a demo asks for."""
    return str(sum(step.ask is not None for step in scenario.steps) or "")


def of_scenario(text: Callable[[Scenario], str]) -> Callable[[DemoRow], str]:
    """A text that waits for the script to be read."""
    return lambda row: text(row.scenario) if row.scenario is not None else "…"


def tone_of(row: DemoRow) -> str:
    """What is not known yet is grey."""
    return "faint" if row.scenario is None else "plain"


COLUMNS: tuple[ColumnOf[DemoRow], ...] = (
    ColumnOf(
        "demo", lambda row: row.name, lambda row: "plain" if row.scenario is None else "strong", max(map(len, NAMES))
    ),
    ColumnOf("done", lambda row: f"✓ {row.attempts.finished}" if row.attempts.finished else "", "good"),
    ColumnOf("best", lambda row: row.attempts.text(), widest="10 of 10"),
    ColumnOf("min", of_scenario(minutes), tone_of),
    ColumnOf("asks", of_scenario(questions), tone_of),
    ColumnOf("title", of_scenario(lambda one: one.title), tone_of, TITLE_WIDTH),
    ColumnOf("chapter", of_scenario(lambda one: one.chapter), tone_of, CHAPTER_WIDTH),
)


class DemoModel(BoardModel[DemoRow]):
    """Rows are demos, in order of their names."""

    def __init__(self, scores: ScoreBook) -> None:
        super().__init__(COLUMNS, fixed=1)
        self.scores = scores
        self.scenarios: dict[str, Scenario] = {}
        """Those that were read."""
        self.update()

    @property
    def complete(self) -> bool:
        """Whether all are read."""
        return len(self.scenarios) == len(self.keys)

    def update(self) -> None:
        """Show what is known by now."""
        self.show_rows(NAMES, lambda name: DemoRow(name, self.scenarios.get(name), self.scores.of(name)))

    def read_all(self) -> None:
        """Read the scripts that are not yet; may be called from another thread."""
        for name in NAMES:
            self.scenarios.setdefault(name, load_demo(name))


def demo_facts(row: DemoRow) -> Iterator[Fact]:
    """What a demo is about, and how it went so far."""
    yield Fact("demo", row.name, "strong")
    scenario = row.scenario
    if scenario is None:
        return
    yield Fact("title", one_line(scenario.title))
    if scenario.chapter:
        yield Fact("chapter", one_line(scenario.chapter), "faint")
    for heading, text in (("about", scenario.summary), ("goal", scenario.goal)):
        if text:
            yield Fact(heading, one_line(" ".join(text.split())))
    length = [
        f"{counted(len(scenario.steps), 'step')}",
        *([f"about {minutes(scenario)} min"] if minutes(scenario) else []),
    ]
    yield Fact("length", ", ".join(length))
    if scenario.seed_of:
        yield Fact("source", one_line(scenario.seed_of), "faint")
    if row.attempts.finished:
        yield Fact("done", f"✓ {row.attempts.finished} times, best {row.attempts.text()}", "good")

"""The demos: a list of them; and on the cluster of one, its tutor beside the beliefs of all members."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from textual.containers import Container
from textual.widget import Widget

from quarterdeck.app.actions.action import Action, WordKind
from quarterdeck.app.actions.views import LETTERS
from quarterdeck.app.commands.command_text import describe, line_of
from quarterdeck.app.commands.confirmation import ConfirmScreen
from quarterdeck.app.console_interface import ConsoleInterface, OpenedCluster
from quarterdeck.app.screen.columns import BoardModel, ColumnOf, SortFilterModel
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.beliefs import BeliefMatrixModel
from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import Refusal, counted, one_line
from quarterdeck.backend.training.demo_cluster import DemoCluster, LiveDemo, SimulatedDemo
from quarterdeck.backend.training.demos import Scenario, UnknownDemo, demo_names, load_demo
from quarterdeck.backend.training.lesson import Lesson
from quarterdeck.backend.training.results import Attempts
from quarterdeck.backend.training.runner import OnlySimulated
from quarterdeck.backend.training.tutor_facts import step_text, tutor_facts
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine

TITLE_WIDTH = 40
CHAPTER_WIDTH = 27
NAMES = demo_names()


class DemoRow(NamedTuple):
    """A demo, its script once that is read, and its attempts so far."""

    name: str
    scenario: Scenario | None
    attempts: Attempts


def minutes(scenario: Scenario) -> str:
    """Return how long a demo takes, if its script says so."""
    return f"{scenario.minutes:g}" if scenario.minutes else ""


def of_scenario(text: Callable[[Scenario], str]) -> Callable[[DemoRow], str]:
    """Return a text that waits for the script to be read."""
    return lambda row: text(row.scenario) if row.scenario is not None else "…"


def tone_of(row: DemoRow) -> str:
    """Return the tone: what is not yet known is grey."""
    return "faint" if row.scenario is None else "plain"


COLUMNS: tuple[ColumnOf[DemoRow], ...] = (
    ColumnOf(
        "demo", lambda row: row.name, lambda row: "plain" if row.scenario is None else "strong", max(map(len, NAMES))
    ),
    ColumnOf("done", lambda row: f"✓ {row.attempts.finished}" if row.attempts.finished else "", "good"),
    ColumnOf("best", lambda row: row.attempts.text(), widest="10 of 10"),
    ColumnOf("min", of_scenario(minutes), tone_of),
    ColumnOf("asks", of_scenario(lambda scenario: str(scenario.questions or "")), tone_of),
    ColumnOf("title", of_scenario(lambda scenario: scenario.title), tone_of, TITLE_WIDTH),
    ColumnOf("chapter", of_scenario(lambda scenario: scenario.chapter), tone_of, CHAPTER_WIDTH),
)


def demo_facts(row: DemoRow) -> Iterator[Fact]:
    """Yield what a demo is about, and the attempts so far."""
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
    lasting = f", about {minutes(scenario)} min" if minutes(scenario) else ""
    yield Fact("length", f"{counted(len(scenario.steps), 'step')}{lasting}")
    if scenario.seed_of:
        yield Fact("source", one_line(scenario.seed_of), "faint")
    if row.attempts.finished:
        yield Fact("done", f"✓ {row.attempts.finished} times, best {row.attempts.text()}", "good")


DEFAULT_SEED = 1

LEFT_OUT = "-"
"""The answer that skips a question."""

HELD_GROUPS = ("Time", "Views")
"""Groups of actions that would leave a question, besides those that change the cluster."""

HINTS = {
    "starting": "the members are being started",
    "to-do": "enter does it",
    "reading": "enter goes on",
    "missed": "enter goes on all the same, r begins anew",
    "doing": "a moment",
    "waiting": "a moment",
    "expecting": "watch the beliefs; 3 to 8 show more, D comes back",
    "over": "r begins anew, 1 to 9 for free play, esc closes the demo",
}


class DemosScreen(ViewScreen):
    """The list of demos, or on the cluster of a demo its lesson, which goes on even while the view is hidden."""

    view = "demos"
    DEFAULT_CSS = """
    DemosScreen #demo-lesson { height: 1fr; layout: vertical; }
    DemosScreen #demo-beliefs { height: 2fr; max-height: 40%; min-height: 5; }
    DemosScreen #demo-verdict { height: 1; }
    DemosScreen #demo-matrix { height: 1fr; min-height: 3; scrollbar-size: 1 1; }
    DemosScreen #demo-sheet { height: 3fr; min-height: 5; scrollbar-size: 1 1; border-top: solid $panel; }
    DemosScreen.-wide #demo-lesson { layout: horizontal; }
    DemosScreen.-wide #demo-beliefs { width: 1fr; height: 1fr; max-height: 100%; }
    DemosScreen.-wide #demo-sheet { width: 72; height: 1fr; border-top: none; border-left: solid $panel; }
    """

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        cluster = session.cluster
        self.demo_cluster = cluster if isinstance(cluster, DemoCluster) else None
        self._demos = BoardModel(COLUMNS, fixed=1)
        self._scenarios: dict[str, Scenario] = {}
        """The scripts that were read, by name."""
        self._matrix = BeliefMatrixModel(session.picture)
        self.detailed = self.demo_cluster is None
        self._noted = False
        self._whole = False
        """Whether all of the list was read when it was shown last: a clock that stands still would not show the rest."""
        self._ticked = (0, "")
        self._seen = (0, 0)
        """Where the current page begins, and how long the transcript was by then."""
        self.list = LineTable(SortFilterModel(self._demos), id="demo-list")
        self.verdict = StatusLine(id="demo-verdict")
        self.matrix = LineTable(self._matrix, id="demo-matrix")
        self.sheet = FactSheet(id="demo-sheet")

    def body(self) -> Iterable[Widget]:
        if self.demo_cluster is None:
            yield self.list
        else:
            yield self.title_line
            yield Container(Container(self.verdict, self.matrix, id="demo-beliefs"), self.sheet, id="demo-lesson")

    def on_mount(self) -> None:
        if self.demo_cluster is None:
            self.run_worker(self._read_all, thread=True, exit_on_error=True)

    def _read_all(self) -> None:
        """Read the scripts one by one in a thread, as each takes a moment."""
        for name in NAMES:
            self._scenarios[name] = load_demo(name)

    # What the console asks

    @property
    def table(self) -> LineTable | None:
        return self.list if self.demo_cluster is None else None

    @property
    def focused_first(self) -> Widget | None:
        return self.list if self.demo_cluster is None else self.sheet

    def words(self) -> Mapping[WordKind, Sequence[str]]:
        return {**super().words(), "demo": NAMES}

    def tick(self, *, news: bool) -> None:
        if self.demo_cluster is None:
            complete = len(self._scenarios) == len(NAMES)
            super().tick(news=news or not self._whole)
            self._whole = complete
        else:
            tutor = self.demo_cluster.lesson.tutor
            super().tick(news=news or (len(tutor.transcript), tutor.phase) != self._ticked)
            self._ticked = len(tutor.transcript), tutor.phase

    def paint(self) -> None:
        if self.demo_cluster is None:
            scores = self.console.scores
            self._demos.show_rows(NAMES, lambda name: DemoRow(name, self._scenarios.get(name), scores.of(name)))
            self.list.show()
        else:
            self._paint_lesson(self.demo_cluster)

    def sentence(self) -> Sequence[TableCell]:
        if problem := self.console.scores.problem:
            return [TableCell(problem, "warning")]
        if self.demo_cluster is not None:
            return [TableCell(self._hint(self.demo_cluster.lesson), "faint")]
        scenario = self._scenarios.get(self._selected)
        if scenario is None:
            return ()
        more = f"({scenario.seed_of})" if scenario.seed_of else ""
        return [TableCell(scenario.goal or scenario.summary), TableCell(more, "faint")]

    # The list

    def row_pointed(self) -> Hashable:
        return (self._selected, self._selected in self._scenarios) if self._selected else None

    def row_facts(self) -> Sequence[Fact]:
        row = self._demos.row(self._selected)
        return tuple(demo_facts(row)) if row is not None else ()

    @property
    def _selected(self) -> str:
        return self.list.cursor_key or ""

    def _start(self, demo: str, seed: int | None) -> None:
        if not demo:
            raise Refusal("which demo? type :demo NAME, or go to the list")
        try:
            scenario = load_demo(demo)
            if seed is None:
                live = LiveDemo(scenario, demo)
                opened = OpenedCluster(live, live.started)
            else:
                opened = OpenedCluster(SimulatedDemo(scenario, demo, seed))
        except (UnknownDemo, OnlySimulated, OSError) as problem:
            raise Refusal(str(problem)) from problem
        self.console.open_tab(opened, f"demo {demo}" if seed is None else f"demo {demo}, seed {seed}")
        self.console.goto("demos")

    def _start_named(self, text: str) -> None:
        demo, _, rest = text.partition(" ")
        if rest.strip() and not rest.strip().isdecimal():
            raise Refusal(f"{rest.strip()!r} is not a seed; write demo NAME, or demo NAME 1 for simulated time")
        self._start(demo, int(rest) if rest.strip() else None)

    # The lesson

    def _paint_lesson(self, demo_cluster: DemoCluster) -> None:
        lesson, cluster = demo_cluster.lesson, self.session.cluster
        tutor = lesson.tutor
        self.title_line.show(
            TableCell(tutor.scenario.title, "strong"),
            TableCell(step_text(tutor)),
            TableCell(tutor.summary.score_text() if tutor.predictions else ""),
            TableCell("live" if demo_cluster.seed is None else f"simulated, seed {demo_cluster.seed}", "faint"),
        )
        self._matrix.update(self.session.judge.agreement, self.session.labels, {})
        summary = self._matrix.summary
        agreed = not summary.dissenters
        self.verdict.show(
            TableCell("=" if agreed else "≠", "good" if agreed else "warning"), TableCell(summary.sentence)
        )
        self.matrix.show()
        self.sheet.show(tutor_facts(lesson, cluster.now_us(), _equivalent_lines))
        self._turn_to(tutor.page_from, len(tutor.transcript))
        if tutor.phase == "over" and not self._noted:
            self._noted = True
            self.console.scores.record(demo_cluster.demo, tutor.summary)

    def _turn_to(self, page_from: int, transcript_length: int) -> None:
        before, self._seen = self._seen, (page_from, transcript_length)
        if page_from != before[0]:
            self.sheet.scroll_home(animate=False)
        elif transcript_length != before[1]:
            self.sheet.scroll_end(animate=False)

    def _hint(self, lesson: Lesson) -> str:
        tutor = lesson.tutor
        if not self.session.live:
            return "what is shown is the past; go to its end in view 9 to go on"
        if tutor.free:
            return "P goes back to the step"
        if tutor.phase == "asking":
            return self._answer_keys(tutor.question.choices) if tutor.question is not None else ""
        return HINTS.get(tutor.phase, "")

    def do_demo_simulate(self, _: str) -> None:
        self._start(self._selected, DEFAULT_SEED)

    def do_demo_go(self, text: str) -> None:
        if text:
            self._start_named(text)
        elif self.demo_cluster is None:
            self._start(self._selected, None)
        elif self.demo_cluster.lesson.tutor.phase == "asking":
            self.console.type_line("answer ")
        elif not self.session.live:
            raise Refusal("what is shown is the past; go to its end first")
        else:
            self.demo_cluster.lesson.go_on()
            self.repaint()

    def do_demo_answer_letter(self, letter: str) -> None:
        ask = self.demo_cluster.lesson.tutor.question if self.demo_cluster is not None else None
        if ask is None or LETTERS.index(letter) >= len(ask.choices):
            raise Refusal(f"{letter} answers nothing here")
        self._answer(letter)

    def do_demo_answer(self, text: str) -> None:
        ask = self.demo_cluster.lesson.tutor.question if self.demo_cluster is not None else None
        if ask is None:
            raise Refusal("nothing is asked here")
        if not text:
            self.console.type_line("answer ")
            raise Refusal(f"the answer is empty; write one, or {LEFT_OUT} to leave it out")
        self._answer("" if text == LEFT_OUT else text)

    def holds_back(self, action: Action) -> str:
        """Let a stray letter change neither the cluster nor the view while a question waits."""
        if self.demo_cluster is None:
            return ""
        tutor = self.demo_cluster.lesson.tutor
        ask = tutor.question
        if ask is None or tutor.free or not (action.needs_write or action.group in HELD_GROUPS):
            return ""
        return f"answer the question first: {self._answer_keys(ask.choices)}; P plays freely"

    def _answer_keys(self, choices: Sequence[str]) -> str:
        letters = f"press a to {LETTERS[len(choices) - 1]}" if choices else "enter, and write the answer"
        return f"{letters}; :answer {LEFT_OUT} leaves it out"

    def works(self, action_id: str) -> bool:
        if self.demo_cluster is None:
            return action_id not in ("demo-free", "demo-restart")
        if action_id in ("demo-go", "demo-free"):
            return self.demo_cluster.lesson.tutor.phase != "over"
        return action_id not in ("demo-simulate", "filter", "demos")

    def _answer(self, text: str) -> None:
        assert self.demo_cluster is not None
        self.demo_cluster.lesson.answer(text)
        self.repaint()

    def do_demo_free(self, _: str) -> None:
        if self.demo_cluster is None:
            raise Refusal("no demo runs here; enter starts the one under the cursor")
        lesson = self.demo_cluster.lesson
        lesson.play_freely(free=not lesson.tutor.free)
        self.repaint()

    def do_demo_restart(self, _: str) -> None:
        if self.demo_cluster is None:
            raise Refusal("no demo runs here; enter starts the one under the cursor")
        demo, seed = self.demo_cluster.demo, self.demo_cluster.seed

        def anew() -> None:
            self.console.close_tab()
            self._start(demo, seed)

        self._ask_to_leave("Begin this demo anew?", "Restart", anew)

    def do_back(self, _: str) -> None:
        if self.demo_cluster is None:
            self.console.back()
        else:
            self._ask_to_leave("Leave this demo and close its cluster?", "Leave", self.console.close_tab)

    def _ask_to_leave(self, question: str, verb: str, leave: Callable[[], None]) -> None:
        assert self.demo_cluster is not None
        tutor = self.demo_cluster.lesson.tutor
        if tutor.phase in ("starting", "over"):
            leave()
            return

        def answered(confirmed: bool | None) -> None:
            if confirmed:
                leave()

        where = f"It stands at {step_text(tutor)}; {tutor.summary.score_text()}. Its cluster is closed."
        self.app.push_screen(ConfirmScreen(question, where, verb), answered)


def _equivalent_lines(command: Command) -> Sequence[str]:
    line = line_of(command)
    return (f":{describe(command)}", *([f"to a cluster that runs elsewhere: $ {line}"] if line else []))

"""`quarterdeck demo`: scripted demos, built in or of your own, live or simulated: listed, shown, run, and taught."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quarterdeck.cli.commands import run_options
from quarterdeck.cli.commands.simulate import play, report, scenario_of, simulated
from quarterdeck.cli.configuration.paths import console_state_file
from quarterdeck.cli.exits import BadUsage, ExitCode, fail_if, failing_as
from quarterdeck.cli.output import (
    Format,
    FormatOption,
    ResultFormatOption,
    argument,
    flag,
    narrate,
    option,
    say,
    write_result,
    write_rows,
    write_text,
)

if TYPE_CHECKING:
    from quarterdeck.backend.core.commands import Command
    from quarterdeck.backend.scenarios.format.scenario import Scenario
    from quarterdeck.backend.training.results import DemoSummary

group = typer.Typer(help="Scripted demos: list them, run them, learn with them.", rich_markup_mode=None)

COLUMNS = ("name", "chapter", "title", "minutes", "questions", "steps", "summary")
TABLE_COLUMNS = COLUMNS[:-1]
"""A summary is a sentence, for which a table has no room; `demo show` has it."""

STEP_COLUMNS = ("step", "kind", "text", "commands")

POLL_SECONDS = 0.05
"""How often a lesson looks at its live cluster."""

POLL_US = 50_000
"""How much virtual time passes between two looks."""

DemoArgument = Annotated[str, argument("A built-in demo or a scenario file.", "NAME|FILE")]
SimulateOption = Annotated[
    bool, option("Run in simulated time instead of on live members.", None, "--simulate", "--simulated")
]
SeedOption = Annotated[int | None, option("Seed of a simulated run; 0 when not given.")]


@group.callback(invoke_without_command=True)
def open_lessons(context: typer.Context) -> None:
    """Without a command, the lessons in the console; without a terminal, their list."""
    from quarterdeck.cli.commands.console import has_terminal, open_new_cluster

    if context.invoked_subcommand is not None:
        return
    if has_terminal():
        open_new_cluster(view="demos")
    else:
        list_demos()


@group.command("ls")
@group.command("list", hidden=True)
def list_demos(output: FormatOption = Format.TABLE) -> None:
    """List the built-in demos."""
    from quarterdeck.backend.training.demos import demo_names, load_demo

    def row(name: str) -> dict[str, object]:
        scenario = load_demo(name)
        counted = {"name": name, "questions": scenario.questions, "steps": len(scenario.steps)}
        named = (*COLUMNS, "goal", "seed_of")
        return {column: counted[column] if column in counted else getattr(scenario, column) for column in named}

    write_rows(map(row, demo_names()), TABLE_COLUMNS if output is Format.TABLE else COLUMNS, output)


@group.command("show")
def show_demo(
    demo: DemoArgument,
    source: Annotated[
        bool, flag("Print the scenario file of a built-in demo, to begin your own with.", "--source")
    ] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print the steps of a demo, each action with the command lines that do the same."""
    from quarterdeck.app.commands.command_text import lines_of
    from quarterdeck.backend.training.demos import demo_text

    if source:
        write_text(demo_text(demo).partition("\n")[2])  # the first line says where the clone has the schema
        return
    scenario = scenario_of(demo)

    def row(number: int) -> dict[str, object]:
        step = scenario.steps[number - 1]
        kind, text = step.summary()
        commands = list(step.do.commands(lambda label: True)) if step.do is not None else []
        return {"step": number, "kind": kind, "text": text, "commands": lines_of(commands)}

    write_rows(map(row, range(1, len(scenario.steps) + 1)), STEP_COLUMNS, output)


@group.command("run")
def run_demo(
    demo: DemoArgument,
    simulate: SimulateOption = False,
    seed: SeedOption = None,
    journal: run_options.JournalOption = None,
    no_journal: run_options.NoJournalOption = False,
    processes: run_options.ProcessesOption = False,
    log: run_options.LogOption = None,
    output: ResultFormatOption = None,
) -> None:
    """Run a demo and report each step on stderr. Exits with 1 when an expectation is missed.

    A live run is recorded unless --no-journal is given, a simulated one only with --journal.
    """
    _check_kind(simulate, seed, (("--processes", processes), ("--no-journal", no_journal), ("--log", log is not None)))
    run_options.write_log(log)
    scenario = scenario_of(demo)
    name = Path(demo).stem
    if simulate:
        outcome = simulated(scenario, name, seed or 0, journal)
    else:
        outcome = play(scenario, name, narrate, journal, wanted=not no_journal, processes=processes)
    say(outcome.sentence())
    report(outcome, output)


@group.command("tutor")
def tutor(
    demo: DemoArgument,
    simulate: SimulateOption = False,
    seed: SeedOption = None,
    journal: run_options.JournalOption = None,
    no_journal: run_options.NoJournalOption = False,
    output: ResultFormatOption = None,
) -> None:
    """Lead through a demo in plain text: narrate on stderr, read answers from stdin, and print the score at the end.

    Without a terminal only questions read a line, and everything else goes on by itself. Exits with 1 when the cluster missed an
    expectation; wrong predictions are no failure. The console's view `demos` does the same with all beliefs in sight.
    """
    from quarterdeck.backend.training.results import SCORES_FILE, ScoreBook

    _check_kind(simulate, seed, (("--no-journal", no_journal),))
    scenario, name = scenario_of(demo), Path(demo).stem
    recorded = journal is not None if simulate else not no_journal
    summary = _lesson(scenario, name, (seed or 0) if simulate else None, journal, recorded=recorded)
    say(summary.score_text())
    if summary.finished:
        scores = ScoreBook(console_state_file().with_name(SCORES_FILE))
        scores.record(name, summary)
        if scores.problem:
            say(scores.problem)
    kind = {"source": "simulated", "seed": seed or 0} if simulate else {"source": "live"}
    write_result({"demo": name, **kind, **summary.as_json()}, output)
    fail_if(summary.finished and not summary.passed)


def _check_kind(simulate: bool, seed: int | None, live_only: Sequence[tuple[str, bool]]) -> None:
    """Raise `CommandFailed` for options that do not go with live members, or not with simulated ones."""
    if seed is not None and not simulate:
        raise BadUsage("--seed: only a simulated run has a seed; add --simulate")
    for name, given in live_only:
        if given and simulate:
            raise BadUsage(f"{name}: only for live members; leave out --simulate")


def _lesson(scenario: Scenario, name: str, seed: int | None, journal: Path | None, *, recorded: bool) -> DemoSummary:
    """Lead through a lesson on live members, or under a `seed` in virtual time, which passes only while something is awaited."""
    from quarterdeck.backend.clusters.simulated.virtual_stage import VirtualStage
    from quarterdeck.backend.journal.files import seeded_run
    from quarterdeck.backend.training.demo_cluster import LiveDemo
    from quarterdeck.backend.training.lesson import Lesson
    from quarterdeck.backend.training.text_lesson import LessonFailed, TextLesson
    from quarterdeck.backend.training.tutor import Tutor

    run = run_options.new_run(name) if seed is None else seeded_run(name, seed)
    with run_options.recording(journal, run, wanted=recorded) as writer:
        if seed is not None:
            stage = VirtualStage(scenario, seed, writer, run=run)
            lesson = Lesson(Tutor(scenario, seed=seed), stage)

            def pass_virtual_time() -> None:
                stage.advance(POLL_US)
                lesson.advance(stage.drain())

            return TextLesson(lesson, pass_virtual_time, _TerminalTrainee(), _command_lines).run()
        with (
            failing_as(ExitCode.UNREACHABLE, OSError, LessonFailed, about="the live cluster failed"),
            closing(LiveDemo(scenario, name, writer)) as cluster,
        ):

            def pass_time() -> None:
                time.sleep(POLL_SECONDS)
                cluster.drain()

            return TextLesson(cluster.lesson, pass_time, _TerminalTrainee(), _command_lines).run()


class _TerminalTrainee:
    """The trainee at stdin and stderr; without a terminal it waits only where something is asked."""

    def __init__(self) -> None:
        self._present = sys.stdin.isatty()

    def print_line(self, line: str) -> None:
        say(line)

    def answer(self) -> str:
        return self._read("your answer: ")

    def pause(self, what_follows: str) -> str:
        return self._read(f"[enter: {what_follows}, q: leave] ") if self._present else ""

    def _read(self, prompt: str) -> str:
        print(prompt, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not self._present or not line:
            say(line.rstrip())  # what was typed at a terminal stands there already
        return line.rstrip("\n")


def _command_lines(command: Command) -> Sequence[str]:
    from quarterdeck.app.commands.command_text import lines_of

    return lines_of([command])

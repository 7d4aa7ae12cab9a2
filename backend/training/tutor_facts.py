"""The present words of a tutor as facts for a sheet: narration, question, action, missing parts, score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.text.fact import Fact, Tone, under
from quarterdeck.backend.picture.text.formatting import counted
from quarterdeck.backend.scenarios.format.questions import LETTERS
from quarterdeck.backend.scenarios.format.scenario import paragraphs
from quarterdeck.backend.training.lesson import Lesson
from quarterdeck.backend.training.tutor import Kind, TranscriptEntry, Tutor

BAR_CELLS = 20

CommandForms = Callable[[Command], Sequence[str]]
"""How else a command can be given: the line of the prompt, and the command line."""

HEADINGS: dict[Kind, tuple[str, Tone]] = {
    "said": ("", "plain"),
    "did": ("▶ done", "faint"),
    "asked": ("? question", "strong"),
    "answered": ("you said", "faint"),
    "met": ("✓ came true", "good"),
    "missed": ("✕ missed", "bad"),
    "refused": ("✕ refused", "warning"),
    "right": ("✓ right", "good"),
    "wrong": ("✕ it was", "warning"),
    "open": ("· it was", "plain"),
    "why": ("because", "plain"),
}

MARKS: dict[bool | None, tuple[str, Tone]] = {
    True: ("  ✓ right", "good"),
    False: ("  ✕ wrong", "warning"),
    None: ("  · not judged", "faint"),
}


def tutor_facts(lesson: Lesson, now_us: int, lines: CommandForms) -> tuple[Fact, ...]:
    """Return the page that is in sight."""
    return tuple(_facts(lesson, now_us, lines))


def step_text(tutor: Tutor) -> str:
    """Where in the demo it stands, in a few words."""
    if tutor.phase == "over":
        return "over"
    return f"step {tutor.number} of {len(tutor.scenario.steps)}"


def bar_text(left_us: int, whole_us: int) -> str:
    """How much time is left, in words and as a bar."""
    share = left_us / whole_us if whole_us else 0
    full = min(BAR_CELLS, round(share * BAR_CELLS))
    return f"{'█' * full}{'░' * (BAR_CELLS - full)} {left_us / SECOND_US:.0f} s of {whole_us / SECOND_US:g} s"


def _facts(lesson: Lesson, now_us: int, lines: CommandForms) -> Iterator[Fact]:
    tutor = lesson.tutor
    if lesson.problem:
        yield Fact("✕ problem", lesson.problem, "bad")
    for entry in tutor.page:
        yield from _entry_facts(entry, lines)
    if tutor.free:
        yield Fact("⚑ free play", "The demo waits at this step; nothing runs out, nothing is judged.", "strong")
        return
    match tutor.phase:
        case "starting":
            yield Fact("… starting", "the members are being started", "faint")
        case "asking":
            yield from _choices(tutor)
        case "to-do":
            yield from _next_action_facts(tutor, lines)
        case "doing" | "waiting":
            yield Fact("… doing", "it is being done", "faint")
        case "expecting":
            yield from _expectation(tutor, now_us)
        case "over":
            yield from summary_facts(tutor)


def _entry_facts(entry: TranscriptEntry, lines: CommandForms) -> Iterator[Fact]:
    heading, tone = HEADINGS[entry.kind]
    yield from under(heading, paragraphs(entry.text), tone)
    if entry.kind == "did" and entry.command is not None:
        for line in lines(entry.command)[:1]:
            yield Fact("", line, "faint")


def _choices(tutor: Tutor) -> Iterator[Fact]:
    ask = tutor.question
    assert ask is not None
    for letter, choice in zip(LETTERS, ask.choices, strict=False):
        yield Fact(f"  {letter}", choice, "strong")
    if not ask.choices:
        yield Fact("", "write members separated by commas, nobody, or a number", "faint")


def _next_action_facts(tutor: Tutor, lines: CommandForms) -> Iterator[Fact]:
    for place, step in enumerate(tutor.next_actions):
        assert step.do is not None
        yield Fact("▸ to do" if place == 0 else "  then", step.do.text(), "strong")
        for command in tutor.commands(step):
            for line in lines(command):
                yield Fact("", line, "faint")


def _expectation(tutor: Tutor, now_us: int) -> Iterator[Fact]:
    expect = tutor.expected
    assert expect is not None
    yield Fact("… expecting", expect.text())
    if expect.never:
        yield Fact(
            "so far", tutor.missing or "nothing that is forbidden has happened", "plain" if tutor.missing else "good"
        )
    else:
        yield from under("missing", tutor.missing.split("; ") if tutor.missing else (), "warning")
    if expect.within_us:
        yield Fact("time left", bar_text(tutor.remaining_us(now_us), expect.within_us))


def summary_facts(tutor: Tutor) -> Iterator[Fact]:
    """How it went."""
    summary = tutor.summary
    yield Fact("▪ summary", f"{summary.score_text()}, in {summary.lasted_us / SECOND_US:.0f} s", "strong")
    met = len(summary.expectation_results) - summary.missed
    missed = f", {summary.missed} missed" if summary.missed else ""
    yield Fact("", f"{counted(met, 'expectation')} came true{missed}", "bad" if summary.missed else "good")
    for prediction in summary.predictions:
        heading, tone = MARKS[prediction.right]
        said = (
            ""
            if prediction.right
            else f"you said {prediction.said}; it was "
            if prediction.said
            else "left out; it was "
        )
        yield Fact(heading, f"{prediction.question} {said}{prediction.truth}", tone)
    for expectation_results in summary.expectation_results:
        if expectation_results.missing:
            yield Fact("✕ missed", f"step {expectation_results.step}: {expectation_results.missing}", "bad")
    if any(step.free_play for step in tutor.scenario.steps):
        yield Fact("⚑ free play", "The cluster is yours now: every key works on it, in every view.", "strong")

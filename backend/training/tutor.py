"""The tutor: one trainee led through one scenario, step by step, as a pure state machine (design sections 1.2 and 5.1).

Records and the time go in, commands come out. It waits for the trainee before it does something, where it asks something, and
after a verdict; what it expects is judged by the same rules as in a run without a trainee, and shown while it is still missing.
Narration between an action and its expectation does not pause the demo: what it speaks of may last for a moment only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from quarterdeck.backend.commands.catalogue import description_of
from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.scenarios.answers import RightAnswer
from quarterdeck.backend.scenarios.format.scenario import Expect, Scenario, ScenarioQuestion, ScenarioStep
from quarterdeck.backend.scenarios.run_state import RunState
from quarterdeck.backend.scenarios.workload import Workloads
from quarterdeck.backend.training.results import DemoSummary, ExpectationResult, TraineePrediction

GRACEFUL_STOP_US = 200_000
"""How long a graceful stop is waited for before the next step: enough to hear of a refusal."""

Phase = Literal["starting", "to-do", "asking", "doing", "waiting", "expecting", "reading", "missed", "over"]
"""The stage of the tutor. `to-do`, `reading`, `missed` wait for the trainee, `asking` for an answer; `over` is the end."""

Kind = Literal["said", "did", "asked", "answered", "met", "missed", "refused", "right", "wrong", "open", "why"]


class TranscriptEntry(NamedTuple):
    """One text that the tutor has shown to the trainee."""

    kind: Kind
    text: str
    command: Command | None = None
    """The command, for `did`."""


class NumberedCommand(NamedTuple):
    """A command for the cluster. `Tutor.ended` is called with its number when it has ended, unless that is 0."""

    number: int
    command: Command


@dataclass
class _PendingExpectation:
    number: int
    expect: Expect
    since_us: int
    until_us: int
    reading: str = ""
    """Uuid of the member through which every key is being read."""


class Tutor:
    """Leads through `scenario`. A driver hands in the records, calls `tick` often, and executes the commands that come out."""

    def __init__(self, scenario: Scenario, *, seed: int = 0) -> None:
        """Workloads are drawn from `seed`."""
        self.scenario = scenario
        self.phase: Phase = "starting"
        self.free = False
        """Whether the trainee plays freely: then the demo stands still, and no time runs out."""
        self.transcript: list[TranscriptEntry] = []
        """Everything, in order."""
        self.page_from = 0
        """Where in `transcript` the current page begins."""
        self.predictions: list[TraineePrediction] = []
        self.expectation_results: list[ExpectationResult] = []
        self.missing = ""
        """The missing part of the awaited expectation."""
        self._run_state = RunState()
        self._settings = scenario.timing()
        self._workloads = Workloads(seed)
        self._place = 0
        """How many steps are behind; the next one is `scenario.steps[_place]`."""
        self._queued_commands: list[NumberedCommand] = []
        self._numbers = 0
        self._under_way: dict[int, int | None] = {}
        """Commands that have not ended, and until when at most each is waited for; None: as long as it takes."""
        self._pause_until_us = 0
        self._settling_until_us: int | None = None
        self._pending_expectation: _PendingExpectation | None = None
        self._began_us: int | None = None
        self._now_us = 0
        self._free_since_us = 0
        self._refusals = 0

    # What is to be seen

    @property
    def number(self) -> int:
        """The step that is next or under way, from 1."""
        return min(self._place + 1, len(self.scenario.steps))

    @property
    def has_everybody(self) -> bool:
        """Whether all members that start with the cluster have joined."""
        late = self.scenario.late
        return all(self._run_state.has_joined(label) for label in self.scenario.members if label not in late)

    @property
    def page(self) -> list[TranscriptEntry]:
        return self.transcript[self.page_from :]

    @property
    def next_actions(self) -> list[ScenarioStep]:
        """The actions that follow when the trainee agrees: one, or several in a row."""
        found = []
        for step in self.scenario.steps[self._place :]:
            if step.do is None:
                break
            found.append(step)
        return found

    @property
    def question(self) -> ScenarioQuestion | None:
        return self.scenario.steps[self._place].ask if self.phase == "asking" else None

    @property
    def expected(self) -> Expect | None:
        """The awaited expectation."""
        return self._pending_expectation.expect if self._pending_expectation is not None else None

    def remaining_us(self, now_us: int) -> int:
        """How long the expectation may take still."""
        if self._pending_expectation is None:
            return 0
        return max(0, self._pending_expectation.until_us - (self._free_since_us if self.free else now_us))

    def commands(self, step: ScenarioStep) -> list[Command]:
        """Return the commands that an action stands for now."""
        return list(step.do.commands(self._run_state.is_running)) if step.do is not None else []

    @property
    def summary(self) -> DemoSummary:
        lasted = 0 if self._began_us is None else self._now_us - self._began_us
        return DemoSummary(
            tuple(self.predictions), tuple(self.expectation_results), self._refusals, lasted, self.phase == "over"
        )

    # What is handed in

    def receive(self, records: Iterable[Record]) -> None:
        """Take in new records; none any more once the demo is over, however long the cluster goes on."""
        if self.phase == "over":
            return
        for record in records:
            self._run_state.observe(record)

    def begin(self, now_us: int) -> None:
        self._now_us = now_us
        if self.phase == "starting":
            self._began_us = now_us
            self._go()

    def tick(self, now_us: int) -> None:
        """Check which expectations have come true, and which steps are due."""
        self._now_us = now_us
        while (planned := self._workloads.due(now_us)) is not None:
            self._queued_commands.append(NumberedCommand(0, planned[1]))
        if not self.free:
            self._look()

    def go_on(self, now_us: int) -> None:
        """Go on to the next thing, an action done or words left behind, if the trainee is waited for."""
        self._now_us = now_us
        if self.free:
            return
        if self.phase == "to-do":
            self._do()
        elif self.phase in ("reading", "missed"):
            self.page_from = len(self.transcript)
            self._go()

    def answer(self, text: str, now_us: int) -> None:
        """Take the trainee's prediction, a letter or words; blanks leave the question out. Only while `asking`."""
        self._now_us = now_us
        ask = self.question
        if ask is not None:
            said = ask.text_of_choice(text)
            self._run_state.ask(ask, said)
            self._say("answered", said or "left out")
            self._place += 1
            self._go()

    def play_freely(self, now_us: int, *, free: bool) -> None:
        """Leave the trainee alone with the cluster, or come back to the step where that began."""
        if free == self.free:
            return
        self.free = free
        if free:
            self._free_since_us = now_us
        elif self._pending_expectation is not None:
            self._pending_expectation.until_us += now_us - self._free_since_us

    def ended(self, number: int, refusal: str, now_us: int) -> None:
        """Note that the command of this number was done, or refused when it has a `refusal`."""
        self._now_us = now_us
        if number in self._under_way:
            del self._under_way[number]
            if refusal:
                self._refused(refusal)

    def drain_commands(self) -> list[NumberedCommand]:
        """Return the commands that the cluster has to carry out now, each command once."""
        commands, self._queued_commands = self._queued_commands, []
        return commands

    # Steps

    def _go(self) -> None:
        """Go on to where the trainee or the cluster has to be waited for."""
        while self._place < len(self.scenario.steps):
            step = self.scenario.steps[self._place]
            if step.say is not None:
                self._say("said", step.say.strip())
            elif step.ask is not None:
                self.phase = "asking"
                self._say("asked", step.ask.question)
                return
            elif step.do is not None:
                self.phase = "to-do"
                return
            elif step.expect is not None:
                self._expect(step.expect)
                return
            self._place += 1
        self.phase = "over"

    def _flows_on(self) -> bool:
        """Whether nothing but words stands before the next expectation, so that no one may be waited for."""
        following = next((step for step in self.scenario.steps[self._place :] if step.say is None), None)
        return following is not None and following.expect is not None

    def _do(self) -> None:
        step = self.scenario.steps[self._place]
        assert step.do is not None
        self.phase = "doing"
        if step.do.name in ("wait", "wait_until_safe", "load"):
            self._say("did", step.do.text())
            if step.do.load is not None:
                self._workloads.begin(step.do.load, self._now_us)
                return
            self.phase = "waiting"
            if step.do.wait_until_safe is not None:
                self._settling_until_us = self._now_us + step.do.wait_until_safe.within_us
            else:
                self._pause_until_us = self._now_us + step.do.wait
            return
        self._run_state.begin_action()
        for command in step.do.commands(self._run_state.is_running):
            self._numbers += 1
            self._queued_commands.append(NumberedCommand(self._numbers, command))
            self._under_way[self._numbers] = (
                self._now_us + GRACEFUL_STOP_US if description_of(command).ending == "stopped" else None
            )
            self._say("did", step.do.text(), command)

    def _refused(self, refusal: str) -> None:
        self._run_state.refusal = refusal
        self._say("refused", refusal)
        if not self.scenario.refusal_is_expected(self._place + 1):
            self._refusals += 1

    def _look(self) -> None:
        match self.phase:
            case "doing":
                overdue = [
                    one
                    for one, until_us in self._under_way.items()
                    if until_us is not None and self._now_us >= until_us
                ]
                for number in overdue:
                    del self._under_way[number]
                if not self._under_way:
                    self._done()
            case "waiting":
                settling = self._settling_until_us
                if settling is not None:
                    unsettled = self._run_state.why_not_settled()
                    if not unsettled or self._now_us >= settling:
                        self._settling_until_us = None
                        if unsettled:
                            self._refused(f"the time is over: {unsettled}")
                        self._done()
                elif self._now_us >= self._pause_until_us:
                    self._done()
            case "expecting":
                assert self._pending_expectation is not None
                self._judge(self._pending_expectation)

    def _done(self) -> None:
        self._place += 1
        if self.next_actions:
            self._do()
        else:
            self._go()

    # Expectations

    def _expect(self, expect: Expect) -> None:
        self.phase = "expecting"
        self._run_state.begin_expectation(expect)
        self._pending_expectation = _PendingExpectation(
            self._place + 1, expect, self._now_us, self._now_us + (expect.within_us or 0)
        )
        self._judge(self._pending_expectation)

    def _judge(self, waiting: _PendingExpectation) -> None:
        run_state, expect = self._run_state, waiting.expect
        if waiting.reading:
            reader = run_state.reader()
            going_on = reader is not None and reader.uuid == waiting.reading and run_state.is_reading(reader)
            if not going_on or self._now_us >= waiting.until_us:
                self._conclude(
                    waiting, "; ".join(filter(None, (run_state.missing(expect), run_state.writes_missing())))
                )
            return
        self.missing = run_state.missing(expect)
        late = self._now_us >= waiting.until_us
        if not (late or (run_state.is_violated(expect) if expect.never else not self.missing)):
            return
        if not self.missing and expect.no_lost_writes:
            self._read_everything(waiting)
        else:
            self._conclude(waiting, self.missing)

    def _read_everything(self, waiting: _PendingExpectation) -> None:
        reader = self._run_state.reader()
        if reader is None:
            self._conclude(waiting, "no member is left to be asked for the data")
            return
        waiting.reading, waiting.until_us = reader.uuid, self._now_us + self._settings.call_timeout_us
        self.missing = "every key is being read"
        self._queued_commands.extend(NumberedCommand(0, call) for call in self._run_state.reads_of_everything(reader))

    def _conclude(self, waiting: _PendingExpectation, missing: str) -> None:
        text = waiting.expect.text()
        self._pending_expectation, self.missing = None, ""
        self.expectation_results.append(
            ExpectationResult(waiting.number, text, self._now_us - waiting.since_us, missing)
        )
        self._say("missed" if missing else "met", missing or waiting.expect.fact())
        for truth in self._run_state.answers():
            self._reveal(truth)
        self._place += 1
        if missing:
            self.phase = "missed"
        elif self._flows_on() or self._place == len(self.scenario.steps):
            self._go()
        else:
            self.phase = "reading"

    def _reveal(self, truth: RightAnswer) -> None:
        said = truth.said
        judged = bool(said) and not truth.in_doubt
        right = judged and truth.agrees_with(said)
        self.predictions.append(TraineePrediction(truth.ask.question, said, truth.text, right if judged else None))
        self._say(("right" if right else "wrong") if judged else "open", f"{truth.ask.question} {truth.text}")
        if truth.ask.why:
            self._say("why", truth.ask.why.strip())

    def _say(self, kind: Kind, text: str, command: Command | None = None) -> None:
        self.transcript.append(TranscriptEntry(kind, text, command))

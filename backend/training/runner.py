"""Running a scenario on a live cluster, headless: real members, real sockets, real time.

The interpreter of the steps, the expectations and the invariants are those of the simulator; only the stage differs,
and that everything is shown as it happens.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing
from operator import attrgetter

from quarterdeck.backend.clusters.local import JournalWriter, LiveCluster, LocalCluster, MemberOptions
from quarterdeck.backend.commands.catalogue import description_of
from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.scenarios.format.questions import LETTERS
from quarterdeck.backend.scenarios.format.scenario import Scenario, ScenarioStep, without_emphasis
from quarterdeck.backend.scenarios.interpreter import Interpreter, conclude
from quarterdeck.backend.scenarios.outcome import Outcome, StepOutcome
from quarterdeck.backend.scenarios.run_state import RunState
from quarterdeck.backend.training.tutor import GRACEFUL_STOP_US

Narrate = Callable[[str], None]

POLL_SECONDS = 0.05
"""How often the records of a live cluster are collected while time passes."""

REORDER_WINDOW_US = 100_000
"""How late a record of one member may come behind those of others."""

COMMAND_TIMEOUT_SECONDS = 15.0
"""How long one command may take before the run is given up."""


class CommandTimedOut(RuntimeError):
    """The cluster neither did a command nor refused it in time."""


class OnlySimulated(ValueError):
    """A scenario that no live cluster can play; the message says which step, and why."""


def run_live(
    scenario: Scenario,
    narrate: Narrate,
    journal: JournalWriter | None = None,
    base_port: int = 5701,
    *,
    kind: type[LiveCluster] = LocalCluster,
) -> Outcome:
    """Run `scenario` on a new cluster, whose members listen from `base_port` on, and end that cluster afterwards.

    `narrate` is given a line or a few at a time: what the script says, each action, each verdict, and after those
    what every member believes. The cluster itself writes to `journal`. `kind` says what its members run in: this process,
    or each in one of its own. Raises `OnlySimulated`, `CommandTimedOut`, and whatever starting and closing the cluster
    raises.
    """
    cluster = kind(scenario.members, **live_options(scenario), journal=journal, base_port=base_port)
    with closing(cluster):
        run_state = RunState()
        stage = LiveStage(cluster, run_state)
        narrate(scenario.title)
        steps = Interpreter(scenario, stage, run_state, Narrator(run_state, narrate)).play()
        stage.advance(0)
        return conclude(
            steps, run_state, now_us=stage.now_us(), events=run_state.records, fingerprint="", source="live"
        )


def live_options(scenario: Scenario) -> MemberOptions:
    """Return the facts of a scenario's members that a live cluster needs besides their labels.

    Raises:
        OnlySimulated: No live cluster can play it.
    """
    if why := scenario.only_simulated():
        raise OnlySimulated(f"{scenario.title!r} can be simulated only: {why}")
    return MemberOptions(
        settings=scenario.timing(),
        settings_of=scenario.settings_of(),
        cluster_names=scenario.cluster_names,
        join_lists=scenario.join_lists,
        late=scenario.late,
        lite=scenario.lite,
        zones=scenario.zones,
    )


class LiveStage:
    """A cluster as a stage: time passes by itself, and meanwhile its records are collected.

    Members with processes of their own share a clock but not a queue, so their records may arrive out of order. They are held
    for a moment and judged in the order of their times, as causes come before effects there.
    """

    def __init__(self, cluster: LiveCluster, run_state: RunState) -> None:
        self._cluster = cluster
        self._run_state = run_state
        self._held: list[Record] = []

    def start_members(self) -> None:
        """Wait until the cluster has started them. Raises OSError when it could not."""
        while not self._cluster.started.done():
            self.advance(round(POLL_SECONDS * SECOND_US))
        self._cluster.started.result()
        self._collect(everything=True)

    def now_us(self) -> int:
        return self._cluster.now_us()

    def execute(self, command: Command) -> None:
        """Do `command`, and wait until it is done; a member that stops may go on giving its data away meanwhile.

        Raises `CommandRefused` or `CommandTimedOut`.
        """
        leaves = description_of(command).ending == "stopped"
        try:
            self._cluster.execute(command).result(GRACEFUL_STOP_US / SECOND_US if leaves else COMMAND_TIMEOUT_SECONDS)
        except FutureTimeout as stuck:
            if leaves:
                return
            raise CommandTimedOut(f"{command} was not done within {COMMAND_TIMEOUT_SECONDS:g} s") from stuck
        self._collect()

    def advance(self, by_us: int) -> None:
        """Let this time pass; without a time, judge the records that are there."""
        until = time.monotonic() + by_us / SECOND_US
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, POLL_SECONDS))
            self._collect()
        self._collect(everything=not by_us)

    def _collect(self, *, everything: bool = False) -> None:
        self._held += self._cluster.drain()
        self._held.sort(key=attrgetter("at"))
        settled_us = self._cluster.now_us() - REORDER_WINDOW_US
        count = len(self._held) if everything else bisect_right(self._held, settled_us, key=attrgetter("at"))
        for record in self._held[:count]:
            self._run_state.observe(record)
        del self._held[:count]


class Narrator:
    """Narrates the steps as they happen, and after each step with an effect the belief of every member."""

    def __init__(self, run_state: RunState, narrate: Narrate) -> None:
        self._run_state = run_state
        self._narrate = narrate
        self._violations_shown = 0

    def begins(self, number: int, step: ScenarioStep) -> None:
        if step.say is not None:
            self._narrate(without_emphasis(step.say).rstrip())
        elif step.ask is not None:
            self._run_state.ask(step.ask)
            choices = "".join(f"\n  {letter}) {one}" for letter, one in zip(LETTERS, step.ask.choices, strict=False))
            self._narrate(f"[{number}] question: {step.ask.question}{choices}")
        elif step.do is not None:
            self._narrate(f"[{number}] do {step.do.text()}")
        elif step.expect is not None:
            self._narrate(f"[{number}] expect {step.expect.text()}")

    def ends(self, number: int, step: ScenarioStep, outcome: StepOutcome | None) -> None:
        """Say how a step ended, and every member's belief then."""
        if outcome is not None:
            verdict = "met" if outcome.met else f"NOT MET: {outcome.missing}"
            self._narrate(f"[{number}] {verdict} at {outcome.at_seconds:.1f} s")
            if step.expect is not None:
                for truth in self._run_state.answers():
                    why = f" ({' '.join(truth.ask.why.split())})" if truth.ask.why else ""
                    self._narrate(f"answer: {truth.text}{why}")
        for violation in self._run_state.invariant_checker.violations[self._violations_shown :]:
            self._narrate(f"VIOLATION of {violation.invariant}: {violation.text}")
        self._violations_shown = len(self._run_state.invariant_checker.violations)
        if not step.is_silent:  # words change no beliefs
            for line in belief_lines(self._run_state):
                self._narrate(line)


def belief_lines(run_state: RunState) -> list[str]:
    """Return one line for each member: its state, and while it runs the list that it believes in."""
    members = run_state.picture.members
    width = max((len(label) for label in members), default=0)
    running = run_state.beliefs()
    lines = []
    for label, belief in members.items():
        line = f"  {label:<{width}}  {belief.status}"
        if (now := running.get(label)) and now.members:
            line += f"  v{now.version} {', '.join(now.members)}  master {now.master or 'nobody'}"
            line += f"  suspects {', '.join(now.suspected)}" if now.suspected else ""
        lines.append(line)
    return lines

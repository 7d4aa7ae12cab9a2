"""Runs a scenario in virtual time: the driver that acts on a `World`, and `simulate`, which does all of it."""

from __future__ import annotations

from collections.abc import Callable

from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.commands import Command, StartMember
from quarterdeck.backend.core.operations import Answer
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.interpreter import Interpreter, conclude
from quarterdeck.backend.scenarios.outcome import Outcome
from quarterdeck.backend.scenarios.run_state import RecordSink, RunState
from quarterdeck.backend.simulation.checked_machine import CheckedMachine
from quarterdeck.backend.simulation.model_checking.model import Model
from quarterdeck.backend.simulation.model_checking.scheduled_run import ScheduledRun
from quarterdeck.backend.simulation.virtual_time.forked_world import forked_world
from quarterdeck.backend.simulation.virtual_time.world import World

JOIN_TIMEOUT_US = 3 * SECOND_US
"""How long the start of the next member waits for the one before it to join."""
JOIN_POLL_US = 10_000
"""How often a start looks whether the member before it has joined."""


class SimulatedDriver:
    """Takes the steps of a scenario in a `World`: time passes as fast as it can be computed.

    With `elide_heartbeats` those that say nothing new are left out: the records are the same, the count of events is not. With
    `begin` the world goes on from that snapshot, whatever the scenario says of members.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        run_state: RunState,
        run: str | None = None,
        *,
        on_answer: Callable[[int, Answer], None] | None = None,
        elide_heartbeats: bool = False,
        begin: ClusterSnapshot | None = None,
    ) -> None:
        self._run_state = run_state
        self._prompt = tuple(label for label in scenario.members if label not in scenario.late)
        if begin is not None:
            self._prompt = ()
            self.world = forked_world(
                begin, seed=seed, run=run or begin.name, on_record=run_state.observe, on_answer=on_answer
            )
            return
        self.world = World(
            scenario.members,
            seed=seed,
            settings=scenario.timing(),
            settings_of=scenario.settings_of(),
            cluster_names=scenario.cluster_names,
            join_lists=scenario.join_lists,
            lite=scenario.lite,
            zones=scenario.zones,
            addresses=scenario.addresses,
            run=run,
            on_record=run_state.observe,
            on_answer=on_answer,
            latency=scenario.latency.latency(),
            clocks={label: clock.clock() for label, clock in scenario.clocks.items()},
            elide_heartbeats=elide_heartbeats,
        )
        self.world.machine_kind = CheckedMachine

    def start_members(self) -> None:
        for label in self._prompt:
            if self.world.machine(label) is None:  # else an operator has started it
                self.world.execute(StartMember(label))
            until = self.world.now_us + JOIN_TIMEOUT_US
            while not self._run_state.has_joined(label) and self.world.now_us < until:
                self.advance(JOIN_POLL_US)

    def now_us(self) -> int:
        return self.world.now_us

    def execute(self, command: Command) -> None:
        self.world.execute(command)

    def advance(self, by_us: int) -> None:
        self.world.run_until(self.world.now_us + by_us)


def simulate(scenario: Scenario, seed: int, journal: RecordSink | None = None, *, run: str | None = None) -> Outcome:
    """Run `scenario` in virtual time under `seed`; equal scenarios and seeds give equal outcomes, fingerprint included.

    `run` names the run in its records, which go to `journal` when there is one.
    """
    run_state = RunState(journal)
    if scenario.has_schedule:
        return _follow_schedule(scenario, seed, run_state, run or f"seed-{seed}")
    driver = SimulatedDriver(scenario, seed, run_state, run)
    steps = Interpreter(scenario, driver, run_state, seed=seed).play()
    world = driver.world
    return conclude(
        steps,
        run_state,
        now_us=world.now_us,
        events=world.events,
        messages=world.network.messages,
        fingerprint=world.fingerprint(),
        source="simulated",
    )


def _follow_schedule(scenario: Scenario, seed: int, run_state: RunState, run: str) -> Outcome:
    """Run a scenario that says which message arrives when: the seed is that of its workloads only."""
    model = Model(
        run,
        scenario.title,
        tuple(label for label in scenario.members if label not in scenario.late),
        later=scenario.late,
        properties=scenario.settings,
        join_lists=scenario.join_lists,
        prompt=scenario.prompt,
    )
    driver = ScheduledRun(model, run_state.observe)
    steps = Interpreter(scenario, driver, run_state, seed=seed, take_scheduled=driver.take).play()
    return conclude(
        steps,
        run_state,
        now_us=driver.now_us(),
        events=driver.events,
        fingerprint=driver.fingerprint(),
        source="simulated",
    )

"""Clusters with a lesson on them: they are like any other, and draining them lets the lesson go on."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.backend.clusters.local import JournalWriter, LocalCluster
from quarterdeck.backend.clusters.simulated.simulated_cluster import SimulatedCluster
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.training.lesson import Lesson
from quarterdeck.backend.training.runner import live_options
from quarterdeck.backend.training.tutor import Tutor


class LiveDemo(LocalCluster):
    """The members of `scenario`, live, and a tutor who leads through its steps."""

    def __init__(self, scenario: Scenario, demo: str, journal: JournalWriter | None = None) -> None:
        """Prepare the cluster of a demo, recorded in `journal`, if there is one.

        Raises:
            PortsExhausted: There are not enough free ports.
        """
        super().__init__(scenario.members, name=demo, **live_options(scenario), journal=journal)
        self.demo = demo
        self.seed: int | None = None
        self.lesson = Lesson(Tutor(scenario), self, self.started)

    def drain(self) -> list[Record]:
        records = super().drain()
        self.lesson.advance(records)
        return records


class SimulatedDemo(SimulatedCluster):
    """The members of `scenario` in simulated time under `seed`, and a tutor who leads through its steps."""

    def __init__(self, scenario: Scenario, demo: str, seed: int) -> None:
        stage = scenario.model_copy(update={"steps": ()})  # the tutor takes them, not the simulation
        super().__init__(stage, seed, name=demo)
        self.demo = demo
        self.seed: int | None = seed
        self.lesson = Lesson(Tutor(scenario, seed=seed), self)

    def drain(self) -> list[Record]:
        records = super().drain()
        self.lesson.advance(records)
        return records

    def notes(self) -> Sequence[str]:
        """Return how the stage's time goes; the tutor shows the texts and questions of the scenario."""
        return super().notes()[:1]


DemoCluster = LiveDemo | SimulatedDemo
"""A cluster with a lesson. `demo` is the name of the script, `seed` that of a simulated one."""

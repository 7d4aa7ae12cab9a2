"""A simulated cluster for a lesson without a screen: time passes only when it is let."""

from __future__ import annotations

from concurrent.futures import Future

from quarterdeck.backend.clusters.simulated.simulated_cluster import ObservedLedger
from quarterdeck.backend.core.commands import Command, CommandRefused
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.run_state import RecordSink
from quarterdeck.backend.simulation.simulated_driver import SimulatedDriver


class VirtualStage:
    """The members of `scenario`, started, in virtual time under `seed`."""

    def __init__(
        self, scenario: Scenario, seed: int, journal: RecordSink | None = None, *, run: str | None = None
    ) -> None:
        self._waiting: list[Record] = []
        ledger = ObservedLedger(lambda record: self._waiting.append(record), journal)
        self._stage = SimulatedDriver(scenario, seed, ledger, run)
        self._stage.start_members()

    def now_us(self) -> int:
        return self._stage.now_us()

    def execute(self, command: Command) -> Future[None]:
        """Do `command` at once. The future is done."""
        done: Future[None] = Future()
        try:
            self._stage.execute(command)
        except CommandRefused as refusal:
            done.set_exception(refusal)
        else:
            done.set_result(None)
        return done

    def advance(self, by_us: int) -> None:
        self._stage.advance(by_us)

    def drain(self) -> list[Record]:
        found, self._waiting = self._waiting, []
        return found

"""The console on what needs no running members: a recorded run, or a simulated one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.cli.exits import CommandFailed, ExitCode, failing_as
from quarterdeck.cli.simulate import load

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.recorded import RecordedCluster
    from quarterdeck.backend.clusters.simulated import SimulatedCluster

DEFAULT_SPEED = 1.0


def recorded_cluster(journal: Path, at: str | None) -> tuple[RecordedCluster, int | None]:
    """The run in `journal`, and the moment that `at` names in it, in microseconds. Raises `CommandFailed`."""
    from quarterdeck.backend.clusters.recorded import RecordedCluster
    from quarterdeck.backend.journal.files import NoJournal
    from quarterdeck.backend.picture.moments import BadMoment, named_event, seconds_of

    with failing_as(ExitCode.BAD_INPUT, NoJournal, OSError, about="--replay"):
        cluster = RecordedCluster(journal)
        if at is None:
            return cluster, None
        with failing_as(ExitCode.BAD_INPUT, BadMoment, about="--at"):
            event = named_event(at)
            at_us = seconds_of(at) if event is None else cluster.moment_of(*event)
        if at_us is None:
            raise CommandFailed(ExitCode.BAD_INPUT, f"--at: there is no event {at} in the run {cluster.run}")
        return RecordedCluster(journal, until_us=at_us), at_us


def simulated_cluster(file: Path, seed: int | None, speed: float | None) -> SimulatedCluster:
    """The scenario in `file`, in simulated time. Raises `CommandFailed`."""
    from quarterdeck.backend.clusters.simulated import SimulatedCluster
    from quarterdeck.backend.picture.playhead import BadSpeed

    scenario = load(file)
    with failing_as(ExitCode.BAD_INPUT, BadSpeed, about="--speed"):
        return SimulatedCluster(scenario, seed or 0, name=file.stem, speed=DEFAULT_SPEED if speed is None else speed)

"""What Quarterdeck offers to programs: read a journal or logs of members, and simulate a scenario. No Spark is needed.

Import these names from `quarterdeck` itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.observations.observation import Observation
from quarterdeck.backend.hazelcast.logs.observations.story import LogStory
from quarterdeck.backend.hazelcast.logs.reader import LogRecords, NoLogs, QuarantinedEntry
from quarterdeck.backend.hazelcast.logs.reader import read_logs as _read_logs
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.journal.files import NoJournal, run_directory, seeded_run
from quarterdeck.backend.journal.reader import Journal, JournalProblem
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.simulation.invariants import Violation
from quarterdeck.backend.simulation.scenarios.outcome import MemberOutcome, Outcome, StepOutcome, TableOutcome
from quarterdeck.backend.simulation.scenarios.reading import BadScenario, load_scenario
from quarterdeck.backend.simulation.scenarios.scenario import Scenario
from quarterdeck.backend.simulation.simulated_driver import simulate as _simulate

__all__ = [
    "BadScenario",
    "Journal",
    "JournalProblem",
    "LogOptions",
    "LogRecords",
    "LogStory",
    "MemberOutcome",
    "NoJournal",
    "NoLogs",
    "Observation",
    "Outcome",
    "QuarantinedEntry",
    "Record",
    "Scenario",
    "StepOutcome",
    "TableOutcome",
    "Violation",
    "read_journal",
    "read_logs",
    "read_scenario",
    "simulate",
]

FilePath = str | os.PathLike[str]


def read_journal(path: FilePath) -> Journal:
    """The journal at `path`: a folder of runs, the folder of one run, or one file.

    Iterate over it for its records, in order of time; `problems` then has the lines that are no records. Each iteration
    reads the files anew. Raises `NoJournal` when there is none.
    """
    return Journal(Path(path))


def read_logs(paths: FilePath | Iterable[FilePath], options: LogOptions | None = None) -> LogRecords:
    """What the log files of Hazelcast members tell, as the same kind of records that a journal holds.

    A path is a file or a folder that is searched for logs. `options` says what the files leave out, such as the time zone.
    All records are held in memory. Raises `NoLogs` when a path holds no log, OSError when a file cannot be read, and
    ValueError for a wrong option.
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return _read_logs([Path(path) for path in several], options)


def read_scenario(path: FilePath) -> Scenario:
    """The scenario in the YAML file at `path`. Raises `BadScenario`, whose message names file, line, field and a remedy."""
    return load_scenario(Path(path))


def simulate(scenario: Scenario | FilePath, *, seed: int = 0, journal: FilePath | None = None) -> Outcome:
    """Run a scenario in simulated time. The same scenario and seed give the same outcome, whatever the machine.

    With `journal` the records are written into that folder, as the run `NAME-seed-SEED`: NAME is that of the file, or the
    title of a `Scenario`. Raises `BadScenario` when the file holds none, and FileExistsError when the run is recorded there.
    """
    if isinstance(scenario, Scenario):
        name = scenario.title
    else:
        name, scenario = Path(scenario).stem, read_scenario(scenario)
    run = seeded_run(name, seed)
    if journal is None:
        return _simulate(scenario, seed, run=run)
    directory = run_directory(Path(journal), run)
    if directory.exists():
        raise FileExistsError(f"{directory}: recorded already")
    with JournalWriter(Path(journal), run, "quarterdeck") as writer:
        return _simulate(scenario, seed, writer, run=run)

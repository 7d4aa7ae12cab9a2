"""What Quarterdeck offers to programs: read and audit journals or logs of members, simulate a scenario, run a campaign.

Import these names from `quarterdeck` itself. Spark is needed for a campaign, and for an audit of much.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck import spark
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.log_files import NoLogs, check_zones, log_files
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.invariants import Violation
from quarterdeck.backend.journal.files import NoJournal, run_directory, seeded_run
from quarterdeck.backend.journal.reader import Journal, JournalProblem
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.judgement.observations.observation import Observation
from quarterdeck.backend.judgement.observations.reader import LogRecords, QuarantinedEntry
from quarterdeck.backend.judgement.observations.reader import read_logs as _read_logs
from quarterdeck.backend.judgement.observations.story import LogStory
from quarterdeck.backend.pipeline.audit import audit as _audit
from quarterdeck.backend.pipeline.rules import AuditResult, Finding, NotJudged, QuarantinedLine
from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing, SparkUnreachable, needing_packages
from quarterdeck.backend.scenarios.format.reading import BadScenario, load_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.outcome import MemberOutcome, Outcome, StepOutcome, TableOutcome
from quarterdeck.backend.simulation.simulated_driver import simulate as _simulate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quarterdeck.backend.core.properties import PropertyValue
    from quarterdeck.backend.pipeline.campaign.driver import CampaignSummary

__all__ = [
    "AuditResult",
    "BadScenario",
    "Finding",
    "Journal",
    "JournalProblem",
    "LogOptions",
    "LogRecords",
    "LogStory",
    "MemberOutcome",
    "NoJournal",
    "NoLogs",
    "NotJudged",
    "Observation",
    "Outcome",
    "PipelineMissing",
    "QuarantinedEntry",
    "QuarantinedLine",
    "Record",
    "Scenario",
    "SparkUnreachable",
    "StepOutcome",
    "TableOutcome",
    "Violation",
    "audit",
    "campaign",
    "read_journal",
    "read_logs",
    "read_scenario",
    "simulate",
    "spark",
]

FilePath = str | os.PathLike[str]


def read_journal(path: FilePath) -> Journal:
    """Open the journal at `path`: a folder of runs, the folder of one run, or one file.

    Iterate over it for its records, in order of time; `problems` then has the lines that are no records. Each iteration
    reads the files anew.

    Args:
        path: The journal.

    Raises:
        NoJournal: There is none.
    """
    return Journal(Path(path))


def read_logs(paths: FilePath | Iterable[FilePath], options: LogOptions | None = None) -> LogRecords:
    """Read the log files of Hazelcast members into the same kind of records that a journal holds.

    All records are held in memory.

    Args:
        paths: Files, or folders that are searched for logs.
        options: What the files leave out, such as the time zone.

    Raises:
        NoLogs: A path holds no log, or a zone is given for a log that is not there.
        OSError: A file cannot be read.
        ValueError: An option is wrong.
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    found = log_files(map(Path, several))
    check_zones(options or LogOptions(), found)
    return _read_logs(found, options)


def audit(
    paths: FilePath | Iterable[FilePath], spark: SparkSession | None = None, *, rules: Iterable[str] = ()
) -> AuditResult:
    """Check journals, or logs of members, against the rules of the protocol.

    Up to 640 MB (at addresses 128 MB) are judged on this machine; for more Spark is started.

    Args:
        paths: Folders, files, or addresses such as ``s3a://…``.
        spark: A session that does all the work, whatever the size.
        rules: The names of the rules to be judged; all, where none is named.

    Raises:
        NoJournal: There is nothing to judge.
        NoLogs: There is nothing to judge in a folder of logs.
        PipelineMissing: A package or Java is needed and not installed.
        SparkUnreachable: Spark breaks off.
        ValueError: There is no rule of a name.
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    return _audit([path if isinstance(path, str) else Path(path) for path in several], spark=spark, rules=tuple(rules))


def campaign(
    seeds: range,
    folder: FilePath,
    scenario: FilePath | None = None,
    spark: SparkSession | None = None,
    *,
    sizes: tuple[int, int] = (3, 20),
    sweep: Mapping[str, Sequence[PropertyValue]] | None = None,
    resume: bool = False,
    shrinks: bool = True,
) -> CampaignSummary:
    """Run every seed on Spark, and judge the runs.

    Args:
        seeds: The seeds to run.
        folder: Where verdicts and the journals of failures are kept.
        scenario: The scenario's YAML file; by default one is drawn for each seed.
        spark: A session that does the work; by default one is started.
        sizes: The fewest and the most members of a scenario that is drawn.
        sweep: Settings with the values to be compared.
        resume: Go on with the campaign in `folder`, which was broken off.
        shrinks: Make the first seed of each way of failing as small as it can be.

    Raises:
        BadScenario: The file holds no usable scenario.
        PipelineMissing: A package or Java is needed and not installed.
        SparkUnreachable: Spark breaks off.
        ValueError: `folder` holds something else, or a setting is wrong.
    """
    with needing_packages():
        from quarterdeck.backend.pipeline.campaign import driver, plan
        from quarterdeck.backend.pipeline.spark import session
    text = ""
    if scenario is not None:
        load_scenario(Path(scenario))
        text = Path(scenario).read_text(encoding="utf-8")
    planned = plan.Campaign(text, sizes, plan.variants_of(sweep or {}))
    file = "" if scenario is None else str(scenario)
    running = session.spark_session() if spark is None else session.using(spark)
    with running as its:
        return driver.run_campaign(
            its, planned, seeds, Path(folder), resume=resume, scenario_file=file, shrinks=shrinks
        )


def read_scenario(path: FilePath) -> Scenario:
    """Read a scenario.

    Args:
        path: Its YAML file.

    Raises:
        BadScenario: It is wrong; the message names file, line, field and a remedy.
    """
    return load_scenario(Path(path))


def simulate(scenario: Scenario | FilePath, *, seed: int = 0, journal: FilePath | None = None) -> Outcome:
    """Run a scenario in simulated time. The same scenario and seed give the same outcome, whatever the machine.

    Args:
        scenario: The scenario, or its YAML file.
        seed: Decides what chance decides.
        journal: The folder into which the records are written, as the run `NAME-seed-SEED`: NAME is that of the file, or the
            title of the scenario.

    Raises:
        BadScenario: The file holds none.
        FileExistsError: The run is recorded there already.
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

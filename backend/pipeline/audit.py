"""The audit: journals in, findings out, and the tables on the way kept as Parquet when somebody wants them.

Importing this file imports no Spark; calling `audit` does.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from backend.journal.files import OPEN_SUFFIX, journal_files, whereabouts
from backend.pipeline.missing import JavaMissing, PipelineMissing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

__all__ = [
    "AuditResult",
    "Finding",
    "JavaMissing",
    "OutputRefused",
    "PipelineMissing",
    "QuarantinedLine",
    "Witness",
    "audit",
]

MOST_FINDINGS = 100_000
MOST_QUARANTINED = 1_000
OPTIONAL_PACKAGES = ("pyspark", "py4j", "pandas", "pyarrow", "numpy")
_BUILDING = ".building-"


class Witness(Struct, frozen=True):
    """One event, by its identity within the run."""

    uuid: str
    seq: int


class Finding(Struct, frozen=True):
    """One place where a rule is broken. `severity` is "violation", or "warning" where the journal is incomplete."""

    rule: str
    severity: str
    run: str
    member: str
    uuid: str
    seq: int
    at: int
    detail: str
    witnesses: tuple[Witness, ...]


class QuarantinedLine(Struct, frozen=True):
    """A line that is no record, or contradicts one."""

    file: Path
    line: str
    reason: str


class AuditResult(Struct, frozen=True):
    """`findings`: violations first, then by run and time. `problems`: the first of the quarantined lines.

    `counts` has: files, lines, records, runs, lives, duplicates, quarantined, views, suspicions.
    """

    findings: tuple[Finding, ...]
    counts: dict[str, int]
    problems: tuple[QuarantinedLine, ...]


class OutputRefused(ValueError):
    """The directory for the tables holds something else under their names."""


def audit(paths: Sequence[Path], out_dir: Path | None = None) -> AuditResult:
    """Check the journals at `paths`: roots, directories of runs, or single files; events that stand twice count once.

    With `out_dir` the tables `views` and `suspicions` are written there as Parquet, partitioned by run, replacing those
    of an earlier audit, and only after they are complete. Raises `NoJournal`, `OutputRefused`, `PipelineMissing` or
    `JavaMissing` before anything is changed.
    """
    listed = [file for path in paths for file in journal_files(path)]
    if out_dir is not None:
        _check_output(out_dir)
    try:
        from backend.pipeline import session
        from backend.pipeline.rules import all_rules
        from backend.pipeline.tables import bronze
        from backend.pipeline.tables import suspicions as suspicion_episodes
        from backend.pipeline.tables import views as installed_lists
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OPTIONAL_PACKAGES:
            raise PipelineMissing() from error
        raise
    with tempfile.TemporaryDirectory(prefix="quarterdeck-audit-") as staging, session.spark_session() as spark:
        files = _settled(listed, Path(staging))
        lines = bronze.ranked(bronze.read_lines(spark, [str(file) for file in files])).persist()
        views = suspicions = None
        try:
            events, quarantine = bronze.bronze(lines)
            views = installed_lists.views(events).persist()
            suspicions = suspicion_episodes.suspicions(events).persist()
            found = all_rules.all_findings({"views": views, "events": events})
            order = ("severity", "run", "at", "rule", "uuid", "seq", "detail")
            findings = found.orderBy(*order).limit(MOST_FINDINGS).collect()
            problems = quarantine.orderBy("file", "raw").limit(MOST_QUARANTINED).collect()
            counts = {"files": len(files), **_counts(lines), "views": views.count(), "suspicions": suspicions.count()}
            if out_dir is not None:
                _write_tables({"views": views, "suspicions": suspicions}, out_dir)
        finally:
            for table in (lines, views, suspicions):
                if table is not None:
                    table.unpersist()
        return AuditResult(
            tuple(map(_finding, findings)),
            counts,
            tuple(_quarantined(row, files) for row in problems),
        )


def _settled(listed: Iterable[Path], staging: Path) -> dict[Path, Path]:
    """Files that will still be there when Spark comes to read them, each with the name by which it is known.

    A living writer renames its open file about once a second: of those a copy is read.
    """
    files: dict[Path, Path] = {}
    for number, path in enumerate(listed):
        place = whereabouts(path.resolve())
        if place is not None and place.name.endswith(OPEN_SUFFIX):
            copy = staging / f"{number}.jsonl"
            try:
                shutil.copyfile(place, copy)
            except FileNotFoundError:
                place = whereabouts(place)
            else:
                files[copy] = path
                continue
        if place is not None:
            files[place] = path
    return files


def _counts(lines: DataFrame) -> dict[str, int]:
    from pyspark.sql import functions as F

    is_record = F.col("place") == 1
    repeats = (F.col("place") > 1) & (F.col("raw") == F.col("first_raw"))
    life = F.struct("record.run", "record.uuid")
    row = lines.select(
        F.count("*").alias("lines"),
        F.count_if(is_record).alias("records"),
        F.count_distinct(F.when(is_record, F.col("record.run"))).alias("runs"),
        F.count_distinct(F.when(is_record, life)).alias("lives"),
        F.count_if(repeats).alias("duplicates"),
    ).collect()[0]
    counts: dict[str, int] = row.asDict()
    counts["quarantined"] = counts["lines"] - counts["records"] - counts["duplicates"]
    return counts


def _finding(row: Row) -> Finding:
    fields = row.asDict()
    witnesses = tuple(Witness(witness.uuid, witness.seq) for witness in fields.pop("witnesses"))
    return Finding(**fields, witnesses=witnesses)


def _quarantined(row: Row, files: Mapping[Path, Path]) -> QuarantinedLine:
    place = Path(unquote(urlsplit(row.file).path))
    return QuarantinedLine(files.get(place, place), row.raw, row.reason)


# Tables on disk


def _check_output(out_dir: Path) -> None:
    """Only what an audit wrote may be replaced. Raises `OutputRefused`."""
    if out_dir.exists() and not out_dir.is_dir():
        raise OutputRefused(f"{out_dir} is not a directory")
    for name in ("views", "suspicions"):
        table = out_dir / name
        if table.exists() and not (table / "_SUCCESS").is_file():
            raise OutputRefused(f"{table} exists and is no table of an audit; choose another directory or remove it")


def _write_tables(tables: Mapping[str, DataFrame], out_dir: Path) -> None:
    """Write all tables beside their places, then put them there: what fails before leaves the old ones as they were."""
    with _building_place(out_dir) as building:
        for name, table in tables.items():
            table.write.partitionBy("run").parquet(str(building / name))
        for name in tables:
            table_path = out_dir / name
            if table_path.exists():
                table_path.rename(building / f"old-{name}")
            (building / name).rename(table_path)


@contextmanager
def _building_place(out_dir: Path) -> Iterator[Path]:
    existed = out_dir.exists()
    out_dir.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=_BUILDING, dir=out_dir))
    try:
        yield building
    finally:
        shutil.rmtree(building)
        if not existed and not any(out_dir.iterdir()):
            out_dir.rmdir()

"""The audit: journals, or the product's own logs, in; findings out, and tables on the way kept as Parquet when wanted.

Importing this file imports no Spark; calling `audit` does.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from backend.journal.files import OPEN_SUFFIX, RUN_PREFIX, SEALED_SUFFIX, NoJournal, journal_files, run_of_file
from backend.pipeline.missing import JavaMissing, PipelineMissing, needing_packages
from backend.pipeline.product_logs.reading import log_files, may_be_log
from backend.pipeline.rules.finding import Finding, Witness, by_weight
from backend.pipeline.rules.names import UnknownRule, judged_without_the_rest, wanted_rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backend.pipeline.audit_reading import Reading
    from backend.pipeline.rules.evidence import Evidence

__all__ = [
    "AuditResult",
    "Finding",
    "JavaMissing",
    "NotJudged",
    "OutputRefused",
    "PipelineMissing",
    "QuarantinedLine",
    "Source",
    "UnknownRule",
    "Witness",
    "audit",
]

Source = Literal["auto", "journal", "logs"]
"""What the paths hold: our journals, or the product's own member logs."""

MOST_FINDINGS = 100_000
TABLES = ("views", "suspicions", "findings")
LOGS_TELL_LITTLE = "members' logs may begin in the middle, and tell nothing of faults, tables and calls"
_BUILDING = ".building-"


class QuarantinedLine(Struct, frozen=True):
    """A line that is no record, or contradicts one."""

    file: Path
    line: str
    reason: str


class NotJudged(Struct, frozen=True):
    """Rules about which nothing can be said, and why."""

    rules: tuple[str, ...]
    why: str


class AuditResult(Struct, frozen=True):
    """`findings`: violations first, then by run and time. `problems`: the first of the quarantined lines.

    `counts` has: files, lines, records, runs, lives, duplicates, quarantined, views, suspicions, and findings where there are
    more than are listed. `rules`: those that were judged. `incomplete`: by run, what its journal lacks; a finding that needs the
    whole journal is only a warning there.
    """

    findings: tuple[Finding, ...]
    counts: dict[str, int]
    problems: tuple[QuarantinedLine, ...]
    rules: tuple[str, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    incomplete: dict[str, str] = {}


class OutputRefused(ValueError):
    """The directory for the tables holds something else under their names."""


def audit(
    paths: Sequence[Path],
    out_dir: Path | None = None,
    *,
    rules: Collection[str] = (),
    source: Source = "auto",
    master: str = "",
    remote: str = "",
    bound_us: int | None = None,
    then: Callable[[AuditResult], None] = lambda result: None,
) -> AuditResult:
    """Check what is at `paths`: journals (roots, directories of runs, single files), or logs; events that stand twice count once.

    `rules`: only these. `bound_us`: how long members may take to agree once nothing disturbs them. With `out_dir` the tables
    `views`, `suspicions` and `findings` are written there as Parquet, partitioned by run, replacing those of an earlier audit,
    and only after they are complete. `then` is called with the result while Spark still runs. Raises `NoJournal`, `NoLogs`,
    `UnknownRule`, `OutputRefused`, `PipelineMissing`, `JavaMissing` or `SparkUnreachable` before anything is changed, and
    `OSError` for what cannot be read or written.
    """
    if out_dir is not None:
        _check_output(out_dir)
    names = wanted_rules(rules)
    source = source_of(paths) if source == "auto" else source
    listed = [file for path in paths for file in journal_files(path)] if source == "journal" else []
    with needing_packages():
        from backend.pipeline import audit_reading, session
    blind: list[str] = []
    if source == "logs":
        blind = sorted(name for name in names if not judged_without_the_rest(name))
        names -= frozenset(blind)
    with tempfile.TemporaryDirectory(prefix="quarterdeck-audit-") as staging:
        files = audit_reading.settled(listed, Path(staging))
        size_bytes = audit_reading.size_of(files or log_files(paths))
        is_small = size_bytes <= audit_reading.SMALL_BYTES
        profile: Literal["interactive", "throughput"] = "interactive" if is_small else "throughput"
        conf = {} if is_small else audit_reading.MUCH
        with session.spark_session(master, remote=remote, profile=profile, conf=conf) as spark:
            result = _read_and_audited(spark, source, paths, files, size_bytes, names, bound_us, out_dir)
            unjudged = (NotJudged(tuple(blind), LOGS_TELL_LITTLE),) if blind else ()
            result = msgspec.structs.replace(result, not_judged=unjudged)
            then(result)
    return result


def _read_and_audited(
    spark: SparkSession,
    source: Source,
    paths: Sequence[Path],
    files: Mapping[Path, Path],
    size_bytes: int,
    names: frozenset[str],
    bound_us: int | None,
    out_dir: Path | None,
) -> AuditResult:
    from backend.pipeline import audit_reading

    with audit_reading.tuned(spark, size_bytes):
        if source == "logs":
            reading = audit_reading.read_logs(spark, paths, size_bytes)
        else:
            reading = audit_reading.read_journals(spark, files, size_bytes)
        try:
            return _audited(reading, names, bound_us, paths, out_dir)
        finally:
            reading.release()


def _audited(
    reading: Reading, names: frozenset[str], bound_us: int | None, paths: Sequence[Path], out_dir: Path | None
) -> AuditResult:
    from backend.pipeline.audit_reading import counted
    from backend.pipeline.rules import all_rules
    from backend.pipeline.rules.evidence import PATIENCE_US, Evidence

    counts, kinds = counted(reading.lines)
    counts = {"files": len(reading.names), **counts, **reading.counts}
    patience_us = PATIENCE_US if bound_us is None else bound_us
    evidence = Evidence(reading.events(), patience_us=patience_us, bound_us=bound_us, one_part=reading.is_small)
    try:
        found, incomplete = all_rules.find(evidence, names, kinds)
        links = _Links(reading, paths)
        findings = by_weight([msgspec.structs.replace(one, link=links.to(one)) for one in found])
        if len(findings) > MOST_FINDINGS:
            counts["findings"] = len(findings)
            del findings[MOST_FINDINGS:]
        if out_dir is not None:
            _write_tables(_tables(evidence, findings), out_dir)
    finally:
        evidence.release()
    problems = [QuarantinedLine(*one) for one in reading.problems()] if counts["quarantined"] else []
    return AuditResult(
        tuple(findings), counts, tuple(problems), tuple(sorted(names)), (), {} if reading.logs else incomplete
    )


def source_of(paths: Sequence[Path]) -> Literal["journal", "logs"]:
    """What the first path holds that tells it. A directory with a journal is one, whatever else is in it."""
    for path in paths:
        if path.is_file() and not path.name.endswith((SEALED_SUFFIX, OPEN_SUFFIX)) and run_of_file(path) is None:
            return "logs"
        if path.is_dir():
            try:
                journal_files(path)
            except NoJournal:
                return "logs" if any(may_be_log(file) for file in path.rglob("*") if file.is_file()) else "journal"
    return "journal"


class _Links:
    """How to see a finding in the console: the directory of its run, or else what was named."""

    def __init__(self, reading: Reading, paths: Sequence[Path]) -> None:
        self._places: dict[str, Path] = {}
        for place, file in reading.names.items():
            if file.parent.name.startswith(RUN_PREFIX):
                self._places[file.parent.name.removeprefix(RUN_PREFIX)] = file.parent
            elif len(paths) > 1 and (run := run_of_file(place)) is not None:
                self._places.setdefault(run, next(path for path in paths if path == file or path in file.parents))
        self._otherwise = paths[0] if reading.logs is None else None

    def to(self, finding: Finding) -> str:
        """The command; empty for a log, which the console does not replay."""
        place = self._places.get(finding.run, self._otherwise)
        return (
            ""
            if place is None
            else shlex.join(("quarterdeck", "console", "--replay", str(place), "--at", _moment(finding)))
        )


def _moment(finding: Finding) -> str:
    return f"{finding.at / 1_000_000:.6f}".rstrip("0").rstrip(".")


# Tables on disk


def _check_output(out_dir: Path) -> None:
    """Only what an audit wrote may be replaced. Raises `OutputRefused`."""
    if out_dir.exists() and not out_dir.is_dir():
        raise OutputRefused(f"{out_dir} is not a directory")
    for name in TABLES:
        table = out_dir / name
        if table.exists() and not (table / "_SUCCESS").is_file():
            raise OutputRefused(f"{table} exists and is no table of an audit; choose another directory or remove it")


def _tables(evidence: Evidence, findings: Sequence[Finding]) -> dict[str, DataFrame]:
    from backend.pipeline.schemas import FINDINGS
    from backend.pipeline.tables.suspicions import suspicions
    from backend.pipeline.tables.views import views

    rows = [msgspec.to_builtins(one) for one in findings]
    spark = evidence.events.sparkSession
    found = spark.createDataFrame(rows, FINDINGS)
    return {"views": views(evidence.events), "suspicions": suspicions(evidence.events), "findings": found}


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

"""Measures journals or tables, here or on Spark. Importing this file imports no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline.address import naming_damaged
from quarterdeck.backend.pipeline.audit_input import resolve_input
from quarterdeck.backend.pipeline.spark.engine import HERE, Engine, engine_session
from quarterdeck.backend.pipeline.spark.requirements import needing_packages
from quarterdeck.backend.pipeline.staging import staging_folder

if TYPE_CHECKING:
    from quarterdeck.backend.pipeline.metrics.summary import By, RunSamples
    from quarterdeck.backend.pipeline.tables.run_events import RunLines

TABLE_NAMES = ("detection", "one_view", "splits", "availability", "migration_rates", "plans", "messages")
"""The tables of metrics. A test keeps this equal to the registry."""

MAX_ROWS = 100_000
NOT_OF_LOGS = (
    "members' logs contain neither faults nor when a member died, so nothing can be measured of them; try `audit`"
)


class Measured(Struct, frozen=True):
    """`rows` have the fields `columns`. `is_cut`: there were more than `MAX_ROWS`. `quarantined`: lines that were no records."""

    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    is_cut: bool
    quarantined: int


def measure(paths: Sequence[Path | str], by: By, table: str = "", engine: Engine = HERE) -> Measured:
    """Return percentiles of all metrics by `by`, or the rows of one `table` of them.

    `paths` are journals or one directory of tables, also at addresses. Spark does the work unless the `engine`
    is ``here``. Raises `NoJournal`, `StoreRefused`, `PipelineMissing`, `JavaMissing` or `SparkUnreachable`.
    """
    with (
        staging_folder() as staging,
        needing_packages(),
        ExitStack() as stack,
    ):
        found = resolve_input(paths, staging)
        if found.kind == "logs":
            raise NoJournal(f"{found.paths[0]}: holds no journal; {NOT_OF_LOGS}")
        import pyarrow.parquet

        from quarterdeck.backend.pipeline.metrics.summary import METRICS, SUMMARY, summary
        from quarterdeck.backend.pipeline.run_reader import RunReader
        from quarterdeck.backend.pipeline.tables.run_events import nones_first

        spark = None
        if engine.name != "here":
            spark = stack.enter_context(engine_session(engine, "pipeline metrics"))
        done = RunReader(found, spark).results(partial(_measure_run, table))
        by_run = {run: result for results in done for run, result in results.by_run.items()}
        quarantined = sum(results.quarantined for results in done)
        for part in found.stored_files("quarantine"):
            with part.open("rb") as content, naming_damaged(part):
                quarantined += pyarrow.parquet.ParquetFile(content).metadata.num_rows
    columns = tuple((METRICS[table].schema if table else SUMMARY).names)
    if table:
        first = [name for name in ("run", "from_at", "at") if name in columns]
        order = [*first, *columns]
        rows = sorted((row for of_run in by_run.values() for row in of_run), key=lambda row: nones_first(row, order))
    else:
        rows = summary(by_run, by)
    ordered = tuple({name: row[name] for name in columns} for row in rows[:MAX_ROWS])
    return Measured(columns, ordered, len(rows) > MAX_ROWS, quarantined)


def _measure_run(table: str, run: str, lines: RunLines) -> RunSamples | list[dict[str, Any]]:
    from quarterdeck.backend.pipeline.metrics.run_tables import RunTables
    from quarterdeck.backend.pipeline.metrics.summary import METRICS, samples_of

    tables = RunTables.of_lines(run, lines)
    return METRICS[table].rows(tables) if table else samples_of(tables)

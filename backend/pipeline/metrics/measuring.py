"""Measures journals or tables, here or on Spark. Importing this file imports no Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit_input import are_addresses, kind_of, resolve_input
from quarterdeck.backend.pipeline.spark.requirements import needing_packages

if TYPE_CHECKING:
    from quarterdeck.backend.pipeline.metrics.summary import By, RunSamples
    from quarterdeck.backend.pipeline.run_reader import RunReader
    from quarterdeck.backend.pipeline.tables.run_lines import RunLines

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


def measure(paths: Sequence[Path | str], by: By, table: str = "", *, master: str = "", remote: str = "") -> Measured:
    """Return percentiles of all metrics by `by`, or the rows of one `table` of them.

    `paths` are journals or one directory of tables, also at addresses that Spark reads. Spark does the work there, and where a
    `master` or a `remote` is named. Raises `NoJournal`, `StoreRefused`, `PipelineMissing`, `JavaMissing` or `SparkUnreachable`.
    """
    with _reader(paths, master, remote) as reader:
        from quarterdeck.backend.pipeline.metrics.summary import METRICS, SUMMARY, summary
        from quarterdeck.backend.pipeline.tables.store import quarantined_rows

        done = reader.results(partial(_measure_run, table))
        by_run = {run: result for one in done for run, result in one.by_run.items()}
        quarantined = sum(one.quarantined for one in done)
        if reader.source.kind == "store":
            quarantined = quarantined_rows(reader.source.paths[0], reader.spark)
    columns = tuple((METRICS[table].schema if table else SUMMARY).names)
    if table:
        first = [name for name in ("run", "from_at", "at") if name in columns]
        order = [*first, *columns]
        rows = sorted((row for of_run in by_run.values() for row in of_run), key=lambda row: _nones_first(row, order))
    else:
        rows = summary(by_run, by)
    ordered = tuple({name: row[name] for name in columns} for row in rows[:MAX_ROWS])
    return Measured(columns, ordered, len(rows) > MAX_ROWS, quarantined)


def _measure_run(table: str, run: str, lines: RunLines) -> RunSamples | list[dict[str, Any]]:
    """Return the samples of a run, or its rows of a table."""
    from quarterdeck.backend.pipeline.metrics.run_tables import RunTables
    from quarterdeck.backend.pipeline.metrics.summary import METRICS, samples_of

    tables = RunTables.of_lines(run, lines)
    return METRICS[table].rows(tables) if table else samples_of(tables)


def _nones_first(row: dict[str, Any], order: Sequence[str]) -> list[Any]:
    return [(row[name] is not None, str(row[name]) if isinstance(row[name], list) else row[name]) for name in order]


@contextmanager
def _reader(paths: Sequence[Path | str], master: str, remote: str) -> Iterator[RunReader]:
    """Give what reads the runs at these paths."""
    is_far, places = are_addresses(paths), list(map(Path, paths))
    if not is_far and kind_of(places) == "logs" and commit.read_manifest(places[0]) is None:
        raise NoJournal(f"{places[0]}: holds no journal; {NOT_OF_LOGS}")
    with tempfile.TemporaryDirectory(prefix="quarterdeck-metrics-") as staging:
        found = None if is_far else resolve_input(places, Path(staging), "journal")
        with needing_packages():
            from quarterdeck.backend.pipeline.run_reader import RunReader

            if found is not None and not master and not remote:
                yield RunReader(found)
                return
            from quarterdeck.backend.pipeline.far_input import resolve_far_input
            from quarterdeck.backend.pipeline.spark import session
        with session.spark_session(master, remote=remote) as spark:
            yield RunReader(found or resolve_far_input(spark, list(map(str, paths))), spark)

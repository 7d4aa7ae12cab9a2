"""Measures journals or tables. Importing this file imports no Spark; calling `measure` does."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit_input import AuditInput, are_addresses, kind_of, resolve_input
from quarterdeck.backend.pipeline.spark.requirements import needing_packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quarterdeck.backend.pipeline.metrics.summary import By
    from quarterdeck.backend.pipeline.metrics.table_source import TableSource

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

    `paths` are journals or one directory of tables, also at addresses that Spark reads. Raises `NoJournal`, `StoreRefused`,
    `PipelineMissing`, `JavaMissing` or `SparkUnreachable`.
    """
    is_far, places = are_addresses(paths), list(map(Path, paths))
    if not is_far and kind_of(places) == "logs" and commit.read_manifest(places[0]) is None:
        raise NoJournal(f"{places[0]}: holds no journal; {NOT_OF_LOGS}")
    with tempfile.TemporaryDirectory(prefix="quarterdeck-metrics-") as staging:
        found = None if is_far else resolve_input(places, Path(staging), "journal")
        with needing_packages():
            from quarterdeck.backend.pipeline.far_input import resolve_far_input
            from quarterdeck.backend.pipeline.metrics.summary import metric_table, summary
            from quarterdeck.backend.pipeline.spark import session, tuning
        with session.spark_session(master, remote=remote) as spark:
            found = found or resolve_far_input(spark, list(map(str, paths)))
            with tuning.tuned(spark, found.size_bytes), _source(spark, found) as (source, quarantined):
                if table:
                    rows = metric_table(source, table)
                    first = [name for name in ("run", "from_at", "at") if name in rows.columns]
                    rows = rows.orderBy(*first, *rows.columns)
                else:
                    rows = summary(source, by)
                collected = [row.asDict(recursive=True) for row in rows.limit(MAX_ROWS + 1).collect()]
    is_cut = len(collected) > MAX_ROWS
    return Measured(tuple(rows.columns), tuple(collected[:MAX_ROWS]), is_cut, quarantined)


@contextmanager
def _source(spark: SparkSession, found: AuditInput) -> Iterator[tuple[TableSource, int]]:
    """Return the tables to measure, and how many lines were no records."""
    from quarterdeck.backend.pipeline.metrics.table_source import TableSource
    from quarterdeck.backend.pipeline.tables.on_spark import passing_store
    from quarterdeck.backend.pipeline.tables.store import read_table

    if found.kind == "store":
        store = found.paths[0]
        yield TableSource.of_store(spark, store), read_table(spark, store, "quarantine").count()
        return
    with passing_store(spark, found) as made:
        yield TableSource(made.read("events"), made.read), made.quarantined

"""The events of an audit's input on Spark, for the tables and the report. The verdict does not need them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import msgspec
from pyspark.sql import DataFrame, SparkSession

from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit_input import AuditInput
from quarterdeck.backend.pipeline.log_tables import read_product_logs
from quarterdeck.backend.pipeline.rules import Finding
from quarterdeck.backend.pipeline.schemas import RECORD, columns_of
from quarterdeck.backend.pipeline.spark.tuning import is_small, persisted, tuned
from quarterdeck.backend.pipeline.tables import bronze
from quarterdeck.backend.pipeline.tables.store import TABLES, read_table

FORMAT = "1"


class InputLines(NamedTuple):
    """An input, and its events: the columns of a record, each event once."""

    source: AuditInput
    events: DataFrame


@contextmanager
def reading(spark: SparkSession, source: AuditInput, log_options: LogOptions | None = None) -> Iterator[InputLines]:
    """Read the lines of `source`. Spark keeps them, and stays tuned for them, within the block.

    Raises OSError for what cannot be read.
    """
    with tuned(spark, source.size_bytes):
        if source.kind == "store":
            yield InputLines(source, read_table(spark, source.paths[0], "events").select(*RECORD.names))
            return
        logs = None
        if source.kind == "logs":
            logs = read_product_logs(spark, source.read, log_options, are_far=source.is_far)
            events = logs.records
        else:
            lines = bronze.read_lines(spark, source.read)
            events = bronze.bronze(bronze.ranked(lines.coalesce(1) if is_small(source.size_bytes) else lines)).events
        kept = persisted(events, source.size_bytes)
        try:
            yield InputLines(source, kept)
        finally:
            kept.unpersist()
            if logs is not None:
                logs.release()


def make_tables(events: DataFrame, findings: Sequence[Finding]) -> dict[str, DataFrame]:
    """Make the tables that an audit writes."""
    # By way of JSON: Spark Connect accepts lists for arrays, but no tuples.
    rows = [msgspec.json.decode(msgspec.json.encode(finding)) for finding in findings]
    tables = {name: TABLES[name].make(events) for name in ("views", "suspicions")}
    return tables | {"findings": events.sparkSession.createDataFrame(rows, columns_of(Finding))}


def write_tables(tables: Mapping[str, DataFrame], out_dir: commit.Place, writer: str) -> None:
    """Replace the tables of an earlier audit, all of them or none. Raises `StoreRefused`."""
    with commit.open_for_build(out_dir, tuple(tables), writer) as building:
        for name, table in tables.items():
            table.write.partitionBy("run").parquet(str(building / name))
        runs = {
            run for name in tables for place in (out_dir, building) for run in commit.directories_by_run(place / name)
        }
        order = commit.Order(tuple(sorted(runs)), tuple(tables), commit.TableManifest(FORMAT, {}, writer))
        commit.commit(out_dir, building, order)

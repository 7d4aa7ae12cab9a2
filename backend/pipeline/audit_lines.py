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
from quarterdeck.backend.pipeline.spark.tuning import conf_set, persisted, tuned
from quarterdeck.backend.pipeline.tables.on_spark import made_of, passing_store
from quarterdeck.backend.pipeline.tables.store import read_table

FORMAT = "2"
AS_TIMESTAMP = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
"""Otherwise Spark writes times in a form that few other programs know."""


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
        if source.kind == "journal":
            with passing_store(spark, source) as made:
                yield InputLines(source, made.read("events").select(*RECORD.names))
            return
        logs = read_product_logs(spark, source.read, log_options, are_far=source.is_far)
        kept = persisted(logs.records, source.size_bytes)
        try:
            yield InputLines(source, kept)
        finally:
            kept.unpersist()
            logs.release()


def make_tables(events: DataFrame, findings: Sequence[Finding]) -> dict[str, DataFrame]:
    """Make the tables that an audit writes."""
    # By way of JSON: Spark Connect accepts lists for arrays, but no tuples.
    rows = [msgspec.json.decode(msgspec.json.encode(finding)) for finding in findings]
    tables = {name: made_of(events, name) for name in ("views", "suspicions")}
    return tables | {"findings": events.sparkSession.createDataFrame(rows, columns_of(Finding))}


def write_tables(tables: Mapping[str, DataFrame], out_dir: commit.Place, writer: str) -> None:
    """Replace the tables of an earlier audit, all of them or none. Raises `StoreRefused`."""
    with commit.open_for_build(out_dir, tuple(tables), writer) as building:
        for name, table in tables.items():
            with conf_set(table.sparkSession, AS_TIMESTAMP):
                table.write.parquet(str(building / name))
        commit.commit(out_dir, building, commit.TableManifest(FORMAT, {}, writer), dict.fromkeys(tables, ()))

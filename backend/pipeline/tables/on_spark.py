"""The same tables on Spark: made of events there, run by run, and read from a store that is only on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.dataset
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.audit_input import AuditInput
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.spark.arrow import exit_with_task
from quarterdeck.backend.pipeline.tables.batches import ARROW, TABLES
from quarterdeck.backend.pipeline.tables.run_events import RunEvents
from quarterdeck.backend.pipeline.tables.store import make_store, read_table


def made_of(events: DataFrame, name: str) -> DataFrame:
    """Make one of `TABLES` of events, each of which occurs once. One task has all of a run that the table needs."""
    table = TABLES[name]

    def make(of_run: pa.Table) -> pa.Table:
        exit_with_task()
        return table.arrow(RunEvents(of_run))

    if table.kinds:
        events = events.where(F.col("event.kind").isin(*table.kinds))
    event = F.struct(*(F.col(f"event.{name}").alias(name) for name in table.fields.split()))
    rows = events.select(*RECORD.names[:6], "form", event.alias("event"))
    return rows.groupBy("run").applyInArrow(make, table.schema)


class PassingStore:
    """The tables of journals that were given without a store: made on this machine for as long as they are needed."""

    def __init__(self, spark: SparkSession, folder: Path, quarantined: int) -> None:
        self._spark, self._folder, self.quarantined = spark, folder, quarantined

    def read(self, name: str) -> DataFrame:
        """Return a table. Executors on other machines do not find it under its path: they get its rows."""
        if (self._spark.conf.get("spark.master", "") or "").startswith("local"):
            return read_table(self._spark, self._folder, name)
        rows = pyarrow.dataset.dataset(self._folder / name).to_table().select(ARROW[name].names)
        return self._spark.createDataFrame(rows)


@contextmanager
def passing_store(spark: SparkSession, found: AuditInput) -> Iterator[PassingStore]:
    """Make the tables of the journals that were `found`, and remove them after the block. Raises OSError."""
    with TemporaryDirectory(prefix="quarterdeck-passing-") as folder:
        made = make_store(found, Path(folder) / "tables", spark)
        yield PassingStore(spark, Path(folder) / "tables", made.quarantined)

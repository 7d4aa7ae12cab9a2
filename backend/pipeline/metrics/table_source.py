"""What metrics are made of: the tables, made of events or read from a store, and each only once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.tables.registry import TABLES
from quarterdeck.backend.pipeline.tables.store import read_table


class TableSource:
    """Tables by name. What was made is kept, on disk when memory is short, for as long as this lives.

    A table that is made of others begins anew from their rows: plans that hold all the steps before grow beyond any memory.
    """

    def __init__(self, events: DataFrame, read: Callable[[str], DataFrame] | None = None) -> None:
        """`events` are de-duplicated; `read` gives a table that exists already."""
        self.events = events
        self._read = read
        self._kept: dict[str, DataFrame] = {}

    @classmethod
    def of_store(cls, spark: SparkSession, store: Path | str) -> TableSource:
        """The tables at `store`. Raises `StoreRefused`."""
        return cls(read_table(spark, store, "events"), lambda name: read_table(spark, store, name))

    def table(self, name: str) -> DataFrame:
        """One of `TABLES`."""
        if self._read is not None:
            return self._read(name)
        return self.memoized(name, lambda: TABLES[name].make(self.events))

    def memoized(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """What `make` makes, and the same again for everybody who asks for `name`."""
        if name not in self._kept:
            self._kept[name] = make().localCheckpoint()
        return self._kept[name]

    def ends(self) -> DataFrame:
        """Columns run, run_began_at and run_ended_at: the first and the last record of each run."""
        spans = (F.min("at").alias("run_began_at"), F.max("at").alias("run_ended_at"))
        return self.memoized("ends", lambda: self.events.groupBy("run").agg(*spans))

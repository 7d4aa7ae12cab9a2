"""What metrics are made of: the tables, made of events or read from a store, and spans of time derived from them, each once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.metrics.spans import subtract
from quarterdeck.backend.pipeline.tables.on_spark import made_of
from quarterdeck.backend.pipeline.tables.store import read_table


class TableSource:
    """Tables by name. A table that was made is kept, on disk when memory is short, as long as this object lives.

    A table that is made of others starts from their stored rows: plans with all earlier steps would outgrow any memory.
    """

    def __init__(self, events: DataFrame, read: Callable[[str], DataFrame] | None = None) -> None:
        """`events` occur once; `read` returns a table that exists already."""
        self.events = events
        self._read = read
        self._kept: dict[str, DataFrame] = {}

    @classmethod
    def of_store(cls, spark: SparkSession, store: Path | str) -> TableSource:
        """Return the tables at `store`. Raises `StoreRefused`."""
        return cls(read_table(spark, store, "events"), lambda name: read_table(spark, store, name))

    def table(self, name: str) -> DataFrame:
        """Return one of `TABLES`."""
        if self._read is not None:
            return self._read(name)
        return self.memoized(name, lambda: made_of(self.events, name))

    def memoized(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """Return what `make` makes, and the same again for every later request for `name`."""
        if name not in self._kept:
            self._kept[name] = make().localCheckpoint()
        return self._kept[name]

    def ends(self) -> DataFrame:
        """Return columns run, run_began_at and run_ended_at: the first and the last record of each run."""
        spans = (F.min("at").alias("run_began_at"), F.max("at").alias("run_ended_at"))
        return self.memoized("ends", lambda: self.events.groupBy("run").agg(*spans))

    def running(self) -> DataFrame:
        """Return spans in which incarnations ran, even frozen.

        Columns run, uuid, member, address, settings, joined_at, end (null for one that goes on to the end of the journal),
        from_at, to_at.
        """
        columns = ("run", "uuid", "member", "address", "settings", "joined_at", "end")
        spans = (*columns, "started_at AS from_at", "coalesce(ended_at, run_ended_at) AS to_at")
        return self.memoized("running", lambda: self.table("lives").join(self.ends(), "run").selectExpr(*spans))

    def frozen(self) -> DataFrame:
        """Return spans in which incarnations were paused: run, uuid, from_at, to_at."""

        def make() -> DataFrame:
            pauses = self.table("faults").where("fault = 'pause'").select("run", "member", "from_at", "to_at")
            ran = self.running().selectExpr("run", "member", "uuid", "from_at AS began", "to_at AS ended")
            paused = pauses.join(ran, ["run", "member"]).where("from_at >= began AND from_at < ended")
            return paused.selectExpr("run", "uuid", "from_at", "coalesce(least(to_at, ended), ended) AS to_at")

        return self.memoized("frozen", make)

    def view_spans(self) -> DataFrame:
        """Return spans in which an incarnation held one list.

        Columns run, uuid, member, lineage, version, size, listed (uuids), master, leads (whether it is itself the master),
        from_at, to_at.
        """

        def make() -> DataFrame:
            following = F.lead("at").over(Window.partitionBy("run", "uuid").orderBy("seq"))
            ran = self.running().selectExpr("run", "uuid", "address", "to_at AS ended")
            held = self.table("views").withColumn("next_at", following).join(ran, ["run", "uuid"])
            return held.selectExpr(
                *("run", "uuid", "member", "lineage", "version", "master", "size(members) AS size"),
                *("members.uuid AS listed", "master = address AS leads"),
                *("at AS from_at", "coalesce(next_at, ended) AS to_at"),
            )

        return self.memoized("view spans", make)

    def masters(self) -> DataFrame:
        """Return spans in which an incarnation led a cluster and was not paused: run, uuid, member, lineage, from_at, to_at."""

        def make() -> DataFrame:
            leading = self.view_spans().where("leads AND from_at < to_at")
            return subtract(leading, self.frozen(), ["run", "uuid"], ["run", "uuid", "member", "lineage"])

        return self.memoized("masters", make)

    def fault_ends(self) -> DataFrame:
        """Return when faults ended: columns run, at and what, which is `mended` for a link and `resumed` for a member.

        A fault that only became another one has not ended.
        """
        target = F.coalesce("member", F.concat_ws(">", "source", "target"))
        following = F.lead("from_at").over(Window.partitionBy("run", target).orderBy("from_at"))
        faults = self.table("faults").withColumn("next_at", following)
        ended = faults.where("fault <> 'kill' AND to_at IS NOT NULL AND to_at < coalesce(next_at, to_at + 1)")
        return ended.selectExpr("run", "to_at AS at", "if(fault = 'pause', 'resumed', 'mended') AS what")

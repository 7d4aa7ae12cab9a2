"""No lost write (P12, P13): what happened to each key, judged by the simulator's own register, the keys over all executors.

How data may have been lost with its holders, or by a division, is a story of the whole run, which `executor_checks` tells; calls,
of which there are by far the most, need not stand together for it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from quarterdeck.backend.core.data.events import CallStarted
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.pipeline.rules.evidence import Evidence, running_window
from quarterdeck.backend.pipeline.rules.finding import finding_of
from quarterdeck.backend.pipeline.spark.error_output import exit_with_task
from quarterdeck.backend.simulation.invariants import Violation
from quarterdeck.backend.simulation.invariants.acknowledged_writes import Call, Register

CALLS = ("call-started", "call-finished")
COLUMNS = ("run", "map", "key", "place", "raw", "lost", "parted")
FOUND_IN_KEYS = StructType([StructField("run", StringType()), StructField("json", StringType())])


def lost_writes(evidence: Evidence, told: DataFrame) -> DataFrame:
    """What was read that cannot be (columns run and json: a finding). `told`: what was told of the runs (schema
    `CHECKER_RESULTS`).
    """
    event = F.col("event")
    calls = evidence.events.where(event["kind"].isin(*CALLS)).select(
        *("run", "place", "raw", event["map"].alias("map"), event["key"].alias("key")),
        event["partition"].cast("int").alias("partition"),
    )
    losses = told.where("what = 'loss'").select("run", "place", "partition", F.col("place").alias("lost"))
    latest = running_window(Window.partitionBy("run", "partition").orderBy("place"))
    divisions = (
        told.where("what in ('divided', 'reunited')")
        .groupBy("run")
        .agg(F.sort_array(F.collect_list(F.struct("place", "what"))).alias("divisions"))
    )
    until_now = F.filter("divisions", lambda one: one["place"] <= F.col("place"))
    last_reunion = F.array_max(F.filter(until_now, lambda one: one["what"] == "reunited"))["place"]
    with_losses = (
        calls.unionByName(losses, allowMissingColumns=True)
        .withColumn("lost", F.last("lost", ignorenulls=True).over(latest))
        .where("raw is not null")
        .join(divisions, ["run"], "left")
        .withColumn("parted", F.coalesce(F.array_max(until_now)["what"] == "divided", F.lit(False)))
        .withColumn("lost", F.greatest("lost", last_reunion))
        .select(*COLUMNS)
    )
    if not evidence.one_part:
        with_losses = with_losses.repartition("run", "map", "key")
    return with_losses.sortWithinPartitions("run", "map", "key", "place").mapInArrow(_judge_keys, FOUND_IN_KEYS)


def _judge_keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    exit_with_task()
    rows = (row for batch in batches for row in zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True))
    for (run, _, _), of_key in groupby(rows, key=itemgetter(0, 1, 2)):
        found = [msgspec.json.encode(finding_of(violation, record)).decode() for violation, record in _judge(of_key)]
        if found:
            yield pa.RecordBatch.from_pydict({"run": [run] * len(found), "json": found})


def _judge(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Violation, Record]]:
    """One key from its first call to its last; its calls are counted, which is all the clock that a register needs."""
    register = Register()
    calls: dict[tuple[str, int], Call] = {}
    places: list[tuple[Any, ...]] = []
    decoder = msgspec.json.Decoder(Record)
    for _, name, key, place, raw, lost, parted in rows:
        places.append(tuple(place.values()))
        now = len(places)
        try:
            record = decoder.decode(raw)
        except msgspec.MsgspecError:
            continue  # told as something that the run lacks
        event = record.event
        identity = record.uuid, event.call  # type: ignore[union-attr]
        if isinstance(event, CallStarted):
            write = None if event.operation == "get" else register.begin(record, event, now)
            calls[identity] = Call((name, key), now, write)
        elif (call := calls.pop(identity, None)) is not None:
            lost_at = -inf if lost is None else bisect_right(places, tuple(lost.values()))
            violation = register.finish(record, event, call, now, inf if parted else lost_at)  # type: ignore[arg-type]
            if violation is not None:
                yield violation, record

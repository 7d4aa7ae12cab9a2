"""Invariants that need the whole story of a run: the simulator's own checkers, on executors.

The records of a run stream past in their order, each run through one task; what is held is what the checkers remember. Besides
what they find this tells what makes a run's journal incomplete, and when data may have been lost with its holders.

Where there is little to judge they judge every invariant that has a checker: that takes no longer, and the transformations
of tables, which say the same and scale, would cost seconds to plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from quarterdeck.backend.core.events import EVENT_KINDS, Record
from quarterdeck.backend.pipeline.rules.evidence import Evidence
from quarterdeck.backend.pipeline.rules.finding import Finding
from quarterdeck.backend.pipeline.rules.run_checker import RunChecker
from quarterdeck.backend.pipeline.schemas import PLACE
from quarterdeck.backend.pipeline.spark.error_output import exit_with_task
from quarterdeck.backend.simulation.invariants import InvariantChecker

CHECKER_RESULTS = StructType(
    [
        StructField("what", StringType()),
        StructField("run", StringType()),
        StructField("json", StringType()),
        StructField("partition", IntegerType()),
        StructField("place", PLACE),
    ]
)
"""What the tasks tell. `what`: finding (as `json`); lacks (`json` says what of the run is not there); loss (since this place all
that was written to the partition may be lost); divided, reunited (since this place the members are not one cluster, or again);
strange (an event is not as this version knows it: no checker has seen it)."""

BATCH_ROWS = 1_000
_Row = tuple[str, str, str | None, int | None, dict[str, Any] | None]


def run_checkers(evidence: Evidence, names: Collection[str], but_for: Collection[str] = ()) -> DataFrame:
    """What the checkers `names` find in each run, and what the journal lacks (schema `CHECKER_RESULTS`).

    They are not shown events of the kinds `but_for`.
    """
    whole = InvariantChecker(names)
    asked = sorted(name for name, kind in EVENT_KINDS.items() if whole.is_relevant(kind) and name not in but_for)
    # What nobody asks for still tells until when the journal goes.
    raw = F.when(F.col("event.kind").isin(*asked), F.col("raw"))
    records = evidence.events.select("run", "at", "place", "uuid", "member", "seq", raw.alias("raw"))
    if not evidence.one_part:
        records = records.repartition("run")
    in_order = records.sortWithinPartitions("run", "place")
    return in_order.mapInArrow(_checking(tuple(sorted(names)), evidence.obligation_timeout_us), CHECKER_RESULTS)


def _checking(
    names: tuple[str, ...], obligation_timeout_us: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        exit_with_task()
        rows = (row for batch in batches for row in _rows(batch))
        told = (
            one
            for run, of_run in groupby(rows, key=itemgetter(0))
            for one in _check(run, of_run, names, obligation_timeout_us)
        )
        for _, some in groupby(enumerate(told), key=lambda numbered: numbered[0] // BATCH_ROWS):
            yield _batch([one for _, one in some])

    return check


def _check(
    run: str, rows: Iterator[tuple[Any, ...]], names: tuple[str, ...], obligation_timeout_us: int
) -> Iterator[_Row]:
    """One run from its first record to its last."""
    checker = RunChecker(names)
    decoder = msgspec.json.Decoder(Record)
    tables = checker.invariants.tables
    losses: dict[int, int] = {}
    divided = False
    ends_us = 0
    for _, at_us, place, uuid, member, seq, raw in rows:
        ends_us = at_us
        checker.completeness.number(uuid, member, seq)
        if raw is None:
            continue
        try:
            record = decoder.decode(raw)
        except msgspec.MsgspecError as problem:
            checker.completeness.unreadable(member, seq, str(problem))
            yield "strange", run, None, None, None
            continue
        for finding in checker.observe(record):
            yield _finding(run, finding)
        if bool(tables.division) != divided:
            divided = not divided
            yield "divided" if divided else "reunited", run, None, None, place
        for partition, times in checker.invariants.writes.excused():
            if losses.get(partition) != times:
                losses[partition] = times
                yield "loss", run, None, partition, place
    for finding in checker.owed(ends_us, obligation_timeout_us):
        yield _finding(run, finding)
    if lacks := checker.completeness.missing_part():
        yield "lacks", run, lacks, None, None


def _finding(run: str, finding: Finding) -> _Row:
    return "finding", run, msgspec.json.encode(finding).decode(), None, None


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    names = ("run", "at", "place", "uuid", "member", "seq", "raw")
    return zip(*(batch.column(name).to_pylist() for name in names), strict=True)


_PLACE = pa.struct([("at", pa.int64()), ("file", pa.string()), ("number", pa.int64())])
_ARROW = pa.schema(
    [("what", pa.string()), ("run", pa.string()), ("json", pa.string()), ("partition", pa.int32()), ("place", _PLACE)]
)


def _batch(rows: list[_Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)

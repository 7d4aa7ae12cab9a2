"""Works on the records of members' logs: here with all of them, on Spark with those of each run in a task.

On Spark each split of a file is parsed in a task of its own, and comes back packed: only what matters of it, a small part. The
driver learns from the summaries of all splits how members, times and line numbers are to be completed, and gives the splits of
each run to a task. A run is not divided, because what happens to a member may be only in the logs of others.

All executors must be able to read the files under the same path; those at addresses are read whole, each in one task.
"""

from __future__ import annotations

import pickle
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from msgspec import structs

from quarterdeck.backend.hazelcast.logs.lines.file_splits import FileSplit, plan_splits
from quarterdeck.backend.hazelcast.logs.log_set import LogSet
from quarterdeck.backend.hazelcast.logs.reader import (
    SPLIT_BYTES,
    LogRecords,
    ParsedSplit,
    parsed_split,
    read_logs,
    records_of,
)
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions, SplitSummary
from quarterdeck.backend.pipeline.audit_input import AuditInput, Group
from quarterdeck.backend.pipeline.judging.group_judge import ReadLines
from quarterdeck.backend.pipeline.judging.tasks import ResultT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Packed = tuple[SplitSummary, bytes]


def of_log_runs(
    source: AuditInput,
    work: Callable[[LogRecords], ResultT],
    spark: SparkSession | None = None,
    options: LogOptions | None = None,
    split_bytes: int = SPLIT_BYTES,
) -> list[ResultT]:
    """Do `work` with what the logs of `source` contain. Return the results: on Spark one for each run, in the order of names.

    Raises OSError for what cannot be read, and ValueError for a wrong option.
    """
    options = options or LogOptions()
    if spark is None:
        return [work(read_logs(list(map(Path, source.read)), options))]
    from quarterdeck.backend.pipeline.judging.spark_tasks import carry_out_on_spark, each_on_spark

    LogSet([], options)  # a wrong option is an error here, not in a task
    if source.is_far:
        parse = partial(_parse_far, options, split_bytes, {file.read: file.changed for file in source.files})
        done = carry_out_on_spark(spark, [(file,) for file in source.files], parse, are_far=True)
        parts = [part for _, of_file in sorted(done) for part in of_file]
    else:
        splits = list(plan_splits(map(Path, source.read), split_bytes))
        parts = each_on_spark(spark, splits, partial(_parse, options))
    whole = LogSet([summary for summary, _ in parts], options)
    by_run: dict[str, list[bytes]] = defaultdict(list)
    for summary, packed in parts:
        by_run[whole.run_of(summary.file)].append(packed)
    return each_on_spark(spark, [by_run[run] for run in sorted(by_run)], partial(_work_on_run, whole, work))


def _parse(options: LogOptions, split: FileSplit) -> Packed:
    return _packed(parsed_split(split, options))


def _packed(parsed: ParsedSplit) -> Packed:
    return parsed.summary, zlib.compress(pickle.dumps(parsed, protocol=5), 1)


def _work_on_run(whole: LogSet, work: Callable[[LogRecords], ResultT], packed: Sequence[bytes]) -> ResultT:
    return work(records_of([pickle.loads(zlib.decompress(one)) for one in packed], whole))


def _parse_far(
    options: LogOptions, split_bytes: int, changed_us: dict[str, int], group: Group, read: ReadLines
) -> list[Packed]:
    """Parse a log at an address by way of a copy."""
    (file,) = group
    with TemporaryDirectory(prefix="quarterdeck-log-") as folder:
        copy = Path(folder) / PurePosixPath(file.read).name
        copy.write_bytes(b"".join(read(file)))
        parsed = [parsed_split(split, options) for split in plan_splits([copy], split_bytes)]
    return [
        _packed(replace(one, summary=structs.replace(one.summary, file=file.read, modified_us=changed_us[file.read])))
        for one in parsed
    ]

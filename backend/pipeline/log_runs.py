"""Works on the records of members' logs: first on parts of files side by side, then on what matters of each run as a whole.

The summaries of all parts say how members, times and line numbers are to be completed. A run is not divided, because what happens
to a member may be only in the logs of others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from msgspec import structs

from quarterdeck.backend.hazelcast.logs.lines.file_splits import FileSplit, plan_splits
from quarterdeck.backend.hazelcast.logs.log_set import LogSet
from quarterdeck.backend.hazelcast.logs.reader import SPLIT_BYTES, LogRecords, ParsedSplit, parsed_split, records_of
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.pipeline.audit_input import AuditInput, InputFile
from quarterdeck.backend.pipeline.tasks import ResultT, each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BYTES_A_MESSAGE = 1 << 10
"""To interpret a message costs about as much as to parse so many bytes."""


def of_log_runs(
    source: AuditInput,
    work: Callable[[LogRecords], ResultT],
    spark: SparkSession | None = None,
    options: LogOptions | None = None,
    split_bytes: int = SPLIT_BYTES,
) -> list[ResultT]:
    """Do `work` with what the logs of each run contain. Return the results in the order of names.

    Raises OSError for what cannot be read, and ValueError for a wrong option.
    """
    options = options or LogOptions()
    LogSet([], options)  # a wrong option is an error here, not in a task
    far = [file for file in source.files if file.source is not None]
    parts: list[InputFile | FileSplit] = [*far, *plan_splits(map(Path, () if far else source.read), split_bytes)]
    size_of = {file.read: file.size_bytes for file in source.files}
    sizes = [
        size_of[part.read] if isinstance(part, InputFile) else min(part.end, size_of[part.file]) - part.start
        for part in parts
    ]
    found = each(parts, sizes, partial(_parsed, options), spark, may_fork=not far)
    parsed = [split for of_part in found for split in of_part]
    whole = LogSet([split.summary for split in parsed], options)
    by_run: dict[str, list[ParsedSplit]] = defaultdict(list)
    for split in parsed:
        by_run[whole.run_of(split.summary.file)].append(split)
    runs = [by_run[run] for run in sorted(by_run)]
    sizes = [sum(BYTES_A_MESSAGE * len(split.messages) for split in splits) for splits in runs]
    return each(runs, sizes, partial(_work_on_run, whole, work), spark, may_fork=not far)


def _parsed(options: LogOptions, part: InputFile | FileSplit) -> list[ParsedSplit]:
    """Parse a part of a log; one at an address as a whole, by way of a copy."""
    if isinstance(part, FileSplit):
        return [parsed_split(part, options)]
    assert part.source is not None
    with TemporaryDirectory(prefix="quarterdeck-log-") as folder:
        copy = Path(folder) / PurePosixPath(part.read).name
        part.source.fetch(copy)
        splits = [parsed_split(split, options) for split in plan_splits([copy], SPLIT_BYTES)]
    summaries = (structs.replace(split.summary, file=part.read, modified_us=part.changed) for split in splits)
    return [replace(split, summary=summary) for split, summary in zip(splits, summaries, strict=True)]


def _work_on_run(whole: LogSet, work: Callable[[LogRecords], ResultT], splits: list[ParsedSplit]) -> ResultT:
    return work(records_of(splits, whole))

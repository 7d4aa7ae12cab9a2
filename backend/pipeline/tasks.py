"""Does work on items in tasks of about the same size: in several processes of this machine, or in tasks of Spark's."""

from __future__ import annotations

import gc
import heapq
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing import current_process, get_context
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import structs

from quarterdeck.backend.hazelcast.logs.lines.file_splits import FileSplit, plan_splits
from quarterdeck.backend.hazelcast.logs.log_files import NoLogs, check_zones, refusal
from quarterdeck.backend.hazelcast.logs.log_set import LogSet
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.reader import (
    SPLIT_BYTES,
    LogRecords,
    ParsedSplit,
    parsed_split,
    records_of,
)
from quarterdeck.backend.pipeline.audit_input import AuditInput, Group, InputFile
from quarterdeck.backend.pipeline.staging import staging_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
Work = Callable[[ItemT], ResultT]
"""What is done with each item. Raises OSError for what cannot be read."""

BYTES_A_TASK = 16 << 20
"""Half a second of work: on Spark a task costs some hundredths of one, and long ones at the end leave cores idle."""

BYTES_A_TASK_HERE = 1 << 20
"""A process of this machine is given a task at next to no cost."""

PARENT_LOOKS_SECONDS = 1.0
"""How often a process looks whether its parent has ended."""

Task = list[tuple[int, ItemT]]
"""Items, each with its place among all."""


def each(
    items: Sequence[ItemT],
    sizes_bytes: Sequence[int],
    work: Work[ItemT, ResultT],
    spark: SparkSession | None = None,
    *,
    may_fork: bool = True,
    name: str = "",
) -> list[ResultT]:
    """Return what `work` makes of each item, on Spark where a session is given; all executors must find the same files.

    On this machine it is done in this process where there is little to do, or where other threads may hold locks, of which a fork
    would have copies. A daemon may have no child. `name` is how Spark's UI calls the job.
    """
    tasks = tasks_of(items, sizes_bytes, BYTES_A_TASK_HERE if spark is None else BYTES_A_TASK)
    jobs = min(len(tasks), 1 + sum(sizes_bytes) // BYTES_A_TASK, os.cpu_count() or 1)
    done: Iterable[tuple[int, ResultT]]
    if spark is not None:
        from quarterdeck.backend.pipeline.spark.arrow import carry_out_in_rows

        done = carry_out_in_rows(spark, tasks, work, name)
    elif may_fork and jobs > 1 and threading.active_count() == 1 and not current_process().daemon:
        done = carry_out_in_processes(tasks, work, jobs)
    else:
        done = (result for task in tasks for result in _done(task, work))
    return [result for _, result in sorted(done, key=itemgetter(0))]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the search for garbage in reference cycles: records are in none, and there are many of them.

    A judge is in a cycle, and so is collected after the block.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def tasks_of(items: Sequence[ItemT], sizes_bytes: Sequence[int], bytes_a_task: int = BYTES_A_TASK) -> list[Task[ItemT]]:
    """Give each item, the largest first, to the task that has the least to do."""
    count = min(len(items), 1 + sum(sizes_bytes) // bytes_a_task)
    tasks: list[Task[ItemT]] = [[] for _ in range(count)]
    loads = [(0, task) for task in range(count)]
    for place in sorted(range(len(items)), key=lambda place: (-sizes_bytes[place], place)):
        load, task = heapq.heappop(loads)
        tasks[task].append((place, items[place]))
        heapq.heappush(loads, (load + sizes_bytes[place], task))
    return tasks


def results_of_whole_runs(
    groups: Sequence[Group],
    work: Work[Group, ResultT],
    runs_of: Callable[[ResultT], Iterable[str]],
    spark: SparkSession | None,
    name: str = "work on each run",
) -> list[ResultT]:
    """Return the results of all `groups`. Those that turn out to hold parts of one run are worked on once more, as one group."""
    results: list[ResultT] = []
    while groups:
        sizes = [sum(file.size_bytes for file in group) for group in groups]
        # Clients of S3 have threads of their own, which a fork would not copy.
        done = each(
            groups, sizes, work, spark, may_fork=not any(file.source for group in groups for file in group), name=name
        )
        joined = _joined([set(runs_of(result)) for result in done])
        results += [done[places[0]] for places in joined if len(places) == 1]
        groups = [tuple(file for place in places for file in groups[place]) for places in joined if len(places) > 1]
    return results


def _joined(runs: Sequence[set[str]]) -> list[list[int]]:
    """Return the places of `runs`, those together that have a run in common."""
    parent = list(range(len(runs)))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = place = parent[parent[place]]
        return place

    first: dict[str, int] = {}
    for place, names in enumerate(runs):
        for name in names:
            parent[root(place)] = root(first.setdefault(name, place))
    joined: dict[int, list[int]] = defaultdict(list)
    for place in range(len(runs)):
        joined[root(place)].append(place)
    return list(joined.values())


def carry_out_in_processes(
    tasks: Sequence[Task[ItemT]], work: Work[ItemT, ResultT], jobs: int
) -> Iterator[tuple[int, ResultT]]:
    """Do the work with the items of all tasks in `jobs` processes. Raises ChildProcessError where one of them was ended."""
    # Forked processes need not be sent the work.
    processes = ProcessPoolExecutor(jobs, get_context("fork"), initializer=_begin_process, initargs=(os.getpid(), work))
    with processes:
        try:
            for results in processes.map(_carry_out, tasks):
                yield from results
        except BrokenProcessPool as ended:
            raise ChildProcessError(
                "a process of the audit was ended from outside, or had too little memory"
            ) from ended


_work: Work[Any, Any]
"""In a process of `carry_out_in_processes`: its work."""


def _begin_process(parent: int, work: Work[Any, Any]) -> None:
    global _work
    _work = work
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process soon after its parent, which a kill may keep from ending it."""
    while os.getppid() == parent:
        time.sleep(PARENT_LOOKS_SECONDS)
    os._exit(1)


def _carry_out(task: Task[Any]) -> list[tuple[int, Any]]:
    return _done(task, _work)


def _done(task: Task[ItemT], work: Work[ItemT, ResultT]) -> list[tuple[int, ResultT]]:
    return [(place, work(item)) for place, item in task]


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

    Raises OSError for what cannot be read, `NoLogs` for a zone of none of these logs, and ValueError for a wrong option.
    """
    options = options or LogOptions()
    LogSet([], options)  # a wrong option is an error here, not in a task
    check_zones(options, map(PurePosixPath, source.read))
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
    if not any(split.messages for split in parsed):
        raise NoLogs(refusal(", ".join(map(str, source.paths)), [split.summary for split in parsed]))
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
    with staging_folder() as folder:
        copy = folder / PurePosixPath(part.read).name
        part.source.fetch(copy)
        splits = [parsed_split(split, options) for split in plan_splits([copy], SPLIT_BYTES)]
    summaries = (structs.replace(split.summary, file=part.read, modified_us=part.changed) for split in splits)
    return [replace(split, summary=summary) for split, summary in zip(splits, summaries, strict=True)]


def _work_on_run(whole: LogSet, work: Callable[[LogRecords], ResultT], splits: list[ParsedSplit]) -> ResultT:
    return work(records_of(splits, whole))

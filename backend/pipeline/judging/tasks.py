"""Divides groups among tasks of about the same size, and carries these out in several processes of this machine."""

from __future__ import annotations

import heapq
import os
import signal
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from quarterdeck.backend.pipeline.audit_input import Group
from quarterdeck.backend.pipeline.judging.group_judge import ReadLines, lines_of_file

ResultT = TypeVar("ResultT")
Work = Callable[[Group, ReadLines], ResultT]
"""What is done with the files of each group, and with what reads them. Raises OSError for what cannot be read."""

CarryOut = Callable[[Sequence[Group]], Iterable[tuple[int, ResultT]]]
"""Does some work with each of these groups, here or on Spark; yields the place and the result of each, in any order."""

BYTES_A_TASK = 16 << 20
"""Half a second of work: on Spark a task costs some hundredths of one, and long ones at the end leave cores idle."""

Task = list[tuple[int, Group]]
"""Groups, each with its place among all."""


def tasks_of(groups: Sequence[Group]) -> list[Task]:
    """Give each group, the largest first, to the task that has the least to do."""
    sizes = [sum(file.size_bytes for file in group) for group in groups]
    count = min(len(groups), 1 + sum(sizes) // BYTES_A_TASK)
    tasks: list[Task] = [[] for _ in range(count)]
    loads = [(0, task) for task in range(count)]
    for place in sorted(range(len(groups)), key=lambda place: (-sizes[place], place)):
        load, task = heapq.heappop(loads)
        tasks[task].append((place, groups[place]))
        heapq.heappush(loads, (load + sizes[place], task))
    return tasks


def results_of_whole_runs(
    groups: Sequence[Group], carry_out: CarryOut[ResultT], runs_of: Callable[[ResultT], Iterable[str]]
) -> list[ResultT]:
    """Return the results of all `groups`. Those that turn out to hold parts of one run are worked on once more, as one group."""
    results: list[ResultT] = []
    while groups:
        done = dict(carry_out(groups))
        joined = _joined([set(runs_of(done[place])) for place in range(len(groups))])
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


def carry_out_here(groups: Sequence[Group], work: Work[ResultT]) -> Iterator[tuple[int, ResultT]]:
    """Work on each of `groups` in processes of this machine, or in this one where there is little to do."""
    tasks = tasks_of(groups)
    # A fork copies no other threads, but the locks that they hold; and a daemon may have no child.
    may_fork = threading.active_count() == 1 and not current_process().daemon
    jobs = min(len(tasks), os.cpu_count() or 1)
    if may_fork and jobs > 1:
        return carry_out_in_processes(tasks, work, jobs)
    return (done for task in tasks for done in _done(task, work))


def carry_out_in_processes(tasks: Sequence[Task], work: Work[ResultT], jobs: int) -> Iterator[tuple[int, ResultT]]:
    """Work in so many processes; each is given a task, and another one when it answers."""
    fork = get_context("fork")
    waiting = iter(tasks)
    with ExitStack() as stack:
        busy: list[Connection] = []
        for task in islice(waiting, jobs):
            here, there = fork.Pipe()
            process = fork.Process(target=_carry_out, args=(here, there, work), daemon=True)
            process.start()
            there.close()
            for at_the_end in (process.join, process.terminate, here.close):  # the last one first
                stack.callback(at_the_end)
            here.send(task)
            busy.append(here)
        while busy:
            for worker in wait(busy):
                assert isinstance(worker, Connection)
                try:
                    results = worker.recv()
                except EOFError as ended:
                    raise ChildProcessError(
                        "a process of the audit was ended from outside, or had too little memory"
                    ) from ended
                if isinstance(results, Exception):
                    raise results
                following = next(waiting, None)
                if following is None:
                    busy.remove(worker)
                else:
                    worker.send(following)
                yield from results


def _carry_out(parent: Connection, connection: Connection, work: Work[Any]) -> None:
    """Carry out tasks in this process as long as the parent sends any."""
    parent.close()  # else this process would never see the parent end
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    with suppress(EOFError, ConnectionError):
        while True:
            task = connection.recv()
            try:
                results: object = _done(task, work)
            except (OSError, ModuleNotFoundError) as problem:
                results = problem
            connection.send(results)


def _done(task: Task, work: Work[ResultT]) -> list[tuple[int, ResultT]]:
    return [(place, work(group, lines_of_file)) for place, group in task]

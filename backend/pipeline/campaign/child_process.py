"""Runs simulations in a child process that may do anything: loop for ever, exit, or crash.

The parent receives the result of each run separately, so losing one costs that run and nothing else. POSIX only, like Spark's own
workers, in which this runs.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Literal, NamedTuple, TypeVar

T = TypeVar("T")

WALL_TIMES_CPU = 5
"""A run that waits uses no CPU time: it may last so many times its budget, because machines are busy."""


class OutOfTime(BaseException):
    """Raised when a run has used up its CPU time.

    It is no `Exception`, so that code which catches all errors of a run does not catch it.
    """


@contextmanager
def at_most(cpu_seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` in the block once this process has spent so much CPU time in it. Main thread only."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise OutOfTime(f"{cpu_seconds:g} s of CPU time were not enough")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class LostRun(NamedTuple):
    """A run that did not come back: it was too slow (`timeout`) or its process ended (`died`), and how."""

    verdict: Literal["timeout", "died"]
    how: str


def run_in_child(
    planned_runs: Sequence[T], run: Callable[[T], bytes], lost_row: Callable[[T, LostRun], bytes], wall_seconds: float
) -> Iterator[bytes]:
    """Yield what `run` makes of each planned run in a child process, in order, or `lost_row` where it does not come back."""
    fork, place = get_context("fork"), 0
    while place < len(planned_runs):
        here, there = fork.Pipe(duplex=False)
        child = fork.Process(target=_work, args=(planned_runs[place:], run, there), daemon=True)
        child.start()
        there.close()
        try:
            while place < len(planned_runs):
                answer = _answer(here, child, wall_seconds)
                place += 1
                if isinstance(answer, LostRun):
                    yield lost_row(planned_runs[place - 1], answer)
                    break
                yield answer
        finally:
            child.kill()
            child.join()
            here.close()


def _answer(connection: Connection, child: BaseProcess, wall_seconds: float) -> bytes | LostRun:
    """Return the next answer, or how the child was lost."""
    if not connection.poll(wall_seconds):
        return LostRun("timeout", f"no answer within {wall_seconds:g} s")
    try:
        return connection.recv_bytes()
    except EOFError:
        child.join()
        code = child.exitcode or 0
        return LostRun("died", f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}")


def _work(planned_runs: Sequence[T], run: Callable[[T], bytes], connection: Connection) -> None:
    """Run everything in the child. It exits without the parent's cleanup, because files and sockets are the parent's."""
    code = 1
    try:
        for planned_run in planned_runs:
            connection.send_bytes(run(planned_run))
        code = 0
    finally:
        os._exit(code)

"""Runs simulations in a child process that may do anything: loop for ever, exit, or crash.

The parent receives the result of each run separately, so losing one costs that run and nothing else. POSIX only, like Spark's own
workers, in which this runs.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Literal, NamedTuple, TypeVar

T = TypeVar("T")

WALL_TIMES_CPU = 5
"""A run that waits uses no CPU time: it may last so many times its budget, because machines are busy."""

_LENGTH_BYTES = 4
_READ_BYTES = 1 << 16


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
    place = 0
    while place < len(planned_runs):
        child = _Child(planned_runs[place:], run)
        try:
            while place < len(planned_runs):
                answer = child.answer(wall_seconds)
                place += 1
                if isinstance(answer, LostRun):
                    yield lost_row(planned_runs[place - 1], answer)
                    break
                yield answer
        finally:
            child.end()


class _Child:
    def __init__(self, planned_runs: Sequence[T], run: Callable[[T], bytes]) -> None:
        self._source, sink = os.pipe()
        self._received = b""
        self._status: int | None = None
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._source)
            _work(planned_runs, run, sink)
        os.close(sink)

    def answer(self, wall_seconds: float) -> bytes | LostRun:
        """Return the next answer, or how the child was lost."""
        until = time.monotonic() + wall_seconds
        while True:
            length = int.from_bytes(self._received[:_LENGTH_BYTES])
            if len(self._received) >= _LENGTH_BYTES + length and len(self._received) >= _LENGTH_BYTES:
                answer = self._received[_LENGTH_BYTES : _LENGTH_BYTES + length]
                self._received = self._received[_LENGTH_BYTES + length :]
                return answer
            ready, _, _ = select.select([self._source], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                return LostRun("timeout", f"no answer within {wall_seconds:g} s")
            more = os.read(self._source, _READ_BYTES)
            if not more:
                self._wait()
                code = self._status or 0
                return LostRun("died", f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}")
            self._received += more

    def end(self) -> None:
        """End the child, whatever it is doing, if it has not ended."""
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            self._wait()
        os.close(self._source)

    def _wait(self) -> None:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def _work(planned_runs: Sequence[T], run: Callable[[T], bytes], sink: int) -> None:
    """Run everything in the child. It exits without the parent's cleanup, because files and sockets are the parent's."""
    code = 1
    try:
        for planned_run in planned_runs:
            answer = run(planned_run)
            message = len(answer).to_bytes(_LENGTH_BYTES) + answer
            while message:
                message = message[os.write(sink, message) :]
        code = 0
    finally:
        os._exit(code)

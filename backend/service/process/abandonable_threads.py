"""Threads that are abandoned at the end: a process that has nothing left to do ends, whatever keeps them.

An event loop resolves host names in threads. Where name servers do not answer, each lookup takes tens of seconds, which nothing
can cut short. Python waits for the threads of its own pool when a loop is closed, and again when the process ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

Result = TypeVar("Result")
P = ParamSpec("P")


class AbandonableThreads(ThreadPoolExecutor):
    """A thread for each job, so that stuck jobs delay no others. A pool by type only: asyncio accepts nothing else."""

    def submit(self, fn: Callable[P, Result], /, *arguments: P.args, **named: P.kwargs) -> Future[Result]:
        future: Future[Result] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*arguments, **named)
            except BaseException as problem:  # noqa: BLE001 - belongs to the holder of the future
                future.set_exception(problem)
            else:
                future.set_result(result)

        threading.Thread(target=work, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do not wait."""


def run_and_end(main: Coroutine[Any, Any, Result]) -> Result:
    """Run as `asyncio.run` does, but abandon the threads."""
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(AbandonableThreads())
        return runner.run(main)

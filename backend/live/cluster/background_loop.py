"""An event loop in a thread of its own: a caller that watches or commands a cluster never waits for its network."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from quarterdeck.backend.core.commands import CommandRefused

Result = TypeVar("Result")


class BackgroundLoop:
    """Work is handed over to it from any thread, until it is closed."""

    def __init__(self, name: str) -> None:
        """`name` is that of the thread, for logs and debuggers."""
        self.loop = asyncio.new_event_loop()
        self._closing = threading.Lock()
        self._closed = False
        self._name = name
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, begin: Callable[[], None]) -> None:
        """Start the thread, which calls `begin` before anything else."""
        self._thread = threading.Thread(target=self._run, args=(begin,), name=self._name, daemon=True)
        self._thread.start()

    def _run(self, begin: Callable[[], None]) -> None:
        asyncio.set_event_loop(self.loop)
        begin()
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def hand_over(self, act: Callable[..., None], *arguments: object) -> bool:
        """Have the thread call `act`. False when it is closed: then `act` is never called."""
        with self._closing:
            if not self._closed:
                self.loop.call_soon_threadsafe(act, *arguments)
            return not self._closed

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do `work` beside everything else; call it in the thread. Closing the loop cancels unfinished work."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def ask(self, work: Callable[[], Coroutine[Any, Any, Result]], owner: str) -> Future[Result]:
        """Do `work` in the thread, beside everything else; what it returns or raises is for the holder of the future.

        The future fails with `CommandRefused`, which names the `owner` of the loop, when that is closed before.
        """
        done: Future[Result] = Future()

        async def do() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                done.set_result(await work())
            except asyncio.CancelledError:
                done.set_exception(CommandRefused(f"{owner} was closed"))
                raise
            except Exception as problem:  # noqa: BLE001 - belongs to the holder of the future
                done.set_exception(problem)

        if not self.hand_over(lambda: self.spawn(do())):
            done.set_exception(CommandRefused(f"{owner} is closed"))
        return done

    def close(self, end: Callable[[], Coroutine[Any, Any, None]] | None = None) -> bool:
        """Cancel spawned work, let `end` run to its end, then end the thread.

        Return whether this was the first call; further calls are harmless.
        """
        with self._closing:
            already, self._closed = self._closed, True
        if not already:
            try:
                asyncio.run_coroutine_threadsafe(self._end(end), self.loop).result()
            finally:
                self.loop.call_soon_threadsafe(self.loop.stop)
        if self._thread is not None:
            self._thread.join()
        return not already

    async def _end(self, end: Callable[[], Coroutine[Any, Any, None]] | None) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if end is not None:
            await end()

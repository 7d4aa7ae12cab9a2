"""How long the steps of a member's loop take: the CPU of its thread, for each callback that asyncio runs."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

RUN = asyncio.events.Handle._run  # type: ignore[attr-defined]


class LoopSteps:
    """The longest step of one thread's loop since `begin`."""

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.longest_ms = 0.0
        self.longest = ""

    def begin(self) -> None:
        self.longest_ms, self.longest = 0.0, ""

    def note(self, milliseconds: float, handle: Any) -> None:
        if milliseconds > self.longest_ms:
            self.longest_ms, self.longest = milliseconds, str(handle)


@contextmanager
def watched_steps(thread: int) -> Iterator[LoopSteps]:
    """Time every callback of the loop that runs in the thread of this identifier."""
    steps = LoopSteps(thread)

    def run(handle: Any) -> None:
        if threading.get_ident() != steps.thread:
            RUN(handle)
            return
        began = time.thread_time()
        RUN(handle)
        steps.note((time.thread_time() - began) * 1_000, handle)

    asyncio.events.Handle._run = run  # type: ignore[attr-defined]
    # What other tests of this process have left is not the member's: a collection that looks through it takes 100 ms.
    gc.collect()
    gc.freeze()
    try:
        yield steps
    finally:
        gc.unfreeze()
        asyncio.events.Handle._run = RUN  # type: ignore[attr-defined]

"""Two threads that take turns: what looks like one long computation is done a piece at a time.

Only one of them ever runs, so nothing that they share needs a lock, and nothing depends on which of them is quicker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class LockstepEnded(Exception):
    """Raised where the computation would have gone on, when it is not wanted any more."""


class LockstepThread:
    """Runs `work` in a thread, whenever `run_slice` is called and until it calls `yield_slice`."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self._work = work
        self._begin, self._over = threading.Semaphore(0), threading.Semaphore(0)
        self._ending = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run_slice(self) -> None:
        """Let the work go on until it gives back. Raises the work's own exception."""
        if self._thread.is_alive():
            self._begin.release()
            self._over.acquire()
        if self._failure is not None:
            raise self._failure

    def yield_slice(self) -> None:
        """Wait for the next turn; called by the work. Raises `LockstepEnded` at the end."""
        self._over.release()
        self._begin.acquire()
        if self._ending:
            raise LockstepEnded

    def end(self) -> None:
        self._ending = True
        self._begin.release()
        self._thread.join()

    def _run(self) -> None:
        self._begin.acquire()
        try:
            if not self._ending:
                self._work()
        except LockstepEnded:
            pass
        except BaseException as failure:  # noqa: BLE001 - belongs to the caller of the turn
            self._failure = failure
        self._over.release()

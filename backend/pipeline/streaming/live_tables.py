"""The tables of a journal, kept up to date while it grows, in a thread of their own: findings do not wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from quarterdeck.backend.pipeline.tables.store import update_store

EVERY_SECONDS = 30.0
"""How often what is new is folded in."""


class LiveTables:
    """Folds what is new of the `runs` into the tables at `out_dir`, now and then, and a last time at the end."""

    def __init__(self, spark: SparkSession, runs: Callable[[], Sequence[Path]], out_dir: Path) -> None:
        self._spark, self._runs, self._out_dir = spark, runs, out_dir
        self._news = threading.Event()
        self._closing = threading.Event()
        self._has_folded = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._go_on, name="tables", daemon=True)
        self._thread.start()

    def mark_dirty(self) -> None:
        """There are new files: the tables are to be updated."""
        self._news.set()

    def raise_failure(self) -> None:
        """Raise what kept the tables from being written, if anything did."""
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Write what is new, and end."""
        self._closing.set()
        self._thread.join()
        self.raise_failure()
        self._fold(is_last=True)

    def _go_on(self) -> None:
        while not self._closing.wait(EVERY_SECONDS):
            try:
                self._fold(is_last=False)
            except Exception as problem:  # noqa: BLE001 - raised by `raise_failure`, in the thread that can end the stream
                self._failure = problem
                return

    def _fold(self, *, is_last: bool) -> None:
        if self._news.is_set() or (is_last and self._has_folded):
            self._news.clear()
            self._has_folded = True
            update_store(self._spark, self._runs(), self._out_dir, is_last=is_last)

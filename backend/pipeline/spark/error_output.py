"""Keeping PySpark from telling the same failure several times over: what it raises is told once, by whoever catches it.

Its helpers print tracebacks of their own when Java is gone, and its handler of Ctrl-C speaks to Java in the midst of another
word to Java, which fails loudly.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import py4j
from pyspark.sql import SparkSession

_PY4J = str(Path(py4j.__file__).parent)


@contextmanager
def restore_interrupt_handler() -> Iterator[None]:
    """Let Ctrl-C be after the block what it was before: a session that is made in it takes it for itself.

    Nothing is lost by that: whoever is interrupted leaves the session's block, which ends all that runs on it.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


def silence_connection_errors(session: SparkSession) -> None:
    """Let the session's connections to Java end without a traceback on stderr. Nothing to do for Spark Connect."""
    logging.getLogger("py4j").propagate = False
    logging.getLogger().addFilter(_is_of_others)  # added once, however often
    server = session.sparkContext._accumulatorServer
    server.handle_error = lambda *_: None  # type: ignore[method-assign]


def exit_with_task() -> None:
    """On an executor: when the task is broken off nobody reads from this worker any more. Let it end by that, as one does in a
    pipe, and not with the traceback that Spark would print."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _is_of_others(record: logging.LogRecord) -> bool:
    """Py4J logs as everybody's what it raises as well."""
    return not record.pathname.startswith(_PY4J)

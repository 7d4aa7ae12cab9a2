"""Keeps PySpark from reporting the same failure several times: its exception is reported once, by the code that catches it.

PySpark's helpers print tracebacks of their own when Java is gone, and its handler of Ctrl-C calls Java in the middle of another
call, which fails loudly.
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
    """Restore the handler of Ctrl-C after the block: a session made in it installs its own.

    Nothing is lost: an interrupt leaves the session's block, which ends everything that runs on it.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


def silence_connection_errors(session: SparkSession) -> None:
    """Let the session's connections to Java end without a traceback on stderr. Spark Connect needs nothing."""
    logging.getLogger("py4j").propagate = False
    logging.getLogger().addFilter(_is_of_others)  # added once, however often
    server = session.sparkContext._accumulatorServer
    server.handle_error = lambda *_: None  # type: ignore[method-assign]


def exit_with_task() -> None:
    """End this worker silently when its task is cancelled, like a process in a pipe.

    Nothing reads from it then, and Spark would print a traceback.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _is_of_others(record: logging.LogRecord) -> bool:
    return not record.pathname.startswith(_PY4J)

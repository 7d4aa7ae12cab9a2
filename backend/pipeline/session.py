"""The Spark session: the only place that builds one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from backend.pipeline.java import find_java

# A short-lived session answers sooner with the first compiler only, and its small heap needs no parallel collector.
INTERACTIVE_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    # Files to Python workers through a socket file instead of loopback TCP: a third of the cost of a task.
    "spark.python.unix.domain.socket.enabled": "true",
}


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """The running session, or one of our own that ends with the block. Raises `JavaMissing`."""
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    session = start_session()
    try:
        yield session
    finally:
        session.stop()


def start_session(master: str = "local[2]") -> SparkSession:
    """A quiet local session tuned for answers within seconds. Raises `JavaMissing`."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers would otherwise run whatever `python3` is
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("quarterdeck")
    for name, value in OPTIONS.items():
        builder = builder.config(name, value)
    java_options = f"{INTERACTIVE_JAVA_OPTIONS} -Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}"
    session = builder.config("spark.driver.extraJavaOptions", java_options).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session

"""The Spark session: the only place that builds one, here, on a cluster, or through Spark Connect; it brings this package along.

All other code uses only `SparkSession` and `DataFrame`, so that all three can run it.
"""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from weakref import WeakSet
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import py4j
from py4j.java_collections import ListConverter, MapConverter
from py4j.java_gateway import GatewayClient
from py4j.protocol import Py4JError, Py4JJavaError, register_input_converter
from pyspark import SparkContext
from pyspark.errors import AnalysisException, ParseException, PySparkException, PythonException
from pyspark.sql import SparkSession

from quarterdeck.backend.pipeline.address import spark_defaults
from quarterdeck.backend.pipeline.spark.java import archive_options, find_java, quiet_home
from quarterdeck.backend.pipeline.spark.requirements import RemoteMissing, SparkFailed, SparkUnreachable
from quarterdeck.backend.pipeline.staging import staging_folder

LOCAL_MASTER = "local[*,4]"
"""All cores of this machine. A task whose worker dies is tried four times in all; plain `local[*]` would give up."""

# Spark looks for interruptions in the text of an exception from Python by a regular expression that recurses for each letter:
# with Java's usual stack a stream that is stopped in the middle of a batch would die of a StackOverflowError. Java only passes
# rows on, so a session answers sooner with the first compiler only, and its small heap needs no parallel collector.
JAVA_OPTIONS = ("-Xss32m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

STANDALONE = "spark://"
MAX_SECONDS_TO_ANSWER = 10.0

MAX_SECONDS_TO_END = 2.0
"""How long a process that has closed its connections may take to exit."""

LOGGING = f"-Dlog4j2.configurationFile={Path(__file__).absolute().with_name('log4j2.properties').as_uri()}"

EVERYWHERE = {"spark.sql.session.timeZone": "UTC"}
CLASSIC = {
    "spark.ui.showConsoleProgress": "false",
    # Files to Python workers through a socket file instead of loopback TCP: a third of the cost of a task.
    "spark.python.unix.domain.socket.enabled": "true",
    # Otherwise each call that makes a column sends its place in the program: half of all traffic to Java.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
ON_THIS_MACHINE = {
    **{"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"},
    "spark.python.daemon.module": "quarterdeck.backend.pipeline.spark.daemon",
}
JAVA_OPTIONS_NAME = "spark.driver.extraJavaOptions"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
"""Only users set it: Spark adapts the number of a batch query to its data."""

_FAILURES = (Py4JError, PySparkException, ConnectionRefusedError, ConnectionResetError)
"""The exceptions by which Spark reports that it failed, or is gone."""

_ENDED = ("stopped SparkContext", "Master removed our application")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_OTHER_PYTHON = re.compile(r"different version: (\S+) than that in driver: ([0-9.]+)")

_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by `spark-submit`, which has started Java by then and knows the master."""

_SHIPPED: WeakSet[SparkSession] = WeakSet()
"""Sessions of others to which this package was sent: once is enough."""

_REMOTE_MODULES = ("grpc", "grpc_status", "google.protobuf", "zstandard")


@contextmanager
def spark_session(
    master: str = "", *, remote: str = "", conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Use the running session, or one of our own that ends with the block. Arguments and errors are those of `start_session`.

    Failures of Spark within the block are raised as `SparkFailed`.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        with failing_in_one_way():
            yield running
        return
    session = start_session(master, remote=remote, conf=conf)
    with failing_in_one_way():
        try:
            yield session
        finally:
            with suppress(*_FAILURES):  # the earlier failure is to be reported
                if not remote:  # and cancelled tasks may fail noisily
                    session.sparkContext.setLogLevel("OFF")
                session.stop()


@contextmanager
def using(session: SparkSession) -> Iterator[SparkSession]:
    """Use a session of another owner, with this package on its executors; it goes on after the block.

    Failures of Spark within the block are raised as `SparkFailed`.
    """
    with failing_in_one_way():
        if session not in _SHIPPED and not _is_local(session.conf.get("spark.master", "") or ""):
            ship_package(session)
            _SHIPPED.add(session)
        yield session


@contextmanager
def failing_in_one_way() -> Iterator[None]:
    """Raise `SparkFailed` for every failure of Spark; mistakes of ours are raised as they are."""
    try:
        yield
    except (AnalysisException, ParseException, PythonException) as problem:
        if lacking := _lacking(problem):
            raise SparkFailed(lacking) from problem
        raise  # a query that makes no sense, or code of ours that raised on an executor
    except _FAILURES as problem:
        raise SparkFailed(f"Spark failed in the midst of work: {_reason(problem)}") from problem


def start_session(master: str = "", *, remote: str = "", conf: Mapping[str, str] | None = None) -> SparkSession:
    """Start a quiet session, with this package on its executors.

    `master` is as Spark writes it; by default that of ``spark-defaults.conf``, all cores of this machine, or the one that
    `spark-submit` was given. `remote` is the ``sc://`` address of a Spark Connect server instead. `conf` overrides all other
    settings, and ``spark-defaults.conf`` those that are chosen here.

    Raises `JavaMissing`, `RemoteMissing`, `SparkUnreachable`, and ValueError when both a master and a remote are given.
    """
    if remote and master:
        raise ValueError("a session has either a master or a remote, not both")
    try:
        session = _connected(remote, conf or {}) if remote else _classic(master, conf or {})
    except (Py4JError, PySparkException) as problem:
        raise SparkUnreachable(f"{remote or master or 'Spark'}: {_reason(problem)}") from problem
    if remote or not _is_local(session.conf.get("spark.master", LOCAL_MASTER) or ""):
        ship_package(session)
    return session


def ship_package(session: SparkSession) -> None:
    """Let executors import this package, as it is here. Its dependencies must be installed for their Python."""
    if not ROOT.is_dir():
        return  # we were imported from a zip ourselves: `spark-submit --py-files` has shipped it
    until_exit = ExitStack()
    atexit.register(until_exit.close)  # until then executors may still come and fetch it
    session.addArtifacts(str(write_package(until_exit.enter_context(staging_folder()))), pyfile=True)


def parallelism(session: SparkSession) -> int:
    """Return how many tasks the session runs at a time, as far as its executors have come up by now."""
    from pyspark.sql import functions as F

    context = getattr(session, "_sc", None)  # a session of Spark Connect has none
    if context is not None and _is_local(context.master or ""):
        return int(context.defaultParallelism)
    # Spark cuts a range into as many parts as it has cores, on any kind of cluster and through Connect.
    parts = session.range(0, 100_000).select(F.spark_partition_id().alias("part")).distinct()
    return max(1, parts.count())


def stream_partitions(session: SparkSession) -> int:
    """Return how many partitions a stream gets: as many as there are cores, unless the user's configuration names a number.

    Spark does not adapt that of a stream, which is 200 by default.
    """
    context = session.sparkContext
    if named := context.getConf().get(SHUFFLE_PARTITIONS):
        return int(named)
    cores = 0
    # On a cluster, the first tasks wait for an executor, and others come up meanwhile.
    while not _is_local(context.master or "") and (up := parallelism(session)) > cores:
        cores = up
    return max(cores, context.defaultParallelism)


def _connected(remote: str, conf: Mapping[str, str]) -> SparkSession:
    if any(importlib.util.find_spec(name.partition(".")[0]) is None for name in _REMOTE_MODULES):
        raise RemoteMissing()
    builder = SparkSession.builder.remote(remote)
    for name, value in {"spark.app.name": "quarterdeck", **EVERYWHERE, **conf}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _classic(master: str, conf: Mapping[str, str]) -> SparkSession:
    submitted = _SUBMITTED in os.environ
    _await_answer(master)
    options = {"spark.app.name": "quarterdeck", **EVERYWHERE, **CLASSIC}
    users = {**spark_defaults(), **conf}
    if not submitted:
        master = master or users.get("spark.master", LOCAL_MASTER)
        options |= ON_THIS_MACHINE if _is_local(master) else {}
        users[JAVA_OPTIONS_NAME] = " ".join((*_java_options(), users.get(JAVA_OPTIONS_NAME, "")))
        _pass_plain_values_on()
    _choose_python(local=not submitted and _is_local(master))
    builder = SparkSession.builder
    for name, value in {**options, **users}.items():
        builder = builder.config(name, value)
    if master:
        builder = builder.master(master)
    with _interrupt_handler_restored():
        session = builder.getOrCreate()
    _silence_connection_errors(session)
    session.sparkContext.setLogLevel("ERROR")
    return session


def _await_answer(master: str) -> None:
    """Raise `SparkUnreachable` where none of the hosts of a standalone cluster's master answers: Spark tries for minutes."""
    if not master.startswith(STANDALONE):
        return
    for place in master.removeprefix(STANDALONE).split(","):
        host, _, port = place.rpartition(":")
        with suppress(OSError, ValueError), socket.create_connection((host, int(port)), MAX_SECONDS_TO_ANSWER):
            return
    raise SparkUnreachable(f"{master}: no master answers there")


class _PlainValues:
    """Passes plain values on to Java; Spark's own converters import pandas to see that these are no arrays."""

    def can_convert(self, value: object) -> bool:
        return type(value) in (str, int, bool, float, bytes, bytearray, dict, list, type(None))

    def convert(self, value: object, client: GatewayClient) -> object:
        if type(value) is dict:
            return MapConverter().convert(value, client)
        return ListConverter().convert(value, client) if type(value) is list else value


@cache
def _pass_plain_values_on() -> None:
    register_input_converter(_PlainValues(), prepend=True)


def _java_options() -> list[str]:
    java = find_java()
    os.environ["JAVA_HOME"] = str(quiet_home(java))
    return [*JAVA_OPTIONS, *archive_options(java), LOGGING]


def _reason(problem: Exception) -> str:
    """Return what went wrong, without the stack of Java or of gRPC."""
    if isinstance(problem, (Py4JError, ConnectionError)) and not isinstance(problem, Py4JJavaError) and _java_ended():
        return "its Java process has ended"
    java = getattr(problem, "java_exception", None)
    text = java.getMessage() if java is not None else str(problem)
    if text and any(said in text for said in _ENDED):
        return "the application has been ended, by Spark's master or by a user"
    return (text or type(problem).__name__).strip().splitlines()[0]


def _lacking(problem: PySparkException) -> str:
    """Return what executors lack, in words; empty where they lack nothing."""
    text = str(problem)
    if lacks := _NO_MODULE.search(text):
        package = lacks[1].partition(".")[0]
        return (
            f"the executors' Python lacks the package {package}: install it where they run, or name a Python that has it as "
            "PYSPARK_PYTHON"
        )
    if versions := _OTHER_PYTHON.search(text):
        return (
            f"the executors' Python is {versions[1]} and that of this process {versions[2]}: "
            "name one of the same minor version as PYSPARK_PYTHON"
        )
    return ""


def _java_ended() -> bool:
    """Return whether the Java that we started has exited, or is about to."""
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    with suppress(subprocess.TimeoutExpired):
        process.wait(MAX_SECONDS_TO_END)
    return process.returncode is not None


def _choose_python(*, local: bool) -> None:
    """Let workers run this Python, not any `python3`. On a cluster the user may name one that is there."""
    if local or not os.environ.get("PYSPARK_PYTHON"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _is_local(master: str) -> bool:
    """Return whether workers are children of this process, and import the same files."""
    return master == "local" or master.startswith("local[")


# PySpark reports a failure several times. Its exception is enough, which is reported by the code that catches it.

_PY4J = str(Path(py4j.__file__).parent)


@contextmanager
def _interrupt_handler_restored() -> Iterator[None]:
    """Restore the handler of Ctrl-C after the block: a session made in it installs its own.

    Nothing is lost: an interrupt leaves the session's block, which ends everything that runs on it.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


def _silence_connection_errors(session: SparkSession) -> None:
    """Let the session's connections to Java end without a traceback on stderr. Spark Connect needs nothing."""
    logging.getLogger("py4j").propagate = False
    logging.getLogger().addFilter(_is_of_others)  # added once, however often
    server = session.sparkContext._accumulatorServer
    server.handle_error = lambda *_: None  # type: ignore[method-assign]


def _is_of_others(record: logging.LogRecord) -> bool:
    return not record.pathname.startswith(_PY4J)


# The package

ROOT = Path(str(files("quarterdeck")))
"""The folder of this package."""

SHIPPED = ("__init__.py", "backend")
"""All that a worker may need; the screens are left out."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can contain; a real one would make equal sources differ."""


def write_package(folder: Path) -> Path:
    """Write the zip file into `folder`; its name is derived from its content, so that versions are not confused."""
    path = folder / f"quarterdeck-{sources_digest()}.zip"
    with ZipFile(path, "w") as package:
        for name, content in _sources():
            info = ZipInfo(name, _EPOCH)
            info.compress_type = ZIP_DEFLATED
            package.writestr(info, content)
    return path


def sources_digest() -> str:
    """Return a short digest of every file of the package."""
    digest = sha256()
    for name, content in _sources():
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def _sources() -> Iterator[tuple[str, bytes]]:
    for name in SHIPPED:
        top = ROOT / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"quarterdeck/{path.relative_to(ROOT).as_posix()}", path.read_bytes()

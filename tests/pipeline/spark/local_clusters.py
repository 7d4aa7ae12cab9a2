"""Spark clusters on this machine for the tests, made of the package pyspark alone, whose workers do not see our sources."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from quarterdeck.backend.pipeline.spark.java import find_java
from tests.waiting import wait_until

SPARK = Path(pyspark.__file__).parent
TIMEOUT_SECONDS = 90


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """The URL of a master with so many workers of one core each."""
    port = _free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as processes:
        log = folder / "master.log"
        arguments = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        processes.enter_context(_java_class("org.apache.spark.deploy.master.Master", arguments, folder, log))
        _wait_for(log, "New state: ALIVE")
        for number in range(workers):
            arguments = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
            arguments += ["--work-dir", str(folder / f"work-{number}"), url]
            log = folder / f"worker-{number}.log"
            processes.enter_context(_java_class("org.apache.spark.deploy.worker.Worker", arguments, folder, log))
            _wait_for(log, "Successfully registered with master")
        yield url


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The ``sc://`` address of a Spark Connect server with two cores."""
    port = _free_port()
    log = folder / "connect.log"
    arguments = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2,4]"]
    for option in (f"spark.connect.grpc.binding.port={port}", "spark.ui.enabled=false"):
        arguments += ["--conf", option]
    with _java_class("org.apache.spark.deploy.SparkSubmit", [*arguments, "spark-internal"], folder, log):
        _wait_for(log, "Spark Connect server started at")
        yield f"sc://127.0.0.1:{port}"


def worker_python(folder: Path, without: str = "quarterdeck") -> Path:
    """A Python with everything that is installed here but for our own package: only what Spark ships can be imported.

    `without`: another package that it lacks, too.
    """
    packages = folder / "packages"
    packages.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "quarterdeck" not in path.name and without not in path.name and path.suffix != ".pth":
            (packages / path.name).symlink_to(path)
    python = folder / "python"
    # -S: no site-packages, and with them no editable installs. What Spark puts on the path comes first.
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {shlex.quote(sys.executable)} -S "$@"\n')
    python.chmod(0o755)
    return python


def clean_environment(**more: str) -> Mapping[str, str]:
    """Ours, without what would lead to our sources or to another Spark."""
    strange = ("PYTHONPATH", "SPARK_HOME", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "PYSPARK_PYTHON")
    return {name: value for name, value in os.environ.items() if name not in strange} | more


@contextmanager
def _java_class(name: str, arguments: list[str], folder: Path, log: Path) -> Iterator[None]:
    environment = clean_environment(
        JAVA_HOME=str(find_java().home),
        SPARK_HOME=str(SPARK),
        SPARK_LOCAL_IP="127.0.0.1",
        SPARK_CONF_DIR=str(folder),
        SPARK_DAEMON_MEMORY="512m",
        SPARK_DAEMON_JAVA_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        PYSPARK_PYTHON=str(folder / "python"),
    )
    _log_to_stderr(folder)
    with log.open("wb") as sink:
        command = [str(SPARK / "bin" / "spark-class"), name, *arguments]
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=sink, stderr=sink)
        log.with_suffix(".pid").write_text(str(process.pid))
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _log_to_stderr(folder: Path) -> None:
    (folder / "log4j2.properties").write_text(
        "rootLogger.level = info\n"
        "rootLogger.appenderRef.stderr.ref = console\n"
        "appender.console.type = Console\n"
        "appender.console.name = console\n"
        "appender.console.target = SYSTEM_ERR\n"
        "appender.console.layout.type = PatternLayout\n"
        "appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex\n"
    )


def _wait_for(log: Path, text: str) -> None:
    def said() -> str:
        return log.read_text(errors="replace")

    wait_until(lambda: text in said(), lambda: f"{log} does not say {text!r}: {said()[-2000:]}")


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])

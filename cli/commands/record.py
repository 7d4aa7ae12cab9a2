"""`quarterdeck record`: what members of Hazelcast report, written into a journal until it is stopped."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from quarterdeck.cli.commands.run_options import DurationOption, new_run, stopping
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.exits import BadUsage, ExitCode, failing_as
from quarterdeck.cli.output import option, say

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.hazelcast.hazelcast_cluster import HazelcastCluster
    from quarterdeck.backend.journal.writer import JournalWriter

WRITER = "witness"
POLL_SECONDS = 0.2
FILE_SECONDS = 60.0
"""How long one file is written into: a day is some 1,500 files at most."""

MEBIBYTE = 1 << 20
DAY_SECONDS = 86_400


@with_connection
def record(
    connection: ConnectionTarget,
    out: Annotated[Path, option("The journal; a run is made in it.", "DIR")],
    keep: Annotated[int, option("Remove the oldest files when the run holds more.", "MIB", min=1)] = 1024,
    keep_days: Annotated[float | None, option("Remove files that are older.", "DAYS", min=0)] = None,
    seconds: DurationOption = None,
) -> None:
    """Record what members of Hazelcast report, until Ctrl-C or SIGTERM. Members that are lost are tried again for ever."""
    from quarterdeck.backend.journal.retention import Retention
    from quarterdeck.backend.journal.writer import JournalWriter
    from quarterdeck.cli.configuration.opening import open_hazelcast

    if connection.require_named().has_http_api:
        problem = "members of ours keep their own journals; this is for hazelcast://HOST[:PORT][,…] and k8s://NAMESPACE/SERVICE"
        raise BadUsage(problem)
    retention = Retention(0 if keep_days is None else keep_days * DAY_SECONDS, keep * MEBIBYTE)
    stop = threading.Event()
    with stopping(stop):
        run = new_run(connection.cluster_name)
        with failing_as(ExitCode.BAD_INPUT, OSError, about="the journal cannot be written"):
            writer = JournalWriter(out, run, WRITER, rotate_seconds=FILE_SECONDS, retention=retention)
        with writer:
            say(f"recording into {writer.directory}")
            cluster = open_hazelcast(connection, run=run)
            try:
                _record(cluster, writer, stop, None if seconds is None else time.monotonic() + seconds)
            finally:
                cluster.close()
                for last in cluster.drain():
                    writer.append(last)
    say(f"recorded into {writer.directory}; see it with: quarterdeck console --replay {writer.directory}")


def _record(cluster: HazelcastCluster, writer: JournalWriter, stop: threading.Event, until: float | None) -> None:
    said: dict[str, str] = {}
    while not stop.wait(POLL_SECONDS) and (until is None or time.monotonic() < until):
        for record in cluster.drain():
            writer.append(record)
        for label, status in cluster.connection_status().items():
            text = status.state + (f": {status.why}" if status.why else "")
            if status.state and said.get(label, "").partition(":")[0] != status.state:
                said[label] = text
                say(f"{label} is {text}")

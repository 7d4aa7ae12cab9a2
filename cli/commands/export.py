"""`quarterdeck export`: a cluster as metrics for Prometheus, and a command or a web hook at each change of its condition."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Annotated

from quarterdeck.cli.commands.run_options import DurationOption, ExpectMembersOption, stopping
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.configuration.opening import open_cluster
from quarterdeck.cli.exits import BadUsage, ExitCode, failing_as
from quarterdeck.cli.output import option, say

POLL_SECONDS = 0.2


@with_connection
def export(
    connection: ConnectionTarget,
    listen: Annotated[
        str, option("Where Prometheus asks; this machine only by default.", "[HOST]:PORT")
    ] = "127.0.0.1:9470",
    command: Annotated[
        str | None, option("Run it in a shell at each change, with the change as JSON on stdin.", "COMMAND", "--exec")
    ] = None,
    webhook: Annotated[
        str | None,
        option(
            "Post the change as JSON to this URL at each change.", "URL", envvar="QUARTERDECK_WEBHOOK", show_envvar=True
        ),
    ] = None,
    webhook_file: Annotated[
        Path | None, option("The file that holds this URL, where it has a password or a token.", "FILE")
    ] = None,
    state_file: Annotated[
        Path | None, option("Keep the last state there, so that a restart tells only what has changed.", "FILE")
    ] = None,
    expect_members: ExpectMembersOption = None,
    seconds: DurationOption = None,
) -> None:
    """Serve what is known of a cluster as Prometheus metrics, until Ctrl-C or SIGTERM; of members of Hazelcast, too.

    What is not known has no sample. A cluster that is not there is a metric, not a failure: its members are waited for. A
    change is one of the condition, of whether the cluster is whole and its data safe, of its masters, or of what is lost.
    """
    from prometheus_client import CollectorRegistry, start_http_server

    from quarterdeck.cli.commands.exporter import ClusterExporter, Hooks

    host, _, port = listen.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise BadUsage(f"--listen {listen}: write HOST:PORT, as in 0.0.0.0:9470")
    if webhook_file is not None:
        with failing_as(ExitCode.BAD_INPUT, OSError, UnicodeDecodeError, about=f"--webhook-file {webhook_file}"):
            webhook = webhook_file.read_text(encoding="utf-8").strip()
    cluster = open_cluster(connection.require_named())
    stop, hooks = threading.Event(), Hooks(command, webhook)
    exporter = ClusterExporter(cluster, hooks, state_file, expect_members)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(exporter)
    try:
        with failing_as(ExitCode.BAD_INPUT, OSError, about=f"--listen {listen}"):
            server, _ = start_http_server(int(port), host.strip("[]") or "127.0.0.1", registry)
        say(f"metrics of {cluster.name} at http://{host or '127.0.0.1'}:{server.server_port}/metrics")
        until = None if seconds is None else time.monotonic() + seconds
        with stopping(stop):
            while not stop.wait(POLL_SECONDS) and (until is None or time.monotonic() < until):
                exporter.follow()
        server.shutdown()
    finally:
        hooks.close()
        cluster.close()

"""From the options of a command line to a watched cluster of members of Hazelcast."""

from __future__ import annotations

import getpass
import socket
from typing import TYPE_CHECKING

from quarterdeck.backend.core.address import DEFAULT_PORT, BadAddress, parse_address
from quarterdeck.backend.hazelcast import SCHEME
from quarterdeck.backend.hazelcast.wire.requests import Credentials, NameOnly, RequestToken, UserAndPassword
from quarterdeck.backend.hazelcast.wire.settings import TlsOptions, WatchSettings
from quarterdeck.backend.journal.files import usable_name
from quarterdeck.cli.configuration.connection import ConnectionTarget
from quarterdeck.cli.exits import ExitCode, failing_as
from quarterdeck.cli.output import say

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.hazelcast.hazelcast_cluster import HazelcastCluster


def open_hazelcast(connection: ConnectionTarget, *, write: bool = False, run: str = "") -> HazelcastCluster:
    """Open the cluster, whose members are followed from now on; the caller closes it. `run` names its records.

    Raises:
        CommandFailed: It cannot be opened.
    """
    from quarterdeck.backend.clusters.hazelcast.hazelcast_cluster import HazelcastCluster
    from quarterdeck.backend.clusters.hazelcast.log_tail import log_sources

    settings = watch_settings(connection)
    with failing_as(ExitCode.BAD_INPUT, ValueError):
        sources = log_sources(connection.logs)
    if settings.tls is None and not isinstance(settings.credentials, NameOnly):
        say("who you are crosses the net in the clear; give --tls where members offer it")
    with failing_as(ExitCode.BAD_INPUT, OSError, ValueError, about="the certificates cannot be used"):
        return HazelcastCluster(
            settings,
            run=run or usable_name(connection.cluster_name),
            name=connection.label,
            environment=connection.environment,
            write=write,
            operator=_operator(),
            logs=sources,
        )


def watch_settings(connection: ConnectionTarget) -> WatchSettings:
    """Return what is watched, and as whom.

    Raises:
        CommandFailed: An option is wrong.
    """
    with failing_as(ExitCode.BAD_INPUT, BadAddress, about="--address-map"):
        mapped = {
            parse_address(one, DEFAULT_PORT): parse_address(other, DEFAULT_PORT)
            for one, other in connection.address_map
        }
    files = (connection.authority, connection.certificate, connection.key)
    return WatchSettings(
        tuple(parse_address(url.removeprefix(SCHEME)) for url in connection.urls),
        connection.cluster_name,
        _credentials(connection),
        TlsOptions(*files) if connection.tls or any(files) else None,
        mapped,
    )


def _credentials(connection: ConnectionTarget) -> Credentials:
    if connection.token:
        return RequestToken(connection.token.encode())
    return UserAndPassword(connection.user, connection.password) if connection.user else NameOnly()


def _operator() -> str:
    """Who acts, for the record of it."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):  # in a container nobody need have a name
        return socket.gethostname()

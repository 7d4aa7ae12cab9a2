"""From a connection to an open cluster, whichever kind its members are. What opens one is imported when it is needed."""

from __future__ import annotations

import asyncio
import getpass
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from quarterdeck.backend.clusters.kubernetes.service_url import PODS, BadService, service_of
from quarterdeck.backend.core.address import (
    DEFAULT_PORT,
    Address,
    BadAddress,
    host_of,
    parse_address,
    split_host_and_port,
)
from quarterdeck.backend.hazelcast import SCHEME
from quarterdeck.cli.configuration.connection import ConnectionTarget, profile_of
from quarterdeck.cli.configuration.paths import configuration_file
from quarterdeck.cli.exits import CommandFailed, ExitCode, failing_as
from quarterdeck.cli.output import say

if TYPE_CHECKING:
    from quarterdeck.app.console_interface import OpenedCluster
    from quarterdeck.backend.clusters.cluster import WatchedCluster
    from quarterdeck.backend.clusters.hazelcast.hazelcast_cluster import HazelcastCluster
    from quarterdeck.backend.clusters.remote.access import MemberCredentials
    from quarterdeck.backend.clusters.remote.member_client import MemberClient
    from quarterdeck.backend.hazelcast.wire.route import Route, WatchSettings

Answer = TypeVar("Answer")
CONNECT_TIMEOUT_SECONDS = 10.0
MEETING_POLL_SECONDS = 0.01


def open_cluster(
    connection: ConnectionTarget, *, write: bool = False, records: bool = True, pod_logs: bool = True
) -> WatchedCluster:
    """Open the cluster that `connection` names; the caller closes it.

    Members of ours report what they record only with `records`; members of Hazelcast report everything in any case. The logs of
    their pods are followed with `pod_logs`.

    Raises:
        CommandFailed: It cannot be opened.
    """
    if not connection.has_http_api:
        return open_hazelcast(connection, write=write, pod_logs=pod_logs)
    from quarterdeck.backend.clusters.remote.remote_cluster import RemoteCluster

    access = credentials_of(connection)
    with failing_as(ExitCode.BAD_INPUT, OSError, about="the certificates cannot be used"):
        return RemoteCluster(
            connection.urls,
            access=access,
            name=connection.label,
            environment=connection.environment,
            write=write,
            records=records,
        )


def credentials_of(connection: ConnectionTarget) -> MemberCredentials:
    """Return what members of ours are shown; warn where it can be read on the way."""
    from quarterdeck.backend.clusters.remote.access import MemberCredentials, is_unencrypted

    if connection.password or connection.token:
        for url in filter(is_unencrypted, connection.urls):
            say(f"{url}: who you are crosses the net in the clear; use https:// where members offer it")
    return MemberCredentials(connection.user, connection.password, connection.token, *connection.tls_files)


def asked(connection: ConnectionTarget, work: Callable[[MemberClient], Awaitable[Answer]]) -> Answer:
    """Return what `work` finds out with a client of members of ours.

    Raises:
        CommandRefused: They refuse, or do not answer.
    """
    from quarterdeck.backend.clusters.remote.member_client import MemberClient

    async def run() -> Answer:
        async with MemberClient(credentials_of(connection)) as client:
            return await work(client)

    return asyncio.run(run())


def open_hazelcast(
    connection: ConnectionTarget, *, write: bool = False, run: str = "", pod_logs: bool = True
) -> HazelcastCluster:
    """Open a cluster of members of Hazelcast, which are followed from now on. `run` names the records.

    With `pod_logs` the logs of pods are followed besides.

    Raises:
        CommandFailed: It cannot be opened.
    """
    from quarterdeck.backend.clusters.hazelcast.hazelcast_cluster import HazelcastCluster
    from quarterdeck.backend.clusters.hazelcast.log_following import log_sources
    from quarterdeck.backend.hazelcast.wire.requests import NameOnly
    from quarterdeck.backend.journal.files import usable_name

    settings = replace(_watch_settings(connection), route=_route_to(connection, logs=pod_logs))
    with failing_as(ExitCode.BAD_INPUT, ValueError):
        sources = log_sources(connection.logs)
    for source in sources:
        if source.path is not None and not source.path.exists():
            say(f"--logs: {source.path} is not there yet; it is read as soon as it is")
    if settings.tls is None and not isinstance(settings.credentials, NameOnly):
        say("who you are crosses the net in the clear; give --tls where members offer it")
    with failing_as(ExitCode.BAD_INPUT, OSError, ValueError, about="the certificates or --size-file cannot be used"):
        return HazelcastCluster(
            settings,
            run=run or usable_name(connection.cluster_name),
            name=connection.label,
            environment=connection.environment,
            write=write,
            operator=_operator(),
            logs=sources,
            options=connection.options(),
            size_file=connection.size_file,
        )


def wait_until_met(cluster: WatchedCluster) -> None:
    """Return when a member says who it is, or none has said anything for a while.

    Members of Hazelcast that are not there yet are waited for by the reader, as long as none refuses.

    Raises:
        CommandFailed: No member is reached, and none is waited for.
    """
    until = time.monotonic() + CONNECT_TIMEOUT_SECONDS
    while not cluster.met and time.monotonic() < until:
        statuses = cluster.connection_status().values()
        if all(status.why for status in statuses):
            if cluster.source == "hazelcast" and not any(status.refused for status in statuses):
                say("no member answers yet; they are waited for")
                return
            raise unreached(cluster)
        time.sleep(MEETING_POLL_SECONDS)


def wait_until_started(cluster: WatchedCluster) -> None:
    """Return when a member is reached.

    Raises:
        CommandFailed: That does not happen in a while.
    """
    try:
        cluster.started.result(CONNECT_TIMEOUT_SECONDS)
    except TimeoutError as silent:
        raise unreached(cluster) from silent


def unreached(cluster: WatchedCluster) -> CommandFailed:
    """Return the failure of a command whose cluster has no member that is reached."""
    connections = cluster.connection_status().values()
    refused = any(status.refused for status in connections)
    why = "; ".join(
        status.why if status.url in status.why else f"{status.url}: {status.why or 'no answer'}"
        for status in connections
    )
    return CommandFailed(ExitCode.REFUSED if refused else ExitCode.UNREACHABLE, why)


class ProfileClusterOpener:
    """Opens the clusters that have a profile: for changes if the console was started with `write` and the profile allows it."""

    def __init__(self, *, write: bool) -> None:
        self._write = write

    @cached_property
    def names(self) -> Sequence[str]:
        """The clusters in the configuration, read once: completion asks at every letter."""
        if not configuration_file().exists():
            return ()
        from quarterdeck.backend.documents.yaml_document import BadDocument
        from quarterdeck.cli.configuration.user_configuration import UserConfiguration

        try:
            return tuple(UserConfiguration().profiles)
        except BadDocument:
            return ()  # reported when one of them is opened

    def open(self, name: str) -> OpenedCluster:
        from quarterdeck.app.console_interface import ClusterUnavailable, OpenedCluster

        try:
            connection = profile_of(name)
            return OpenedCluster(open_cluster(connection, write=self._write and not connection.read_only))
        except CommandFailed as failed:
            raise ClusterUnavailable(str(failed)) from failed


def _watch_settings(connection: ConnectionTarget) -> WatchSettings:
    from quarterdeck.backend.hazelcast.wire.requests import Credentials, NameOnly, RequestToken, UserAndPassword
    from quarterdeck.backend.hazelcast.wire.route import TlsOptions, WatchSettings

    with failing_as(ExitCode.BAD_INPUT, BadAddress, about="--address-map"):
        mapped, hosts = dict[Address, Address](), dict[str, str]()
        for named, reached in connection.address_map:
            inner, outer = parse_address(named, DEFAULT_PORT), parse_address(reached, DEFAULT_PORT)
            if all(split_host_and_port(text)[1] is None for text in (named, reached)):
                hosts[host_of(inner)] = host_of(outer)
            else:
                mapped[inner] = outer
    credentials: Credentials = NameOnly()
    if connection.token:
        credentials = RequestToken(connection.token.encode())
    elif connection.user:
        credentials = UserAndPassword(connection.user, connection.password)
    tls = TlsOptions(*connection.tls_files) if connection.tls or any(connection.tls_files) else None
    addresses = tuple(
        service_of(url).address if url.startswith(PODS) else parse_address(url.removeprefix(SCHEME))
        for url in connection.urls
    )
    return WatchSettings(addresses, connection.cluster_name, credentials, tls, mapped, hosts)


def _route_to(connection: ConnectionTarget, *, logs: bool) -> Route:
    from quarterdeck.backend.clusters.kubernetes.kubectl import KubectlFailed
    from quarterdeck.backend.clusters.kubernetes.pod_names import DnsRoute
    from quarterdeck.backend.clusters.kubernetes.pod_route import PodRoute
    from quarterdeck.backend.hazelcast.wire.route import Route

    services = [service_of(url) for url in connection.urls if url.startswith(PODS)]
    if not services:  # an address map has the addresses of members, not names
        return Route() if connection.address_map else DnsRoute()
    with failing_as(ExitCode.BAD_INPUT, BadService), failing_as(ExitCode.REFUSED, KubectlFailed, about="kubectl"):
        return PodRoute(services, logs=logs)


def _operator() -> str:
    """Return who acts, for the record of it."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):  # in a container a user need not have a name
        return socket.gethostname()

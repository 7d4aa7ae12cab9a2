"""How real members are watched: which ones, with what credentials, how often they are asked, and how their hosts are reached.

They are found by DNS and directly, unless something stands between.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from quarterdeck.backend.core.address import Address, host_of, make_address, port_of
from quarterdeck.backend.hazelcast.wire.messages import Message
from quarterdeck.backend.hazelcast.wire.requests import Credentials, NameOnly

Ending = Literal["closed", "absent", "refused", "unreachable"]
"""How a connection ended, or why it was not made.

It was closed, as by a member that merges; no process listens, says the host, which alone shows that a member has ended; the
peer refused, say in the handshake of TLS; or the host does not answer.
"""
FAMILIES = (socket.AF_INET, socket.AF_INET6)


class NotReached(Exception):
    """There is no way to an endpoint now. The message says why."""

    def __init__(self, reason: str, ending: Ending) -> None:
        super().__init__(reason)
        self.reason, self.ending = reason, ending


class GrowingLog(Protocol):
    """A log that is still written."""

    @property
    def has_begun(self) -> bool:
        """Return whether what was written before is on its way no more."""

    def lines(self) -> list[str]:
        """Return the whole lines that came since the last call."""


class Route:
    """The way of a machine in the members' own network. What stands between overrides what is different there."""

    urls: tuple[str, ...] = ()
    """What reaches the same members from another command; empty: their addresses."""
    is_indirect = False
    """Whether a connection ends for reasons that only `why_ended` knows."""
    follows_logs = False
    logs: Mapping[str, GrowingLog] = {}
    """The logs that are read along the way, by the host that writes each."""

    async def run(self) -> None:
        """Find what is to be found, until cancelled."""

    async def pause(self, seconds: float) -> None:
        """Return when names may stand for other hosts, after so many seconds at the latest."""
        await asyncio.sleep(seconds)

    async def hosts_of(self, name: Address) -> tuple[str, ...]:
        """Return the addresses of a host; those of IPv4 where it has both kinds, for members use one of them."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host_of(name), port_of(name), type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return ()
        by_family = [sorted({str(where[0]) for kind, *_, where in found if kind == wanted}) for wanted in FAMILIES]
        return tuple(next(filter(None, by_family), ()))

    async def reach(self, endpoint: Address) -> tuple[str, int]:
        """Return the host and the port to dial. Raises `NotReached`."""
        return host_of(endpoint), port_of(endpoint)

    async def why_ended(self, endpoint: Address) -> tuple[str, Ending] | None:
        """Return why a connection to `endpoint` has just ended, where that is known better than by its end."""
        return None

    def is_over(self, name: Address) -> bool:
        """Return whether the host of this name is known to exist no more."""
        return False

    def name_of(self, address: Address) -> Address:
        """Return how the member at an address of the members' own network is called here."""
        return address

    def address_of(self, name: Address) -> Address:
        """Return how members know the one that is called so here, and its port."""
        return name

    def named(self, message: Message) -> Message:
        """Return a message with the hosts named as they are here."""
        return message

    def named_in_line(self, line: str) -> str:
        """Return the line of a log with the hosts named as they are here."""
        return line


SECOND_US = 1_000_000
WATCHED_METRICS = frozenset(
    (
        "partitions", "cluster", "cluster.clock", "cluster.heartbeat", "memory", "runtime", "os", "gc", "map",
        "operation", "operation.invocations", "client.endpoint", "raft", "raft.metadata", "tcp.connection.out", "tcp.connection",
    )
)  # fmt: skip
"""The prefixes of the metrics that are decoded."""


@dataclass(frozen=True)
class TlsOptions:
    """How the members' certificates are checked, and which one we present. All files are PEM."""

    authority: Path | None = None
    """The signer of the members' certificates; without it, those that the system trusts."""
    certificate: Path | None = None
    """Ours, for members that require one."""
    key: Path | None = None
    host_name: str | None = None
    """The name in the members' certificates, when it is not the host that is dialled."""
    check_host_name: bool = True


@dataclass(frozen=True)
class Pace:
    """How often a member is asked. Watching costs it less than 2 kB a second."""

    state_us: int = SECOND_US // 2
    """The state of the cluster. Its answer shows that the member is alive."""
    metrics_us: int = 5 * SECOND_US
    config_us: int = 30 * SECOND_US
    silent_after_us: int = 2 * SECOND_US
    """A member that owes an answer for so long is silent."""
    redial_after_us: int = 15 * SECOND_US
    """After so long a silent member is dialled again: a path that was cut does not show when it is whole again."""
    first_answer_us: int = 6 * SECOND_US
    """A member's first answers may take longer: a Java process that has just begun is slow."""
    dial_us: int = 5 * SECOND_US
    """How long making a connection may take."""
    first_wait_us: int = SECOND_US // 4
    """The wait before the second attempt; it doubles up to `longest_wait_us`, each shortened by chance by up to half."""
    longest_wait_us: int = 5 * SECOND_US
    merging_wait_us: int = SECOND_US // 2
    """The wait while a member is not ready."""
    refused_wait_us: int = 15 * SECOND_US
    """The wait after a refusal; it doubles up to `foreign_wait_us`."""
    foreign_wait_us: int = 600 * SECOND_US
    """The wait after a member of another cluster name, or with other credentials: its log warns of each attempt."""
    resolve_us: int = 10 * SECOND_US
    """How often names of hosts are looked up anew: a headless service is all its pods, and they change."""
    forgotten_after_us: int = 24 * 3_600 * SECOND_US
    """A member that is not reached for so long, and that is on no list, is looked for no more."""
    over_after_us: int = 900 * SECOND_US
    """The same of a member whose host is known to exist no more."""
    bytes_per_second: int = 2_000
    """What questions and their answers may cost a member, on average."""
    burst_bytes: int = 120_000
    """What they may cost at once: the configuration is asked for at the beginning."""


@dataclass(frozen=True)
class WatchSettings:
    """Everything that an operator decides when watching real members."""

    addresses: tuple[Address, ...]
    """Where to begin. Others are found on the members' lists and join lists."""
    cluster_name: str = "dev"
    credentials: Credentials = field(default_factory=NameOnly)
    tls: TlsOptions | None = None
    address_map: dict[Address, Address] = field(default_factory=dict)
    """From the address that a member names itself by to the one where it is reached from here."""
    host_map: dict[str, str] = field(default_factory=dict)
    """The same of hosts, for all of their ports that are not in `address_map`."""
    most_followed: int = 200
    metrics: frozenset[str] = WATCHED_METRICS
    """The prefixes of the metrics that are kept."""
    client_name: str = "quarterdeck"
    client_version: str = "1.0"
    pace: Pace = field(default_factory=Pace)
    route: Route = field(default_factory=Route)

    def endpoint_of(self, name: Address) -> Address:
        """Return where the member that names itself `name` is reached from here."""
        host = host_of(name) if self.host_map else ""
        if name in self.address_map or host not in self.host_map:
            return self.address_map.get(name, name)
        return make_address(self.host_map[host], port_of(name))

    def is_mapped(self, name: Address) -> bool:
        return name in self.address_map or (bool(self.host_map) and host_of(name) in self.host_map)

    def name_of(self, endpoint: Address) -> Address | None:
        """Return how the member that is reached at `endpoint` names itself; None where the maps do not say."""
        named = [inner for inner, outer in self.address_map.items() if outer == endpoint]
        if not named and self.host_map:
            hosts = [inner for inner, outer in self.host_map.items() if outer == host_of(endpoint)]
            named = [make_address(host, port_of(endpoint)) for host in hosts]
        return named[0] if len(named) == 1 else None

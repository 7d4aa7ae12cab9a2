"""How real members are watched: which ones, with what credentials, how often they are asked, and what is too much."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from quarterdeck.backend.core.address import Address, host_of, make_address, port_of
from quarterdeck.backend.hazelcast.wire.requests import Credentials, NameOnly
from quarterdeck.backend.hazelcast.wire.route import Route

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
        """Return whether the member of this name is reached elsewhere."""
        return name in self.address_map or (bool(self.host_map) and host_of(name) in self.host_map)

    def name_of(self, endpoint: Address) -> Address | None:
        """Return how the member that is reached at `endpoint` names itself; None where the maps do not say."""
        named = [inner for inner, outer in self.address_map.items() if outer == endpoint]
        if not named and self.host_map:
            hosts = [inner for inner, outer in self.host_map.items() if outer == host_of(endpoint)]
            named = [make_address(host, port_of(endpoint)) for host in hosts]
        return named[0] if len(named) == 1 else None

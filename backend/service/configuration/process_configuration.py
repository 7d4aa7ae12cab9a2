"""How one member is set up: everything that a file, the environment and flags may say, after all checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.live.security.tls import OPEN, WireSecurity

EndpointGroup = Literal["CLUSTER_READ", "CLUSTER_WRITE", "HEALTH_CHECK", "DATA"]
ENDPOINT_GROUPS: tuple[EndpointGroup, ...] = get_args(EndpointGroup)
UserGroup = Literal[EndpointGroup, "CONSOLE", "METRICS"]
"""What a user may be limited to: the endpoint groups of the operators' paths, the console's interface, and the metrics.

Maps belong to DATA wherever they are served.
"""

Role = Literal["read", "write", "fault"]
"""What a user may do: look, change what operators change, or do harm on purpose. Each includes the one before."""
OPEN_TO_ALL = "I know that anybody can control this member"
"""The text with which a member listens beyond loopback although users need not identify themselves."""

GROUPS_BY_DEFAULT: Mapping[EndpointGroup, bool] = {
    "CLUSTER_READ": True,
    "CLUSTER_WRITE": False,
    "HEALTH_CHECK": True,
    "DATA": False,
}
"""As in the product (Hazelcast: REST access)."""


@dataclass(frozen=True)
class User:
    """A user of the HTTP interface. Exactly one of `password` and `token` is set."""

    name: str
    role: Role
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    groups: tuple[UserGroup, ...] | None = None
    """The groups that it may use; None: all."""
    secret_file: Path | None = field(default=None, compare=False)
    """Where the password or the token stands, to be read again when it changes."""
    by_token: bool = field(default=False, compare=False)
    """The file holds a token."""


@dataclass(frozen=True)
class Security:
    """Which clients and members may connect. If everything is empty, all may, and therefore only on loopback."""

    users: tuple[User, ...] = ()
    wire: WireSecurity = OPEN
    secret_file: Path | None = None
    """Where the secret of the cluster stands, for the next start."""
    allowed_origins: tuple[str, ...] = ()
    """Origins whose pages may use the HTTP interface from a browser, as ``https://dashboard.example``."""
    allowed_hosts: tuple[str, ...] = ()
    """Names by which the member may be called, besides its own."""
    open_to_all: bool = False
    """Listen beyond loopback although users need not identify themselves."""


@dataclass(frozen=True)
class ProcessConfiguration:
    """One member, as it is to run."""

    member: MemberConfiguration
    """Its address is that by which others call it; it listens on its port. Without a label it is called by that, and without a
    run its records have that of its cluster's name."""
    bind_host: str
    join_list: tuple[str, ...]
    """As configured: addresses, with or without a port."""
    ports_tried: int = 1
    """How many ports, from that of its address up, it may try when the first are taken."""
    tcp_ip_enabled: bool = True
    rest_enabled: bool = True
    rest_port: int | None = None
    """None: the member's own port."""
    endpoint_groups: Mapping[EndpointGroup, bool] = field(default_factory=lambda: dict(GROUPS_BY_DEFAULT))
    security: Security = field(default_factory=Security)
    allow_faults: bool = False
    read_only: bool = False
    """Nothing can be changed through the HTTP interface, whatever the role."""
    journal: Path | None = None
    audit_log: Path | None = None
    """The folder of the audit log; None: none."""
    log_format: Literal["console", "json"] = "console"
    log_level: str = "INFO"
    source: Path | None = None
    """The file from which it was read, for a reload."""
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The content of that file at the start."""
    warnings: tuple[str, ...] = ()
    """What an operator should know of it, although it is no mistake."""

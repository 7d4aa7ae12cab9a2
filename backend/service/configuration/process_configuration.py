"""How one member is set up: everything that a file, the environment and flags may say, once it is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.properties import Settings

EndpointGroup = Literal["CLUSTER_READ", "CLUSTER_WRITE", "HEALTH_CHECK", "DATA"]

ENDPOINT_GROUPS: tuple[EndpointGroup, ...] = get_args(EndpointGroup)

UserGroup = Literal[EndpointGroup, "CONSOLE", "METRICS"]
"""What a user may be limited to: the endpoint groups of the operators' paths, the console's interface, and the metrics. Maps
belong to DATA wherever they are served."""

Role = Literal["read", "write", "fault"]
"""What somebody may do: look, change what operators change, or harm on purpose. Each includes the one before."""

OPEN_TO_ALL = "I know that anybody can control this member"
"""What has to be said for a member to listen beyond loopback although nobody has to identify themselves."""

GROUPS_BY_DEFAULT: Mapping[EndpointGroup, bool] = {
    "CLUSTER_READ": True,
    "CLUSTER_WRITE": False,
    "HEALTH_CHECK": True,
    "DATA": False,
}
"""As in the product (Hazelcast: REST access)."""


@dataclass(frozen=True)
class User:
    """Somebody who may use the HTTP face. Exactly one of `password` and `token` is set."""

    name: str
    role: Role
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    groups: tuple[UserGroup, ...] | None = None
    """What they may use; None: everything."""
    secret_file: Path | None = field(default=None, compare=False)
    """Where the password or the token stands, to be read anew when it changes."""
    by_token: bool = field(default=False, compare=False)
    """What stands in that file is a token."""


@dataclass(frozen=True)
class Security:
    """Who may talk to this member. Everything empty: anybody who reaches it, and therefore loopback only."""

    users: tuple[User, ...] = ()
    cluster_secret: str = field(default="", repr=False)
    """Shared by all members; proven by challenge and response, never sent."""
    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None
    """Who signs the certificates of members and, if asked for, of clients."""
    mutual: bool = True
    """Members have to show a certificate to one another."""
    allowed_origins: tuple[str, ...] = ()
    """Whose pages may use the HTTP face from a browser, as ``https://dashboard.example``."""
    allowed_hosts: tuple[str, ...] = ()
    """Names by which the member may be called, besides its own."""
    open_to_all: bool = False
    """Said in so many words: listen beyond loopback although nobody has to identify themselves."""


@dataclass(frozen=True)
class ProcessConfiguration:
    """One member, as it is to run."""

    cluster_name: str
    label: str
    """What people call it; also in its records and its journal. Empty: its address."""
    bind_host: str
    address: Address
    """What others call it by; it listens on the port of it."""
    join_list: tuple[str, ...]
    """As configured: addresses, with or without a port."""
    settings: Settings
    ports_tried: int = 1
    """How many ports, from that of its address up, it may take when the first are somebody else's."""
    tcp_ip_enabled: bool = True
    lite: bool = False
    zone: str = ""
    rest_enabled: bool = True
    rest_port: int | None = None
    """None: the member's own port."""
    endpoint_groups: Mapping[EndpointGroup, bool] = field(default_factory=lambda: dict(GROUPS_BY_DEFAULT))
    security: Security = field(default_factory=Security)
    allow_faults: bool = False
    read_only: bool = False
    """Nobody changes anything through the HTTP face, whatever their role."""
    journal: Path | None = None
    run: str = ""
    """What its records belong to, the same for all members of a cluster; empty: the name of the cluster."""
    log_format: Literal["console", "json"] = "console"
    log_level: str = "INFO"
    source: Path | None = None
    """The file that it was read from, for a reload."""
    warnings: tuple[str, ...] = ()
    """What an operator should know of it, although it is no mistake."""

"""The configuration file: YAML in the form that operators have already, checked field by field.

``hazelcast:`` holds what the product also has, ``quarterdeck:`` what it does not. Sections and properties of the product that
mean nothing here are known by name, so that an operator's own file starts a member: each causes one warning and is ignored. All
other unknown names are errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from quarterdeck.backend.core.address import DEFAULT_PORT, HIGHEST_PORT, SEPARATORS
from quarterdeck.backend.documents.yaml_document import FieldPath
from quarterdeck.backend.journal.files import checked_name
from quarterdeck.backend.service.configuration.process_configuration import (
    ENDPOINT_GROUPS,
    GROUPS_BY_DEFAULT,
    OPEN_TO_ALL,
    EndpointGroup,
    Role,
    UserGroup,
)

IGNORED = "there is nothing of the kind here; it is ignored"

PREFIX = "hazelcast."
NAMES_FILE = Path(__file__).with_name("product_properties.txt")
"""Each line has a name without the prefix, and the first and the last version of the product that know it."""


PRODUCT_PROPERTIES = tuple(
    PREFIX + line.partition(" ")[0]
    for line in NAMES_FILE.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)
"""Properties of the product that mean nothing here: threads, sockets, diagnostics, what members do not have."""

PRODUCT_SECTIONS: Mapping[FieldPath, tuple[str, ...]] = {
    ("hazelcast", "properties"): PRODUCT_PROPERTIES,
    **{
        place: tuple(names.split())
        for place, names in {
            ("hazelcast",): """
                advanced-network atomic-long atomic-reference auditlog cache cardinality-estimator config-replacers
                count-down-latch cp-subsystem crdt-replication data-connection diagnostics durable-executor-service
                dynamic-configuration event-journal executor-service external-data-store flake-id-generator group
                hot-restart-persistence import instance-tracking integrity-checker jet license-key list listeners
                local-device lock management-center map merkle-tree metrics multimap native-memory partition-group
                persistence pn-counter queue quorum reliable-id-generator reliable-topic replicatedmap rest ringbuffer
                scheduled-executor-service security semaphore serialization services set split-brain-protection sql
                topic tpc user-code-deployment user-code-namespaces vector-collection wan-replication
            """,
            ("hazelcast", "network"): """
                client-protocol failure-detector icmp member-address-provider memcache-protocol
                member-server-socket-endpoint-config outbound-ports reuse-address socket-interceptor soft-limit
                symmetric-encryption
            """,
            ("hazelcast", "network", "ssl"): "factory-class-name properties",
            ("hazelcast", "network", "join"): "discovery-strategies",
            ("hazelcast", "network", "join", "multicast"): """
                loopbackModeEnabled loopback-mode-enabled multicast-group multicast-port multicast-time-to-live
                multicast-timeout-seconds trusted-interfaces
            """,
            ("hazelcast", "network", "join", "tcp-ip"): "connection-timeout-seconds interface required-member",
        }.items()
    },
}
"""Names by the place at which they stand. Other ways to find members are not among them: a member that relied on one
would be alone.
"""

HINTS: Mapping[FieldPath, str] = {
    ("hazelcast", "security"): "it keeps no client out: see quarterdeck.security",
    ("hazelcast", "network", "symmetric-encryption"): "nothing is encrypted by it: see network.ssl",
    ("hazelcast", "network", "ssl", "factory-class-name"): "give certificate and key, both PEM files",
    ("hazelcast", "network", "ssl", "properties"): "give certificate and key, both PEM files",
    ("hazelcast", "map"): "limits and eviction of maps are given by quarterdeck.map.limits",
    ("hazelcast", "import"): "write out what is in those files",
    ("hazelcast", "partition-group"): "zones are given by member-attributes.zone and hazelcast.partition.group.type",
}
"""Additions to the warning, where an operator may rely on what is ignored."""


def without_product_sections(data: Mapping[str, Any]) -> tuple[dict[str, Any], list[FieldPath]]:
    """Return the document without them, and where they stand in it."""
    found: list[FieldPath] = []
    return _without(data, (), found), found


def ignored_text(place: FieldPath) -> str:
    """Return the warning about a section that is ignored."""
    hint = HINTS.get(place)
    return f"{IGNORED}; {hint}" if hint else IGNORED


def _without(section: Mapping[str, Any], at: FieldPath, found: list[FieldPath]) -> dict[str, Any]:
    ignored = PRODUCT_SECTIONS.get(at, ())
    kept: dict[str, Any] = {}
    for name, value in section.items():
        place = (*at, name)
        if name in ignored:
            found.append(place)
        elif isinstance(value, dict) and any(other[: len(place)] == place for other in PRODUCT_SECTIONS):
            kept[name] = _without(value, place, found)
        else:
            kept[name] = value
    return kept


PORTS_TRIED = 100
"""As the product does (``network.port.port-count``)."""
Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


def _from_base(path: Path, info: ValidationInfo) -> Path:
    base: Path = (info.context or {}).get("base", Path())
    return base / path.expanduser()


def _split_words(value: object) -> object:
    return [word for word in SEPARATORS.split(value) if word] if isinstance(value, str) else value


def _origin(text: str) -> str:
    """Check an origin as a browser writes it: scheme and host in lower case, a port that is not the usual one, and no path."""
    if re.fullmatch(r"https?://([\w.-]+|\[[0-9a-f:.]+\])(:\d+)?", text.lower()) is None:
        raise ValueError(f"{text} is not an origin; write it as https://dashboard.example, without a path")
    return text.lower()


def _host_name(text: str) -> str:
    if re.fullmatch(r"[\w.-]+", text) is None:
        raise ValueError(f"{text} is not a name of a host; write it without scheme and port")
    return text.lower()


def _one_value(value: object) -> object:
    if not isinstance(value, str | int | float | bool):
        raise ValueError("is neither text nor a number; write one value")
    return value


MOST_NAME_BYTES = 100
"""Of a name that becomes part of the names of files."""


def _member_name(name: str) -> str:
    """Refuse a name that could not be recorded, or that no file could have."""
    try:
        length = len(name.encode())
    except UnicodeEncodeError as problem:
        raise ValueError("a character is half of a surrogate pair; write both halves") from problem
    if length > MOST_NAME_BYTES:
        raise ValueError(f"has {length} bytes; the most is {MOST_NAME_BYTES}")
    if not name.isprintable():
        raise ValueError("has a character that cannot be shown; leave it out")
    return name


def _run_name(name: str) -> str:
    return checked_name("run", _member_name(name)) if name else name


MemberName = Annotated[str, AfterValidator(_member_name)]
WrittenPath = Annotated[Path, AfterValidator(_from_base)]
Origin = Annotated[str, AfterValidator(_origin)]
HostName = Annotated[str, AfterValidator(_host_name)]
Word = TypeVar("Word")
WordList = Annotated[tuple[Word, ...], BeforeValidator(_split_words, json_schema_input_type=str | tuple[str, ...])]
AnySection = dict[str, Any]
"""A section that only the product understands; it may be there as long as it is off."""
PortNumber = Annotated[int, Field(ge=1, le=HIGHEST_PORT)]


class Section(BaseModel):
    """A part of the file. Names are written with dashes."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"))


class Switch(Section):
    enabled: bool = False


class Port(Section):
    port: PortNumber = DEFAULT_PORT
    auto_increment: bool = True
    port_count: PortNumber = PORTS_TRIED


class Interfaces(Section):
    enabled: bool = False
    interfaces: WordList[str] = ()

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if self.enabled and (len(self.interfaces) != 1 or any(letter in self.interfaces[0] for letter in "*-")):
            raise ValueError("name the one address to listen on, without wildcards and ranges, as in [10.3.10.7]")
        return self


class TcpIp(Section):
    enabled: bool = True
    member_list: WordList[str] | None = None


class Join(Section):
    tcp_ip: TcpIp = TcpIp()
    multicast: Switch = Switch()
    auto_detection: Switch = Switch()
    aws: AnySection = {}
    azure: AnySection = {}
    eureka: AnySection = {}
    gcp: AnySection = {}
    kubernetes: AnySection = {}

    @model_validator(mode="after")
    def _by_addresses_only(self) -> Self:
        clouds = (self.aws, self.azure, self.eureka, self.gcp, self.kubernetes)
        in_the_cloud = any(str(cloud.get("enabled", "false")).lower() == "true" for cloud in clouds)
        if self.multicast.enabled or self.auto_detection.enabled or in_the_cloud:
            raise ValueError("members find one another only by tcp-ip; disable the rest and write tcp-ip.member-list")
        return self


class EndpointGroups(Section):
    """The product's endpoint groups. The last four have no paths here, and may be named as long as they are off."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=str.upper)

    cluster_read: Switch = Switch(enabled=GROUPS_BY_DEFAULT["CLUSTER_READ"])
    cluster_write: Switch = Switch(enabled=GROUPS_BY_DEFAULT["CLUSTER_WRITE"])
    health_check: Switch = Switch(enabled=GROUPS_BY_DEFAULT["HEALTH_CHECK"])
    data: Switch = Switch(enabled=GROUPS_BY_DEFAULT["DATA"])
    persistence: Switch = Switch()
    hot_restart: Switch = Switch()
    wan: Switch = Switch()
    cp: Switch = Switch()

    @model_validator(mode="after")
    def _offered(self) -> Self:
        for name in ("persistence", "hot_restart", "wan", "cp"):
            if getattr(self, name).enabled:
                raise ValueError(f"there are no paths in the endpoint group {name.upper()} here; disable it")
        return self

    def enabled(self) -> dict[EndpointGroup, bool]:
        """Return whether each of the groups with paths is on."""
        return {name: getattr(self, name.lower()).enabled for name in ENDPOINT_GROUPS}


class RestApi(Section):
    enabled: bool = True
    port: PortNumber | None = None
    endpoint_groups: EndpointGroups = EndpointGroups()


class Ssl(Section):
    enabled: bool = False
    certificate: WrittenPath | None = None
    key: WrittenPath | None = None
    authority: WrittenPath | None = None
    mutual: bool = True

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.enabled and (self.certificate is None or self.key is None):
            raise ValueError("needs certificate and key, both PEM files; add them or set enabled: false")
        return self


def _port_alone(value: object) -> object:
    return {"port": value} if isinstance(value, int | str) and not isinstance(value, bool) else value


class NetworkSection(Section):
    port: Annotated[Port, BeforeValidator(_port_alone, json_schema_input_type=Port | int | str)] = Port()
    public_address: str = ""
    interfaces: Interfaces = Interfaces()
    join: Join = Join()
    rest_api: RestApi = RestApi()
    ssl: Ssl = Ssl()


class MemberAttributes(Section):
    zone: str = ""


class Hazelcast(Section):
    cluster_name: Annotated[MemberName, Field(min_length=1)] = "dev"
    instance_name: MemberName = ""
    network: NetworkSection = NetworkSection()
    lite_member: Switch = Switch()
    member_attributes: MemberAttributes = MemberAttributes()
    properties: dict[str, Annotated[bool | int | float | str, BeforeValidator(_one_value)]] = {}


class Log(Section):
    format: Literal["console", "json"] = "console"
    level: Annotated[Level, BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value)] = "INFO"


class NamedUser(Section):
    name: Annotated[str, Field(min_length=1, pattern=r"^[^:]+$")]
    file: WrittenPath = Field(alias="password-file")
    role: Role
    groups: tuple[UserGroup, ...] | None = None


class AccessToken(Section):
    file: WrittenPath
    role: Role
    name: str = ""
    groups: tuple[UserGroup, ...] | None = None


class SecuritySection(Section):
    secret_file: WrittenPath | None = None
    users: tuple[NamedUser, ...] = ()
    tokens: tuple[AccessToken, ...] = ()
    allowed_origins: WordList[Origin] = ()
    allowed_hosts: WordList[HostName] = ()
    open_to_all: str = ""

    @model_validator(mode="after")
    def _check_open_to_all_and_names(self) -> Self:
        if self.open_to_all not in ("", OPEN_TO_ALL):
            raise ValueError(f'open-to-all has to say "{OPEN_TO_ALL}", or nothing')
        names = [user.name for user in self.users]
        twice = [name for place, name in enumerate(names) if name in names[:place]]
        if twice:
            raise ValueError(f"the user {twice[0]!r} stands there twice; give each a name of its own")
        return self


class Quarterdeck(Section):
    bind: str = ""
    preset: Literal["production", "training"] = "production"
    journal: WrittenPath | None = None
    audit_log: WrittenPath | None = None
    run: Annotated[str, AfterValidator(_run_name)] = ""
    log: Log = Log()
    security: SecuritySection = SecuritySection()
    allow_faults: bool = False
    read_only: bool = False


class MemberFile(Section):
    """The whole file."""

    hazelcast: Hazelcast = Hazelcast()
    quarterdeck: Quarterdeck = Quarterdeck()

    def written(self) -> dict[str, Any]:
        """Return what was written, and nothing else, by the names in the file."""
        return self.model_dump(by_alias=True, exclude_unset=True)

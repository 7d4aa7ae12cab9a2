"""From a file, the environment and flags to one checked `ProcessConfiguration`.

A flag takes precedence over the environment, that over the file, and that over the default. Every error says where the wrong
value was given.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from quarterdeck.backend.core import address
from quarterdeck.backend.core.member import MemberConfiguration
from quarterdeck.backend.core.properties import PROPERTIES, BadProperty, Settings
from quarterdeck.backend.documents import yaml_document
from quarterdeck.backend.documents.validation import did_you_mean
from quarterdeck.backend.journal.audit_log import AUDIT_LOG_FOLDER
from quarterdeck.backend.live.security.tls import TlsFiles, WireSecurity, not_after
from quarterdeck.backend.service.configuration.configuration_file import (
    MemberFile,
    Section,
    ignored_text,
    without_product_sections,
)
from quarterdeck.backend.service.configuration.process_configuration import ProcessConfiguration, Security, User

LOOPBACK = "127.0.0.1"
PREFIXES = {"HZ": "hazelcast", "QUARTERDECK": "quarterdeck"}
"""How the names of environment variables begin, and which part of the file they stand for."""

CLIENT_VARIABLES = frozenset(
    f"QUARTERDECK_{what}"
    for what in ("USER", "PASSWORD_FILE", "TOKEN_FILE", "CA_FILE", "CERTIFICATE_FILE", "KEY_FILE", "WEBHOOK")
)
"""What the commands that connect to members read; members ignore them."""

PROPERTY_PLACE: yaml_document.FieldPath = ("hazelcast", "properties")
SECURITY_PLACE: yaml_document.FieldPath = ("quarterdeck", "security")
BIND_PLACE: yaml_document.FieldPath = ("quarterdeck", "bind")
INTERFACES_PLACE: yaml_document.FieldPath = ("hazelcast", "network", "interfaces", "interfaces")


class BadConfiguration(yaml_document.BadDocument):
    """A configuration that no member can have. The message has the place, the field, the problem, and a remedy."""


@dataclass(frozen=True)
class Override:
    """One field that was given elsewhere than in the file; `origin` names the variable or the flag."""

    place: yaml_document.FieldPath
    value: Any
    origin: str


def process_configuration(
    file: Path | None, environment: Mapping[str, str], flags: Iterable[Override] = ()
) -> ProcessConfiguration:
    """Return how a member is to run. Raises `BadConfiguration`."""
    return ConfigurationReader(file, [*overrides_from_environment(environment), *flags]).configuration()


def read_member_file(
    text: str, file: str, base: Path
) -> tuple[yaml_document.YamlDocument, MemberFile, tuple[str, ...]]:
    """Read a file whose paths start from `base`. Return also its warnings. Raises `BadConfiguration`.

    A start, a check, a reload and an update all read configurations with this function.
    """
    document = yaml_document.YamlDocument(text, file, BadConfiguration)
    data = document.fields("is no configuration; write hazelcast: and quarterdeck: as keys", may_be_empty=True)
    data, ignored = without_product_sections(data)
    member_file = document.read(MemberFile, data, context={"base": base})
    document.refuse(_problems_of_values(member_file))
    warnings = [
        f"{file}:{document.line(place)}: {yaml_document.field_text(place)}: {ignored_text(place)}" for place in ignored
    ]
    return document, member_file, tuple(warnings)


def overrides_from_environment(environment: Mapping[str, str]) -> Iterator[Override]:
    """Yield the fields given by variables such as ``HZ_CLUSTERNAME``. Raises `BadConfiguration` for an unknown one."""
    known = {_variable(place): place for place in _places(MemberFile, ())}
    for name in sorted(environment):
        prefix, _, rest = name.partition("_")
        if prefix not in PREFIXES or not rest or name in CLIENT_VARIABLES:
            continue
        if name in known:
            yield Override(known[name], environment[name], name)
        elif name.startswith(("HZ_PROPERTIES_", "HZ_PROPERTIES.")):
            yield Override((*PROPERTY_PLACE, _property_of(name)), environment[name], name)
        else:
            hint = did_you_mean(name, [other for other in known if other.startswith(prefix)])
            raise BadConfiguration(name, 0, "", f"there is no such environment variable; {hint}")


class ConfigurationReader:
    """One configuration in the making: the file, with what was given besides on top of it."""

    def __init__(self, file: Path | None, given: Iterable[Override]) -> None:
        """Read and check the file and the overrides. Raises `BadConfiguration`."""
        self._file = file
        self._given = list(given)
        self._document: yaml_document.YamlDocument | None = None
        self._warnings: tuple[str, ...] = ()
        written: dict[str, Any] = {}
        if file is not None:
            text = yaml_document.text_of(file, BadConfiguration)
            self._document, parsed, self._warnings = read_member_file(text, str(file), file.parent)
            written = parsed.written()
        for override in self._given:
            _put(written, override.place, override.value)
        try:
            self._whole = MemberFile.model_validate(written, context={"base": Path()})
        except ValidationError as failure:
            raise self._bad(*next(yaml_document.problems_of(failure, yaml_document.names_in(MemberFile)))) from None
        for place, problem in _problems_of_values(self._whole):
            raise self._bad(place, problem)

    def configuration(self) -> ProcessConfiguration:
        """Check the parts against each other and put them together. Raises `BadConfiguration`."""
        hazelcast, quarterdeck = self._whole.hazelcast, self._whole.quarterdeck
        network = hazelcast.network
        security = self.security()
        bind_host = self._bind_host(security)
        port, host = network.port.port, bind_host
        if network.public_address:
            host = self._public_host(network.public_address, port)
        elif (number := address.numeric_host(bind_host)) is not None and number.is_unspecified:
            raise self._bad(
                ("hazelcast", "network", "public-address"),
                f"is missing: {bind_host} is where to listen, and no address to call; give the one that others shall call",
            )
        listed = network.join.tcp_ip.member_list
        warnings = [
            *self._warnings,
            *self._open_secrets(),
            *_clear_text(bind_host, security),
            *_expired(security.wire.tls),
        ]
        join_list = (host,) if listed is None else listed
        return ProcessConfiguration(
            member=self._member(host, join_list if network.join.tcp_ip.enabled else ()),
            bind_host=bind_host,
            join_list=join_list,
            ports_tried=network.port.port_count if network.port.auto_increment else 1,
            tcp_ip_enabled=network.join.tcp_ip.enabled,
            rest_enabled=network.rest_api.enabled,
            rest_port=network.rest_api.port,
            endpoint_groups=network.rest_api.endpoint_groups.enabled(),
            security=security,
            allow_faults=quarterdeck.allow_faults,
            read_only=quarterdeck.read_only,
            journal=quarterdeck.journal,
            audit_log=quarterdeck.audit_log or (quarterdeck.journal and quarterdeck.journal / AUDIT_LOG_FOLDER),
            log_format=quarterdeck.log.format,
            log_level=quarterdeck.log.level,
            source=self._file,
            document=self._document.data or {} if self._document is not None else {},
            warnings=tuple(warnings),
        )

    def _member(self, host: str, join_list: Sequence[str]) -> MemberConfiguration:
        hazelcast, quarterdeck = self._whole.hazelcast, self._whole.quarterdeck
        settings, port = Settings.of(hazelcast.properties, preset=quarterdeck.preset), hazelcast.network.port.port
        tries = settings.join_port_try_count
        try:
            addresses = address.parse_join_list(join_list, base_port=port, port_try_count=tries)
        except address.BadJoinList as problem:  # what is listed was checked before, so that it is the member's own host
            public = ("hazelcast", "network", "public-address") if hazelcast.network.public_address else None
            raise self._bad(public or self._bound_by(), str(problem)) from problem
        return MemberConfiguration(
            run=quarterdeck.run,
            label=hazelcast.instance_name,
            address=address.make_address(host, port),
            join_list=addresses,
            settings=settings,
            lite=hazelcast.lite_member.enabled,
            cluster_name=hazelcast.cluster_name,
            zone=hazelcast.member_attributes.zone,
        )

    def _bind_host(self, security: Security) -> str:
        host = self._whole.quarterdeck.bind
        if self._bound_by() == INTERFACES_PLACE:
            host = self._whole.hazelcast.network.interfaces.interfaces[0]
        host = host.strip("[]") or LOOPBACK
        if not is_loopback(host):
            missing = []
            if not security.users:
                missing.append("who may use its HTTP face (quarterdeck.security.users or .tokens)")
            if not security.wire.secret and not (security.wire.tls and security.wire.tls.mutual):
                missing.append("how members prove themselves (quarterdeck.security.secret-file, or network.ssl.mutual)")
            if missing and not security.open_to_all:
                raise self._bad(
                    self._bound_by(),
                    f"{host} is beyond this machine, and nothing says {' nor '.join(missing)}; add that, or bind to {LOOPBACK}, "
                    "or state that it shall be open to all (quarterdeck.security.open-to-all)",
                )
        return host

    def _bound_by(self) -> yaml_document.FieldPath:
        """Return the field that says on which host the member listens."""
        by_interfaces = not self._whole.quarterdeck.bind and self._whole.hazelcast.network.interfaces.enabled
        return INTERFACES_PLACE if by_interfaces else BIND_PLACE

    def _public_host(self, text: str, port: int) -> str:
        place: yaml_document.FieldPath = ("hazelcast", "network", "public-address")
        try:
            host, port_text = address.split_host_and_port(text)
            if port_text is not None and address.parse_port(port_text, text) != port:
                what = f"{text} has another port than {port}, on which the member listens; use one for both"
                raise self._bad(place, what)
        except address.BadAddress as problem:
            raise self._bad(place, str(problem)) from problem
        return host

    def _open_secrets(self) -> Iterator[str]:
        section, ssl = self._whole.quarterdeck.security, self._whole.hazelcast.network.ssl
        files = [user.file for user in section.users] + [token.file for token in section.tokens]
        for path in (section.secret_file, *files, ssl.key if ssl.enabled else None):
            if path is not None and path.is_file() and path.stat().st_mode & stat.S_IROTH:
                yield f"{path} is a secret, and all users of this machine can read it; chmod o-r would help"

    def security(self) -> Security:
        """Return who may connect, with the secrets as their files have them now. Raises `BadConfiguration`."""
        section, ssl = self._whole.quarterdeck.security, self._whole.hazelcast.network.ssl
        users = []
        for place, user in enumerate(section.users):
            password = self._secret(user.file, ("users", place, "password-file"))
            users.append(User(user.name, user.role, password, groups=user.groups, secret_file=user.file))
        for place, access in enumerate(section.tokens):
            name, token = access.name or f"token {place + 1}", self._secret(access.file, ("tokens", place, "file"))
            users.append(User(name, access.role, "", token, access.groups, access.file, by_token=True))
        secret_file, tls = section.secret_file, None
        if ssl.enabled and ssl.certificate is not None and ssl.key is not None:
            tls = TlsFiles(ssl.certificate, ssl.key, ssl.authority, ssl.mutual)
        return Security(
            users=tuple(users),
            wire=WireSecurity("" if secret_file is None else self._secret(secret_file, ("secret-file",)), tls),
            secret_file=secret_file,
            allowed_origins=section.allowed_origins,
            allowed_hosts=section.allowed_hosts,
            open_to_all=bool(section.open_to_all),
        )

    def _secret(self, path: Path, place: yaml_document.FieldPath) -> str:
        """Return the content of the file at `path`, without its end of line. It never appears in a message."""
        try:
            secret = path.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
            raise self._bad((*SECURITY_PLACE, *place), f"{path} cannot be read: {reason}; check the path") from None
        if not secret:
            raise self._bad((*SECURITY_PLACE, *place), f"{path} is empty; write the secret into it")
        return secret

    def _bad(self, place: yaml_document.FieldPath, problem: str) -> BadConfiguration:
        """Return the error at `place`, with its origin: of several, the last that set the value."""
        field, document = yaml_document.field_text(place), self._document
        for override in reversed(self._given):
            shorter = min(len(override.place), len(place))
            if override.place[:shorter] == place[:shorter]:
                return BadConfiguration(override.origin, 0, field, problem)
        if document is not None:
            return BadConfiguration(document.file, document.line(place), field, problem)
        return BadConfiguration(field, 0, "", problem)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can call `host`."""
    number = address.numeric_host(host)
    return host == "localhost" or (number is not None and number.is_loopback)


def _put(data: dict[str, Any], place: yaml_document.FieldPath, value: object) -> None:
    *folders, last = place
    for step in folders:
        data = data.setdefault(str(step), {})
    data[str(last)] = value


def _problems_of_values(whole: MemberFile) -> Iterator[yaml_document.Problem]:
    """Yield what is wrong with values that only their own readers understand."""
    try:
        Settings.of(whole.hazelcast.properties, preset=whole.quarterdeck.preset)
    except BadProperty as problem:
        yield (*PROPERTY_PLACE, problem.name), problem.problem
    try:
        address.parse_join_list(whole.hazelcast.network.join.tcp_ip.member_list or ())
    except address.BadJoinList as problem:
        yield ("hazelcast", "network", "join", "tcp-ip", "member-list"), str(problem)


def _clear_text(bind_host: str, security: Security) -> Iterator[str]:
    if not is_loopback(bind_host) and security.wire.tls is None:
        yield (
            f"what is sent to {bind_host} can be read on the way, passwords too: "
            "switch on hazelcast.network.ssl, unless the network encrypts"
        )


def _expired(tls: TlsFiles | None) -> Iterator[str]:
    until = None if tls is None else not_after(tls.certificate)
    if tls is not None and until is not None and until < datetime.now(UTC):
        yield f"{tls.certificate} has expired, on {until:%Y-%m-%d}: no other member accepts it; give a new one"


def _places(section: type[BaseModel], above: yaml_document.FieldPath) -> Iterator[yaml_document.FieldPath]:
    for name, field in section.model_fields.items():
        place = (*above, yaml_document.field_name(name, field))
        inner = yaml_document.inner_model(field)
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from _places(field.annotation, place)
        elif inner is None and place != PROPERTY_PLACE:
            yield place


def _variable(place: yaml_document.FieldPath) -> str:
    prefix = next(prefix for prefix, root in PREFIXES.items() if root == place[0])
    return "_".join((prefix, *(re.sub(r"[^A-Za-z0-9]", "", str(step)).upper() for step in place[1:])))


def _property_of(variable: str) -> str:
    """Return the property that a variable such as ``HZ_PROPERTIES_HAZELCAST_MAX_NO_HEARTBEAT_SECONDS`` names."""
    wanted = variable.removeprefix("HZ_PROPERTIES")[1:]
    plain = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in PROPERTIES}
    found = plain.get(re.sub(r"[^a-z0-9]", "", wanted.lower()))
    if found is None:
        hint = did_you_mean(wanted.lower().replace("_", "."), PROPERTIES)
        raise BadConfiguration(variable, 0, "", f"there is no such property; {hint}")
    return found

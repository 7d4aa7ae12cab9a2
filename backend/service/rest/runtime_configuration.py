"""A configuration given to a running member: what of it can take effect, what cannot, and why.

At runtime the TCP-IP member list changes, and so do the properties that are not fixed at start. A reload changes the users and
tokens of the HTTP interface too, and which browsers and names of hosts it accepts; an update does not, since their secrets are
in files of the member. Everything else is reported as ignored. A value that cannot be read makes the whole document bad, and
then nothing of it is applied (Hazelcast: REST status codes and runtime join lists).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import Struct
from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent

from quarterdeck.backend.core.address import Address, BadJoinList, parse_join_list
from quarterdeck.backend.core.properties import FIXED_AT_START, PropertyValue, Settings
from quarterdeck.backend.documents.yaml_document import DEEPEST_NESTING, FieldPath
from quarterdeck.backend.service.configuration.process_configuration import Security
from quarterdeck.backend.service.configuration.product_sections import IGNORED, PRODUCT_PROPERTIES, PRODUCT_SECTIONS
from quarterdeck.backend.service.http.responses import Denied

LONGEST_NAME = 100
"""Characters of a name that are quoted."""
MEMBER_LIST = ("network", "join", "tcp-ip", "member-list")
AT_START_ONLY = "takes effect when the member is started with it"
IN_FORCE = "is in force already"
BY_RELOAD = "takes effect when it stands in the member's own file and that is reloaded"
BY_TURNING = "turns by quarterdeck member secret; " + AT_START_ONLY
NO_USER_LEFT = "without users any client could change this member; " + AT_START_ONLY


class ConfigurationEntry(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that a document configures, in the product's words."""

    section_name: str
    config_name: str
    reason: str = ""
    """Why it is ignored; empty when it is applied."""


class RuntimeChange(NamedTuple):
    """What a document changes in a member."""

    join_list: tuple[Address, ...] | None
    """The new one; None when it stays."""
    properties: dict[str, PropertyValue]
    """Those that change."""
    security: dict[str, Any]
    """The fields of `Security` that change."""
    applied: list[ConfigurationEntry]
    ignored: list[ConfigurationEntry]


def parse_document(text: str) -> object:
    """Parse a YAML document to plain types. Raises `Denied`. Takes a second for long ones: not to be called on a member's loop.

    It comes from outside, so unlike a file of this machine (`backend.documents`) it may have no aliases: a few lines of them can
    stand for billions.
    """
    if text.lstrip().startswith("<"):
        raise Denied(400, "the configuration is XML, which is not read here", "write it as YAML")
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer, yaml.max_depth = _AliasFreeComposer, DEEPEST_NESTING
    try:
        return yaml.load(text)
    except (RecursionError, MaxDepthExceededError):
        raise Denied(400, "the configuration is nested too deep", "check its brackets") from None
    except MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        what = (problem.problem or "it cannot be read").splitlines()[0]
        raise Denied(
            400, f"line {mark.line + 1 if mark else 1}: is not YAML: {what}", "check the indentation"
        ) from None
    except (YAMLError, ValueError, TypeError, ArithmeticError, AttributeError) as problem:
        lines = str(problem).splitlines()
        raise Denied(400, f"the configuration is not YAML: {lines[0] if lines else 'it cannot be read'}") from None


class _AliasFreeComposer(Composer):
    """Refuses aliases. Without those, anchors mean nothing, and two may be the same."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self.warn_double_anchors = False

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.parser.check_event(AliasEvent):
            line = self.parser.peek_event().start_mark.line + 1
            raise Denied(400, f"line {line}: is an alias, which is not read here", "write out what it stands for")
        return super().compose_node(parent, index)


def runtime_change_of(
    document: object,
    settings: Settings,
    join_list: tuple[Address, ...],
    tcp_ip_enabled: bool,
    security: Security,
    reloaded: Security | None = None,
) -> RuntimeChange:
    """Return what `document` changes where the rest is in force; of a reload, `reloaded` is the security that it describes.

    Raises `Denied` and `BadProperty`.
    """
    root = _mapping(document, "the configuration")
    change = RuntimeChange(None, {}, {}, [], [])
    for name, value in root.items():
        if name == "hazelcast":
            change = _with_hazelcast(change, _mapping(value, "hazelcast"), settings, join_list, tcp_ip_enabled)
        elif name == "quarterdeck":
            section = _mapping(value, "quarterdeck")
            change.ignored.extend(
                ConfigurationEntry("quarterdeck", _short(key), AT_START_ONLY) for key in section if key != "security"
            )
    _sort_security(change, _mapping(root.get("quarterdeck"), "quarterdeck").get("security"), security, reloaded)
    settings.changed_at_runtime(change.properties)
    return change


def read_member_list(value: object, settings: Settings) -> tuple[Address, ...]:
    """Parse addresses in a text or a list of texts. Raises `Denied`."""
    if not isinstance(value, str) and not (isinstance(value, list) and all(isinstance(entry, str) for entry in value)):
        raise Denied(400, "member-list: is neither text nor a list of texts", "write addresses as host:port")
    try:
        found = parse_join_list(value, port_try_count=settings.join_port_try_count)
    except BadJoinList as problem:
        raise Denied(400, f"member-list: {problem}", "write addresses as host:port, with commas between them") from None
    if not found:
        raise Denied(400, "member-list: names no address", "write addresses as host:port, with commas between them")
    return found


def _with_hazelcast(
    change: RuntimeChange,
    section: dict[object, object],
    settings: Settings,
    join_list: tuple[Address, ...],
    tcp_ip_enabled: bool,
) -> RuntimeChange:
    for name, value in section.items():
        if name == "properties":
            for property_name, wanted in _mapping(value, "properties").items():
                _sort_property(change, property_name, wanted, settings)
        elif name != "network":
            change.ignored.append(ConfigurationEntry("hazelcast", _short(name), _why_ignored(("hazelcast",), name)))
    found: list[object] = []
    change.ignored.extend(_beside_member_list(section, found))
    for value in found:
        wanted_list = read_member_list(value, settings)
        if not tcp_ip_enabled:
            change.ignored.append(
                ConfigurationEntry("tcp-ip", "member-list", "TCP-IP join is not enabled in the cluster")
            )
        elif wanted_list == join_list:
            change.ignored.append(ConfigurationEntry("tcp-ip", "member-list", IN_FORCE))
        else:
            change.applied.append(ConfigurationEntry("tcp-ip", "member-list"))
            change = change._replace(join_list=wanted_list)
    return change


def _beside_member_list(section: dict[object, object], found: list[object]) -> Iterator[ConfigurationEntry]:
    """Yield all that stands on the way to the member list and is not it; append the list itself to `found`."""
    here = section
    for depth, step in enumerate(MEMBER_LIST):
        if depth:
            above = ("hazelcast", *MEMBER_LIST[:depth])
            yield from (
                ConfigurationEntry(above[-1], _short(name), _why_ignored(above, name)) for name in here if name != step
            )
        if step not in here:
            return
        if depth == len(MEMBER_LIST) - 1:
            found.append(here[step])
        else:
            here = _mapping(here[step], step)


def _why_ignored(section: FieldPath, name: object) -> str:
    return IGNORED if name in PRODUCT_SECTIONS.get(section, ()) else AT_START_ONLY


def _sort_property(change: RuntimeChange, name: object, value: object, settings: Settings) -> None:
    """Sort one property into `change`. Raises `BadProperty` for a value that it cannot have."""
    if name in PRODUCT_PROPERTIES:
        change.ignored.append(ConfigurationEntry("properties", _short(name), IGNORED))
        return
    assert isinstance(name, str) and isinstance(value, str | int | float | bool)  # as the whole document was checked
    same = settings.with_properties({name: value}) == settings
    if same or name in FIXED_AT_START:
        reason = IN_FORCE if same else "cannot be changed while the member runs; " + AT_START_ONLY
        change.ignored.append(ConfigurationEntry("properties", name, reason))
    else:
        change.properties[name] = value
        change.applied.append(ConfigurationEntry("properties", name))


def _sort_security(change: RuntimeChange, written: object, security: Security, reloaded: Security | None) -> None:
    """Sort the section on security into `change`. Users that the file has no more are no longer accepted."""
    section = _mapping(written, "security")
    if reloaded is not None:
        _sort_users(change, section, security, reloaded)
    for name in section:
        if name == "secret-file":
            reason = BY_TURNING
        elif name not in RELOADED:
            reason = AT_START_ONLY
        elif reloaded is None:
            reason = BY_RELOAD
        elif name in BROWSERS and getattr(reloaded, BROWSERS[name]) != getattr(security, BROWSERS[name]):
            change.security[BROWSERS[name]] = getattr(reloaded, BROWSERS[name])
            change.applied.append(ConfigurationEntry("security", name))
            continue
        elif name in BROWSERS:
            reason = IN_FORCE
        else:
            continue
        change.ignored.append(ConfigurationEntry("security", _short(name), reason))


def _sort_users(change: RuntimeChange, section: dict[object, object], security: Security, reloaded: Security) -> None:
    for name, by_token in (("users", False), ("tokens", True)):
        before, after = ([user for user in which.users if user.by_token == by_token] for which in (security, reloaded))
        if before == after and name in section:
            change.ignored.append(ConfigurationEntry("security", name, IN_FORCE))
        elif before != after and security.users and not reloaded.users:
            change.ignored.append(ConfigurationEntry("security", name, NO_USER_LEFT))
        elif before != after:
            change.security["users"] = reloaded.users
            change.applied.append(ConfigurationEntry("security", name))


BROWSERS = {"allowed-origins": "allowed_origins", "allowed-hosts": "allowed_hosts"}
RELOADED = ("users", "tokens", *BROWSERS)


def _mapping(value: object, name: str) -> dict[object, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Denied(
            400, f"{name}: is not a mapping", "write it as in a member's configuration file, from hazelcast: on"
        )
    return value


def _short(name: object) -> str:
    """Quote a key. Only plain ones are written out: others can be huge."""
    text = str(name) if isinstance(name, str | int | float) and not (isinstance(name, int) and name > 2**64) else "?"
    return text if len(text) <= LONGEST_NAME else text[:LONGEST_NAME] + "…"

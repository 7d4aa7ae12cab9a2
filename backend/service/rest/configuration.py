"""``/hazelcast/rest/config/…``: the TCP-IP member list, and changes of the configuration while a member runs.

See Split-brain Recovery Improvements, User Interaction.

At runtime the TCP-IP member list changes, and so do the properties that are not fixed at start. A reload changes the users and
tokens of the HTTP interface too, and which browsers and names of hosts it accepts; an update does not, since their secrets are
in files of the member. Everything else is reported as ignored. A value that cannot be read makes the whole document bad, and
then nothing of it is applied (Hazelcast: REST status codes and runtime join lists).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from starlette.responses import Response

from quarterdeck.backend.core.address import Address, BadJoinList, parse_join_list
from quarterdeck.backend.core.commands import SetJoinList
from quarterdeck.backend.core.properties import FIXED_AT_START, PropertyValue, Settings
from quarterdeck.backend.documents.yaml_document import DEEPEST_NESTING, FieldPath, text_of
from quarterdeck.backend.service.configuration.configuration_file import IGNORED, PRODUCT_PROPERTIES, PRODUCT_SECTIONS
from quarterdeck.backend.service.configuration.process_configuration import Security
from quarterdeck.backend.service.configuration.sources import BadConfiguration, ConfigurationReader, read_member_file
from quarterdeck.backend.service.http.audited_requests import request_note
from quarterdeck.backend.service.http.face import Face
from quarterdeck.backend.service.http.responses import Denied, success
from quarterdeck.backend.service.member_log import LOGGER
from quarterdeck.backend.service.rest.endpoint import RestRequest, reading, writing

LONGEST_NAME = 100
"""Characters of a name that are quoted."""
AT_START_ONLY = "takes effect when the member is started with it"
IN_FORCE = "is in force already"
BY_RELOAD = "takes effect when it stands in the member's own file and that is reloaded"
BY_TURNING = "turns by quarterdeck member secret; " + AT_START_ONLY
BROWSERS: dict[object, str] = {"allowed-origins": "allowed_origins", "allowed-hosts": "allowed_hosts"}
RELOADED = ("users", "tokens", *BROWSERS)
NO_USER_LEFT = "without users any client could change this member; " + AT_START_ONLY


class ConfigurationEntry(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that a document configures, in the product's words."""

    section_name: str
    config_name: str
    reason: str = ""
    """Why it is ignored; empty when it is applied."""


class RuntimeChange:
    """What a document changes in the member behind `face`; of a reload, `reloaded` is the security that it describes.

    Raises `Denied` and `BadProperty`.
    """

    def __init__(self, document: object, face: Face, reloaded: Security | None = None) -> None:
        self.join_list: tuple[Address, ...] | None = None
        """The new one; None when it stays."""
        self.properties: dict[str, PropertyValue] = {}
        """Those that change."""
        self.security: dict[str, Any] = {}
        """The fields of `Security` that change."""
        self.applied: list[ConfigurationEntry] = []
        self.ignored: list[ConfigurationEntry] = []
        self._member, self._configuration = face.member, face.configuration
        self._at_start: Mapping[str, Any] | None = self._configuration.document if reloaded is not None else None
        """The content of the file at the start, of which a reload lists only what changed."""
        root = _mapping(document, "the configuration")
        tcp_ip = {"member-list": self._sort_member_list}
        hazelcast = {"properties": self._sort_properties, "network": {"join": {"tcp-ip": tcp_ip}}}
        self._sort((), root, {"hazelcast": hazelcast, "quarterdeck": {"security": lambda _: None}})
        security = _mapping(root.get("quarterdeck"), "quarterdeck").get("security")
        self._sort_security(_mapping(security, "security"), reloaded)
        self._member.settings.changed_at_runtime(self.properties)

    def _sort(self, above: FieldPath, section: dict[object, object], handlers: Mapping[str, Any]) -> None:
        """Hand what can change to `handlers`, of the section or of those in it; report the rest as ignored."""
        for name, value in section.items():
            handler = handlers.get(str(name))
            if handler is None and self._was_at_start((*above, str(name)), value):
                continue
            if handler is None:
                reason = IGNORED if name in PRODUCT_SECTIONS.get(above, ()) else AT_START_ONLY
                self._note(str(above[-1]), name, reason)
            elif isinstance(handler, Mapping):
                self._sort((*above, str(name)), _mapping(value, str(name)), handler)
            else:
                handler(value)

    def _was_at_start(self, place: FieldPath, value: object) -> bool:
        found: object = self._at_start
        for step in place:
            found = found.get(step, self) if isinstance(found, Mapping) else self
        return found == value

    def _note(self, section: str, name: object, reason: str = "") -> None:
        """Note that this is ignored for a `reason`, or without one that it is applied."""
        if reason == IN_FORCE and self._at_start is not None:
            return
        (self.ignored if reason else self.applied).append(ConfigurationEntry(section, _short(name), reason))

    def _sort_member_list(self, value: object) -> None:
        wanted = read_member_list(value, self._member.settings)
        if not self._configuration.tcp_ip_enabled:
            self._note("tcp-ip", "member-list", "TCP-IP join is not enabled in the cluster")
        elif wanted == self._member.join_list:
            self._note("tcp-ip", "member-list", IN_FORCE)
        else:
            self.join_list = wanted
            self._note("tcp-ip", "member-list")

    def _sort_properties(self, section: object) -> None:
        settings = self._member.settings
        for name, value in _mapping(section, "properties").items():
            if name in PRODUCT_PROPERTIES:
                self._note("properties", name, IGNORED)
                continue
            assert isinstance(name, str)  # the whole document is checked
            assert isinstance(value, str | int | float | bool)
            if settings.with_properties({name: value}) == settings:
                self._note("properties", name, IN_FORCE)
            elif name in FIXED_AT_START:
                self._note("properties", name, "cannot be changed while the member runs; " + AT_START_ONLY)
            else:
                self.properties[name] = value
                self._note("properties", name)

    def _sort_security(self, section: dict[object, object], reloaded: Security | None) -> None:
        """Sort the section on security. Users that the file has no more are no longer accepted."""
        security = self._configuration.security
        if reloaded is not None:
            self._sort_users(section, security, reloaded)
        for name, value in section.items():
            if name not in RELOADED and self._was_at_start(("quarterdeck", "security", str(name)), value):
                continue
            if name == "secret-file":
                self._note("security", name, BY_TURNING)
            elif name not in RELOADED:
                self._note("security", name, AT_START_ONLY)
            elif reloaded is None:
                self._note("security", name, BY_RELOAD)
            elif name in BROWSERS:
                wanted = getattr(reloaded, BROWSERS[name])
                if wanted == getattr(security, BROWSERS[name]):
                    self._note("security", name, IN_FORCE)
                else:
                    self.security[BROWSERS[name]] = wanted
                    self._note("security", name)

    def _sort_users(self, section: dict[object, object], security: Security, reloaded: Security) -> None:
        for name, by_token in (("users", False), ("tokens", True)):
            before, after = (
                [user for user in given.users if user.by_token == by_token] for given in (security, reloaded)
            )
            if before == after and name in section:
                self._note("security", name, IN_FORCE)
            elif before != after and security.users and not reloaded.users:
                self._note("security", name, NO_USER_LEFT)
            elif before != after:
                self.security["users"] = reloaded.users
                self._note("security", name)


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
        line = mark.line + 1 if mark else 1
        raise Denied(400, f"line {line}: is not YAML: {what}", "check the indentation") from None
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


def _mapping(value: object, name: str) -> dict[object, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        hint = "write it as in a member's configuration file, from hazelcast: on"
        raise Denied(400, f"{name}: is not a mapping", hint)
    return value


def _short(name: object) -> str:
    """Quote a key. Only plain ones are written out: others can be huge."""
    text = str(name) if isinstance(name, str | int | float) and not (isinstance(name, int) and name > 2**64) else "?"
    return text if len(text) <= LONGEST_NAME else text[:LONGEST_NAME] + "…"


NO_TCP_IP = "TCP-IP join mechanism is not enabled in the cluster."
LIST_UPDATED = "The member list of TCP-IP join config is updated at run time. "
"""With the blank at its end, as the product writes it."""
UPDATED = "Configuration Update successfully finished."


async def member_list(rest_request: RestRequest) -> Response:
    """Answer with the list in force: as it was configured, or as it was edited last."""
    _require_tcp_ip(rest_request.face)
    return success(member_list=_list_in_force(rest_request.face))


async def update_member_list(rest_request: RestRequest) -> Response:
    """Replace the list at this member, which passes it to all members of its cluster."""
    face = rest_request.face
    _require_tcp_ip(face)
    addresses = read_member_list(rest_request.payload, face.member.settings)
    await face.do(SetJoinList(face.label, addresses), rest_request.caller)
    return success(message=LIST_UPDATED, member_list=addresses)


async def update(rest_request: RestRequest) -> Response:
    """Apply what can be changed at runtime of a configuration in the body."""
    if isinstance(rest_request.payload, str):
        text = rest_request.payload
        document = await asyncio.to_thread(parse_document, text)
    else:
        document = rest_request.payload
        text = msgspec.json.encode(document).decode()  # JSON is YAML
    try:
        await asyncio.to_thread(read_member_file, text, "configuration", Path())
    except BadConfiguration as problem:
        raise Denied(400, str(problem), more={"field": problem.field}) from None
    return await _apply(rest_request, document)


async def reload(rest_request: RestRequest) -> Response:
    """Apply what can be changed at runtime of the file with which the member was started, as it is now."""
    source = rest_request.face.configuration.source
    if source is None:
        raise Denied(409, "this member was started without a configuration file", "use hazelcast/rest/config/update")

    def read() -> tuple[object, Security]:
        document, _, warnings = read_member_file(text_of(source, BadConfiguration), str(source), source.parent)
        for warning in warnings:
            LOGGER.warning("%s", warning)
        return document.data or {}, ConfigurationReader(source, ()).security()

    try:
        document, security = await asyncio.to_thread(read)
    except BadConfiguration as problem:
        hint = "mend it on the host of this member; nothing was changed"
        raise Denied(409, str(problem), hint, more={"field": problem.field}) from None
    return await _apply(rest_request, document, security)


async def _apply(rest_request: RestRequest, document: object, reloaded: Security | None = None) -> Response:
    face = rest_request.face
    configured = face.configuration
    change = RuntimeChange(document, face, reloaded)
    if change.join_list is not None:
        await face.do(SetJoinList(face.label, change.join_list), rest_request.caller)
    if change.properties:
        await face.reconfigure(change.properties, rest_request.caller)
    if change.security:
        face.configuration = replace(configured, security=replace(configured.security, **change.security))
        names = ", ".join(user.name for user in face.configuration.security.users) or "none"
        LOGGER.info("the security of the HTTP interface was reloaded; its users are %s", names)
    applied = ", ".join(entry.config_name for entry in change.applied) or "nothing"
    request_note().detail = f"takes effect: {applied}; {len(change.ignored)} others are ignored"
    return success(message=UPDATED, result={"addedConfigs": change.applied, "ignoredConfigs": change.ignored})


def _list_in_force(face: Face) -> tuple[str, ...]:
    """Return the configured list if it was not edited: there an entry without a port is one entry, though it means several."""
    member, configured = face.member, face.configuration.join_list
    if configured and read_member_list(list(configured), member.settings) == member.join_list:
        return configured
    return member.join_list


def _require_tcp_ip(face: Face) -> None:
    if not face.configuration.tcp_ip_enabled:
        raise Denied(400, NO_TCP_IP, "set hazelcast.network.join.tcp-ip.enabled to true and start the members anew")


_AT = "/hazelcast/rest/config/"

PATHS = (
    reading(_AT + "tcp-ip/member-list", member_list),
    writing(_AT + "tcp-ip/member-list", update_member_list, "member-list"),
    writing(_AT + "update", update, "configuration"),
    writing(_AT + "reload", reload),
)

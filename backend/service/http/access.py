"""Who may use the HTTP face, and for what: identification, roles, groups, read-only members, and those who guess.

Somebody shows who they are by ``Authorization: Basic`` or ``Bearer``, or by the name and password that stand in the body of
operators' paths (Hazelcast: REST bodies). When no users are configured, whoever reaches the member may do what is not a fault.
Pages in a browser may do nothing, with or without users, unless their origin is configured.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import ipaddress
import secrets
from collections import OrderedDict
from collections.abc import Callable

from starlette.requests import HTTPConnection

from quarterdeck.backend.core.address import BadAddress, host_of, split_host_and_port
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.live.transport.limits import network_of
from quarterdeck.backend.service.configuration.process_configuration import Role, User, UserGroup
from quarterdeck.backend.service.http.attempts import AttemptCounter, GuessPace
from quarterdeck.backend.service.http.credentials import Credentials
from quarterdeck.backend.service.http.face import Caller, Face
from quarterdeck.backend.service.http.responses import Denied

_DIGEST_KEY = secrets.token_bytes(32)
"""Of this process: what is kept of a secret is of no use elsewhere."""

RANKS: dict[Role, int] = {"read": 0, "write": 1, "fault": 2}
"""Each role includes those before it."""

FREE_GUESSES = 5
"""Wrong credentials of one name from one remote host within a minute; those that follow wait for their turn."""

FREE_GUESSES_IN_ALL = 50
"""The same of all names together, so that nobody goes through them."""

GUESSES_APART_US = SECOND_US // 4

LONGEST_WAIT_US = 20 * SECOND_US
"""Whoever would have to wait longer for their turn is told to come again."""

PROVEN_KEPT = 4_096

REFUSALS_RECORDED = 20
"""Refusals of one remote host within the window that are recorded; an intruder may not fill the journal."""

LONGEST_NAME = 200
"""Characters of what was asked that are recorded."""

CHALLENGES = ('Basic realm="quarterdeck", charset="UTF-8"', 'Bearer realm="quarterdeck"')
"""A header each: browsers overlook a scheme that stands behind another one."""


async def require(face: Face, connection: HTTPConnection, role: Role, group: UserGroup) -> Caller:
    """The caller, who has identified themselves as somebody with `role` who may use `group`.

    Raises `Denied`: 401 when nobody has identified themselves or the credentials are wrong, 403 when they may not, 429 when
    too many guess.
    """
    access = access_of(face, connection)
    caller = await access.identified(connection)
    if caller is None:
        access.refused(connection, None, "nobody has identified themselves")
        raise _unidentified("this member wants to know who asks", "use curl -u NAME:PASSWORD")
    access.allow(connection, caller, role, group)
    return caller


def access_of(face: Face, connection: HTTPConnection) -> AccessPolicy:
    """The one that the application keeps for its member."""
    kept = connection.scope.get("state", {}).get("access")
    return kept if isinstance(kept, AccessPolicy) else AccessPolicy(face)


class AccessPolicy:
    """Decides who may do what with one member."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._credentials = Credentials(face.configuration.security.users)
        self._pace = GuessPace(FREE_GUESSES, GUESSES_APART_US)
        self._pace_in_all = GuessPace(FREE_GUESSES_IN_ALL, GUESSES_APART_US)
        self._proven: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        """Which credentials were right from which host: they need not wait for those who guess there too."""
        self._recorded_refusals = AttemptCounter(REFUSALS_RECORDED)

    @property
    def users(self) -> tuple[User, ...]:
        return self._credentials.users

    async def identified(self, connection: HTTPConnection) -> Caller | None:
        """Who asks, by the header; None if they have not said and would have to. Raises `Denied`."""
        self._check_browser(connection)
        if not self.users:
            role: Role = "fault" if self._face.configuration.allow_faults else "write"
            return Caller(remote_of(connection), role)
        header = connection.headers.get("authorization")
        if header is None:
            return None
        user = await self._look_up(connection, _name_in(header), header, lambda: _user_of(header, self.users))
        if user is None:
            raise _unidentified("unauthenticated")
        return Caller(remote_of(connection), user.role, user.name, user.groups)

    async def by_password(self, connection: HTTPConnection, password: str) -> Caller:
        """Who asks, by the password in the body of an operators' path. Raises `Denied`."""
        user = await self._look_up(connection, "", password, lambda: _user_with(password, self.users))
        if user is None:
            raise Denied(403, "unauthenticated", "the password is nobody's")
        return Caller(remote_of(connection), user.role, user.name, user.groups)

    async def _look_up(
        self, connection: HTTPConnection, name: str, shown: str, look: Callable[[], User | None]
    ) -> User | None:
        """Whose credentials these are. While somebody guesses, those that were not right before wait for their turn.

        Raises `Denied` when too many wait.
        """
        host = _host_of(connection)
        proof = (host, _digest(shown))
        if proof not in self._proven:
            now_us = self._face.now_us()
            wait_us = max(self._pace.turn_us((host, name), now_us), self._pace_in_all.turn_us(host, now_us))
            if wait_us > LONGEST_WAIT_US:
                retry = {"Retry-After": str(LONGEST_WAIT_US // SECOND_US)}
                raise Denied(429, "too many wrong credentials come from this address", "try again later", headers=retry)
            await asyncio.sleep(wait_us / SECOND_US)
        user = look()
        if user is None:
            self._proven.pop(proof, None)
            self._pace.wrong((host, name), self._face.now_us())
            self._pace_in_all.wrong(host, self._face.now_us())
            self.refused(connection, None, "wrong credentials")
        else:
            self._proven[proof] = None
            if len(self._proven) > PROVEN_KEPT:
                self._proven.popitem(last=False)
            self._face.identified(host)
        return user

    def allow(self, connection: HTTPConnection, caller: Caller, role: Role, group: UserGroup) -> None:
        """Raises `Denied` unless `caller` may use `group`, and do here what takes `role`."""
        configuration = self._face.configuration
        problem = hint = ""
        if caller.groups is not None and group not in caller.groups:
            problem = f"this belongs to the group {group}, and {caller.name} is limited to {', '.join(caller.groups)}"
            hint = "ask as somebody else"
        elif RANKS[caller.role] < RANKS[role]:
            problem = f"this takes the role {role}, and {caller.name or 'whoever asks'} has the role {caller.role}"
            hint = "ask as somebody else" if self.users else "start the member with --allow-faults"
        elif role != "read" and configuration.read_only:
            problem = "this member is read-only: nothing is changed through it"
            hint = "ask another member, or start this one without read-only"
        elif role == "fault" and not configuration.allow_faults:
            problem, hint = "this member takes no faults", "start it with --allow-faults"
        if problem:
            self.refused(connection, caller, problem)
            raise Denied(403, problem, hint)

    def refused(self, connection: HTTPConnection, caller: Caller | None, reason: str) -> None:
        """Have it recorded that somebody was not allowed something."""
        host, now_us = _host_of(connection), self._face.now_us()
        if self._recorded_refusals.wait_us(host, now_us):
            return
        self._recorded_refusals.record(host, now_us)
        asked = f"{connection.scope.get('method', 'WEBSOCKET')} {connection.scope['path']}"
        self._face.refused(asked[:LONGEST_NAME], caller or Caller(remote_of(connection), "read"), reason)

    def _check_browser(self, connection: HTTPConnection) -> None:
        """Any page can make a browser ask a member, with credentials that the browser knows, or none where none are needed;
        and a name that the page's owner has made up can lead to the member.
        """
        headers, security = connection.headers, self._face.configuration.security
        problem = hint = ""
        if any(origin.lower() not in security.allowed_origins for origin in headers.getlist("origin")):
            problem = "pages of this origin may not use this member from a browser"
            hint = "quarterdeck.security.allowed-origins names those that may"
        elif not security.open_to_all and not _is_plain_host(headers.get("host", ""), self._own_hosts()):
            problem = "the Host header names a host that is not this member's"
            hint = "use the member's own address, or add the name to quarterdeck.security.allowed-hosts"
        if problem:
            self.refused(connection, None, problem)
            raise Denied(403, problem, hint)

    def _own_hosts(self) -> tuple[str, ...]:
        """The names that are this member's, and those by which its operators know the cluster."""
        configuration = self._face.configuration
        listed = [one.lower() for one in map(_host_in, configuration.join_list) if one is not None]
        own = ("localhost", configuration.bind_host.lower(), host_of(self._face.address).lower())
        return (*own, *configuration.security.allowed_hosts, *listed)


def _unidentified(problem: str, hint: str = "") -> Denied:
    return Denied(401, problem, hint, challenges=CHALLENGES)


def remote_of(connection: HTTPConnection) -> str:
    """Host and port of the other end."""
    client = connection.client
    return f"{client.host}:{client.port}" if client else "unknown"


def _host_of(connection: HTTPConnection) -> str:
    """What a remote cannot change at will."""
    return network_of(connection.client.host) if connection.client else ""


def _is_plain_host(text: str, own: tuple[str, ...]) -> bool:
    """Whether the Host header is missing, as in HTTP/1.0, a numeric address, or one of `own`."""
    if not text:
        return True
    host = _host_in(text)
    if host is None:
        return False
    host = host.lower()
    if host in own:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _host_in(text: str) -> str | None:
    try:
        return split_host_and_port(text)[0]
    except BadAddress:
        return None


def _name_in(header: str) -> str:
    """For whom somebody gives themselves out; empty when the credentials say no name."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(rest.strip(), validate=True).decode().partition(":")[0][:LONGEST_NAME]
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""


def _user_with(password: str, users: tuple[User, ...]) -> User | None:
    """The user with this password. Every user is looked at, whatever was found before."""
    found = None
    for user in users:
        if _same(user.password, password) and user.password:
            found = user
    return found


def _user_of(header: str, users: tuple[User, ...]) -> User | None:
    """Whose credentials these are. Every user is looked at, whatever was found before."""
    scheme, _, rest = header.partition(" ")
    found = None
    if scheme.lower() == "bearer":
        for user in users:
            if _same(user.token, rest.strip()) and user.token:
                found = user
    elif scheme.lower() == "basic":
        try:
            name, colon, password = base64.b64decode(rest.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            return None
        for user in users:
            same_name, same_password = _same(user.name, name), _same(user.password, password)
            if same_name & same_password and user.password and colon:
                found = user
    return found


def _same(one: str, other: str) -> bool:
    """Whether two texts are the same, in a time that says nothing of either."""
    return hmac.compare_digest(_digest(one), _digest(other))


def _digest(text: str) -> bytes:
    return hmac.digest(_DIGEST_KEY, text.encode(errors="surrogatepass"), "sha256")

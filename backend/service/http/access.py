"""Who may use the HTTP face, and for what: identification, roles, read-only members, and the limit of failed attempts.

Somebody shows who they are by ``Authorization: Basic`` or ``Bearer``, or by the name and password that stand in the body of
operators' paths (behaviour 7.2). When no users are configured, whoever reaches the member may do what is not a fault, but
pages in a browser may not: they reach a loopback address from anywhere.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import math
from collections import OrderedDict, deque

from starlette.requests import HTTPConnection

from quarterdeck.backend.core.address import BadAddress, host_of, split_host_and_port
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.service.configuration.process_configuration import Role, User
from quarterdeck.backend.service.http.face import Caller, Face
from quarterdeck.backend.service.http.responses import Denied

RANKS: dict[Role, int] = {"read": 0, "write": 1, "fault": 2}
"""Each role includes those before it."""

WINDOW_US = 60 * SECOND_US

FAILURES_ALLOWED = 5
"""Failed attempts of one remote host within the window; then it is not listened to."""

REFUSALS_RECORDED = 20
"""Refusals of one remote host within the window that are recorded; an intruder may not fill the journal."""

REMOTES_KEPT = 4_096

LONGEST_NAME = 200
"""Characters of what was asked that are recorded."""

CHALLENGE = {"WWW-Authenticate": 'Basic realm="quarterdeck", charset="UTF-8", Bearer'}


def require(face: Face, connection: HTTPConnection, role: Role) -> Caller:
    """The caller, who has identified themselves as somebody with `role`.

    Raises `Denied`: 401 when nobody has identified themselves or the credentials are wrong, 403 when they may not, 429 after
    too many failures.
    """
    access = access_of(face, connection)
    caller = access.identified(connection)
    if caller is None:
        access.refused(connection, None, "nobody has identified themselves")
        raise Denied(401, "this member wants to know who asks", "use curl -u NAME:PASSWORD", headers=CHALLENGE)
    access.allow(connection, caller, role)
    return caller


def access_of(face: Face, connection: HTTPConnection) -> Access:
    """The one that the application keeps for its member."""
    kept = connection.scope.get("state", {}).get("access")
    return kept if isinstance(kept, Access) else Access(face)


class AttemptCounter:
    """Counts what remote hosts did lately. So many hosts are remembered; of more, the host that was seen least recently
    is forgotten.
    """

    def __init__(self, allowed: int, window_us: int = WINDOW_US, kept: int = REMOTES_KEPT) -> None:
        self._allowed = allowed
        self._window_us = window_us
        self._kept = kept
        self._times: OrderedDict[str, deque[int]] = OrderedDict()

    def wait_us(self, host: str, now_us: int) -> int:
        """How long until `host` may do it again; 0 if it may now."""
        times = self._times.get(host)
        if times is None or len(times) < self._allowed:
            return 0
        return max(0, times[0] + self._window_us - now_us)

    def record(self, host: str, now_us: int) -> None:
        """`host` has done it."""
        self._times.setdefault(host, deque(maxlen=self._allowed)).append(now_us)
        self._times.move_to_end(host)
        if len(self._times) > self._kept:
            self._times.popitem(last=False)

    def __len__(self) -> int:
        return len(self._times)


class Access:
    """Decides who may do what with one member."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._failures = AttemptCounter(FAILURES_ALLOWED)
        self._recorded_refusals = AttemptCounter(REFUSALS_RECORDED)

    @property
    def users(self) -> tuple[User, ...]:
        return self._face.configuration.security.users

    def identified(self, connection: HTTPConnection) -> Caller | None:
        """Who asks, by the header; None if they have not said and would have to. Raises `Denied`."""
        if not self.users:
            self._reject_browsers(connection)
            role: Role = "fault" if self._face.configuration.allow_faults else "write"
            return Caller(remote_of(connection), role)
        header = connection.headers.get("authorization")
        if header is None:
            return None
        self._check_failed_attempts(connection)
        user = _user_of(header, self.users)
        if user is None:
            raise self._failed(connection, Denied(401, "unauthenticated", headers=CHALLENGE))
        return Caller(remote_of(connection), user.role, user.name)

    def by_password(self, connection: HTTPConnection, password: str) -> Caller:
        """Who asks, by the password in the body of an operators' path. Raises `Denied`."""
        self._check_failed_attempts(connection)
        found = None
        for user in self.users:
            if _same(user.password, password) and user.password:
                found = user
        if found is None:
            raise self._failed(connection, Denied(403, "unauthenticated", "the password is nobody's"))
        return Caller(remote_of(connection), found.role, found.name)

    def allow(self, connection: HTTPConnection, caller: Caller, role: Role) -> None:
        """Raises `Denied` unless `caller` may do here what takes `role`."""
        configuration = self._face.configuration
        problem = hint = ""
        if RANKS[caller.role] < RANKS[role]:
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

    def _check_failed_attempts(self, connection: HTTPConnection) -> None:
        wait_us = self._failures.wait_us(_host_of(connection), self._face.now_us())
        if wait_us:
            seconds = math.ceil(wait_us / SECOND_US)
            hint = f"try again in {seconds} s"
            raise Denied(429, "too many failed attempts from this address", hint, headers={"Retry-After": str(seconds)})

    def _failed(self, connection: HTTPConnection, denied: Denied) -> Denied:
        self._failures.record(_host_of(connection), self._face.now_us())
        self.refused(connection, None, "wrong credentials")
        return denied

    def _reject_browsers(self, connection: HTTPConnection) -> None:
        """Any page can make a browser on this machine ask a loopback address, and a name that it owns can lead there."""
        headers, configuration = connection.headers, self._face.configuration
        problem = ""
        if "origin" in headers:
            problem = "pages in a browser may not use a member that asks nobody who they are"
        elif not configuration.security.open_to_all:
            own = ("localhost", configuration.bind_host, host_of(self._face.address))
            if not _is_plain_host(headers.get("host", ""), own):
                problem = "the Host header names a host that is not this member's"
        if problem:
            self.refused(connection, None, problem)
            raise Denied(403, problem, "use the member's own address, or configure users and identify yourself")


def remote_of(connection: HTTPConnection) -> str:
    """Host and port of the other end."""
    client = connection.client
    return f"{client.host}:{client.port}" if client else "unknown"


def _host_of(connection: HTTPConnection) -> str:
    """What a remote cannot change at will: its host, or for IPv6 the network of its host."""
    host = connection.client.host if connection.client else ""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else host


def _is_plain_host(text: str, own: tuple[str, ...]) -> bool:
    """Whether the Host header is missing, as in HTTP/1.0, a numeric address, or one of `own`."""
    if not text:
        return True
    try:
        host = split_host_and_port(text)[0].lower()
    except BadAddress:
        return False
    if host in own:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


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
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()

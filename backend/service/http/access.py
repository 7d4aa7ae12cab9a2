"""Who may use the HTTP interface, and for what: identification, roles, groups, read-only members, and guessing of passwords.

A client identifies itself by ``Authorization: Basic`` or ``Bearer``, or by the name and password in the body of operators' paths
(Hazelcast: REST bodies). When no users are configured, any client that reaches the member may do what is not a fault. Pages in a
browser may do nothing, with or without users, unless their origin is configured.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import ipaddress
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable

from starlette.requests import HTTPConnection

from quarterdeck.backend.core.address import BadAddress, host_of, split_host_and_port
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.live.transport.limits import network_of
from quarterdeck.backend.service.configuration.process_configuration import Role, User, UserGroup
from quarterdeck.backend.service.http.credentials import Credentials
from quarterdeck.backend.service.http.face import Caller, Face
from quarterdeck.backend.service.http.responses import Denied

WINDOW_US = 60 * SECOND_US
KEYS_KEPT = 4_096


class AttemptCounter:
    """Counts what remote hosts did lately.

    Up to `kept` hosts are remembered; then the host that was seen least recently is forgotten.
    """

    def __init__(self, allowed: int, window_us: int = WINDOW_US, kept: int = KEYS_KEPT) -> None:
        self._allowed = allowed
        self._window_us = window_us
        self._kept = kept
        self._times: OrderedDict[Hashable, deque[int]] = OrderedDict()

    def wait_us(self, host: Hashable, now_us: int) -> int:
        """Return how long until `host` may do it again; 0 if it may now."""
        times = self._times.get(host)
        if times is None or len(times) < self._allowed:
            return 0
        return max(0, times[0] + self._window_us - now_us)

    def record(self, host: Hashable, now_us: int) -> None:
        """Record that `host` has done it."""
        self._times.setdefault(host, deque(maxlen=self._allowed)).append(now_us)
        self._times.move_to_end(host)
        if len(self._times) > self._kept:
            self._times.popitem(last=False)

    def __len__(self) -> int:
        return len(self._times)


class GuessPace:
    """Slows guessing down without shutting clients out.

    After so many wrong guesses within a minute, the next ones are checked one after another, `apart_us` from each other.
    """

    def __init__(self, free: int, apart_us: int) -> None:
        self._wrong = AttemptCounter(free)
        self._apart_us = apart_us
        self._next_us: OrderedDict[Hashable, int] = OrderedDict()
        """When the next turn of each delayed client is."""

    def wait_us(self, client: Hashable, now_us: int) -> int:
        """Return how long a guess would wait for its turn."""
        if not self._wrong.wait_us(client, now_us):
            return 0
        return max(self._apart_us, self._next_us.get(client, 0) - now_us)

    def reserve(self, client: Hashable, now_us: int, wait_us: int) -> None:
        """Take the turn after `wait_us`. A guess that is refused takes none, so refusals delay nothing."""
        if not self._wrong.wait_us(client, now_us):
            return
        self._next_us[client] = now_us + wait_us + self._apart_us
        self._next_us.move_to_end(client)
        if len(self._next_us) > KEYS_KEPT:
            self._next_us.popitem(last=False)

    def wrong(self, client: Hashable, now_us: int) -> None:
        """Record a wrong guess."""
        self._wrong.record(client, now_us)


_DIGEST_KEY = secrets.token_bytes(32)
"""Of this process: what is kept of a secret is of no use elsewhere."""
RANKS: dict[Role, int] = {"read": 0, "write": 1, "fault": 2}
"""Each role includes those before it."""
FREE_GUESSES = 5
"""Wrong credentials of one name from one remote host within a minute that are checked at once; later ones are delayed."""
FREE_GUESSES_IN_ALL = 50
"""The same for all names together."""
GUESSES_APART_US = SECOND_US // 4
LONGEST_WAIT_US = 20 * SECOND_US
"""A client that would have to wait longer is asked to come again."""
PROVEN_KEPT = 4_096
REFUSALS_RECORDED = 20
"""Refusals of one remote host within the window that are recorded, so that an intruder does not fill the journal."""
LONGEST_NAME = 200
"""Characters of a request that are recorded."""
CHALLENGES = ('Basic realm="quarterdeck", charset="UTF-8"', 'Bearer realm="quarterdeck"')
"""A header each: browsers overlook a scheme that follows another one."""


async def require(face: Face, connection: HTTPConnection, role: Role, group: UserGroup) -> Caller:
    """Return the caller, which has identified itself as a user with `role` that may use `group`.

    Raises `Denied`: 401 when it has not identified itself or the credentials are wrong, 403 when it may not, 429 when too many
    guess.
    """
    access = access_of(face, connection)
    caller = await access.identified(connection)
    if caller is None:
        access.refused(connection, None, "the client has not identified itself")
        raise _unidentified("this member requires a user", "use curl -u NAME:PASSWORD")
    access.allow(connection, caller, role, group)
    return caller


def access_of(face: Face, connection: HTTPConnection) -> AccessPolicy:
    """Return the policy that the application keeps for its member."""
    kept = connection.scope.get("state", {}).get("access")
    return kept if isinstance(kept, AccessPolicy) else AccessPolicy(face)


class AccessPolicy:
    """Decides which clients may do what with one member."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._credentials = Credentials(face.configuration.security.users)
        self._pace = GuessPace(FREE_GUESSES, GUESSES_APART_US)
        self._pace_in_all = GuessPace(FREE_GUESSES_IN_ALL, GUESSES_APART_US)
        self._proven: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        """Credentials that were right, with the host: they are not delayed when others guess there."""
        self._recorded_refusals = AttemptCounter(REFUSALS_RECORDED)

    @property
    def users(self) -> tuple[User, ...]:
        return self._credentials.users

    async def identified(self, connection: HTTPConnection) -> Caller | None:
        """Return the caller by the header, or None if there is no header and one is needed. Raises `Denied`."""
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

    def still_known(self, connection: HTTPConnection) -> bool:
        """Return whether the credentials of a connection that was let in are right now."""
        header = connection.headers.get("authorization", "")
        return not self.users or _user_of(header, self.users) is not None

    async def by_password(self, connection: HTTPConnection, password: str) -> Caller:
        """Return the caller by the password in the body of an operators' path. Raises `Denied`."""
        user = await self._look_up(connection, "", password, lambda: _user_with(password, self.users))
        if user is None:
            raise Denied(403, "unauthenticated", "no user has this password")
        return Caller(remote_of(connection), user.role, user.name, user.groups)

    async def _look_up(
        self, connection: HTTPConnection, name: str, shown: str, look: Callable[[], User | None]
    ) -> User | None:
        """Return the user with these credentials. During guessing, those that were not right before are delayed.

        Raises `Denied` when too many wait.
        """
        host = _host_of(connection)
        proof = (host, _digest(shown))
        if proof not in self._proven:
            now_us = self._face.now_us()
            wait_us = max(self._pace.wait_us((host, name), now_us), self._pace_in_all.wait_us(host, now_us))
            if wait_us > LONGEST_WAIT_US:
                retry = {"Retry-After": str(LONGEST_WAIT_US // SECOND_US)}
                raise Denied(429, "too many wrong credentials come from this address", "try again later", headers=retry)
            self._pace.reserve((host, name), now_us, wait_us)
            self._pace_in_all.reserve(host, now_us, wait_us)
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
        """Raise `Denied` unless `caller` may use `group` and has the `role`."""
        configuration = self._face.configuration
        problem = hint = ""
        if caller.groups is not None and group not in caller.groups:
            problem = f"this belongs to the group {group}, and {caller.name} is limited to {', '.join(caller.groups)}"
            hint = "use another user"
        elif RANKS[caller.role] < RANKS[role]:
            problem = f"this takes the role {role}, and {caller.name or 'this client'} has the role {caller.role}"
            hint = "use another user" if self.users else "start the member with --allow-faults"
        elif role != "read" and configuration.read_only:
            problem = "this member is read-only: nothing is changed through it"
            hint = "ask another member, or start this one without read-only"
        elif role == "fault" and not configuration.allow_faults:
            problem, hint = "this member takes no faults", "start it with --allow-faults"
        if problem:
            self.refused(connection, caller, problem)
            raise Denied(403, problem, hint)

    def refused(self, connection: HTTPConnection, caller: Caller | None, reason: str) -> None:
        """Record that a client was not allowed something."""
        host, now_us = _host_of(connection), self._face.now_us()
        if self._recorded_refusals.wait_us(host, now_us):
            return
        self._recorded_refusals.record(host, now_us)
        asked = f"{connection.scope.get('method', 'WEBSOCKET')} {connection.scope['path']}"
        self._face.refused(asked[:LONGEST_NAME], caller or Caller(remote_of(connection), "read"), reason)

    def _check_browser(self, connection: HTTPConnection) -> None:
        """Refuse foreign origins and host names.

        Any page can make a browser send requests to a member, with the credentials that the browser knows, or with none;
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
        """Return the member's own names, and those by which its operators know the cluster."""
        configuration = self._face.configuration
        listed = [host.lower() for host in map(_host_in, configuration.join_list) if host is not None]
        own = ("localhost", configuration.bind_host.lower(), host_of(self._face.address).lower())
        return (*own, *configuration.security.allowed_hosts, *listed)


def _unidentified(problem: str, hint: str = "") -> Denied:
    return Denied(401, problem, hint, challenges=CHALLENGES)


def remote_of(connection: HTTPConnection) -> str:
    """Return host and port of the client."""
    client = connection.client
    return f"{client.host}:{client.port}" if client else "unknown"


def _host_of(connection: HTTPConnection) -> str:
    """Return what a remote cannot change at will."""
    return network_of(connection.client.host) if connection.client else ""


def _is_plain_host(text: str, own: tuple[str, ...]) -> bool:
    """Return whether the Host header is missing, as in HTTP/1.0, a numeric address, or one of `own`."""
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
    """Return the name that the credentials claim; empty if they have none."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(rest.strip(), validate=True).decode().partition(":")[0][:LONGEST_NAME]
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""


def _user_with(password: str, users: tuple[User, ...]) -> User | None:
    """Return the user with this password. Every user is compared, whatever was found before."""
    found = [user for user in users if _same(user.password, password) and user.password]
    return found[-1] if found else None


def _user_of(header: str, users: tuple[User, ...]) -> User | None:
    """Return the user with these credentials. Every user is compared, whatever was found before."""
    scheme, _, rest = header.partition(" ")
    found = []
    if scheme.lower() == "bearer":
        found = [user for user in users if _same(user.token, rest.strip()) and user.token]
    elif scheme.lower() == "basic":
        try:
            name, colon, password = base64.b64decode(rest.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            return None
        found = [
            user
            for user in users
            if _same(user.name, name) & _same(user.password, password) and user.password and colon
        ]
    return found[-1] if found else None


def _same(text: str, other: str) -> bool:
    """Compare two texts in a time that reveals nothing of either."""
    return hmac.compare_digest(_digest(text), _digest(other))


def _digest(text: str) -> bytes:
    return hmac.digest(_DIGEST_KEY, text.encode(errors="surrogatepass"), "sha256")

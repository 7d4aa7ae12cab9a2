"""Who may use the HTTP interface, and for what: identification, roles, groups, read-only members, and guessing of passwords.

A client identifies itself by ``Authorization: Basic`` or ``Bearer``, or by the name and password in the body of operators' paths
(Hazelcast: REST bodies). Secrets of users are what their files hold now: they change without a restart. When no users are
configured, any client that reaches the member may do what is not a fault. Pages in a browser may do nothing, with or without
users, unless their origin is configured.
"""

from __future__ import annotations

import base64
import hmac
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path

from starlette.requests import HTTPConnection

from quarterdeck.backend.core.address import BadAddress, host_of, numeric_host, split_host_and_port
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.live.security.file_watch import FileWatch
from quarterdeck.backend.live.transport.limits import network_of
from quarterdeck.backend.service.configuration.process_configuration import Role, User, UserGroup
from quarterdeck.backend.service.http.audited_requests import request_note
from quarterdeck.backend.service.http.face import Caller, Face
from quarterdeck.backend.service.http.responses import Denied

_LOG = logging.getLogger(__name__)


class Credentials:
    """The users, each with the secret that stands in its file now.

    A file that is gone takes the secret with it. One that is empty or cannot be read leaves the last secret as it was: it may be
    about to be written.
    """

    def __init__(self, users: tuple[User, ...], seconds: Callable[[], float] = time.monotonic) -> None:
        self._users = users
        self._watch = FileWatch([user.secret_file for user in users if user.secret_file is not None], seconds)

    @property
    def users(self) -> tuple[User, ...]:
        """All users, in the order of the configuration."""
        for path, is_there in self._watch.changed().items():
            self._users = tuple(
                _read_again(user, path, is_there) if user.secret_file == path else user for user in self._users
            )
        return self._users


def _read_again(user: User, path: Path, is_there: bool) -> User:
    if not is_there:
        _LOG.warning("%s is no longer accepted: %s is gone", user.name, path)
        return replace(user, password="", token="")
    try:
        secret = path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as problem:
        _LOG.warning("the secret of %s stays as it was: %s cannot be read: %s", user.name, path, problem)
        return user
    if not secret:
        _LOG.warning("the secret of %s stays as it was: %s is empty", user.name, path)
        return user
    _LOG.info("the secret of %s was read again from %s", user.name, path)
    return replace(user, token=secret) if user.by_token else replace(user, password=secret)


KEYS_KEPT = 4_096


class GuessLimit:
    """Bounds how many wrong guesses of a client are checked: `free` at once, then one every `apart_us`.

    Only guesses that were checked count. So refusals delay no later client, however many they are.
    """

    def __init__(self, free: int, apart_us: int) -> None:
        self._apart_us = apart_us
        self._ahead_us = (free - 1) * apart_us
        self._free_again_us: OrderedDict[Hashable, int] = OrderedDict()
        """When all wrong guesses of a client are made up for; those of whom this is over are forgotten."""

    def wait_us(self, client: Hashable, now_us: int) -> int:
        """Return how long until a guess of `client` is checked; 0 if it is now."""
        return max(0, self._free_again_us.get(client, 0) - self._ahead_us - now_us)

    def wrong(self, client: Hashable, now_us: int) -> None:
        self._free_again_us[client] = max(now_us, self._free_again_us.get(client, 0)) + self._apart_us
        self._free_again_us.move_to_end(client)
        while len(self._free_again_us) > KEYS_KEPT or next(iter(self._free_again_us.values())) <= now_us:
            self._free_again_us.popitem(last=False)


_DIGEST_KEY = secrets.token_bytes(32)
"""Of this process: what is kept of a secret is of no use elsewhere."""
RANKS: dict[Role, int] = {"read": 0, "write": 1, "fault": 2}
"""Each role includes those before it."""
FREE_GUESSES, GUESSES_APART_US = 5, SECOND_US // 20
"""Wrong passwords of one name from one remote host that are checked, however close together, and how far apart the next ones."""
FREE_GUESSES_IN_ALL, GUESSES_APART_IN_ALL_US = 50, SECOND_US // 50
"""The same for all names together."""
UNGUESSABLE = 16
"""Letters of a bearer token: guesses of so many are not bounded, since they lead nowhere at any rate."""
PROVEN_KEPT = 4_096
LONGEST_NAME = 200
"""Characters of a request that are recorded."""
CHALLENGES = ('Basic realm="quarterdeck", charset="UTF-8"', 'Bearer realm="quarterdeck"')
"""A header each: browsers overlook a scheme that follows another one."""


def require(face: Face, connection: HTTPConnection, role: Role, group: UserGroup) -> Caller:
    """Return the caller, which has identified itself as a user with `role` that may use `group`.

    Raises `Denied`: 401 when it has not identified itself or the credentials are wrong, 403 when it may not, 429 when too many
    guess.
    """
    access = access_of(face, connection)
    caller = access.identified(connection)
    if caller is None:
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
        self._configured = face.configuration.security.users
        self._credentials = Credentials(self._configured)
        self._guesses = GuessLimit(FREE_GUESSES, GUESSES_APART_US)
        self._guesses_in_all = GuessLimit(FREE_GUESSES_IN_ALL, GUESSES_APART_IN_ALL_US)
        self._proven: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        """Credentials that were right, with the host: they are checked whatever others guess there."""

    @property
    def users(self) -> tuple[User, ...]:
        """The users as the last start or reload has named them."""
        configured = self._face.configuration.security.users
        if configured is not self._configured:
            self._configured, self._credentials = configured, Credentials(configured)
        return self._credentials.users

    def identified(self, connection: HTTPConnection) -> Caller | None:
        """Return the caller by the header, or None if there is no header and one is needed. Raises `Denied`."""
        self._check_browser(connection)
        if not self.users:
            role: Role = "fault" if self._face.configuration.allow_faults else "write"
            return Caller(remote_of(connection), role)
        header = connection.headers.get("authorization")
        if header is None:
            return None
        name, _, _ = _basic(header) or ("", "", "")
        request_note().tried = name = name[:LONGEST_NAME]
        user = self._look_up(connection, name, header, lambda: _user_of(header, self.users))
        if user is None:
            raise _unidentified("unauthenticated")
        return Caller(remote_of(connection), user.role, user.name, user.groups)

    def still_known(self, connection: HTTPConnection, group: UserGroup) -> bool:
        """Return whether a connection that was let in would be let in now, by its credentials and for `group`."""
        if not self.users:
            return True
        user = _user_of(connection.headers.get("authorization", ""), self.users)
        return user is not None and (user.groups is None or group in user.groups)

    def by_password(self, connection: HTTPConnection, password: str) -> Caller:
        """Return the caller by the password in the body of an operators' path. Raises `Denied`."""
        user = self._look_up(connection, "", password, lambda: _user_with(password, self.users))
        if user is None:
            raise Denied(403, "unauthenticated", "no user has this password")
        return Caller(remote_of(connection), user.role, user.name, user.groups)

    def _look_up(
        self, connection: HTTPConnection, name: str, shown: str, look: Callable[[], User | None]
    ) -> User | None:
        """Return the user with these credentials.

        Raises `Denied` while too many guess and these credentials were not right before: they are not looked at then.
        """
        host = network_of(connection.client.host) if connection.client else ""  # what it cannot change at will
        now_us = self._face.now_us()
        proof = (host, _digest(shown))
        bounded = not (shown[:7].lower() == "bearer " and len(shown[7:].strip()) >= UNGUESSABLE)
        if bounded and proof not in self._proven:
            wait_us = max(self._guesses.wait_us((host, name), now_us), self._guesses_in_all.wait_us(host, now_us))
            if wait_us:
                hint = "try again; programs that have a token are not concerned"
                raise Denied(429, "too many wrong passwords come from this address", hint, headers={"Retry-After": "1"})
        user = look()
        if user is None:
            self._proven.pop(proof, None)
            if bounded:
                self._guesses.wrong((host, name), now_us)
                self._guesses_in_all.wrong(host, now_us)
        else:
            self._proven[proof] = None
            if len(self._proven) > PROVEN_KEPT:
                self._proven.popitem(last=False)
            self._face.identified(host)
        return user

    def allow(self, connection: HTTPConnection, caller: Caller, role: Role, group: UserGroup) -> None:
        """Raise `Denied` unless `caller` may use `group` and has the `role`."""
        configuration, note = self._face.configuration, request_note()
        note.caller = caller
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
            raise Denied(403, problem, hint)
        note.changes = role != "read"

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
            raise Denied(403, problem, hint)

    def _own_hosts(self) -> tuple[str, ...]:
        """Return the member's own names, and those by which its operators know the cluster."""
        configuration = self._face.configuration
        listed = [host.lower() for host in map(_host_in, configuration.join_list) if host is not None]
        own = ("localhost", configuration.bind_host.lower(), host_of(self._face.member.address).lower())
        return (*own, *configuration.security.allowed_hosts, *listed)


def _unidentified(problem: str, hint: str = "") -> Denied:
    return Denied(401, problem, hint, challenges=CHALLENGES)


def remote_of(connection: HTTPConnection) -> str:
    """Return host and port of the client."""
    client = connection.client
    return f"{client.host}:{client.port}" if client else "unknown"


def _is_plain_host(text: str, own: tuple[str, ...]) -> bool:
    """Return whether the Host header is missing, as in HTTP/1.0, a numeric address, or one of `own`."""
    host = _host_in(text)
    if host is None:
        return not text
    return host.lower() in own or numeric_host(host) is not None


def _host_in(text: str) -> str | None:
    try:
        return split_host_and_port(text)[0]
    except BadAddress:
        return None


def _basic(header: str) -> tuple[str, str, str] | None:
    """Return what a Basic header holds: name, colon and password; None for any other header."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(rest.strip(), validate=True).decode().partition(":")
    except ValueError:  # neither base64, nor UTF-8
        return None


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
    elif given := _basic(header):
        name, colon, password = given
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

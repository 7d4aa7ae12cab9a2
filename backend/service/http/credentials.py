"""The secrets of users of the HTTP interface, as their files have them now: they change without a restart."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from quarterdeck.backend.live.security.tls import FileStamp, stamp_of
from quarterdeck.backend.service.configuration.process_configuration import User

LOOK_SECONDS = 2.0
"""How often, at most, the files are checked; that happens when a client presents a secret."""
_LOG = logging.getLogger(__name__)


class Credentials:
    """The users, each with the secret that stands in its file now.

    A file that is gone takes the secret with it. One that is empty or cannot be read leaves the last secret as it was: it may be
    about to be written.
    """

    def __init__(self, users: tuple[User, ...], seconds: Callable[[], float] = time.monotonic) -> None:
        self._users = list(users)
        self._seconds = seconds
        self._stamps: list[FileStamp | None] = [_stamp(user) for user in users]
        self._looked_at = seconds()

    @property
    def users(self) -> tuple[User, ...]:
        """All users, in the order of the configuration."""
        now = self._seconds()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            for place, user in enumerate(self._users):
                self._look(place, user)
        return tuple(self._users)

    def _look(self, place: int, user: User) -> None:
        stamp = _stamp(user)
        if user.secret_file is None or stamp == self._stamps[place]:
            return
        self._stamps[place] = stamp
        if stamp is None:
            self._users[place] = replace(user, password="", token="")
            _LOG.warning("%s is no longer accepted: %s is gone", user.name, user.secret_file)
            return
        try:
            secret = user.secret_file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as problem:
            _LOG.warning(
                "the secret of %s stays as it was: %s cannot be read: %s", user.name, user.secret_file, problem
            )
            return
        if not secret:
            _LOG.warning("the secret of %s stays as it was: %s is empty", user.name, user.secret_file)
            return
        self._users[place] = replace(user, token=secret) if user.by_token else replace(user, password=secret)
        _LOG.info("the secret of %s was read again from %s", user.name, user.secret_file)


def _stamp(user: User) -> FileStamp | None:
    return None if user.secret_file is None else stamp_of(user.secret_file)

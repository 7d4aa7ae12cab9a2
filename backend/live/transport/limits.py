"""How long a member waits for others, and limits for connections that are not identified yet: how many at a time, how much
they may send, how often they may fail."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable

from msgspec import Struct


class Timeouts(Struct, frozen=True):
    """How long a member waits for others, in seconds."""

    connect_seconds: float = 5.0
    """For a dial to succeed, handshake included."""
    hello_seconds: float = 5.0
    """For somebody who has dialled us to introduce itself."""
    frame_seconds: float = 120.0
    """For a member to finish a frame: longer than any member may be silent without being suspected."""


DEFAULT_TIMEOUTS = Timeouts()


class Limits(Struct, frozen=True):
    """A connection is pending until its handshake has succeeded, or it was handed over as HTTP."""

    pending_per_host: int = 128
    pending: int = 256
    http_per_host: int = 256
    """Connections that speak HTTP, busy or not."""
    http: int = 1024
    http_head_bytes: int = 16 * 1024
    """How much of a first request is taken in before the HTTP interface sees it, which may refuse it."""
    failures: float = 32.0
    """How many handshakes may fail in a row from one host before its connections are closed without a word..."""
    failures_per_second: float = 4.0
    """...and how often one may fail all the time."""


DEFAULT_LIMITS = Limits()

REMEMBERED_HOSTS = 4_096
"""Of how many hosts the failures are remembered; the one that has not failed for longest is forgotten first."""


class ConnectionSlots:
    """Places for connections of one kind, so many for each host and in all."""

    def __init__(self, per_host: int, in_all: int) -> None:
        self._per_host = per_host
        self._in_all = in_all
        self.taken = 0
        self._taken: Counter[str] = Counter()

    def take(self, host: str) -> Callable[[], None] | None:
        """Take a place: what to call, once or more often, to give it back. None when there is none left."""
        if self._taken[host] >= self._per_host or self.taken >= self._in_all:
            return None
        self.taken += 1
        self._taken[host] += 1
        given_back = False

        def release_slot() -> None:
            nonlocal given_back
            if not given_back:
                given_back = True
                self.taken -= 1
                self._taken[host] -= 1
                if not self._taken[host]:
                    del self._taken[host]

        return release_slot


class HandshakeFailures:
    """How often handshakes from each host have failed lately."""

    def __init__(self, limits: Limits, seconds: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._seconds = seconds
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    def failed(self, host: str) -> int:
        """Count one more; how many went unheard since the last one that was counted."""
        now = self._seconds()
        known = self._hosts.pop(host, None) or _Host(0.0, now)
        count = min(self._count(known, now) + 1, self._limits.failures)
        self._hosts[host] = _Host(count, now)
        if len(self._hosts) > REMEMBERED_HOSTS:
            self._hosts.popitem(last=False)
        return known.unheard

    def unheard(self, host: str) -> bool:
        """Whether a connection from `host` is to be closed without being heard, which is then counted."""
        known = self._hosts.get(host)
        if known is None or self._count(known, self._seconds()) <= self._limits.failures - 1:
            return False
        known.unheard += 1
        return True

    def _count(self, known: _Host, now: float) -> float:
        return max(0.0, known.count - (now - known.since) * self._limits.failures_per_second)


class _Host(Struct):
    count: float
    """How many failures stood against it..."""
    since: float
    """...at this time."""
    unheard: int = 0

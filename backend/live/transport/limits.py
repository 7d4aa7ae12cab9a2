"""How long a member waits for others, and limits for connections that are not identified yet.

These say how many there may be at a time, shared by which hosts, how much they may send, and how often they may fail.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Container
from functools import partial
from typing import Protocol

from msgspec import Struct


class Timeouts(Struct, frozen=True):
    """How long a member waits for others, in seconds."""

    connect_seconds: float = 5.0
    """For a dial to succeed, handshake included."""
    hello_seconds: float = 5.0
    """For a peer that has dialled us to introduce itself."""
    frame_seconds: float = 120.0
    """For a member to finish a frame: longer than any member may be silent without being suspected."""
    close_seconds: float = 10.0
    """For a peer to read what was written before its connection was closed; then the connection is aborted."""


DEFAULT_TIMEOUTS = Timeouts()


class TransportLimits(Struct, frozen=True):
    """A connection is pending until its handshake has succeeded, or it was handed over as HTTP."""

    pending_per_host: int = 128
    pending: int = 256
    http_per_host: int = 256
    """Connections that speak HTTP, busy or not."""
    http: int = 1024
    http_head_bytes: int = 16 * 1024
    """How much of a first request is taken in before the HTTP interface sees it, which may refuse it."""
    failures: float = 32.0
    """How many handshakes may fail in a row from one host before its connections are refused unheard..."""
    failures_per_second: float = 4.0
    """...and how often one may fail all the time."""


DEFAULT_LIMITS = TransportLimits()

REMEMBERED_HOSTS = 4_096
"""The number of hosts whose failures are remembered; the host without a failure for longest is forgotten first."""


OWN_DESCRIPTORS = 32
"""Open files that a member needs for itself: its journal, its sockets, and what it dials."""


def limits_within(descriptors: int) -> TransportLimits:
    """Return the limits of a process that may have so many files open.

    Of what it does not need itself, three quarters may be held by connections of which nothing is known, and the rest is for
    members.
    """
    room = max(descriptors - OWN_DESCRIPTORS, 16)
    pending, http = min(DEFAULT_LIMITS.pending, room // 4), min(DEFAULT_LIMITS.http, room // 2)
    return TransportLimits(
        pending_per_host=min(DEFAULT_LIMITS.pending_per_host, pending // 2),
        pending=pending,
        http_per_host=min(DEFAULT_LIMITS.http_per_host, http // 2),
        http=http,
    )


def network_of(host: str) -> str:
    """Return the origin that a remote cannot change at will: its address, or for IPv6 the network of its address."""
    if ":" not in host:
        return host
    try:
        return str(ipaddress.ip_network((host.partition("%")[0], 64), strict=False))
    except ValueError:
        return host


class KnownHosts:
    """Where a peer has proven its identity lately, and this machine itself. Strangers make way for them."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._hosts: OrderedDict[str, float] = OrderedDict()

    def add(self, host: str) -> None:
        """Note that a peer there has proven its identity."""
        self._hosts[network_of(host)] = self._seconds()
        self._hosts.move_to_end(network_of(host))
        if len(self._hosts) > REMEMBERED_HOSTS:
            self._hosts.popitem(last=False)

    def __contains__(self, host: object) -> bool:
        name = str(host)
        is_here = name.startswith(("127.", "::/64", "::ffff:127."))
        return is_here or self._seconds() - self._hosts.get(name, -math.inf) < KNOWN_SECONDS


KNOWN_SECONDS = 600.0


class SlotHolder(Protocol):
    """A connection that has a slot."""

    @property
    def gives_way(self) -> bool:
        """Whether it may be broken off for the sake of another one: no call waits for anything on it."""

    def give_way(self) -> None:
        """Break it off; its slot is another one's already."""


class ConnectionSlots:
    """Places for connections of one kind, so many for each host and in all.

    They are shared fairly. When there is none left, a newcomer is given the place of the oldest connection that gives way,
    of the host that holds most places: of a stranger, if the newcomer's host is known; else of its own host, or of
    a stranger that holds more than it does.
    """

    def __init__(self, per_host: int, in_all: int, known: Container[str] = ()) -> None:
        self._per_host = per_host
        self._in_all = in_all
        self._known = known
        self.taken = 0
        self._holders: dict[str, dict[SlotHolder, None]] = {}
        """By host, oldest first."""

    def take(self, host: str, holder: SlotHolder) -> Callable[[], None] | None:
        """Take a place: what to call, once or more often, to give it back. None when there is none left."""
        own, victim = len(self._holders.get(host, ())), None
        if own >= self._per_host or self.taken >= self._in_all:
            victim = self._giving_way(host) if own >= self._per_host else self._victim_for(host, own)
            if victim is None:
                return None
            self._give_back(*victim)
        self.taken += 1
        self._holders.setdefault(host, {})[holder] = None
        if victim is not None:
            victim[1].give_way()
        return partial(self._give_back, host, holder)

    def make_room(self) -> bool:
        """Break one connection off because another resource is short. Return whether one was open."""
        for host in self._greediest_first():
            if victim := self._giving_way(host):
                self._give_back(*victim)
                victim[1].give_way()
                return True
        return False

    def _give_back(self, host: str, holder: SlotHolder) -> None:
        held = self._holders.get(host, {})
        if holder in held:
            self.taken -= 1
            del held[holder]
            if not held:
                del self._holders[host]

    def _victim_for(self, host: str, own: int) -> tuple[str, SlotHolder] | None:
        known = host in self._known
        for other in self._greediest_first():
            stranger, more = other not in self._known, len(self._holders[other]) > own
            suits = other == host or (stranger and known) or (more and (stranger or known))
            if suits and (victim := self._giving_way(other)):
                return victim
        return None

    def _greediest_first(self) -> list[str]:
        """Return the hosts: strangers before known hosts, and the holders of most places first."""
        return sorted(self._holders, key=lambda host: (host in self._known, -len(self._holders[host])))

    def _giving_way(self, host: str) -> tuple[str, SlotHolder] | None:
        return next(((host, holder) for holder in self._holders.get(host, ()) if holder.gives_way), None)


class HandshakeFailures:
    """How often handshakes from each host have failed lately."""

    def __init__(self, limits: TransportLimits, seconds: Callable[[], float] = time.monotonic) -> None:
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

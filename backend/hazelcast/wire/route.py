"""How the hosts of members are found and reached from here: by DNS and directly, unless something stands between."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Literal, Protocol

from quarterdeck.backend.core.address import Address, host_of, port_of
from quarterdeck.backend.hazelcast.wire.messages import Message

Ending = Literal["closed", "absent", "refused", "unreachable"]
"""How a connection ended, or why it was not made.

It was closed, as by a member that merges; no process listens, says the host, which alone shows that a member has ended; the
peer refused, say in the handshake of TLS; or the host does not answer.
"""
FAMILIES = (socket.AF_INET, socket.AF_INET6)


class NotReached(Exception):
    """There is no way to an endpoint now. The message says why."""

    def __init__(self, reason: str, ending: Ending) -> None:
        super().__init__(reason)
        self.reason, self.ending = reason, ending


class GrowingLog(Protocol):
    """A log that is still written."""

    @property
    def has_begun(self) -> bool:
        """Return whether what was written before is on its way no more."""

    def lines(self) -> list[str]:
        """Return the whole lines that came since the last call."""

    def close(self) -> None:
        """Read no more."""


class Route:
    """The way of a machine in the members' own network. What stands between overrides what is different there."""

    urls: tuple[str, ...] = ()
    """What reaches the same members from another command; empty: their addresses."""
    is_indirect = False
    """Whether a connection ends for reasons that only `why_ended` knows."""
    follows_logs = False
    logs: Mapping[str, GrowingLog] = {}
    """The logs that are read along the way, by the host that writes each."""

    async def run(self) -> None:
        """Find what is to be found, until cancelled."""

    async def pause(self, seconds: float) -> None:
        """Return when names may stand for other hosts, after so many seconds at the latest."""
        await asyncio.sleep(seconds)

    async def hosts_of(self, name: Address) -> tuple[str, ...]:
        """Return the addresses of a host; those of IPv4 where it has both kinds, for members use one of them."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host_of(name), port_of(name), type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return ()
        by_family = [sorted({str(where[0]) for kind, *_, where in found if kind == wanted}) for wanted in FAMILIES]
        return tuple(next(filter(None, by_family), ()))

    async def reach(self, endpoint: Address) -> tuple[str, int]:
        """Return the host and the port to dial. Raises `NotReached`."""
        return host_of(endpoint), port_of(endpoint)

    async def why_ended(self, endpoint: Address) -> tuple[str, Ending] | None:
        """Return why a connection to `endpoint` has just ended, where that is known better than by its end."""
        return None

    def is_over(self, name: Address) -> bool:
        """Return whether the host of this name is known to exist no more."""
        return False

    def name_of(self, address: Address) -> Address:
        """Return how the member at an address of the members' own network is called here."""
        return address

    def address_of(self, name: Address) -> Address:
        """Return how members know the one that is called so here, and its port."""
        return name

    def named(self, message: Message) -> Message:
        """Return a message with the hosts named as they are here."""
        return message

    def named_in_line(self, line: str) -> str:
        """Return the line of a log with the hosts named as they are here."""
        return line

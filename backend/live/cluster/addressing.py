"""Ports for the members of a local cluster, counted up from a base port and past those that are taken."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from quarterdeck.backend.core.address import HIGHEST_PORT, Address, port_of, resolve_join_list

PORTS_TRIED = 100
"""How many ports from the base port on are looked at, as the product does (``network.port.port-count``)."""


class PortsExhausted(OSError):
    """Fewer free ports than members. The message names the ports looked at."""


class HeldPorts:
    """The first `count` ports from `base_port` up that are free, kept from other clusters until `release`.

    A member that is not running has to refuse connections, and one that is killed has to come back to its port, so the
    ports themselves are bound only while their members run. What is held is the UDP port of the same number, which members
    do not use: one cluster alone can have it, and it is free again when this process ends, however it ends.

    Raises `PortsExhausted`.
    """

    def __init__(self, count: int, base_port: int, host: str) -> None:
        last = min(base_port + max(PORTS_TRIED, count) - 1, HIGHEST_PORT)
        self._tokens: dict[int, socket.socket] = {}
        for port in range(base_port, last + 1):
            if len(self._tokens) == count:
                break
            token = _take(host, port)
            if token is not None:
                self._tokens[port] = token
        if len(self._tokens) < count:
            found = len(self._tokens)
            self.release()
            raise PortsExhausted(
                f"{count} members need {count} free ports on {host}, but of {base_port} to {last} "
                f"only {found} are free; end what holds them or choose another base port"
            )
        self.ports = tuple(self._tokens)

    def release(self) -> None:
        """Leave the ports to others. Releasing twice is harmless."""
        for token in self._tokens.values():
            token.close()


def _take(host: str, port: int) -> socket.socket | None:
    """Return the UDP port, held, when that and the TCP port are free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    token = socket.socket(family, socket.SOCK_DGRAM)
    try:
        token.bind((host, port))
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError:
        token.close()
        return None
    return token


def checked_labels(labels: Sequence[str] | int) -> tuple[str, ...]:
    """Return the labels of this number of members, or these labels.

    Raises:
        ValueError: There is none, or one is empty or there twice.
    """
    found = tuple(f"n{number}" for number in range(1, labels + 1)) if isinstance(labels, int) else tuple(labels)
    if not found:
        raise ValueError("a cluster needs a member")
    for place, label in enumerate(found):
        if not label.strip() or label in found[:place]:
            raise ValueError(f"label {place + 1}, {label!r}, is {'empty' if not label.strip() else 'taken already'}")
    return found


def checked_join_lists(
    join_lists: Mapping[str, Sequence[str]], addresses: Mapping[str, Address], port_try_count: int
) -> dict[str, tuple[Address, ...]]:
    """Return the join lists as addresses. A host without a port stands for ports counted up from that of the first member.

    Raises:
        ValueError: A list is of no member, or has an entry that is neither a label nor an address.
    """
    found = {}
    for label, entries in join_lists.items():
        strangers = [entry for entry in entries if ":" in entry or "." in entry]
        unknown = next((name for name in (label, *entries) if name not in (*addresses, *strangers)), None)
        if unknown is not None:
            raise ValueError(
                f'the join list of {label} has the unknown label "{unknown}"; known: {", ".join(addresses)}'
            )
        base_port = port_of(next(iter(addresses.values())))
        found[label] = resolve_join_list(entries, addresses, base_port=base_port, port_try_count=port_try_count)
    return found

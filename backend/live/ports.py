"""Ports for the members of a local cluster, counted up from a base port and past those that somebody else holds."""

from __future__ import annotations

import socket

from backend.core.address import HIGHEST_PORT

PORTS_TRIED = 100
"""How many ports from the base port on are looked at, as the product does (``network.port.port-count``)."""


class PortsExhausted(OSError):
    """Fewer free ports than members. The message names the ports looked at."""


def free_ports(count: int, base_port: int, host: str) -> tuple[int, ...]:
    """The first `count` ports from `base_port` up on which a member could listen now. Raises `PortsExhausted`.

    Nothing is held: a member that is not running has to refuse connections, so the ports are bound only when it starts.
    """
    last = min(base_port + max(PORTS_TRIED, count) - 1, HIGHEST_PORT)
    found: list[int] = []
    for port in range(base_port, last + 1):
        if len(found) == count:
            break
        if _is_free(host, port):
            found.append(port)
    if len(found) < count:
        raise PortsExhausted(
            f"{count} members need {count} free ports on {host}, but of {base_port} to {last} "
            f"only {len(found)} are free; end what holds them or choose another base port"
        )
    return tuple(found)


def _is_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True

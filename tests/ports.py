"""Ports of 127.0.0.1 that no other run of the tests on this machine uses, whatever runs beside this one.

A process of tests holds whole blocks of ports by listening on the first of each, so they are free again when it ends, however
it ends. They are below those that the system gives to outgoing connections. What is not ours and takes a port is passed over.
"""

from __future__ import annotations

import itertools
import os
import socket

BLOCK = 200
FIRST, LAST = 10_000, 32_000
HOST = "127.0.0.1"

_blocks: list[socket.socket] = []
_left: list[int] = []


def take_ports(count: int) -> int:
    """Return the first of so many ports in a row, which are free now and kept for this process."""
    assert count < BLOCK
    while len(_left) < count:
        _left[:] = _next_block()
    first, _left[:count] = _left[0], []
    return first


def _next_block() -> list[int]:
    """Hold a block that no other process holds; the ports in it. Processes begin their search at different places."""
    blocks = range(FIRST, LAST, BLOCK)
    begin = os.getpid() % len(blocks)
    for first in itertools.islice(itertools.cycle(blocks), begin, begin + len(blocks)):
        try:
            _blocks.append(socket.create_server((HOST, first)))
        except OSError:
            continue
        ports = list(range(first + 1, first + BLOCK))
        if all(_is_free(port) for port in ports):
            return ports
        _blocks.pop().close()
    raise AssertionError(f"no {BLOCK} ports in a row are free from {FIRST} to {LAST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True

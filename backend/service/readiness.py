"""Telling others that a member has joined: a file for scripts, a datagram for systemd (``Type=notify``)."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec


class ReadyFile:
    """A file that is there as long as the member has joined and not left. Raises OSError when it cannot be written."""

    def __init__(self, path: Path) -> None:
        """Makes sure that there is none yet: one that a killed member has left behind says nothing."""
        self._path = path
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise OSError(errno.ENOENT, f"there is no folder {path.parent} to write into")
        path.unlink(missing_ok=True)

    def write(self, content: Mapping[str, object]) -> None:
        """As a whole or not at all, so that who waits for it can read it at once."""
        unfinished = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        unfinished.write_bytes(msgspec.json.encode(content) + b"\n")
        unfinished.replace(self._path)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


def tell_systemd(state: str) -> None:
    """Say ``READY=1`` or the like to whoever has started this process and wants to know. Raises OSError."""
    name = os.environ.get("NOTIFY_SOCKET")
    if name:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.sendto(state.encode(), f"\0{name[1:]}" if name.startswith("@") else name)

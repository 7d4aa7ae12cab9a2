"""Whom a remote cluster hears, and since when not: what a watcher has to know beside the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

Contact = Literal["connecting", "connected", "stale"]


@dataclass(frozen=True)
class ConnectionStatus:
    """How one member is reached. What is known of a stale one is what it believed when it was last heard."""

    url: str
    contact: Contact
    """`connecting` until it was reached for the first time."""
    since_us: int
    """On the run's clock: since when it is connected, or when it was last heard (never: since it is looked for)."""
    why: str = ""
    """Why it is not connected."""
    refused: bool = False
    """It does answer, but turns us away."""
    state: str = ""
    """How it stands with a member of Hazelcast, in a word of `ConnectionState`; empty for others, and before it is known."""
    incomplete: str = ""
    """What is missing of its history; empty when nothing is."""


@runtime_checkable
class ConnectionStatusSource(Protocol):
    """A cluster whose members may be out of the watcher's reach."""

    @property
    def environment(self) -> str:
        """What the operator calls the place, such as PROD; may be empty."""
        ...

    def connection_status(self) -> Mapping[str, ConnectionStatus]:
        """How each of the `labels` is reached now."""
        ...

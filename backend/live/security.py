"""What a member demands of those who connect to it, and shows them itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from quarterdeck.backend.live.tls import TlsFiles


@dataclass(frozen=True)
class WireSecurity:
    """Everything empty: any member of a cluster with our name is one of us, and what is said can be read on the way."""

    secret: str = field(default="", repr=False)
    """Shared by all members of the cluster; proven by challenge and response, never sent (`backend.live.proof`)."""
    tls: TlsFiles | None = None
    """All connections are encrypted, HTTP too."""


OPEN = WireSecurity()

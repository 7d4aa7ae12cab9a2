"""What a link does to messages of one kind, a part of its condition (`backend.core.events.LinkChanged`)."""

from __future__ import annotations

from msgspec import Struct


class KindCondition(Struct, frozen=True):
    """Times are in microseconds, as in the condition of the whole link."""

    kind: str
    """Empty: what is done to messages of every kind."""
    delay: int = 0
    delay_up_to: int = 0
    loss: float = 0.0
    duplicate: float = 0.0
    held: bool = False
    """They wait until they are replayed; only simulated networks do that."""

    @property
    def is_plain(self) -> bool:
        """Whether nothing is done to them."""
        return self == KindCondition(self.kind)

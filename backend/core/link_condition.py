"""The condition of a link, as an event records it: what the link does to all messages, and besides to those of single kinds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.causes import Int64


class KindCondition(Struct, frozen=True):
    """What a link does to messages of one kind. Times are in microseconds, as in the condition of the whole link."""

    kind: str
    """Empty: what is done to messages of every kind."""
    delay: Int64 = 0
    delay_up_to: Int64 = 0
    loss: float = 0.0
    duplicate: float = 0.0
    held: bool = False
    """They wait until they are replayed; only simulated networks do that."""

    @property
    def is_plain(self) -> bool:
        """Whether nothing is done to them."""
        return self == KindCondition(self.kind)


class LinkChanged(Struct, frozen=True, tag_field="kind", tag="link-changed"):
    """The condition of the one-way link from `source` to `target`, whole; all defaults means: as if nothing was there."""

    source: str
    target: str
    blocked: Literal["", "blackhole", "reset"] = ""
    delay: Int64 = 0
    """Microseconds added to each frame."""
    loss: float = 0.0
    """Probability that a message is dropped."""
    duplicate: float = 0.0
    """Probability that a message arrives twice."""
    dropped_kinds: tuple[str, ...] = ()
    """Names of the kinds of messages that are dropped always."""
    delay_up_to: Int64 = 0
    """Greater than `delay`: what is added to each message is drawn from between the two."""
    of_kinds: tuple[KindCondition, ...] = ()
    """By name of the kind, those that the link is worse for than for others."""

    @property
    def is_plain(self) -> bool:
        """Whether messages now cross the link as if nothing had ever been wrong with it."""
        return self == LinkChanged(self.source, self.target)

"""The conditions that real traffic is subjected to: one matrix, shared by all members of a local cluster.

Conditions are applied by the sender, to each message, before it reaches a socket. A blackhole swallows messages and
lets dials time out; a reset breaks the connection once and fails what is sent or dialled afterwards. Both apply in the
direction that was cut alone: the other direction may still dial and deliver, exactly as in simulated traffic.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from backend.core.address import Address
from backend.core.events import LinkChanged
from backend.core.links import LinkConditions


class Network:
    """Conditions between labels, and who is who. `labels` maps addresses to labels; others are unconditioned."""

    def __init__(self, labels: Mapping[Address, str], randomness: Random) -> None:
        self.links = LinkConditions()
        self.labels = labels
        self._randomness = randomness

    @property
    def plain(self) -> bool:
        """Whether no link has any condition: the common case, asked before each message."""
        return not self.links.conditions

    def condition(self, source: Address, target: Address) -> LinkChanged | None:
        """The condition of the link from `source` to `target`, or None when it is plain."""
        links = self.links
        if not links.conditions:
            return None
        return links.of(self.labels.get(source, source), self.labels.get(target, target))

    def loses(self, condition: LinkChanged) -> bool:
        """Draw whether one message on a link in this condition is lost."""
        return condition.loss > 0 and self._randomness.random() < condition.loss

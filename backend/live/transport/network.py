"""The conditions that real traffic is subjected to: one matrix, shared by all members of a process.

Conditions are applied by the sender, to each message, before it reaches a socket. A blackhole swallows messages, lets
dials time out and hides from the receiver that the sender's end of a connection is gone; a reset breaks the connection
once and fails what is sent or dialled afterwards. Both apply in the direction that was cut alone: the other direction
may still dial and deliver, exactly as in simulated traffic.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from quarterdeck.backend.commands.links import (
    LinkConditions,
    conditions_by_kind,
    conditions_for,
    delay_us,
    set_condition,
)
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.messages import Message


class LiveNetwork:
    """Conditions between the labels in `addresses`; other members go by their addresses."""

    def __init__(self, addresses: Mapping[str, Address], randomness: Random) -> None:
        self.links = LinkConditions()
        self.addresses = addresses
        self._labels = {address: label for label, address in addresses.items()}
        self._randomness = randomness

    def take(self, condition: LinkChanged) -> None:
        """Take the condition of a link, for a network that does not make the changes itself."""
        set_condition(self.links.conditions, condition)

    def address_of(self, label: str) -> Address:
        return self.addresses.get(label) or Address(label)

    @property
    def plain(self) -> bool:
        """Whether no link has any condition: the common case, asked before each message."""
        return not self.links.conditions

    def condition(self, source: Address, target: Address) -> LinkChanged | None:
        """Return the condition of the link from `source` to `target`, or None when it is plain."""
        links = self.links
        if not links.conditions:
            return None
        return links.of(self._labels.get(source, source), self._labels.get(target, target))

    def copies(self, condition: LinkChanged, message: Message) -> int:
        """Return how often `message` crosses a link in this condition: not at all, once, or twice. Draws by chance."""
        draw, kind = self._randomness.random, str(message.__struct_config__.tag)
        if kind in condition.dropped_kinds:
            return 0
        found = conditions_for(condition, kind)
        if any(part.loss and draw() < part.loss for part in found):
            return 0
        return 2 if any(part.duplicate and draw() < part.duplicate for part in found) else 1

    def delay_us(self, condition: LinkChanged) -> int:
        """Return the delay that a link in this condition adds to a message, whatever its kind."""
        return delay_us(conditions_by_kind(condition)[0], self._randomness.random)

    def delay_of_kind_us(self, condition: LinkChanged, message: Message) -> int:
        """Return the delay that it adds besides to messages of this one's kind."""
        found = conditions_for(condition, str(message.__struct_config__.tag))
        return sum(delay_us(part, self._randomness.random) for part in found[1:])

    def hides_loss(self, source: Address, target: Address) -> bool:
        """Whether `target` cannot learn that a connection has ended at `source`."""
        condition = self.condition(source, target)
        return condition is not None and condition.blocked == "blackhole"

"""Conditions of links: what the network does to a message, the same for live traffic and for simulated traffic.

A link is one-way, from one label to another. `LinkConditions` is the matrix of those that are not plain; both drivers ask it
what to do with each message, and both record what it returns as events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from quarterdeck.backend.core.commands.commands import (
    CutLink,
    DelayLink,
    DropMessages,
    DuplicateOnLink,
    Heal,
    HealLink,
    LoseOnLink,
    Partition,
)
from quarterdeck.backend.core.events import LinkChanged

Link = tuple[str, str]
"""Labels of the sender and of the receiver."""

LinkCommand = Partition | CutLink | DelayLink | LoseOnLink | DuplicateOnLink | DropMessages | Heal | HealLink


class LinkConditions:
    """The links that are not plain. `conditions` holds none whose condition is plain again."""

    def __init__(self) -> None:
        self.conditions: dict[Link, LinkChanged] = {}

    def of(self, source: str, target: str) -> LinkChanged | None:
        """The condition of one link, or None when it is plain."""
        return self.conditions.get((source, target))

    def apply(self, command: LinkCommand) -> tuple[LinkChanged, ...]:
        """Change the conditions as `command` says; the changes that this made, in a fixed order."""
        match command:
            case Heal():
                return self._set(LinkChanged(source, target) for source, target in sorted(self.conditions))
            case HealLink(sources, targets):
                return self._set(LinkChanged(*link) for link in _links(sources, targets, one_way=False))
            case Partition(groups, mode):
                return self._set(
                    self._with(link, blocked=mode)
                    for place, group in enumerate(groups)
                    for other in groups[place + 1 :]
                    for link in _links(group, other, one_way=False)
                )
            case CutLink(sources, targets, one_way, mode):
                return self._set(self._with(link, blocked=mode) for link in _links(sources, targets, one_way))
            case DelayLink(sources, targets, delay_us, one_way):
                return self._set(self._with(link, delay=delay_us) for link in _links(sources, targets, one_way))
            case LoseOnLink(sources, targets, probability, one_way):
                return self._set(self._with(link, loss=probability) for link in _links(sources, targets, one_way))
            case DuplicateOnLink(sources, targets, probability, one_way):
                return self._set(self._with(link, duplicate=probability) for link in _links(sources, targets, one_way))
            case DropMessages(sources, targets, kinds):
                return self._set(
                    self._with(link, dropped_kinds=tuple(sorted(kinds)))
                    for link in _links(sources, targets, one_way=True)
                )

    def _with(self, link: Link, **changed: Any) -> LinkChanged:
        return msgspec.structs.replace(self.conditions.get(link) or LinkChanged(*link), **changed)

    def _set(self, wanted: Iterable[LinkChanged]) -> tuple[LinkChanged, ...]:
        made = []
        for condition in wanted:
            link = (condition.source, condition.target)
            if condition != self.conditions.get(link, LinkChanged(*link)):
                take_condition(self.conditions, condition)
                made.append(condition)
        return tuple(made)


def take_condition(conditions: dict[Link, LinkChanged], changed: LinkChanged) -> None:
    """A link is now in this condition: `conditions` has it from now on, or has nothing of a link that is plain."""
    if changed.is_plain:
        conditions.pop((changed.source, changed.target), None)
    else:
        conditions[changed.source, changed.target] = changed


def _links(sources: Iterable[str], targets: Iterable[str], one_way: bool) -> Iterator[Link]:
    targets = tuple(targets)
    for source in sources:
        for target in targets:
            if source != target:
                yield source, target
                if not one_way:
                    yield target, source

"""Conditions of links: what the network does to a message, the same for live traffic and for simulated traffic.

A link is one-way, from one label to another. `LinkConditions` is the matrix of those that are not plain; both drivers ask it
what to do with each message, and both record what it returns as events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from quarterdeck.backend.core import commands as do
from quarterdeck.backend.core.link_condition import KindCondition, LinkChanged

Randomness = Callable[[], float]
"""Draws from 0 to 1."""

Link = tuple[str, str]
"""Labels of the sender and of the receiver."""


class LinkConditions:
    """The links with faults. `conditions` holds no link that is healed."""

    def __init__(self) -> None:
        self.conditions: dict[Link, LinkChanged] = {}

    def of(self, source: str, target: str) -> LinkChanged | None:
        return self.conditions.get((source, target))

    def apply(self, command: do.LinkCommand | do.HoldMessages | do.ReplayMessages) -> tuple[LinkChanged, ...]:
        """Change the conditions as `command` says; the changes that this made, in a fixed order."""
        if isinstance(command, do.Heal):
            return self._set(LinkChanged(source, target) for source, target in sorted(self.conditions))
        if isinstance(command, do.HealLink | do.ReplayMessages):
            only: Sequence[do.LinkFault] = command.only if isinstance(command, do.HealLink) else ("hold",)
            return self._set(self._healed(link, only) for link in links_of(command))
        changed = _CHANGED[type(command)](command)
        kinds = () if isinstance(command, do.DropMessages) else getattr(command, "kinds", ())
        if isinstance(command, do.HoldMessages):
            kinds = kinds or ("",)
        return self._set(self._of_kinds(link, kinds, **changed) for link in links_of(command))

    def _of_kinds(self, link: Link, kinds: Sequence[str], **changed: Any) -> LinkChanged:
        """Return the condition with messages of these kinds, or of all when there are none, treated otherwise."""
        if not kinds:
            return self._with(link, **changed)
        present = self.conditions.get(link)
        by_kind = {of_kind.kind: of_kind for of_kind in present.of_kinds} if present is not None else {}
        for kind in kinds:
            by_kind[kind] = msgspec.structs.replace(by_kind.get(kind) or KindCondition(kind), **changed)
        return self._with(link, of_kinds=_worse_than_others(by_kind.values()))

    def _healed(self, link: Link, only: Sequence[do.LinkFault]) -> LinkChanged:
        present = self.conditions.get(link)
        if not only or present is None:
            return LinkChanged(*link)
        of_all: dict[str, Any] = {}
        of_kinds: dict[str, Any] = {}
        for fault in only:
            of_all |= PLAIN[fault]
            of_kinds |= PLAIN_OF_KINDS[fault]
        worse = _worse_than_others(msgspec.structs.replace(of_kind, **of_kinds) for of_kind in present.of_kinds)
        return msgspec.structs.replace(present, **of_all, of_kinds=worse)

    def _with(self, link: Link, **changed: Any) -> LinkChanged:
        return msgspec.structs.replace(self.conditions.get(link) or LinkChanged(*link), **changed)

    def _set(self, wanted: Iterable[LinkChanged]) -> tuple[LinkChanged, ...]:
        made = []
        for condition in wanted:
            link = (condition.source, condition.target)
            if condition != self.conditions.get(link, LinkChanged(*link)):
                set_condition(self.conditions, condition)
                made.append(condition)
        return tuple(made)


_CHANGED: dict[type[do.Command], Callable[[Any], dict[str, Any]]] = {
    **dict.fromkeys((do.Partition, do.CutLink), lambda command: {"blocked": command.mode}),
    do.DelayLink: lambda command: {"delay": command.delay_us, "delay_up_to": command.up_to_us},
    do.LoseOnLink: lambda command: {"loss": command.probability},
    do.DuplicateOnLink: lambda command: {"duplicate": command.probability},
    do.DropMessages: lambda command: {"dropped_kinds": tuple(sorted(command.kinds))},
    do.HoldMessages: lambda _: {"held": True},
}
"""The change that each command makes to the conditions of its links."""

PLAIN: dict[do.LinkFault, dict[str, Any]] = {
    "cut": {"blocked": ""},
    "delay": {"delay": 0, "delay_up_to": 0},
    "lose": {"loss": 0.0},
    "duplicate": {"duplicate": 0.0},
    "drop-messages": {"dropped_kinds": ()},
    "hold": {},
}
"""The value of a link without each fault."""

PLAIN_OF_KINDS: dict[do.LinkFault, dict[str, Any]] = {
    **{fault: PLAIN[fault] for fault in ("delay", "lose", "duplicate")},
    "cut": {},
    "drop-messages": {},
    "hold": {"held": False},
}
"""The same for messages of one kind."""


def _worse_than_others(conditions: Iterable[KindCondition]) -> tuple[KindCondition, ...]:
    return tuple(sorted((condition for condition in conditions if not condition.is_plain), key=lambda one: one.kind))


def conditions_by_kind(link: LinkChanged) -> tuple[KindCondition, ...]:
    """Return the treatment of messages of every kind by a link, but for cuts and drops; then that of single kinds besides."""
    return KindCondition("", link.delay, link.delay_up_to, link.loss, link.duplicate), *link.of_kinds


def conditions_for(link: LinkChanged, kind: str) -> tuple[KindCondition, ...]:
    """Return the parts of the treatment for a message of this kind; first the parts for all kinds."""
    return tuple(condition for condition in conditions_by_kind(link) if condition.kind in ("", kind))


def delay_us(condition: KindCondition, randomness: Randomness) -> int:
    """Return the delay of one message, drawn when it is given as a range."""
    if condition.delay_up_to <= condition.delay:
        return condition.delay
    return condition.delay + int(randomness() * (condition.delay_up_to - condition.delay))


def set_condition(conditions: dict[Link, LinkChanged], changed: LinkChanged) -> None:
    """Set the condition of a link in `conditions`, or forget a link that is plain."""
    if changed.is_plain:
        conditions.pop((changed.source, changed.target), None)
    else:
        conditions[changed.source, changed.target] = changed


def links_of(command: do.Partition | do.LinksCommand) -> Iterator[Link]:
    """Yield the links that a command is about, each way on its own."""
    if isinstance(command, do.Partition):
        for place, group in enumerate(command.groups):
            for other in command.groups[place + 1 :]:
                yield from _links(group, other, one_way=False)
    else:
        one_way = getattr(command, "one_way", not isinstance(command, do.HealLink))
        yield from _links(command.sources, command.targets, one_way)


def _links(sources: Iterable[str], targets: Iterable[str], one_way: bool) -> Iterator[Link]:
    targets = tuple(targets)
    for source in sources:
        for target in targets:
            if source != target:
                yield source, target
                if not one_way:
                    yield target, source

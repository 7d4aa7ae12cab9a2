"""Why something happened: from an event back to what brought it about, link by link, each with its reason.

A link is drawn only where two records name the same thing: a list, a claim, a migration, a suspect, a link of the network. That
one thing happened before another is never reason enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.event_trail import Because, Effect, Identity, Trail, identity
from quarterdeck.backend.picture.healing_causes import HEALING_RULES
from quarterdeck.backend.picture.membership_causes import MEMBERSHIP_RULES
from quarterdeck.backend.picture.naming import NameOf
from quarterdeck.backend.picture.partition_causes import PARTITION_RULES

RULES = {**MEMBERSHIP_RULES, **HEALING_RULES, **PARTITION_RULES}

MOST_CAUSES = 200
"""Links of one chain; what lies behind them is left out."""


class Cause(NamedTuple):
    """One link of the chain behind an event: `effect` happened because of `record`."""

    record: Record
    reason: str
    effect: Record
    depth: int
    """1 for the direct causes of the event that was asked about."""
    message: bool
    """Whether it took a message from one member to another."""


def causes(records: Iterable[Record] | Trail, record: Record, name_of: NameOf = str) -> tuple[Cause, ...]:
    """All that led to `record`, as far as `records` reach: each cause stands behind what it explains, and only once.

    Empty when nothing that was recorded brought it about, or when `record` is not among the records.
    """
    trail = records if isinstance(records, Trail) else Trail(records, name_of)
    found: list[Cause] = []
    seen: set[Identity] = {identity(record)}
    pending = [(record, 1, because) for because in reversed(direct_causes(trail, record))]
    while pending and len(found) < MOST_CAUSES:
        effect, depth, because = pending.pop()
        if identity(because.record) in seen:
            continue
        seen.add(identity(because.record))
        found.append(Cause(because.record, because.reason, effect, depth, because.message))
        if because.deeper:
            pending += [(because.record, depth + 1, one) for one in reversed(direct_causes(trail, because.record))]
    return tuple(found)


def direct_causes(trail: Trail, record: Record) -> list[Because]:
    """What `record` follows from at one remove, the most telling first."""
    place = trail.place_of(record)
    rule = RULES.get(type(record.event))
    if place is None or rule is None:
        return []
    found = rule(Effect(trail, place, record), record.event)
    return [one._replace(message=one.message and one.record.member != record.member) for one in found]

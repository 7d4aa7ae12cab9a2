"""Why something happened: from an event back to what brought it about, link by link, each with its reason.

A record of our own members names the one that brought it about. What no member knows, such as what was done to the network, is
found by rules, and so are the causes in logs of other members and in journals of form 2 and before, whose records name few.
A rule draws a link only where two records name the same thing: a list, a claim, a suspect, a link of the network.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.events import OperatorAsked, Record
from quarterdeck.backend.picture.events.catalogue import ROWS
from quarterdeck.backend.picture.explain.data_causes import DATA_RULES
from quarterdeck.backend.picture.explain.event_index import (
    Causes,
    DirectCause,
    Effect,
    EventIndex,
    identity,
    message_cause,
)
from quarterdeck.backend.picture.explain.healing_causes import HEALING_RULES
from quarterdeck.backend.picture.explain.membership_causes import MEMBERSHIP_RULES
from quarterdeck.backend.picture.text.formatting import NameOf

RULES = {**MEMBERSHIP_RULES, **HEALING_RULES, **DATA_RULES}

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


def causes(records: Iterable[Record] | EventIndex, record: Record, name_of: NameOf = str) -> tuple[Cause, ...]:
    """Return all that led to `record`, as far as `records` reach: each cause once, after what it explains.

    Empty when nothing that was recorded brought it about, or when `record` is not among the records.
    """
    event_index = records if isinstance(records, EventIndex) else EventIndex(records, name_of)
    found: list[Cause] = []
    seen: set[RecordId] = {identity(record)}
    pending = [(record, 1, because) for because in reversed(direct_causes(event_index, record))]
    while pending and len(found) < MOST_CAUSES:
        effect, depth, because = pending.pop()
        if identity(because.record) in seen:
            continue
        seen.add(identity(because.record))
        found.append(Cause(because.record, because.reason, effect, depth, because.message))
        if because.deeper:
            pending += [
                (because.record, depth + 1, cause) for cause in reversed(direct_causes(event_index, because.record))
            ]
    return tuple(found)


def direct_causes(event_index: EventIndex, record: Record) -> list[DirectCause]:
    """Return what `record` follows from at one remove, the clearest first."""
    place = event_index.place_of(record)
    if place is None:
        return []
    effect, rule = Effect(event_index, place, record), RULES.get(type(record.event))
    found = [*rule(effect, record.event)] if rule is not None else []
    named = event_index.find(record.because)
    if named is None:
        found = found or [*followed(effect)]
    elif all(cause.record is not named for cause in found):
        found.insert(0, _named_cause(effect, named))
    return [cause._replace(message=cause.message and cause.record.member != record.member) for cause in found]


def _named_cause(effect: Effect, named: Record) -> DirectCause:
    """Return the record that the effect names, with the reason that the row of the effect has for it, if it has one."""
    if isinstance(named.event, OperatorAsked):
        return DirectCause(named, f"{named.event.remote} asked for it", deeper=False)
    known = next((cause for cause in ROWS[type(effect.record.event)].follows if cause.kind is type(named.event)), None)
    if known is not None:
        return DirectCause(named, known.reason, True, known.deeper)
    is_own = named.member == effect.record.member
    return DirectCause(named, "that led to it" if is_own else f"{named.member} let it know", True)


def followed(effect: Effect) -> Causes:
    """Yield what an event that names no cause follows from according to its row."""
    event = effect.record.event
    for kind, reason, deeper, same in ROWS[type(event)].follows:
        if same == "migration_id":
            found = effect.step(kind)
        else:
            found = effect.own(kind, **({same: getattr(event, same)} if same else {}))
        yield from message_cause(found, reason, deeper=deeper)

"""The records of a run, arranged for looking back from any of them: earlier actions of each member."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple, TypeVar

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.events import Event, OperatorAsked, Record
from quarterdeck.backend.core.membership.events import MemberStarted
from quarterdeck.backend.picture.text.formatting import NameOf

LOOK_BACK = 2_000
"""Records of one kind and one member that are looked at, latest first, before a search is given up."""

EventType = TypeVar("EventType")

Accepts = Callable[[Any], bool]
"""Whether an event of a certain kind is the one looked for."""


def identity(record: Record) -> RecordId:
    """Return the identity of `record` within its run."""
    return RecordId(record.uuid, record.seq)


class EventIndex:
    """Records in the order in which they were received, no effect before its cause. Grows at the end.

    `name_of` knows the labels of members whose start is not among the records.
    """

    def __init__(self, records: Iterable[Record] = (), name_of: NameOf = str) -> None:
        self.records: list[Record] = []
        self._name_of = name_of
        self._places: dict[RecordId, int] = {}
        self._of_member: defaultdict[tuple[type, str], list[int]] = defaultdict(list)
        self._of_kind: defaultdict[type, list[int]] = defaultdict(list)
        self._of_migration: defaultdict[str, list[int]] = defaultdict(list)
        self._labels: dict[Address, str] = {}
        self.extend(records)

    def extend(self, records: Iterable[Record]) -> None:
        """Append `records`, which come after the present ones."""
        for record in records:
            place = len(self.records)
            self.records.append(record)
            event = record.event
            kind = type(event)
            self._places[identity(record)] = place
            self._of_member[kind, record.member].append(place)
            self._of_kind[kind].append(place)
            migration_id = getattr(event, "migration_id", None)
            if migration_id is not None:
                self._of_migration[migration_id].append(place)
            elif kind is MemberStarted:
                self._labels[event.address] = record.member  # type: ignore[union-attr]

    def __len__(self) -> int:
        return len(self.records)

    def place_of(self, record: Record) -> int | None:
        """Return the place of `record`; None when it is not here."""
        return self._places.get(identity(record))

    def find(self, record_id: RecordId | None) -> Record | None:
        place = self._places.get(record_id) if record_id is not None else None
        return self.records[place] if place is not None else None

    def label_of(self, address: Address) -> str:
        return self._labels.get(address) or self._name_of(address)

    def by(self, label: str, kind: type[Event], before: int) -> Iterator[Record]:
        """Yield the records of `label` of this kind before the place `before`, the latest first."""
        return self._backwards(self._of_member.get((kind, label), ()), before)

    def all_of(self, kind: type[Event], before: int) -> Iterator[Record]:
        """Yield the records of any member of this kind before the place `before`, the latest first."""
        return self._backwards(self._of_kind.get(kind, ()), before)

    def of_migration(self, migration_id: str, before: int | None = None) -> Iterator[Record]:
        """Yield the records of a migration, the latest first."""
        return self._backwards(self._of_migration.get(migration_id, ()), len(self) if before is None else before)

    def _backwards(self, places: Sequence[int], before: int) -> Iterator[Record]:
        end = bisect_left(places, before)
        for position in range(end - 1, max(-1, end - 1 - LOOK_BACK), -1):
            yield self.records[places[position]]


class DirectCause(NamedTuple):
    """A record that another one follows directly from, and why that is so.

    `message`: what follows came over the network from the member of this record. `deeper` is false for what had to be so, but
    did not bring it about: where that came from is another story.
    """

    record: Record
    reason: str
    message: bool = False
    deeper: bool = True


Causes = Iterator[DirectCause]


class Effect(NamedTuple):
    """A record whose causes are looked for."""

    event_index: EventIndex
    place: int
    record: Record

    # Each looks for an event of a kind that has these values in its fields, and that is accepted.

    def own(self, kind: type[Event], accepts: Accepts | None = None, **same: object) -> Record | None:
        """Return the named cause of the record, if it is of this kind, or the latest record of its own incarnation."""
        named = self.event_index.find(self.record.because)
        if named is not None and isinstance(named.event, kind):
            return named
        return _first(self.all_own(kind), accepts, same)

    def all_own(self, kind: type[Event]) -> Iterator[Record]:
        """Yield all of this kind that the same incarnation recorded before, the latest first."""
        earlier = self.event_index.by(self.record.member, kind, self.place)
        return takewhile(lambda record: record.uuid == self.record.uuid, earlier)

    def step(self, kind: type[Event]) -> Record | None:
        """Return the latest of this kind that any member recorded before of the same migration."""
        steps = self.event_index.of_migration(self.record.event.migration_id, self.place)  # type: ignore[union-attr]
        return next((step for step in steps if isinstance(step.event, kind)), None)

    def of(self, label: str, kind: type[Event], accepts: Accepts | None = None, **same: object) -> Record | None:
        """Return the latest of this kind that the member `label` has recorded before."""
        return _first(self.event_index.by(label, kind, self.place), accepts, same)

    def at(self, address: Address, kind: type[Event], accepts: Accepts | None = None, **same: object) -> Record | None:
        """Return the latest of this kind that the member at `address` has recorded before."""
        return self.of(self.name(address), kind, accepts, **same)

    def anywhere(self, kind: type[Event], accepts: Accepts | None = None, **same: object) -> Record | None:
        """Return the latest of this kind that any member has recorded before."""
        return _first(self.event_index.all_of(kind, self.place), accepts, same)

    def name(self, address: Address) -> str:
        return self.event_index.label_of(address)

    def is_own(self, address: Address) -> bool:
        """Return whether the member that recorded this is the one at `address`."""
        return self.event_index.label_of(address) == self.record.member


Rule = Callable[[Effect, Any], Causes]
"""Yields the direct causes of an event of one class, the clearest first."""


def event_of(kind: type[EventType], record: Record) -> EventType:
    """Return the event of `record`, which is of this kind."""
    event = record.event
    assert isinstance(event, kind)
    return event


def _first(records: Iterable[Record], accepts: Accepts | None, same: Mapping[str, object]) -> Record | None:
    for record in records:
        event = record.event
        if all(getattr(event, field) == value for field, value in same.items()) and (not accepts or accepts(event)):
            return record
    return None


def local_cause(record: Record | None, reason: str, *, deeper: bool = True) -> Causes:
    """Yield `record`, unless it is None, as a cause that needed no message."""
    if record is not None:
        yield DirectCause(record, reason, False, deeper)


def request_cause(effect: Effect, *kinds: str, target: str = "", since_us: int = 0) -> Causes:
    """Yield the latest command of these kinds that an operator asked the member `target`, or any, to carry out."""
    asked = effect.anywhere(
        OperatorAsked, lambda asked: asked.do in kinds and target in ("", asked.target), granted=True
    )
    if asked is not None and asked.at >= since_us:
        who = event_of(OperatorAsked, asked).remote
        yield DirectCause(asked, f"{who} asked for it", False, False)


def message_cause(record: Record | None, reason: str, *, deeper: bool = True) -> Causes:
    """Yield `record`, unless it is None, as a cause that arrived as a message, unless the same member recorded it."""
    if record is not None:
        yield DirectCause(record, reason, True, deeper)

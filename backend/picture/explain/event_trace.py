"""Everything that belongs to one subject, from all members, in order: a member, a migration, a claim of mastership, a merge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from quarterdeck.backend.core import events
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.data.events import EntriesMerged
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.partitions.events import MigrationStarted
from quarterdeck.backend.picture.events.catalogue import ROWS
from quarterdeck.backend.picture.events.partitions import migration_path_text
from quarterdeck.backend.picture.explain.causes import direct_causes
from quarterdeck.backend.picture.explain.event_index import EventIndex, event_of, identity
from quarterdeck.backend.picture.text.formatting import counted, duration_text, names_text

SubjectKind = Literal["migration", "claim", "merge", "member"]

ABOUT = (
    "suspect",
    "address",
    "to",
    "sender",
    "stranger",
    "by",
    "reporter",
    "remote",
    "target",
    "destination",
    "source",
)
"""Fields that name another member than the one that records the event, by address or by label."""


class Subject(NamedTuple):
    """What a story is about. `key`: the migration's id, the member's label, or the event that the claim or merge began with."""

    kind: SubjectKind
    key: str | RecordId


class EventTrace(NamedTuple):
    """A heading in words, and all records that belong to it, in order."""

    heading: str
    records: tuple[Record, ...]


def subjects_of(event_index: EventIndex, record: Record) -> tuple[Subject, ...]:
    """Return the stories that `record` is part of, the narrowest first; the story of its member is always the last."""
    found: list[Subject] = []
    migration_id = getattr(record.event, "migration_id", None)
    if migration_id is not None:
        found.append(Subject("migration", migration_id))
    row = ROWS[type(record.event)]
    begun = _beginning(event_index, record, row.story) if row.story else None
    if row.story and begun is not None:
        found.append(Subject(row.story, identity(begun)))
    concerned = _labels_named(event_index, record.event) if row.befalls is not None else [record.member]
    return (*found, *(Subject("member", label) for label in concerned))


def event_trace(event_index: EventIndex, subject: Subject) -> EventTrace:
    """Return the story of `subject`, as far as `event_index` reaches."""
    match subject.kind:
        case "migration":
            return _migration(event_index, str(subject.key))
        case "member":
            return _member(event_index, str(subject.key))
        case "claim" | "merge":
            begun = next((record for record in event_index.records if identity(record) == subject.key), None)
            if begun is None:
                return EventTrace(f"the {subject.kind} is not among the records any more", ())
            return _claim(event_index, begun) if subject.kind == "claim" else _merge(event_index, begun)


OWN_STATES = (
    events.MemberStarted, events.ListInstalled, events.ClaimStarted, events.ClaimFinished, events.MemberMerging,
    events.MemberStopped,
)  # fmt: skip
STATES_BY_OTHERS = (
    events.SuspicionRaised, events.MemberRemoved, events.ProcessKilled, events.ProcessPaused, events.ProcessResumed,
)  # fmt: skip


def state_record(event_index: EventIndex, label: str) -> Record | None:
    """Return what made a member what it is: the latest step of its own, or what others did to it or concluded about it."""
    records = _member(event_index, label).records
    return next(
        (
            record
            for record in reversed(records)
            if isinstance(record.event, OWN_STATES if record.member == label else STATES_BY_OTHERS)
        ),
        None,
    )


def _beginning(event_index: EventIndex, record: Record, story: str, depth: int = 4) -> Record | None:
    """Return the event with which `story` begins that `record` goes back to in a few steps, each of the same story."""
    row = ROWS[type(record.event)]
    if row.story != story:
        return None
    if row.begins_story:
        return record
    for because in direct_causes(event_index, record) if depth else ():
        found = _beginning(event_index, because.record, story, depth - 1)
        if found is not None:
            return found
    return None


def _migration(event_index: EventIndex, migration_id: str) -> EventTrace:
    records = tuple(reversed(list(event_index.of_migration(migration_id))))
    started = next((record for record in records if isinstance(record.event, MigrationStarted)), None)
    if started is None:
        return EventTrace(f"migration {migration_id}: its beginning is not among the records", records)
    event = event_of(MigrationStarted, started)
    what = f"migration of p{event.partition}, {event.type}: {migration_path_text(event, event_index.label_of)}"
    return EventTrace(f"{what}; {_span(records)}", records)


def _claim(event_index: EventIndex, begun: Record) -> EventTrace:
    """Return the story from the suspicions that made the member claim to the lists that the claim led to."""
    led = [because.record for because in direct_causes(event_index, begun)]
    records = [*sorted(led, key=lambda record: event_index.place_of(record) or 0), begun]
    lineage, ended, outcome = "", False, "its end is not known"
    claimant = begun.member
    for record in _after(event_index, begun):
        event = record.event
        if record.uuid == begun.uuid and not ended:
            if isinstance(event, events.ClaimAnswered):
                records.append(record)
            elif isinstance(event, events.ClaimFinished | events.ClaimAbandoned):
                records.append(record)
                ended = True
                if isinstance(event, events.ClaimFinished):
                    lineage, outcome = event.lineage, f"list v{event.version} comes of it"
                else:
                    outcome = f"abandoned: {event.reason}"
        if isinstance(event, events.MasterChanged) and not ended:
            if event.cause == "claim-accepted" and event_index.label_of(event.master) == claimant:
                records.append(record)
        elif isinstance(event, events.ListInstalled) and lineage and event.lineage == lineage:
            if event.cause in ("mastership claim", "published") and event.version == _version(begun, records):
                records.append(record)
    return EventTrace(f"claim of {claimant}; {outcome}; {_span(records)}", tuple(records))


def _version(begun: Record, records: list[Record]) -> int:
    """Return the version of the list that a claim came to."""
    return next((record.event.version for record in records if isinstance(record.event, events.ClaimFinished)), -1)


def _merge(event_index: EventIndex, begun: Record) -> EventTrace:
    """Return the story from the verdicts of both masters to the arrival of the last member."""
    event = event_of(events.MergeStarted, begun)
    movers = {event_index.label_of(address) for address in event.merging}
    verdicts = [because.record for because in direct_causes(event_index, begun)]
    records = [*sorted(verdicts, key=lambda record: event_index.place_of(record) or 0), begun]
    moved_uuids: set[str] = set()
    arrived: set[str] = set()
    outcome = "not all have arrived"
    for record in _after(event_index, begun):
        said = record.event
        if isinstance(said, events.MergeAbandoned) and record.uuid == begun.uuid:
            records.append(record)
            outcome = f"given up: {said.reason}"
            break
        if isinstance(said, events.MemberMerging) and record.member in movers and said.target == event.target:
            moved_uuids.add(said.next_uuid)
            records.append(record)
        elif isinstance(said, events.ClusterStateChanged) and record.member in movers and said.state == "FROZEN":
            records.append(record)
        elif record.uuid in moved_uuids and isinstance(
            said, events.MemberStarted | events.JoinRequested | EntriesMerged
        ):
            records.append(record)
        elif record.uuid in moved_uuids and isinstance(said, events.ListInstalled) and said.cause == "joined":
            records.append(record)
            arrived.add(record.uuid)
        elif (
            isinstance(said, events.MemberAdmitted | events.MemberHeldBack)
            and event_index.label_of(said.address) in movers
        ):
            records.append(record)
        if len(arrived) == len(movers) and not isinstance(said, EntriesMerged):
            outcome = "all have arrived"
            if record.uuid in arrived:
                break
    names = names_text(event.merging, event_index.label_of)
    heading = f"merge of {names} into the cluster of {event_index.label_of(event.target)}; {outcome}; {_span(records)}"
    return EventTrace(heading, tuple(records))


def _member(event_index: EventIndex, label: str) -> EventTrace:
    """Return what a member recorded, and what others recorded about it."""
    records = tuple(
        record
        for record in event_index.records
        if record.member == label or label in _labels_named(event_index, record.event)
    )
    lives = len(dict.fromkeys(record.uuid for record in records if record.member == label))
    return EventTrace(f"{label} in {counted(lives, 'life', 'lives')}; {_span(records)}", records)


def _labels_named(event_index: EventIndex, event: Event) -> list[str]:
    named = (getattr(event, field, None) for field in ABOUT)
    return list(dict.fromkeys(event_index.label_of(Address(name)) for name in named if isinstance(name, str)))


def _after(event_index: EventIndex, begun: Record) -> Iterator[Record]:
    place = event_index.place_of(begun)
    for following in range((place if place is not None else len(event_index)) + 1, len(event_index)):
        yield event_index.records[following]


def _span(records: tuple[Record, ...] | list[Record]) -> str:
    if not records:
        return "nothing is known of it"
    took = duration_text(records[-1].at - records[0].at)
    return f"{counted(len(records), 'event')} in {took}"

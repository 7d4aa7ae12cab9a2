"""Which events a reader wants to see: those that a line of text selects, or everything that belongs to one subject.

A line has words, phrases, kinds and members, each of them also turned around. A subject is a member, a migration or an
episode; its events are from all members, in order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import MigrationStarted
from quarterdeck.backend.picture.events.catalogue import PROCESS_FAULTS, ROWS, kind_of
from quarterdeck.backend.picture.events.partitions import migration_path_text
from quarterdeck.backend.picture.explain.episodes.episodes import Episodes
from quarterdeck.backend.picture.explain.episodes.sentences import sentence_of
from quarterdeck.backend.picture.explain.event_index import EventIndex, event_of
from quarterdeck.backend.picture.text.formatting import counted, duration_text, readable_expression

SubjectKind = Literal["migration", "episode", "member"]

ABOUT = (
    "suspect", "address", "to", "sender", "stranger", "by", "reporter", "remote", "target", "destination", "source",
)  # fmt: skip
"""Fields that name another member than the one that records the event, by address or by label."""


class Subject(NamedTuple):
    """The subject of a trace. `key`: the id of the migration, the number of the episode, or the label of the member."""

    kind: SubjectKind
    key: str


class EventTrace(NamedTuple):
    """A heading in words, and all records that belong to it, in order."""

    heading: str
    records: tuple[Record, ...]


def subjects_of(event_index: EventIndex, record: Record, episodes: Episodes) -> tuple[Subject, ...]:
    """Return the subjects of `record`, the narrowest first; its member, or the affected member, is always the last."""
    migration_id, episode = getattr(record.event, "migration_id", None), episodes.of(record)
    befalls = ROWS[type(record.event)].befalls is not None
    return (
        *([Subject("migration", migration_id)] if migration_id is not None else ()),
        *([Subject("episode", str(episode.number))] if episode is not None and episode.records else ()),
        *(
            Subject("member", label)
            for label in (_labels_named(event_index, record.event) if befalls else [record.member])
        ),
    )


def event_trace(event_index: EventIndex, subject: Subject, episodes: Episodes) -> EventTrace:
    """Return all records about `subject`, as far as `event_index` and `episodes` reach."""
    match subject.kind:
        case "migration":
            return _migration(event_index, subject.key)
        case "member":
            return _member(event_index, subject.key)
        case "episode":
            episode = next(iter(episodes.after(int(subject.key) - 1)), None)
            if episode is None or str(episode.number) != subject.key:
                return EventTrace("the episode is not remembered any more", ())
            return EventTrace(f"{sentence_of(episode).text}; {_span(episode.records)}", tuple(episode.records))


OWN_STATES = (
    events.MemberStarted, events.ListInstalled, events.ClaimStarted, events.ClaimFinished, events.MemberMerging,
    events.MemberStopped,
)  # fmt: skip
STATES_BY_OTHERS = (events.SuspicionRaised, events.MemberRemoved, *PROCESS_FAULTS)


def state_record(event_index: EventIndex, label: str) -> Record | None:
    """Return the record that gave a member its present state: its own latest step, or another member's action or conclusion."""
    for record in reversed(_member(event_index, label).records):
        if isinstance(record.event, OWN_STATES if record.member == label else STATES_BY_OTHERS):
            return record
    return None


def _migration(event_index: EventIndex, migration_id: str) -> EventTrace:
    records = tuple(reversed(list(event_index.of_migration(migration_id))))
    started = next((record for record in records if isinstance(record.event, MigrationStarted)), None)
    if started is None:
        return EventTrace(f"migration {migration_id}: its beginning is not among the records", records)
    event = event_of(MigrationStarted, started)
    what = f"migration of p{event.partition}, {event.type}: {migration_path_text(event, event_index.label_of)}"
    return EventTrace(f"{what}; {_span(records)}", records)


def _member(event_index: EventIndex, label: str) -> EventTrace:
    records = tuple(
        record
        for record in event_index.records
        if record.member == label or label in _labels_named(event_index, record.event)
    )
    incarnations = len(dict.fromkeys(record.uuid for record in records if record.member == label))
    return EventTrace(f"{label} in {counted(incarnations, 'incarnation')}; {_span(records)}", records)


def _labels_named(event_index: EventIndex, event: Event) -> list[str]:
    named = (getattr(event, field, None) for field in ABOUT)
    return list(dict.fromkeys(event_index.label_of(Address(name)) for name in named if isinstance(name, str)))


def _span(records: tuple[Record, ...] | list[Record]) -> str:
    if not records:
        return "nothing is known of it"
    took = duration_text(records[-1].at - records[0].at)
    return f"{counted(len(records), 'event')} in {took}"


TERM = re.compile(
    r'(?P<turned>!?)(?:(?P<field>kind|member|life):)?(?:/(?P<expression>(?:[^/\\]|\\.)+)/|"(?P<phrase>[^"]*)"?|(?P<word>\S*))'
)
"""A term of a selection. A quote that is not closed yet holds the rest: the user is still typing."""


class FilterTerm(Struct, frozen=True):
    """One condition: `wanted` is looked for in `field`, or in the whole line; `negated` takes records that do not meet it."""

    field: str
    wanted: tuple[str, ...]
    negated: bool

    def accepts(self, record: Record, words: Callable[[], str]) -> bool:
        """Return whether `record`, whose line reads `words`, meets the condition."""
        return self._meets(record, words) is not self.negated

    def _meets(self, record: Record, words: Callable[[], str]) -> bool:
        match self.field:
            case "expression":
                return re.search(self.wanted[0], words(), re.IGNORECASE) is not None
            case "kind":
                return _one_fits(kind_of(record), self.wanted)
            case "member":
                return _one_fits(record.member.casefold(), self.wanted)
            case "life":
                return any(record.uuid.startswith(beginning) for beginning in self.wanted)
            case _:
                return self.wanted[0] in words()


class EventFilter(Struct, frozen=True):
    """The selection of a line of text: records that meet every one of its terms."""

    terms: tuple[FilterTerm, ...]

    @classmethod
    def of(cls, text: str) -> EventFilter:
        r"""Read ``suspects "no heartbeat" !cyrene /v\d+/ kind:suspicion* member:athens``. Every text means something."""
        return cls(tuple(filter(None, map(_term, TERM.finditer(text)))))

    def accepts(self, record: Record, words: Callable[[], str]) -> bool:
        """Return whether `record` is selected. `words` returns its line in lower case, and is called only when that is needed."""
        return all(term.accepts(record, words) for term in self.terms)


def _term(found: re.Match[str]) -> FilterTerm | None:
    if found["expression"] is not None and not found["field"] and readable_expression(found["expression"]):
        return FilterTerm("expression", (found["expression"],), bool(found["turned"]))
    said = (found["phrase"], found["expression"], found["word"])
    text = next((part for part in said if part is not None), "")
    field = found["field"] or ""
    parts = text.split(",") if field else [text]
    wanted = tuple(part if field == "life" else part.casefold() for part in parts if part)
    if not wanted or (not field and not found["phrase"] and text == "!"):
        return None
    return FilterTerm(field, wanted, bool(found["turned"]))


def _one_fits(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)

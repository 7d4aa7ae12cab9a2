"""The fold of records into episodes.

What reads it, a view or a pane, does so::

    episodes = Episodes(name_of)
    episodes.extend(records)            # in the order of time, again and again: a few microseconds a record
    for episode in episodes.latest(20): # oldest first; an episode stays the same object while it grows
        sentence = sentence_of(episode) # `text`, `tone` of `backend.picture.text.fact.Tone`, and `events` (their number)

Each record belongs to exactly one episode. `revision` grows with every record, and `episode.count` with every record of that
episode, so a painter knows when a line has changed. `episode.at_us` is when it began, `episode.records` are its records.

Between episodes and single events are the decisions, and one line a second for all that comes by the thousand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from quarterdeck.backend.core import events
from quarterdeck.backend.core.data.events import CallFinished, CallStarted
from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ReplicaMigrated
from quarterdeck.backend.picture.events.catalogue import KINDS, ROWS, describe_event, part_of
from quarterdeck.backend.picture.explain.episodes import fault_rules as faults
from quarterdeck.backend.picture.explain.episodes import membership_rules as membership
from quarterdeck.backend.picture.explain.episodes import partition_rules as partitions
from quarterdeck.backend.picture.explain.episodes.episode import MOMENT_US, Episode, OpenEpisodes, Rule
from quarterdeck.backend.picture.text.formatting import NameOf, bytes_text, counted, one_line, with_names

RULES: dict[type[Event], Rule] = {
    **dict.fromkeys(membership.INCARNATION_EVENTS, membership.incarnation_episode),
    **dict.fromkeys(membership.LIST_EVENTS, membership.list_episode),
    **dict.fromkeys(membership.SUSPICION_EVENTS, membership.suspicion_episode),
    **dict.fromkeys(membership.CLAIM_EVENTS, membership.claim_episode),
    **dict.fromkeys(membership.MERGE_EVENTS, membership.merge_episode),
    **dict.fromkeys(membership.STATE_EVENTS, membership.state_episode),
    **dict.fromkeys(faults.FAULT_EVENTS, faults.fault_episode),
    **dict.fromkeys(faults.REQUEST_EVENTS, faults.request_episode),
    **dict.fromkeys(partitions.TABLE_EVENTS, partitions.table_episode),
    **dict.fromkeys(partitions.MIGRATION_EVENTS, partitions.migration_episode),
    **dict.fromkeys(partitions.DATA_EVENTS, partitions.data_episode),
    **dict.fromkeys(partitions.WITNESS_EVENTS, partitions.witness_episode),
}


class Episodes:
    """The episodes of one run, which grow with its records. `name_of` knows members whose start is not among these."""

    def __init__(self, name_of: NameOf = str) -> None:
        self._known = OpenEpisodes(name_of)
        self.revision = 0
        """How many records were taken in."""

    def extend(self, records: Iterable[Record]) -> None:
        known = self._known
        for record in records:
            kind = type(record.event)
            part = part_of(record.event)
            self.revision += 1
            if part == "measurement":
                continue
            rule = RULES.get(kind)
            episode = rule(known, record, record.event) if rule is not None else None
            episode = episode or self._nearest(record, background=part == "background")
            known.keep(episode, record, KINDS[kind], part)

    def of(self, record: Record) -> Episode | None:
        """Return the episode that a record belongs to, as long as it is known; None for frequent kinds."""
        return self._known.of(record)

    @property
    def all(self) -> Sequence[Episode]:
        return self._known.episodes

    def latest(self, most: int) -> list[Episode]:
        """Return the last `most` episodes, oldest first."""
        found: deque[Episode] = self._known.episodes
        return list(islice(found, max(0, len(found) - most), None))

    def after(self, number: int) -> list[Episode]:
        """Return the episodes that began after the one of this number, oldest first."""
        return self.latest(max(0, self._known.begun - number))

    @property
    def forgotten(self) -> int:
        """How many of the oldest are not remembered any more."""
        return self._known.begun - len(self._known.episodes)

    def _nearest(self, record: Record, *, background: bool) -> Episode:
        known = self._known
        for found in (known.cause_of(record), known.touched.get(record.member)):
            if found is not None and (background or record.at - found.end_us <= MOMENT_US):
                return found
        words = one_line(with_names(describe_event(record.event, known.label_of), known.label_of))
        return known.begin("other", record, note=f"{one_line(record.member)} {words}")


def is_decision(record: Record) -> bool:
    """Return whether a member decided something, or something was done to the cluster."""
    return part_of(record.event) == "decision"


def deciding_record(episode: Episode) -> Record:
    """Return the record of an episode that says most of why it went as it did, that of which an operator asks why.

    It is the first of these; without any the first decision, else the record that the episode began with.
    """
    first = next((record for record in episode.records if is_decision(record)), episode.first)
    if not episode.records:
        return first
    most = max(episode.records, key=lambda record: ROWS[type(record.event)].decides)
    return most if ROWS[type(most.event)].decides else first


class BusySecond(Struct):
    """The count of frequent events in one second. It grows until the second is over."""

    first: Record
    begun: int = 0
    committed: int = 0
    rolled_back: int = 0
    bytes: int = 0
    promoted: int = 0
    lost: int = 0
    calls: int = 0
    failed_calls: int = 0

    @property
    def at_us(self) -> int:
        """When the first of it came."""
        return self.first.at

    @property
    def utc_us(self) -> int:
        """When the first of it came, in UTC."""
        return self.first.utc

    def count(self, event: events.Event) -> bool:
        """Count an event. Return whether its kind has a word."""
        match event:
            case partition_events.MigrationStarted():
                self.begun += 1
            case partition_events.MigrationCopied():
                self.bytes += event.bytes
            case partition_events.MigrationDecided():
                self.committed += event.committed
                self.rolled_back += not event.committed
            case partition_events.PartitionLost():
                self.lost += event.loses_data
                self.promoted += not event.loses_data
            case ReplicaMigrated():
                self.begun += 1
                self.committed += event.succeeded
                self.rolled_back += not event.succeeded
            case CallStarted():
                self.calls += 1
            case CallFinished() if event.problem:
                self.failed_calls += 1
            case _:
                return False
        return True

    @property
    def text(self) -> str:
        """The second as one line."""
        migrations = self.begun or self.committed or self.rolled_back or self.bytes
        texts = (
            (migrations, f"{counted(self.begun, 'migration')} begun, {self.committed} done"),
            (self.rolled_back, f"{self.rolled_back} rolled back"),
            (self.bytes, bytes_text(self.bytes)),
            (self.promoted, f"{counted(self.promoted, 'partition')} with a backup as owner"),
            (self.lost, f"{counted(self.lost, 'partition')} lost"),
            (self.calls, f"{counted(self.calls, 'call')} of clients"),
            (self.failed_calls, f"{counted(self.failed_calls, 'call')} failed"),
        )
        return ", ".join(text for happened, text in texts if happened)


class Decisions:
    """Picks the decisions out of records, and counts frequent events, second by second."""

    def __init__(self) -> None:
        self._second: BusySecond | None = None

    def lines(self, records: Iterable[Record]) -> Iterator[Record | BusySecond]:
        """Yield the shown parts of `records`: each decision, and each second when its first record comes."""
        for record in records:
            if is_decision(record):
                yield record
            elif part_of(record.event) == "frequent":
                second = self._second
                if second is None or record.at // SECOND_US != second.at_us // SECOND_US:
                    second = BusySecond(record)
                    if second.count(record.event):
                        self._second = second
                        yield second
                else:
                    second.count(record.event)

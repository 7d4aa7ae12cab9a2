"""Between episodes and single events: the decisions, and one line a second for all that comes by the thousand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from quarterdeck.backend.core import events
from quarterdeck.backend.core.data.events import CallFinished, CallStarted
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ReplicaMigrated
from quarterdeck.backend.picture.events.catalogue import ROWS, part_of
from quarterdeck.backend.picture.explain.episodes.episode import Episode
from quarterdeck.backend.picture.text.formatting import bytes_text, counted


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
    """What came by the thousand in one second. It grows until the second is over."""

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
        """Count an event. Return whether there is a word for it."""
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
    """Picks the decisions out of records, and counts what comes by the thousand, second by second."""

    def __init__(self) -> None:
        self._second: BusySecond | None = None

    def lines(self, records: Iterable[Record]) -> Iterator[Record | BusySecond]:
        """Yield what of `records` is shown: each decision, and each second when its first record comes."""
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

"""The latest records of one process, for clients that follow its events: bounded, and exact about what it has lost."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from quarterdeck.backend.core.data.events import DataMeasured
from quarterdeck.backend.core.events import Record

BEGINNING = ("", 0)
"""Before the first record of all: the position of a client that knows nothing."""
MOST_RECORDS = 20_000
MOST_BYTES = 8 * 1024 * 1024
"""As JSON, which is what they are kept and sent as."""
WHOLE_MEASUREMENTS = 500
"""So many of the latest records that measure data are kept as they are. Busy members write one every few seconds.

Of older ones the totals stay, so that they do not push out the records of lists and tables, without which a console that comes
late sees little; all of it was reported again since (chapter `measuring`).
"""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Record).decode


class StoredRecord(NamedTuple):
    """A record as JSON, as it is sent: as an object it would take up to seven times as much memory."""

    uuid: str
    seq: int
    text: bytes

    @classmethod
    def of(cls, record: Record) -> StoredRecord:
        return cls(record.uuid, record.seq, _encode(record))

    @property
    def record(self) -> Record:
        """The record, decoded anew each time."""
        return _decode(self.text)


class RecordBuffer:
    """Records in the order in which the process made them. Incarnations change with merges; the order continues.

    One reader resumes after the last record that it has seen, whichever incarnation made it.
    """

    def __init__(self, most_records: int = MOST_RECORDS, most_bytes: int = MOST_BYTES) -> None:
        self._most_records, self._most_bytes = most_records, most_bytes
        self._records: deque[StoredRecord] = deque()
        self._bytes = 0
        self._last_dropped: tuple[str, int] | None = None
        self._first = 0
        """The number of the oldest record here; they are counted from the beginning."""
        self._measurements: deque[int] = deque()
        """The numbers of the records that measure data and are whole."""

    def append(self, record: Record) -> None:
        """Add the next record, and drop the oldest when there is no room; the newest always stays."""
        stored = StoredRecord.of(record)
        self._records.append(stored)
        self._bytes += len(stored.text)
        if isinstance(record.event, DataMeasured):
            self._measurements.append(self._first + len(self._records) - 1)
            if len(self._measurements) > WHOLE_MEASUREMENTS:
                self._shorten(self._measurements.popleft() - self._first)
        while len(self._records) > self._most_records or (self._bytes > self._most_bytes and len(self._records) > 1):
            dropped = self._records.popleft()
            self._bytes -= len(dropped.text)
            self._first += 1
            self._last_dropped = (dropped.uuid, dropped.seq)

    def _shorten(self, place: int) -> None:
        """Keep only the totals of a measurement; all of it was reported again since (chapter `measuring`)."""
        if place < 0:
            return
        before = self._records[place]
        record = before.record
        assert isinstance(record.event, DataMeasured)
        short = StoredRecord.of(replace(record, event=replace(record.event, maps=(), rows=(), lagging=())))
        self._records[place] = short
        self._bytes -= len(before.text) - len(short.text)

    def after(self, uuid: str, seq: int) -> tuple[bool, list[StoredRecord]]:
        """Return whether no record is lost since (`uuid`, `seq`), and the records since, oldest first.

        An empty `uuid` means from the beginning, a `seq` of 0 from the beginning of that incarnation. After a position that
        is not known here, be it lost or of another process, all are returned, and something may be missing.
        """
        wanted = (uuid, seq)
        newer = 0
        for stored in reversed(self._records):  # readers are near the end
            if (stored.uuid, stored.seq) == wanted:
                return True, self._latest(newer)
            newer += 1
            if (stored.uuid, stored.seq - 1) == wanted and seq == 0:
                return True, self._latest(newer)
        return self._last_dropped == (wanted if uuid else None), self._latest(newer)

    def latest_position(self) -> tuple[str, int]:
        """Return incarnation and number of the newest record, after which nothing has come yet; `BEGINNING` before the first."""
        return (self._records[-1].uuid, self._records[-1].seq) if self._records else BEGINNING

    def _latest(self, count: int) -> list[StoredRecord]:
        return list(islice(reversed(self._records), count))[::-1]

    def __len__(self) -> int:
        return len(self._records)

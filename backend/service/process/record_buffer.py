"""The latest records of one process, for clients that follow its events: bounded, and exact about what it has lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from quarterdeck.backend.core.data.events import DataMeasured
from quarterdeck.backend.core.events import Record

MOST_RECORDS = 20_000
MOST_BYTES = 8 * 1024 * 1024
"""As JSON, which is what they are sent as."""
WHOLE_MEASUREMENTS = 500
"""So many of the latest records that measure data are kept as they are. Busy members write one every few seconds.

Of older ones the totals stay, so that they do not push out the records of lists and tables, without which a console that comes
late sees little; all of it was reported again since (chapter `measuring`).
"""


class RecordBuffer:
    """Records in the order in which the process made them. Incarnations change with merges; the order continues.

    One reader resumes after the last record that it has seen, whichever incarnation made it.
    """

    def __init__(self, most_records: int = MOST_RECORDS, most_bytes: int = MOST_BYTES) -> None:
        self._most_records, self._most_bytes = most_records, most_bytes
        self._records: deque[tuple[Record, int]] = deque()
        self._bytes = 0
        self._encoder = msgspec.json.Encoder()
        self._last_dropped: tuple[str, int] | None = None
        self._first = 0
        """The number of the oldest record here; they are counted from the beginning."""
        self._measurements: deque[int] = deque()
        """The numbers of the records that measure data and are whole."""

    def append(self, record: Record) -> None:
        """Add the next record, and drop the oldest when there is no room; the newest always stays."""
        size = len(self._encoder.encode(record))
        self._records.append((record, size))
        self._bytes += size
        if isinstance(record.event, DataMeasured):
            self._measurements.append(self._first + len(self._records) - 1)
            if len(self._measurements) > WHOLE_MEASUREMENTS:
                self._shorten(self._measurements.popleft() - self._first)
        while len(self._records) > self._most_records or (self._bytes > self._most_bytes and len(self._records) > 1):
            dropped, its_size = self._records.popleft()
            self._bytes -= its_size
            self._first += 1
            self._last_dropped = (dropped.uuid, dropped.seq)

    def _shorten(self, place: int) -> None:
        """Keep only the totals of a measurement; all of it was reported again since (chapter `measuring`)."""
        if place < 0:
            return
        record, size = self._records[place]
        assert isinstance(record.event, DataMeasured)
        shorter = replace(record, event=replace(record.event, maps=(), rows=(), lagging=()))
        its_size = len(self._encoder.encode(shorter))
        self._records[place] = (shorter, its_size)
        self._bytes -= size - its_size

    def after(self, uuid: str, seq: int) -> tuple[bool, Sequence[Record]]:
        """Return whether no record is lost since (`uuid`, `seq`), and the records since, oldest first.

        An empty `uuid` means from the beginning, a `seq` of 0 from the beginning of that incarnation. After a position that
        is not known here, be it lost or of another process, all are returned, and something may be missing.
        """
        wanted = (uuid, seq)
        newer = 0
        for record, _ in reversed(self._records):  # readers are near the end
            if (record.uuid, record.seq) == wanted:
                return True, self._latest(newer)
            newer += 1
            if (record.uuid, record.seq - 1) == wanted and seq == 0:
                return True, self._latest(newer)
        return self._last_dropped == (wanted if uuid else None), self._latest(newer)

    def _latest(self, count: int) -> list[Record]:
        return [record for record, _ in islice(self._records, len(self._records) - count, None)]

    def __len__(self) -> int:
        return len(self._records)

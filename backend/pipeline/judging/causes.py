"""Orders records by cause: none comes before one that has to come first.

These are the record that it names as its cause, the one before it in its incarnation, the installation of its list by the list's
author, and the end of the incarnation that it continues. Beyond that the order of times is kept: of all records that may come
next, the one with the least place does. So leaving out records that name no other incarnation, and for which no other incarnation
waits, changes nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled, MemberMerging
from quarterdeck.backend.pipeline.judging.lines import Line

Cause = tuple[str, int]
"""The uuid and number of a record, or a marked lineage and the version of a list, for its installation by its author."""


BEFORE_ALL = -(1 << 63)


class IncarnationOutline(Struct):
    """What must be known of an incarnation before the first record of the run is judged."""

    uuid: str
    starts: list[int] = []
    """The numbers of its records without gaps: each range from one of `starts` to the one in `ends` beside it."""
    ends: list[int] = []
    made: list[Cause] = []
    """The lists that it is the author of."""
    merges: list[Cause] = []
    """The incarnation that continues it, and the number of the record that names it."""

    def add(self, record: Record) -> None:
        """Add the next record of the incarnation."""
        if self.ends and record.seq == self.ends[-1] + 1:
            self.ends[-1] = record.seq
        else:
            self.starts.append(record.seq)
            self.ends.append(record.seq)
        event = record.event
        if isinstance(event, ListInstalled) and makes_list(record, event):
            self.made.append(_made(event))
        elif isinstance(event, MemberMerging) and event.next_uuid != record.uuid:
            self.merges.append((event.next_uuid, record.seq))

    def has(self, seq: int) -> bool:
        """Return whether there is a record of this number."""
        place = bisect_right(self.starts, seq) - 1
        return place >= 0 and seq <= self.ends[place]

    def is_after_gap(self, seq: int) -> bool:
        """Return whether the records before this number are missing."""
        place = bisect_right(self.starts, seq) - 1
        return seq > 1 and place >= 0 and self.starts[place] == seq


def makes_list(record: Record, event: ListInstalled) -> bool:
    """Return whether the member that installs the list is its author."""
    author, uuid = event.author, record.uuid
    return any(member.uuid == uuid and member.address == author for member in event.members)


def names_other(record: Record) -> bool:
    """Return whether the record names a cause other than an earlier record of its own incarnation."""
    cause = record.because
    return cause is not None and (cause.uuid != record.uuid or cause.seq > record.seq)


def causes_first(lines: Iterable[Line], outlines: Iterable[IncarnationOutline]) -> Iterator[Line]:
    """Reorder `lines`, which are sorted by place, so that no record comes before its causes."""
    return _Order(outlines).order(lines)


class _Order:
    """The records that have arrived, and those that wait."""

    def __init__(self, outlines: Iterable[IncarnationOutline]) -> None:
        self._outlines = {outline.uuid: outline for outline in outlines}
        self._made = {made for outline in self._outlines.values() for made in outline.made}
        self._predecessors: dict[str, Cause] = {}
        """By continuing incarnation, the end of the one before it."""
        for uuid, outline in sorted(self._outlines.items()):
            for next_uuid, seq in outline.merges:
                self._predecessors[next_uuid] = uuid, seq
        self._arrived: dict[str, int] = {}
        """By incarnation, the number of its last record that has arrived."""
        self._installed: set[Cause] = set()
        """The lists that their authors have installed."""
        self._waiting_lines: dict[str, deque[Line]] = {}
        """By incarnation, the records that have to wait: the first for a cause, the others for the first."""
        self._waits_for: dict[str, Cause] = {}
        self._waiters: dict[Cause, list[str]] = defaultdict(list)
        self._ready: list[tuple[int, str, int, str]] = []
        """The incarnations that wait no longer, by the places of their first records."""

    def order(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield each line when nothing is missing that has to come first."""
        for line in lines:
            uuid = line[3].uuid
            if (held := self._waiting_lines.get(uuid)) is not None:
                held.append(line)
            elif (missing := self._missing(line)) is not None:
                self._waiting_lines[uuid] = deque((line,))
                self._wait(uuid, missing)
            else:
                yield line
                self._arrive(line)
                if self._ready:
                    yield from self._released()
        while self._waiting_lines:  # a cycle of causes, as in no correct journal: then times decide
            uuid = min(self._waiting_lines, key=lambda uuid: self._waiting_lines[uuid][0][:3])
            self._waiters[self._waits_for[uuid]].remove(uuid)
            self._release(uuid)
            yield from self._released()

    def _released(self) -> Iterator[Line]:
        while self._ready:
            uuid = heappop(self._ready)[3]
            held = self._waiting_lines[uuid]
            line = held.popleft()
            yield line
            if not held:
                del self._waiting_lines[uuid]
            self._arrive(line)
            if held:
                self._recheck(uuid)

    def _arrive(self, line: Line) -> None:
        record = line[3]
        self._arrived[record.uuid] = record.seq
        for uuid in self._waiters.pop((record.uuid, record.seq), ()):
            self._recheck(uuid)
        event = record.event
        if type(event) is ListInstalled and self._awaits_author(made := _made(event)) and makes_list(record, event):
            self._installed.add(made)
            for uuid in self._waiters.pop(made, ()):
                self._recheck(uuid)

    def _awaits_author(self, made: Cause) -> bool:
        return made in self._made and made not in self._installed

    def _recheck(self, uuid: str) -> None:
        missing = self._missing(self._waiting_lines[uuid][0])
        if missing is None:
            self._release(uuid)
        else:
            self._wait(uuid, missing)

    def _wait(self, uuid: str, cause: Cause) -> None:
        self._waits_for[uuid] = cause
        self._waiters[cause].append(uuid)

    def _release(self, uuid: str) -> None:
        heappush(self._ready, (*self._waiting_lines[uuid][0][:3], uuid))

    def _missing(self, line: Line) -> Cause | None:
        """Return what has to come before the line and has not arrived."""
        record = line[3]
        uuid = record.uuid
        if (
            uuid not in self._arrived
            and (ended := self._predecessors.get(uuid)) is not None
            and self._is_missing(*ended)
        ):
            return ended
        if record.because is not None and names_other(record):
            cause = record.because.uuid, record.because.seq
            if self._is_missing(*cause):
                return cause
        event = record.event
        if type(event) is ListInstalled and self._awaits_author(made := _made(event)) and not makes_list(record, event):
            return made
        return None

    def _is_missing(self, uuid: str, seq: int) -> bool:
        outline = self._outlines.get(uuid)
        return outline is not None and seq > self._arrived.get(uuid, BEFORE_ALL) and outline.has(seq)


def _made(event: ListInstalled) -> Cause:
    return f"\0{event.lineage}", event.version

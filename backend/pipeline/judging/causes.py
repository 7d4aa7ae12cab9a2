"""No record before the one that has to come first: the one that it names as its cause, the one before it in its life, the list
that its master has made, and the end of the life that it goes on for.

Beside that the order of times is kept: of all records that may come next, the one with the least place does. So nothing changes
when records are left out that name no other life and that no other life waits for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from msgspec import Struct

from quarterdeck.backend.core.events import ListInstalled, MemberMerging, Record
from quarterdeck.backend.pipeline.judging.lines import Line

Cause = tuple[str, int]
"""The uuid and number of a record, or the lineage and version of a list as its maker installs it, with its lineage marked."""


BEFORE_ALL = -(1 << 63)


class LifeOutline(Struct):
    """What has to be known of a life before the first record of the run is judged."""

    uuid: str
    starts: list[int] = []
    """The numbers of its records without gaps: from each of `starts` to the one in `ends` beside it."""
    ends: list[int] = []
    made: list[Cause] = []
    """The lists that it has made."""
    merges: list[Cause] = []
    """The life that goes on for it, and the number of the record that says so."""

    def take(self, record: Record) -> None:
        """Take in the next record of the life."""
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
        """Whether there is a record of this number."""
        place = bisect_right(self.starts, seq) - 1
        return place >= 0 and seq <= self.ends[place]

    def is_after_gap(self, seq: int) -> bool:
        """Whether what stands before the record of this number is missing."""
        place = bisect_right(self.starts, seq) - 1
        return seq > 1 and place >= 0 and self.starts[place] == seq


def makes_list(record: Record, event: ListInstalled) -> bool:
    """Whether the member that installs the list is its author."""
    author, uuid = event.author, record.uuid
    return any(member.uuid == uuid and member.address == author for member in event.members)


def names_other(record: Record) -> bool:
    """Whether the record names one as its cause that does not stand before it in its own life."""
    cause = record.because
    return cause is not None and (cause.uuid != record.uuid or cause.seq > record.seq)


def causes_first(lines: Iterable[Line], outlines: Iterable[LifeOutline]) -> Iterator[Line]:
    """`lines`, which are in the order of their places, but no record before one that has to come first."""
    return _Order(outlines).order(lines)


class _Order:
    """Which records have come, and which wait."""

    def __init__(self, outlines: Iterable[LifeOutline]) -> None:
        self._outlines = {outline.uuid: outline for outline in outlines}
        self._made = {made for outline in self._outlines.values() for made in outline.made}
        self._ended: dict[str, Cause] = {}
        """By the life that goes on, the end of the one before it."""
        for uuid, outline in sorted(self._outlines.items()):
            for next_uuid, seq in outline.merges:
                self._ended[next_uuid] = uuid, seq
        self._come: dict[str, int] = {}
        """By life, the number of the last record that has come."""
        self._done: set[Cause] = set()
        """The lists whose makers have installed them."""
        self._held: dict[str, deque[Line]] = {}
        """By life, the records that have to wait: the first for a cause, the others for it."""
        self._waits_for: dict[str, Cause] = {}
        self._waiting: dict[Cause, list[str]] = defaultdict(list)
        self._ready: list[tuple[int, str, int, str]] = []
        """The lives that wait no longer, by the places of their first records."""

    def order(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Each line when nothing is missing that has to come first."""
        for line in lines:
            uuid = line[3].uuid
            if (held := self._held.get(uuid)) is not None:
                held.append(line)
            elif (missing := self._missing(line)) is not None:
                self._held[uuid] = deque((line,))
                self._wait(uuid, missing)
            else:
                yield line
                self._come_now(line)
                if self._ready:
                    yield from self._released()
        while self._held:  # what is left waits for itself, as in no true journal: then times decide
            uuid = min(self._held, key=lambda one: self._held[one][0][:3])
            self._waiting[self._waits_for[uuid]].remove(uuid)
            self._release(uuid)
            yield from self._released()

    def _released(self) -> Iterator[Line]:
        while self._ready:
            uuid = heappop(self._ready)[3]
            held = self._held[uuid]
            line = held.popleft()
            yield line
            if not held:
                del self._held[uuid]
            self._come_now(line)
            if held:
                self._look_again(uuid)

    def _come_now(self, line: Line) -> None:
        record = line[3]
        self._come[record.uuid] = record.seq
        for uuid in self._waiting.pop((record.uuid, record.seq), ()):
            self._look_again(uuid)
        event = record.event
        if type(event) is ListInstalled and self._awaits_maker(made := _made(event)) and makes_list(record, event):
            self._done.add(made)
            for uuid in self._waiting.pop(made, ()):
                self._look_again(uuid)

    def _awaits_maker(self, made: Cause) -> bool:
        return made in self._made and made not in self._done

    def _look_again(self, uuid: str) -> None:
        missing = self._missing(self._held[uuid][0])
        if missing is None:
            self._release(uuid)
        else:
            self._wait(uuid, missing)

    def _wait(self, uuid: str, cause: Cause) -> None:
        self._waits_for[uuid] = cause
        self._waiting[cause].append(uuid)

    def _release(self, uuid: str) -> None:
        heappush(self._ready, (*self._held[uuid][0][:3], uuid))

    def _missing(self, line: Line) -> Cause | None:
        """What has to come before the line, and has not."""
        record = line[3]
        uuid = record.uuid
        if uuid not in self._come and (ended := self._ended.get(uuid)) is not None and self._is_missing(*ended):
            return ended
        if record.because is not None and names_other(record):
            cause = record.because.uuid, record.because.seq
            if self._is_missing(*cause):
                return cause
        event = record.event
        if type(event) is ListInstalled and self._awaits_maker(made := _made(event)) and not makes_list(record, event):
            return made
        return None

    def _is_missing(self, uuid: str, seq: int) -> bool:
        outline = self._outlines.get(uuid)
        return outline is not None and seq > self._come.get(uuid, BEFORE_ALL) and outline.has(seq)


def _made(event: ListInstalled) -> Cause:
    return f"\0{event.lineage}", event.version

"""The space–time diagram: members side by side as lanes, time downward, and arrows for the messages between them.

An arrow is a cause (see `causes`) that came as a message, drawn at the row where it arrived. Messages that are not recorded,
such as heartbeats, are not in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import MemberStarted
from quarterdeck.backend.picture.events.catalogue import ROWS
from quarterdeck.backend.picture.events.event_row import LaneState
from quarterdeck.backend.picture.explain.causes import direct_causes
from quarterdeck.backend.picture.explain.event_index import EventIndex, identity
from quarterdeck.backend.picture.text.fact import Tone
from quarterdeck.backend.picture.text.formatting import LETTERS, one_line

ZOOMS_US = (0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
"""How much time a row may take up; 0 gives every event a row of its own."""

LANE_GLYPHS: dict[LaneState, str] = {"alive": "│", "frozen": "┆", "over": " "}
"""The look of a lane below a mark."""


@dataclass(frozen=True, slots=True)
class SpaceTimeLane:
    """One member, and the letter that stands for it in the marks of others."""

    label: str
    letter: str


@dataclass(frozen=True, slots=True)
class Mark:
    """The event of one lane in a row. `more` counts further events, which are not shown."""

    lane: int
    text: str
    tone: Tone
    more: int = 0


@dataclass(frozen=True, slots=True)
class Arrow:
    """A message from one lane that has arrived at another one."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class SpaceTimeRow:
    """One row of the diagram: an event, or all events of a short time."""

    at_us: int
    gap_us: int
    """How long nothing happened before."""
    marks: tuple[Mark, ...]
    arrows: tuple[Arrow, ...]
    lanes: str
    """The glyph of each lane where nothing stands in it."""
    record: Record
    """The first event of the row."""
    events: int


class SpaceTime:
    """The rows of the diagram. Made row by row as they come into sight; `extend` costs little."""

    def __init__(self, event_index: EventIndex, labels: Sequence[str], zoom_us: int = 0) -> None:
        """`event_index` must have every record before `extend` is given it."""
        self._trail = event_index
        self.zoom_us = zoom_us
        self.lanes = tuple(
            SpaceTimeLane(one_line(label), LETTERS[place] if place < len(LETTERS) else str(place + 1))
            for place, label in enumerate(labels)
        )
        self._lane_of = {label: place for place, label in enumerate(labels)}
        self._rows: list[list[Record]] = []
        self._row_of: dict[RecordId, int] = {}
        self._states: defaultdict[int, list[tuple[int, LaneState]]] = defaultdict(list)
        """By lane: from which row on it is in which state."""
        self._made: dict[int, SpaceTimeRow] = {}
        self.revision = 0
        """A number that grows when earlier rows have changed."""

    def __len__(self) -> int:
        return len(self._rows)

    def extend(self, records: Iterable[Record]) -> None:
        """Add `records` below."""
        for record in records:
            if ROWS[type(record.event)].mark is None or self._lane(record) is None:
                continue
            last = self._rows[-1] if self._rows else None
            if last is not None and self.zoom_us and last[0].at // self.zoom_us == record.at // self.zoom_us:
                last.append(record)
                self._made.pop(len(self._rows) - 1, None)
            else:
                self._rows.append([record])
            place = len(self._rows) - 1
            self._row_of[identity(record)] = place
            self._note_state(record, place)

    def row_of(self, record: Record) -> int | None:
        """Return the row in which `record` stands, if it is drawn."""
        return self._row_of.get(identity(record))

    def row_at(self, at_us: int) -> int:
        """Return the last row that is not after `at_us`; the first one when every row is."""
        return max(0, bisect_right(self._rows, at_us, key=lambda row: row[0].at) - 1)

    def row(self, place: int) -> SpaceTimeRow:
        made = self._made.get(place)
        if made is None:
            made = self._made[place] = self._make(place)
        return made

    def _make(self, place: int) -> SpaceTimeRow:
        records = self._rows[place]
        by_lane: dict[int, list[Record]] = {}
        arrows: dict[Arrow, None] = {}
        for record in records:
            lane = self._lane(record)
            assert lane is not None
            by_lane.setdefault(lane, []).append(record)
            for because in direct_causes(self._trail, record):
                source = self._lane_of.get(because.record.member)
                if because.message and source is not None and source != lane:
                    arrows[Arrow(source, lane)] = None
        first = records[0]
        gap_us = first.at - self._rows[place - 1][-1].at if place else 0
        marks = tuple(self._mark(lane, on_lane) for lane, on_lane in sorted(by_lane.items()))
        glyphs = "".join(self._glyph(lane, place) for lane in range(len(self.lanes)))
        return SpaceTimeRow(first.at, gap_us, marks, tuple(arrows), glyphs, first, len(records))

    def _mark(self, lane: int, records: list[Record]) -> Mark:
        """Return the mark of the weightiest of `records`, the last one among equals."""
        weightiest = max(enumerate(records), key=lambda placed: (ROWS[type(placed[1].event)].mark_weight, placed[0]))[1]
        text, tone = ROWS[type(weightiest.event)].marked(weightiest.event, self.letter)
        return Mark(lane, one_line(text), tone, len(records) - 1)

    def letter(self, address: Address | str) -> str:
        """Return the letter of the member at `address`, or of this label, in marks."""
        lane = self._lane_of.get(self._trail.label_of(Address(address)))
        return self.lanes[lane].letter if lane is not None else "?"

    def _lane(self, record: Record) -> int | None:
        befalls = ROWS[type(record.event)].befalls
        return self._lane_of.get(record.member if befalls is None else befalls(record.event))

    def _note_state(self, record: Record, place: int) -> None:
        state = ROWS[type(record.event)].lane
        lane = self._lane(record)
        if state is not None and lane is not None:
            if not self._states[lane] and isinstance(record.event, MemberStarted):
                self._states[lane].append((-1, "alive" if record.event.merged_from else "over"))
                self._made.clear()  # the lane was taken to be alive above
                self.revision += 1
            self._states[lane].append((place, state))

    def _glyph(self, lane: int, place: int) -> str:
        """Return the lane's state at a row. A lane whose beginning was not seen is alive."""
        states = self._states.get(lane, ())
        known = bisect_right(states, place, key=itemgetter(0)) - 1
        return LANE_GLYPHS[states[known][1] if known >= 0 else "alive"]

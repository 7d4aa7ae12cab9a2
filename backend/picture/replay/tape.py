"""The tape: what happened, put into the order of time and kept in it, the picture of any moment, and the playhead.

A picture is the fold of the records up to a moment. So that a moment in the middle of a million records does not cost the fold
of all of them, the tape keeps pictures of some moments (checkpoints), and folds from the nearest one before.

The playhead is which moment of the run is shown, and how it moves on: it follows what happens now, stands still, or plays
what has happened. It reads no clock: the time is an argument.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Literal, NamedTuple, TypeVar

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import Refusal

CAPACITY = 200_000
"""How many records are remembered by default: more than an hour at 50 events a second."""

SPACING = 5_000
"""The least number of records between two checkpoints; to fold a moment seldom takes more."""

SPACING_A_MEMBER = 25
"""The same for each member, because a checkpoint holds each belief that has changed."""

HOLD_US = 100_000
"""So long a record may be overtaken by later ones: members in several processes are that far out of step."""


class Bookmark(NamedTuple):
    """A moment that was given a name."""

    name: str
    at_us: int


class _Checkpoint(NamedTuple):
    position: int
    """How many records since the beginning of the run it has taken in."""
    picture: Picture


class Tape:
    """Remembers the latest `capacity` records, and the picture before them. All times are microseconds on the run's clock.

    A record that is overtaken by others is put where it belongs, if it is not more than `hold_us` late; one that is later
    stands where it came in. What happened in one microsecond stays in the order in which it came in, and is one moment: a
    picture shows all of it.

    Pictures that the tape hands out belong to it: look at them, apply nothing to them.
    """

    def __init__(self, capacity: int = CAPACITY, *, spacing: int = SPACING, hold_us: int = HOLD_US) -> None:
        if capacity < 1 or spacing < 1:
            raise ValueError(f"a tape of {capacity} records with a checkpoint each {spacing}: both are 1 at least")
        self.bookmarks: tuple[Bookmark, ...] = ()
        """In order of time."""
        self.forgotten = 0
        """How many of the oldest records are not remembered any more; the first picture has them all."""
        self.revision = 0
        """Grows whenever the past changed: a record was put in before others, or the oldest were forgotten."""
        self._capacity, self._spacing, self._hold_us = capacity, spacing, hold_us
        self._records: list[Record] = []
        self._times = array("q")
        """When each of the records counts as having happened: never before the one before it."""
        self._checkpoints = [_Checkpoint(0, Picture())]
        self._shown = self._checkpoints[0]
        """The picture requested last; playing on from it costs only the new records."""
        self._base_us: int | None = None
        """The time of the latest record that was forgotten."""
        self._in_order = True

    # What happened

    def append(self, records: Sequence[Record], head: Picture | None = None) -> None:
        """Take in what has happened since, in the order in which it arrived.

        `head` is the picture after all of it when the caller has folded it anyway; that saves folding it once more.
        """
        if not records:
            return
        latest = self._times[-1] if self._times else self._base_us
        for record in records:
            if latest is not None and record.at < latest:
                self._insert(record, latest)
                continue
            latest = record.at
            self._records.append(record)
            self._times.append(latest)
        self._add_checkpoints(head)
        self._forget()

    def __len__(self) -> int:
        return len(self._records)

    @property
    def start_us(self) -> int:
        """The earliest moment that can be shown; 0 while nothing has happened."""
        return self._base_us if self._base_us is not None else self._times[0] if self._times else 0

    @property
    def end_us(self) -> int:
        """The time of the latest record; 0 while nothing has happened."""
        return self._times[-1] if self._times else self._base_us or 0

    def records(self, from_us: int, to_us: int) -> list[Record]:
        """Return the remembered records of a span of time, both ends included."""
        return self._records[bisect_left(self._times, from_us) : bisect_right(self._times, to_us)]

    def last(self, count: int, up_to_us: int | None = None) -> list[Record]:
        """Return the last `count` records, or the last up to a moment, that moment included."""
        end = len(self._times) if up_to_us is None else bisect_right(self._times, up_to_us)
        return self._records[max(0, end - count) : end]

    def first(self, count: int, after_us: int) -> list[Record]:
        """Return the first `count` records after a moment."""
        start = bisect_right(self._times, after_us)
        return self._records[start : start + count]

    def since(self, taken: int, most: int) -> list[Record]:
        """Return the next records, `most` at most, for a reader that has had this number since the beginning of the run."""
        start = max(0, taken - self.forgotten)
        return self._records[start : start + most]

    def counts(self, edges_us: Sequence[int]) -> list[int]:
        """Return how many records lie between each two of these moments in order, the earlier one included, the later one not."""
        places = [bisect_left(self._times, edge_us) for edge_us in edges_us]
        return [after - before for before, after in pairwise(places)]

    def copy_to(self, at_us: int) -> Tape:
        """Return a tape of its own that remembers the same up to a moment, that moment included."""
        twin = Tape(self._capacity, spacing=self._spacing, hold_us=self._hold_us)
        end = bisect_right(self._times, at_us)
        twin._records, twin._times = self._records[:end], self._times[:end]
        twin.forgotten, twin._base_us, twin._in_order = self.forgotten, self._base_us, self._in_order
        last = self.forgotten + end
        twin._checkpoints = [checkpoint for checkpoint in self._checkpoints if checkpoint.position <= last]
        twin._shown = twin._checkpoints[-1]
        twin.bookmarks = tuple(mark for mark in self.bookmarks if mark.at_us <= at_us)
        return twin

    # Moments

    def picture_at(self, at_us: int) -> Picture:
        """Return the beliefs of all members at a moment, after all its events."""
        position = self.forgotten + bisect_right(self._times, at_us)
        if self._shown.position != position:
            self._shown = self._folded_to(position)
        return self._shown.picture

    def moment_beside(self, at_us: int, *, forward: bool) -> int | None:
        """Return the next moment at which anything happened, or the one before; None when it is forgotten or never was."""
        return beside(self._times, at_us, forward=forward)

    # Bookmarks

    def bookmark(self, at_us: int, name: str = "") -> Bookmark:
        """Give a moment a name, or one that is not taken yet; a name that is taken moves to this moment."""
        taken = {mark.name for mark in self.bookmarks}
        free = (f"mark-{number}" for number in range(1, len(taken) + 2))
        mark = Bookmark(name or next(unused for unused in free if unused not in taken), at_us)
        others = (other for other in self.bookmarks if other.name != mark.name)
        self.bookmarks = tuple(sorted((*others, mark), key=attrgetter("at_us")))
        return mark

    def moment_of(self, name: str) -> int | None:
        """Return the moment of this bookmark, or None."""
        return next((mark.at_us for mark in self.bookmarks if mark.name == name), None)

    # Order

    def _insert(self, record: Record, latest_us: int) -> None:
        """Put in a record that was overtaken. Checkpoints that have passed its place are worth nothing any more."""
        earliest_us = latest_us - self._hold_us
        at_us = max(record.at, earliest_us, earliest_us if self._base_us is None else self._base_us)
        place = bisect_right(self._times, at_us)
        self._records.insert(place, record)
        self._times.insert(place, at_us)
        self._in_order = False
        self.revision += 1
        position = self.forgotten + place
        while self._checkpoints[-1].position > position:
            self._checkpoints.pop()
        if self._shown.position > position:
            self._shown = self._checkpoints[-1]

    # Checkpoints

    def _add_checkpoints(self, head: Picture | None) -> None:
        end = self.forgotten + len(self._records)
        spacing = self._spacing_now()
        if head is not None and self._in_order and spacing <= end - self._checkpoints[-1].position <= 2 * spacing:
            self._checkpoints.append(_Checkpoint(end, head.copy()))
        if not self._in_order:  # before what may still be overtaken
            end = self.forgotten + bisect_left(self._times, self._times[-1] - self._hold_us)
        while end - self._checkpoints[-1].position >= self._spacing_now():
            self._checkpoints.append(self._folded_to(self._checkpoints[-1].position + self._spacing_now()))

    def _spacing_now(self) -> int:
        return max(self._spacing, SPACING_A_MEMBER * len(self._checkpoints[-1].picture.members))

    def _forget(self) -> None:
        """Let go of the oldest records, as many as lie before a checkpoint, which becomes the first picture."""
        forgotten = self.forgotten
        while len(self._records) - (forgotten - self.forgotten) > self._capacity:
            if len(self._checkpoints) == 1:  # a tape shorter than the distance of checkpoints
                self._checkpoints.append(self._folded_to(self.forgotten + len(self._records) - self._capacity))
            del self._checkpoints[0]
            forgotten = self._checkpoints[0].position
        count = forgotten - self.forgotten
        if count:
            self._base_us = self._times[count - 1]
            del self._records[:count]
            del self._times[:count]
            self.forgotten = forgotten
            self.revision += 1
            if self._shown.position < forgotten:
                self._shown = self._checkpoints[0]

    def _folded_to(self, position: int) -> _Checkpoint:
        """Return the picture after this number of records, from the nearest earlier checkpoint."""
        place = bisect_right(self._checkpoints, position, key=attrgetter("position"))
        start = self._checkpoints[place - 1]
        if start.position < self._shown.position <= position:
            start = self._shown
        if start.position == position:
            return start
        picture = start.picture.copy()
        for record in self._records[start.position - self.forgotten : position - self.forgotten]:
            picture.apply(record)
        return _Checkpoint(position, picture)


class ReorderBuffer:
    """Holds records back from one turn to the next, so that those that were overtaken can still be put before the others.

    What happened in the same microsecond stays in the order in which it came: that is the order of causes.
    """

    def __init__(self, most: int) -> None:
        """`most` records are held until they are drained; the oldest are dropped."""
        self._most = most
        self._held: list[Record] = []
        self._latest_us = -1
        """Time of the latest record at the last turn."""

    def take(self, records: Iterable[Record]) -> None:
        self._held += records
        if len(self._held) > 2 * self._most:
            del self._held[: -self._most]

    def release(self) -> Sequence[Record]:
        """Return the records that were there at the turn before, and those that happened before the latest of them, in order."""
        if not self._held:
            return ()
        self._held.sort(key=attrgetter("at"))
        until_us, self._latest_us = self._latest_us, self._held[-1].at
        settled = next((place for place, held in enumerate(self._held) if held.at > until_us), len(self._held))
        ready = self._held[:settled]
        del self._held[:settled]
        return ready

    def clear(self) -> None:
        self._held.clear()
        self._latest_us = -1


Mode = Literal["following", "paused", "playing"]

SPEEDS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""The choices of `faster` and `slower`: seconds of the run in one second."""

GREATEST_SPEED = 1_000.0


class BadSpeed(Refusal):
    """An impossible speed. The message names the possible ones."""


def checked_speed(speed: float) -> float:
    """Return `speed`, in seconds of the run in one second. Raises `BadSpeed`."""
    if not 0 < speed <= GREATEST_SPEED:
        raise BadSpeed(f"speed {speed:g}: more than 0 and at most {GREATEST_SPEED:g} seconds of the run in one second")
    return speed


Number = TypeVar("Number", int, float)


def beside(ordered: Sequence[Number], value: Number, *, forward: bool) -> Number | None:
    """Return the next greater one of `ordered`, or the next smaller one; None at the end."""
    place = bisect_right(ordered, value) if forward else bisect_left(ordered, value) - 1
    return ordered[place] if 0 <= place < len(ordered) else None


class Playhead:
    """A moment of a tape that can be moved. All times but that of `tick` are microseconds on the run's clock."""

    def __init__(self, tape: Tape) -> None:
        self.mode: Mode = "following"
        self.speed = 1.0
        """Seconds of the run in one second, while playing."""
        self.shown_us = 0
        """The moment that is shown."""
        self.jumps = 0
        """A number that grows whenever the next picture does not simply follow the last one: data gathered on the way is void."""
        self._tape = tape
        self._now_us = 0
        self._awaited_us: int | None = None
        self._ticked_us: int | None = None

    @property
    def live(self) -> bool:
        """Whether the newest is shown."""
        return self.mode == "following"

    @property
    def now_us(self) -> int:
        """The newest moment of the tape."""
        return max(self._now_us, self._tape.end_us)

    def tick(self, steady_us: int, now_us: int) -> None:
        """Move on: it is `steady_us` by a clock that the playing goes by, and `now_us` by the run's."""
        passed_us = 0 if self._ticked_us is None else max(0, steady_us - self._ticked_us)
        self._ticked_us = steady_us
        self._now_us = max(self._now_us, now_us)
        match self.mode:
            case "following":
                self.shown_us = self.now_us
                if self._awaited_us is not None and self._awaited_us <= self.now_us:
                    self.go(self._awaited_us)
            case "playing":
                self.shown_us = max(self.shown_us, self._tape.start_us) + round(passed_us * self.speed)
                if self.shown_us >= self.now_us:
                    self._follow()
            case "paused" if self.shown_us < self._tape.start_us:
                self.go(self._tape.start_us)  # the moment was forgotten

    # How it moves

    def follow(self) -> None:
        """Show the present, from now on."""
        if self.shown_us < self.now_us:
            self.jumps += 1
        self._follow()

    def wait_for(self, at_us: int) -> None:
        """Stand still at a moment once it has come, unless the playhead was moved before."""
        self._awaited_us = at_us

    def pause(self) -> None:
        """Stand still at the moment shown."""
        self.mode = "paused"

    def play(self) -> None:
        """Go on from the moment shown."""
        self.mode = "playing" if self.shown_us < self.now_us else "following"

    def toggle(self) -> None:
        if self.mode == "paused":
            self.play()
        else:
            self.pause()

    def set_speed(self, speed: float) -> None:
        """Play at this number of seconds of the run in one second. Raises `BadSpeed`."""
        self.speed = checked_speed(speed)

    # Where it goes

    def go(self, at_us: int) -> None:
        self._awaited_us = None
        at_us = min(max(at_us, self._tape.start_us), self.now_us)
        if at_us != self.shown_us:
            self.jumps += 1
        self.shown_us = at_us
        if self.mode == "following":
            self.mode = "paused"

    def go_by(self, by_us: int) -> None:
        """Go later by this time, or earlier when it is negative."""
        self.go(self.shown_us + by_us)

    def step(self, forward: bool) -> bool:
        """Stand still at the next moment with an event, or at the one before. Return whether the tape has such a moment."""
        moment = self._tape.moment_beside(self.shown_us, forward=forward)
        self.mode = "paused"
        if moment is None:
            return False
        if not forward:
            self.jumps += 1
        self.shown_us = moment
        return True

    def go_among(self, moments: Sequence[int], *, forward: bool) -> int | None:
        """Go to the next of these moments, which are in order, or to the one before; None at the end."""
        moment = beside(moments, self.shown_us, forward=forward)
        if moment is not None:
            self.go(moment)
        return moment

    def _follow(self) -> None:
        self.mode, self.shown_us, self._awaited_us = "following", self.now_us, None

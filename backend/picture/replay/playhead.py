"""The playhead: which moment of the run is shown, and how it moves on.

It either follows what happens now, stands still, or plays what has happened. It reads no clock: the time is an argument.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Literal

from quarterdeck.backend.picture.replay.tape import Tape
from quarterdeck.backend.picture.text.refusal import Refusal

Mode = Literal["following", "paused", "playing"]

SPEEDS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""What `faster` and `slower` choose from: seconds of the run in one second."""

GREATEST_SPEED = 1_000.0


class BadSpeed(Refusal):
    """A speed that nothing can be played at. The message says what can be asked for."""


def checked_speed(speed: float) -> float:
    """Return `speed`, in seconds of the run in one second. Raises `BadSpeed`."""
    if not 0 < speed <= GREATEST_SPEED:
        raise BadSpeed(f"speed {speed:g}: more than 0 and at most {GREATEST_SPEED:g} seconds of the run in one second")
    return speed


def next_speed(speed: float) -> float:
    """Return the next greater one of `SPEEDS`; the greatest has none."""
    place = bisect_right(SPEEDS, speed)
    return SPEEDS[place] if place < len(SPEEDS) else speed


def previous_speed(speed: float) -> float:
    """Return the next smaller one of `SPEEDS`; the smallest has none."""
    place = bisect_left(SPEEDS, speed)
    return SPEEDS[place - 1] if place else speed


class Playhead:
    """A moment of a tape that can be moved. All times but that of `tick` are microseconds on the run's clock."""

    def __init__(self, tape: Tape) -> None:
        self.mode: Mode = "following"
        self.speed = 1.0
        """Seconds of the run in one second, while playing."""
        self.shown_us = 0
        """The moment that is shown."""
        self.jumps = 0
        """Grows whenever what is shown next does not simply follow on what was: what was gathered on the way is void."""
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
        """The newest moment there is."""
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
        """Show what happens now, from now on."""
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
        """Play at so many seconds of the run in one second. Raises `BadSpeed`."""
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
        """Go so much later, or earlier when it is negative."""
        self.go(self.shown_us + by_us)

    def step(self, forward: bool) -> bool:
        """Stand still at the next moment at which anything happened, or at the one before; whether there is one."""
        moment = self._tape.next_after(self.shown_us) if forward else self._tape.previous_before(self.shown_us)
        self.mode = "paused"
        if moment is None:
            return False
        if not forward:
            self.jumps += 1
        self.shown_us = moment
        return True

    def go_among(self, moments: Sequence[int], *, forward: bool) -> int | None:
        """Go to the next of these moments, which are in order, or to the one before; None when there is none."""
        place = bisect_right(moments, self.shown_us) if forward else bisect_left(moments, self.shown_us) - 1
        if not 0 <= place < len(moments):
            return None
        self.go(moments[place])
        return moments[place]

    def _follow(self) -> None:
        self.mode, self.shown_us, self._awaited_us = "following", self.now_us, None

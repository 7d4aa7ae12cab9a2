"""What keys and words do to time: in every view, to whatever session is in sight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

from quarterdeck.app.doors import Opened
from quarterdeck.app.live_screen import Deed, Desk
from quarterdeck.app.prompt_grammar import BadLine, ConsoleRequest, parse_line
from quarterdeck.app.session import Session
from quarterdeck.backend.clusters.pace import Forkable, Paced
from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.picture.moments import BadMoment, moment_of
from quarterdeck.backend.picture.one_line import one_line
from quarterdeck.backend.picture.playhead import BadSpeed, next_speed, previous_speed
from quarterdeck.backend.picture.timeline import seconds_text

SECOND_US = 1_000_000


class TimeDeeds:
    """While the newest of a cluster is shown whose time can be held, it is that which stands still, steps and goes faster."""

    def __init__(self, desk: Desk, session: Callable[[], Session], repaint: Callable[[], None]) -> None:
        """`repaint` shows the moment at once that a deed has led to."""
        self._desk, self._session, self._repaint = desk, session, repaint
        deeds: dict[str, Deed] = {
            "time-back": lambda _: self._step_back(),
            "time-on": lambda _: self._step_on(),
            "time-second-back": lambda _: self._session().playhead.go_by(-SECOND_US),
            "time-second-on": lambda _: self._second_on(),
            "time-pause": lambda _: self._pause(),
            "time-live": lambda _: self._session().playhead.follow(),
            "time-at": self._go,
            "time-bookmark": self._bookmark,
            "time-speed": self._type_speed,
            "time-slower": lambda _: self._set_speed(previous_speed(self._speed())),
            "time-faster": lambda _: self._set_speed(next_speed(self._speed())),
            "time-violation": lambda _: self._to_violation(forward=True),
            "time-violation-before": lambda _: self._to_violation(forward=False),
        }
        self.deeds: dict[str, Deed] = {
            **{action_id: self._seen(deed) for action_id, deed in deeds.items()},
            "time-fork": self._fork,
        }

    def _seen(self, deed: Deed) -> Deed:
        def do(text: str) -> None:
            deed(text)
            self._repaint()

        return do

    # Steps

    def _step_back(self) -> None:
        if not self._session().playhead.step(forward=False):
            self._desk.say("nothing that is remembered happened before this")

    def _step_on(self) -> None:
        playhead, paced = self._session().playhead, self._held()
        if paced is not None:
            paced.run_to_next_event()
        elif playhead.live or not playhead.step(forward=True):
            self._desk.say("nothing has happened after this yet")

    def _second_on(self) -> None:
        playhead, paced = self._session().playhead, self._held()
        if paced is not None:
            paced.run_on(SECOND_US)
        elif not playhead.live:
            playhead.go_by(SECOND_US)

    def _pause(self) -> None:
        paced = self._held()
        if paced is None:
            self._session().playhead.toggle()
        elif paced.paused:
            paced.resume()
        else:
            paced.pause()

    def _held(self) -> Paced | None:
        """The cluster whose own time is meant: while the newest of it is shown, if that can be held at all."""
        session = self._session()
        return session.cluster if session.live and isinstance(session.cluster, Paced) else None

    # Places

    def _go(self, text: str) -> None:
        if not text:
            self._desk.type_line("at ")
            return
        session = self._session()
        try:
            at_us = moment_of(text, session.tape, session.playhead)
        except BadMoment as problem:
            self._desk.say(one_line(str(problem)), error=True)
            return
        session.playhead.go(at_us)
        if session.playhead.shown_us != at_us:
            self._desk.say(f"{seconds_text(at_us)} is out of what is remembered; this is the nearest")

    def _bookmark(self, name: str) -> None:
        session = self._session()
        mark = session.tape.bookmark(session.now_us(), name)
        self._desk.say(f"bookmark {one_line(mark.name)} is at {seconds_text(mark.at_us)}")

    def _to_violation(self, *, forward: bool) -> None:
        session = self._session()
        moments = violation_moments(session)
        at_us = session.playhead.go_among(moments, forward=forward)
        if at_us is None:
            where = "after" if forward else "before"
            self._desk.say(
                f"no violation was found {where} this" if session.judged else "invariants are not watched here"
            )
            return
        texts = [one.text for one in session.violations if at_us == max(map(attrgetter("at"), one.witnesses))]
        self._desk.say("; ".join(texts), error=True)

    # Speed

    def _speed(self) -> float:
        paced = self._held()
        return self._session().playhead.speed if paced is None else paced.speed

    def _type_speed(self, text: str) -> None:
        if not text:
            self._desk.type_line("speed ")
            return
        try:
            speed = float(text.removeprefix("x"))
        except ValueError:
            self._desk.say(
                f"{text!r} is no speed; write seconds of the run in one second, such as 0.5 or 4", error=True
            )
            return
        self._set_speed(speed)

    def _set_speed(self, speed: float) -> None:
        paced = self._held()
        try:
            if paced is None:
                self._session().playhead.set_speed(speed)
            else:
                paced.set_speed(speed)
        except BadSpeed as problem:
            self._desk.say(str(problem), error=True)
        else:
            self._desk.say(f"speed {speed:g}: seconds of the run in one second")

    # Forks

    def _fork(self, text: str) -> None:
        session = self._session()
        if not isinstance(session.cluster, Forkable):
            self._desk.say("only a simulated run can be forked; open one with `console --simulate FILE`", error=True)
            return
        if not text:
            self._desk.type_line("fork ")
            return
        try:
            command = self._command(text)
            fork = session.cluster.fork(session.now_us(), command)
        except ValueError as problem:
            self._desk.say(one_line(str(problem)), error=True)
            return
        self._desk.open_tab(Opened(fork, fork.started), fork.name)

    def _command(self, text: str) -> Command | None:
        if text == "nothing":
            return None
        wish = parse_line(text, self._session().cluster.labels, writable=True)
        if isinstance(wish, ConsoleRequest):
            raise BadLine(
                f"{wish.word!r} does nothing to a cluster; write a command such as `fork kill n1`, or `fork nothing`"
            )
        return wish


def violation_moments(session: Session) -> Sequence[int]:
    """When each of the violations was seen, in order."""
    return sorted(max(record.at for record in one.witnesses) for one in session.violations)

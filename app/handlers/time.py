"""Actions on the time of the current session, known in every view: going back and forth, bookmarks, speed and forks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from operator import attrgetter

from quarterdeck.app.actions.action import EVERYTHING
from quarterdeck.app.commands.grammar import BadLine, ConsoleRequest, parse_line
from quarterdeck.app.console_interface import ConsoleInterface, Handler, OpenedCluster, Refusal
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.clusters.cluster import SnapshotSource
from quarterdeck.backend.clusters.simulated.copied_cluster import CopiedCluster
from quarterdeck.backend.clusters.time_control import Forkable, TimeControl
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.commands.commands import Command, CommandRefused
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.replay.moments import BadMoment, moment_of
from quarterdeck.backend.picture.replay.playhead import BadSpeed, next_speed, previous_speed
from quarterdeck.backend.picture.replay.timeline import seconds_text
from quarterdeck.backend.picture.text.formatting import one_line

ASKED = "a copy is being made: each member reports what it knows …"

SETTLING_SECONDS = 0.4
"""How long after a snapshot the records of that moment may still be on their way to the console."""


class TimeHandlers:
    """Moves the playhead.

    While the present of a cluster is shown whose time can be held, it holds, steps and paces the cluster instead.
    """

    def __init__(
        self, console: ConsoleInterface, session: Callable[[], ConsoleSession], repaint: Callable[[], None]
    ) -> None:
        """Create the handlers. `repaint` shows the new moment at once."""
        self._console, self._session, self._repaint = console, session, repaint
        handlers: dict[str, Handler] = {
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
        self.handlers: dict[str, Handler] = {
            **{action_id: self._repainting(handler) for action_id, handler in handlers.items()},
            "time-fork": self._fork,
        }

    def _repainting(self, handler: Handler) -> Handler:
        def do(text: str) -> None:
            handler(text)
            self._repaint()

        return do

    # Steps

    def _step_back(self) -> None:
        if not self._session().playhead.step(forward=False):
            self._console.show_message("no earlier event is remembered")

    def _step_on(self) -> None:
        playhead, paced = self._session().playhead, self._paced_cluster()
        if paced is not None:
            paced.run_to_next_event()
        elif playhead.live or not playhead.step(forward=True):
            self._console.show_message("there is no later event yet")

    def _second_on(self) -> None:
        playhead, paced = self._session().playhead, self._paced_cluster()
        if paced is not None:
            paced.run_on(SECOND_US)
        elif not playhead.live:
            playhead.go_by(SECOND_US)

    def _pause(self) -> None:
        paced = self._paced_cluster()
        if paced is None:
            self._session().playhead.toggle()
        elif paced.paused:
            paced.resume()
        else:
            paced.pause()

    def _paced_cluster(self) -> TimeControl | None:
        """Return the cluster whose own time an action changes: while its present is shown, if its time can be held."""
        session = self._session()
        return session.cluster if session.live and isinstance(session.cluster, TimeControl) else None

    # Places

    def _go(self, text: str) -> None:
        if not text:
            self._console.type_line("at ")
            return
        session = self._session()
        try:
            at_us = moment_of(text, session.tape, session.playhead)
        except BadMoment as problem:
            self._console.show_message(one_line(str(problem)), error=True)
            return
        session.playhead.go(at_us)
        if session.playhead.shown_us != at_us:
            self._console.show_message(f"{seconds_text(at_us)} is not remembered; this is the nearest moment")

    def _bookmark(self, name: str) -> None:
        session = self._session()
        mark = session.tape.bookmark(session.now_us(), name)
        self._console.show_message(f"bookmark {one_line(mark.name)} is at {seconds_text(mark.at_us)}")

    def _to_violation(self, *, forward: bool) -> None:
        session = self._session()
        moments = violation_moments(session)
        at_us = session.playhead.go_among(moments, forward=forward)
        if at_us is None:
            where = "after" if forward else "before"
            self._console.show_message(
                f"no violation was found {where} this" if session.monitored else "invariants are not watched here"
            )
            return
        texts = [found.text for found in session.violations if at_us == max(map(attrgetter("at"), found.witnesses))]
        self._console.show_message("; ".join(texts), error=True)

    # Speed

    def _speed(self) -> float:
        paced = self._paced_cluster()
        return self._session().playhead.speed if paced is None else paced.speed

    def _type_speed(self, text: str) -> None:
        if not text:
            self._console.type_line("speed ")
            return
        try:
            speed = float(text.removeprefix("x"))
        except ValueError:
            raise Refusal(
                f"{text!r} is not a speed; write seconds of the run in one second, such as 0.5 or 4"
            ) from None
        self._set_speed(speed)

    def _set_speed(self, speed: float) -> None:
        paced = self._paced_cluster()
        try:
            if paced is None:
                self._session().playhead.set_speed(speed)
            else:
                paced.set_speed(speed)
        except BadSpeed as problem:
            self._console.show_message(str(problem), error=True)
        else:
            self._console.show_message(f"speed {speed:g}: seconds of the run in one second")

    # Forks

    def _fork(self, text: str) -> None:
        session = self._session()
        cluster = session.cluster
        if not isinstance(cluster, Forkable | SnapshotSource):
            raise Refusal("only clusters of our own can be forked, and simulated runs")
        if not isinstance(cluster, Forkable) and not session.live:
            problem = "members know only the present; go there first, with L"
            self._console.show_message(problem, error=True)
            return
        if isinstance(cluster, Forkable) and not text:
            self._console.type_line("fork ")
            return
        try:
            command = self._command(text)
            if not isinstance(cluster, Forkable):
                self._open_copy(session, cluster, command)
                return
            fork = cluster.fork(session.now_us(), command)
        except ValueError as problem:
            self._console.show_message(one_line(str(problem)), error=True)
            return
        self._console.open_tab(OpenedCluster(fork, fork.started), fork.name)

    def _open_copy(self, session: ConsoleSession, cluster: SnapshotSource, command: Command | None) -> None:
        """Open a copy of `cluster` as it is now, with its past, and do `command` in it, without waiting for the members."""
        self._console.show_message(ASKED)
        asked = cluster.snapshot()
        asked.add_done_callback(lambda done: self._console.call_later(self._copied, session, command, done) and None)

    def _copied(self, session: ConsoleSession, command: Command | None, done: Future[ClusterSnapshot]) -> None:
        try:
            snapshot = done.result()
        except (CommandRefused, CancelledError) as refusal:
            self._console.withdraw_message(ASKED)
            self._console.show_message(f"no copy: {refusal}", error=True)
            return
        self._console.set_timer(SETTLING_SECONDS, partial(self._show_copy, session, command, snapshot))

    def _show_copy(self, session: ConsoleSession, command: Command | None, snapshot: ClusterSnapshot) -> None:
        copy = CopiedCluster(snapshot, name=f"{snapshot.name}-copy-{snapshot.at_us / SECOND_US:.1f}s")
        starting = copy.execute(command) if command is not None else None
        self._console.withdraw_message(ASKED)
        past = session.tape.copy_to(snapshot.at_us)
        self._console.open_tab(OpenedCluster(copy, starting), copy.name, past=past, origin=session)
        _, *notes = copy.notes()
        self._console.show_message(one_line("; ".join(["esc goes back to the real one", *notes])))

    def _command(self, text: str) -> Command | None:
        if text in ("", "nothing"):
            return None
        parsed = parse_line(text, self._session().cluster.labels, allowed=EVERYTHING)
        if isinstance(parsed, ConsoleRequest):
            raise BadLine(
                f"{parsed.word!r} does nothing to a cluster; write a command such as `fork kill n1`, or `fork nothing`"
            )
        return parsed


def violation_moments(session: ConsoleSession) -> Sequence[int]:
    """Return when each of the violations was seen, in order."""
    return sorted(max(record.at for record in violation.witnesses) for violation in session.violations)

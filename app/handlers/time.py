"""Actions on the time of the session in sight, known in every view: going back and forth, bookmarks, speed and forks.

While the present of a cluster is shown whose time can be held, they hold, step and pace the cluster instead of the playhead.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from operator import attrgetter
from typing import get_args

from quarterdeck.app.actions.action import EVERYTHING
from quarterdeck.app.commands.grammar import BadLine, ConsoleRequest, parse_line
from quarterdeck.app.console_interface import OpenedCluster, choice_of
from quarterdeck.app.console_state import Clock
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.clusters.cluster import Forkable, SnapshotSource, TimeControl
from quarterdeck.backend.clusters.simulated.copied_cluster import CopiedCluster
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.commands import Command, CommandRefused
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.replay.tape import SPEEDS, beside
from quarterdeck.backend.picture.replay.timeline import moment_of, seconds_text
from quarterdeck.backend.picture.text.formatting import Refusal, one_line

ASKED = "a copy is being made: each member reports what it knows …"

SETTLING_SECONDS = 0.4
"""How long after a snapshot the records of that moment may still be on their way to the console."""


def _paced_cluster(session: ConsoleSession) -> TimeControl | None:
    """Return the cluster whose own time an action changes: while its present is shown, if its time can be held."""
    return session.cluster if session.live and isinstance(session.cluster, TimeControl) else None


# Steps


def do_time_on(view: ViewScreen, back: str) -> None:
    """Go to the next event, or `back` to the previous one."""
    playhead, paced = view.session.playhead, _paced_cluster(view.session)
    if back:
        if not playhead.step(forward=False):
            view.console.show_message("no earlier event is remembered")
    elif paced is not None:
        paced.run_to_next_event()
    elif playhead.live or not playhead.step(forward=True):
        view.console.show_message("there is no later event yet")
    view.repaint()


def do_time_second_on(view: ViewScreen, back: str) -> None:
    playhead, paced = view.session.playhead, _paced_cluster(view.session)
    if back:
        playhead.go_by(-SECOND_US)
    elif paced is not None:
        paced.run_on(SECOND_US)
    elif not playhead.live:
        playhead.go_by(SECOND_US)
    view.repaint()


def do_time_pause(view: ViewScreen, _: str) -> None:
    paced = _paced_cluster(view.session)
    if paced is None:
        view.session.playhead.toggle()
    elif paced.paused:
        paced.resume()
    else:
        paced.pause()
    view.repaint()


def do_time_live(view: ViewScreen, _: str) -> None:
    view.session.playhead.follow()
    view.repaint()


# Places


def do_time_at(view: ViewScreen, text: str) -> None:
    if not text:
        view.console.type_line("at ")
        return
    session = view.session
    at_us = moment_of(text, session.tape, session.playhead)
    session.playhead.go(at_us)
    if session.playhead.shown_us != at_us:
        view.console.show_message(f"{seconds_text(at_us)} is not remembered; this is the nearest moment")
    view.repaint()


def do_time_bookmark(view: ViewScreen, name: str) -> None:
    mark = view.session.tape.bookmark(view.session.now_us(), name)
    view.console.show_message(f"bookmark {one_line(mark.name)} is at {seconds_text(mark.at_us)}")
    view.repaint()


def do_time_violation(view: ViewScreen, back: str) -> None:
    """Go to the next violation, or `back` to the previous one."""
    session = view.session
    at_us = session.playhead.go_among(violation_moments(session), forward=not back)
    if at_us is None:
        none = f"no violation was found {'before' if back else 'after'} this"
        view.console.show_message(none if session.monitored else "invariants are not watched here")
        return
    texts = [found.text for found in session.violations if at_us == max(map(attrgetter("at"), found.witnesses))]
    view.console.show_message("; ".join(texts), error=True)
    view.repaint()


def violation_moments(session: ConsoleSession) -> Sequence[int]:
    """Return when each of the violations was seen, in order."""
    return sorted(max(record.at for record in violation.witnesses) for violation in session.violations)


def do_clock(view: ViewScreen, text: str) -> None:
    """Show times on the named clock, or on the other one than now."""
    clock = view.session.clock
    clock.chosen = choice_of(text or ("run" if clock.utc else "utc"), get_args(Clock), clock.chosen, "clock")
    view.console.show_message("times are UTC" if clock.utc else "times are seconds since the run began")
    view.repaint()


# Speed


def do_time_speed(view: ViewScreen, text: str) -> None:
    """Let time pass at the speed in `text`, or `slower` or `faster` than now."""
    paced = _paced_cluster(view.session) or view.session.playhead
    if not text:
        view.console.type_line("speed ")
        return
    if text in ("slower", "faster"):  # the slowest and the fastest have none beside them
        speed = beside(SPEEDS, paced.speed, forward=text == "faster") or paced.speed
    else:
        try:
            speed = float(text.removeprefix("x"))
        except ValueError:
            hint = "write seconds of the run in one second, such as 0.5 or 4"
            raise Refusal(f"{text!r} is not a speed; {hint}") from None
    paced.set_speed(speed)
    view.console.show_message(f"speed {speed:g}: seconds of the run in one second")
    view.repaint()


# Forks


def do_time_fork(view: ViewScreen, text: str) -> None:
    cluster = view.session.cluster
    assert isinstance(cluster, Forkable | SnapshotSource), "the action needs snapshots"
    if not isinstance(cluster, Forkable):
        if not view.session.live:
            raise Refusal("members know only the present; go there first, with L")
        command = _command(view, text)
        view.console.show_message(ASKED)
        # Members are not waited for here.
        asked = cluster.snapshot()
        asked.add_done_callback(lambda done: view.console.call_later(_copied, view, command, done) and None)
    elif not text:
        view.console.type_line("fork ")
    else:
        command = _command(view, text)
        try:
            fork = cluster.fork(view.session.now_us(), command)
        except ValueError as problem:
            raise Refusal(str(problem)) from problem
        view.console.open_tab(OpenedCluster(fork, fork.started), fork.name, origin=view.session)
        view.console.show_message(f"esc goes back to {view.session.cluster.name}")


def _copied(view: ViewScreen, command: Command | None, done: Future[ClusterSnapshot]) -> None:
    try:
        snapshot = done.result()
    except (CommandRefused, CancelledError) as refusal:
        view.console.withdraw_message(ASKED)
        view.console.show_message(f"no copy: {refusal}", error=True)
        return
    view.console.set_timer(SETTLING_SECONDS, partial(_show_copy, view, command, snapshot))


def _show_copy(view: ViewScreen, command: Command | None, snapshot: ClusterSnapshot) -> None:
    copy = CopiedCluster(snapshot, name=f"{snapshot.name}-copy-{snapshot.at_us / SECOND_US:.1f}s")
    starting = copy.execute(command) if command is not None else None
    view.console.withdraw_message(ASKED)
    past = view.session.tape.copy_to(snapshot.at_us)
    view.console.open_tab(OpenedCluster(copy, starting), copy.name, past=past, origin=view.session)
    _, *notes = copy.notes()
    view.console.show_message(one_line("; ".join(["esc goes back to the real one", *notes])))


def _command(view: ViewScreen, text: str) -> Command | None:
    if text in ("", "nothing"):
        return None
    parsed = parse_line(text, view.session.cluster.labels, allowed=EVERYTHING)
    if isinstance(parsed, ConsoleRequest):
        hint = "write a command such as `fork kill n1`, or `fork nothing`"
        raise BadLine(f"{parsed.word!r} does nothing to a cluster; {hint}")
    return parsed

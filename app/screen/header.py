"""The first line of every view: whether all is well, which cluster, from where, how many members, who leads and who is heard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.actions.views import VIEW_NAMES
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.boards.migration_board import progress_text
from quarterdeck.backend.clusters.cluster import Cluster, ConnectionStatus, ConnectionStatusSource
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import age_text, counted, one_line
from quarterdeck.widgets.line_table import TableCell

NAMES_SPELT_OUT = 3


class ConnectionSummary:
    """Describes how well the members of a remote cluster are connected; of other clusters there is nothing to describe.

    Ages are in whole seconds, so the texts change by themselves at most once a second.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._remote = cluster if isinstance(cluster, ConnectionStatusSource) else None

    def marks(self) -> dict[str, str]:
        """Return the mark of each member that is out of date or was never reached."""
        now_us = self._cluster.now_us()
        marks = {}
        for label, status in self._reach().items():
            if status.contact == "stale":
                marks[label] = f"stale {age_text(now_us - status.since_us)}"
            elif status.contact == "connecting":
                marks[label] = "not reached"
        return marks

    def badges(self, *, live: bool) -> list[TableCell]:
        """Return where the cluster runs, and whether it can be changed from here; the past cannot."""
        writable = self._cluster.writable and live
        if self._remote is None:
            return [TableCell("RW" if writable else "RO", "strong")]
        right = "RW read and write" if writable else "RO read-only"
        return [TableCell(one_line(self._remote.environment), "warning"), TableCell(right, "strong")]

    def problems(self) -> list[TableCell]:
        """Return how members of Hazelcast are out of reach, or whose history is incomplete."""
        connection_status = self._reach()
        away = sum(status.contact != "connected" for status in connection_status.values())
        torn = [one_line(label) for label, status in connection_status.items() if status.incomplete]
        more = f" and {len(torn) - NAMES_SPELT_OUT} more" if len(torn) > NAMES_SPELT_OUT else ""
        standing = {
            label: "not reached" if status.contact == "connecting" and status.state == "gone" else status.state
            for label, status in connection_status.items()
            if status.state not in ("", "connected")
        }
        if standing:
            named = [f"{one_line(label)} {state}" for label, state in list(standing.items())[:NAMES_SPELT_OUT]]
            more = f" and {len(standing) - NAMES_SPELT_OUT} more" if len(standing) > NAMES_SPELT_OUT else ""
            answering = f"{len(connection_status) - away} of {len(connection_status)} answer"
            return [TableCell(f"⊘ {answering}; {', '.join(named)}{more}", "warning")]
        return [TableCell(f"history incomplete: {', '.join(torn[:NAMES_SPELT_OUT])}{more}" if torn else "", "warning")]

    def facts(self, label: str) -> Iterator[Fact]:
        """Yield how this member is reached."""
        status = self._reach().get(label)
        if status is None:
            return
        now_us = self._cluster.now_us()
        age, why = age_text(now_us - status.since_us), f": {one_line(status.why)}" if status.why else ""
        match status.contact:
            case "connected":
                yield Fact("connection", f"{status.url}, connected since {age}")
            case "stale":
                yield Fact("connection", f"{status.url}, last heard {age} ago{why}", "warning")
                yield Fact("", "its last known belief:", "faint")
            case _:
                yield Fact("connection", f"{status.url}, not reached, tried for {age}{why}", "warning")
        if status.incomplete:
            lost = f"incomplete: {status.incomplete} is lost, so something may be missing here"
            yield Fact("history", lost, "warning")

    def _reach(self) -> Mapping[str, ConnectionStatus]:
        return {} if self._remote is None else self._remote.connection_status()


SOURCE_NAMES = {"logs": "logs", "client-protocol": "what members report to clients"}


def header_parts(
    session: ConsoleSession, connections: ConnectionSummary, view: ViewName, selected: int = 0
) -> tuple[list[TableCell], list[TableCell]]:
    """Return what the first line shows now: what must not be overlooked, whatever room there is, and the rest."""
    cluster, picture, health = session.cluster, session.picture, session.health
    running = sum(belief.running for belief in picture.members.values())
    masters = [one_line(side.master) for side in session.judge.agreement.sides]
    broken = len(session.violations)
    kind = _kind(session)
    load = session.traffic
    *environment, right = connections.badges(live=session.live)
    return [
        *([kind] if session.is_copy else []),
        TableCell(moment_text(session), "warning"),
        TableCell(f"■ {selected} selected, esc clears" if selected else "", "warning"),
        TableCell(health.sentence, health.tone),
    ], [
        TableCell(f"✕ {counted(broken, 'violation')}" if broken else "", "bad"),
        TableCell(_journal_text(session), "bad"),
        *environment,
        TableCell(f"members {running}/{len(cluster.labels)}"),  # several masters are named in the sentence
        *([TableCell(f"master {masters[0] if masters else 'none'}")] if len(masters) < 2 else []),
        TableCell(one_line(cluster.name), "strong"),
        right,
        *([] if session.is_copy else [kind]),
        *([TableCell(f"› {view}", "faint")] if view != VIEW_NAMES[0] else []),
        *connections.problems(),
        TableCell(load.text if load is not None and not load.over and session.live else "", "warning"),
        TableCell(progress_text(session.judge.masters)),
    ]


def _kind(session: ConsoleSession) -> TableCell:
    source = session.cluster.source
    if session.is_copy:
        return TableCell("COPY", "warning")
    witnessed = {witness for belief in session.picture.members.values() for witness in belief.witnessed_by}
    if source == "recorded" and witnessed:
        return TableCell(f"from {' and '.join(SOURCE_NAMES[witness] for witness in sorted(witnessed))}", "faint")
    return TableCell(source if session.live or source != "live" else "", "faint")


def _journal_text(session: ConsoleSession) -> str:
    picture = session.picture
    if picture.journal_failure:
        return f"✕ no journal: {one_line(picture.journal_failure)}"
    failing = {
        belief.label: belief.journal_failure
        for belief in picture.members.values()
        if belief.journal_failure and belief.reached and belief.status not in ("stopped", "killed")
    }
    if not failing:
        return ""
    first, reason = next(iter(failing.items()))
    more = f" and {len(failing) - 1} more" if len(failing) > 1 else ""
    return f"✕ no journal of {one_line(first)}{more}: {one_line(reason)}"


def moment_text(session: ConsoleSession) -> str:
    """Return where the playhead is; empty at the present."""
    playhead = session.playhead
    if playhead.live:
        return ""
    sign = "‖ past" if playhead.mode == "paused" else f"▶ past x{playhead.speed:g}"
    if session.clock.utc:
        return f"{sign} {session.clock.spoken(playhead.shown_us)}, {age_text(playhead.now_us - playhead.shown_us)} ago"
    return f"{sign} {playhead.shown_us / SECOND_US:.3f} of {playhead.now_us / SECOND_US:.1f} s"

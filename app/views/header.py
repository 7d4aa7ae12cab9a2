"""The first line of every view: which cluster, from where, how many members, who leads, and what is wrong."""

from __future__ import annotations

from quarterdeck.app.actions.action import VIEW_NAMES, ViewName
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.connection_summary import ConnectionSummary
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.boards.migration_board import lost_text, progress_text
from quarterdeck.backend.picture.text.formatting import counted, one_line
from quarterdeck.widgets.line_table import TableCell

MASTERS_NAMED = 4
SOURCE_NAMES = {"logs": "logs", "client-protocol": "what clients are told"}


def header_parts(session: ConsoleSession, connections: ConnectionSummary, view: ViewName) -> list[TableCell]:
    """What the first line says now."""
    cluster, picture = session.cluster, session.picture
    running = sum(belief.running for belief in picture.members.values())
    masters = picture.masters()
    named = ", ".join(one_line(label) for label in masters[:MASTERS_NAMED])
    named += ", …" if len(masters) > MASTERS_NAMED else ""
    broken = len(session.violations)
    return [
        TableCell(one_line(cluster.name), "strong"),
        _source_cell(session),
        *([TableCell(f"› {view}", "faint")] if view != VIEW_NAMES[0] else []),
        TableCell(moment_text(session), "warning"),
        *connections.badges(live=session.live),
        TableCell(f"members {running}/{len(cluster.labels)}"),
        TableCell(
            f"master{'s' if len(masters) > 1 else ''} {named or 'none'}", "warning" if len(masters) > 1 else "plain"
        ),
        *connections.problems(),
        TableCell(f"✕ {counted(broken, 'violation')}" if broken else "", "bad"),
        TableCell(lost_text(picture), "bad"),
        TableCell(_journal_text(session), "bad"),
        TableCell(_load_text(session), "warning"),
        TableCell(progress_text(picture)),
    ]


def _source_cell(session: ConsoleSession) -> TableCell:
    """What kind of cluster this is. What is past of a live one is not live."""
    source = session.cluster.source
    if source == "copy":
        return TableCell("COPY", "warning")
    witnessed = {one for belief in session.picture.members.values() for one in belief.witnessed_by}
    if source == "recorded" and witnessed:
        return TableCell(f"from {' and '.join(SOURCE_NAMES[one] for one in sorted(witnessed))}", "faint")
    return TableCell(source if session.live or source != "live" else "", "faint")


def _load_text(session: ConsoleSession) -> str:
    load = session.traffic
    return load.text if load is not None and not load.over and session.live else ""


def _journal_text(session: ConsoleSession) -> str:
    """Whose journal cannot be written, and why; empty when every one can."""
    picture = session.picture
    if picture.journal_failure:
        return f"✕ no journal: {one_line(picture.journal_failure)}"
    failing = {
        one.label: one.journal_failure
        for one in picture.members.values()
        if one.journal_failure and one.reached and one.status not in ("stopped", "killed")
    }
    if not failing:
        return ""
    first, reason = next(iter(failing.items()))
    more = f" and {len(failing) - 1} more" if len(failing) > 1 else ""
    return f"✕ no journal of {one_line(first)}{more}: {one_line(reason)}"


def moment_text(session: ConsoleSession) -> str:
    """Where the playhead is, when it is not at the newest; empty otherwise."""
    playhead = session.playhead
    if playhead.live:
        return ""
    sign = "‖ past" if playhead.mode == "paused" else f"▶ past x{playhead.speed:g}"
    return f"{sign} {playhead.shown_us / SECOND_US:.3f} of {playhead.now_us / SECOND_US:.1f} s"

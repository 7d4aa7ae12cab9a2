"""Where in members' logs an event comes from, for clusters that are known from logs; of all others there is nothing to say."""

from __future__ import annotations

from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.events.log_screen import LogScreen
from quarterdeck.backend.clusters.recorded.log_cluster import LoggedCluster
from quarterdeck.backend.clusters.recorded.log_excerpt import excerpt_of
from quarterdeck.backend.core.events import Record


def log_place(session: ConsoleSession, record: Record) -> str:
    """The file and the line that told `record`; empty when no log did."""
    cluster = session.cluster
    return cluster.place_of(record) if isinstance(cluster, LoggedCluster) else ""


def log_screen(session: ConsoleSession, record: Record, words: str) -> LogScreen | None:
    """The log at the line that told `record`; None when no log did. Raises `OSError` when the log cannot be read."""
    cluster = session.cluster
    line = cluster.line_of(record) if isinstance(cluster, LoggedCluster) else None
    if line is None:
        return None
    return LogScreen(log_place(session, record), words, excerpt_of(line))

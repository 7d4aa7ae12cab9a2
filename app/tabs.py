"""The open clusters: each in a tab with its session, its views, and what was asked of it."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.commands.requests import Requests
from quarterdeck.app.session import Session
from quarterdeck.app.views.view_screen import ViewScreen
from quarterdeck.backend.clusters.connection_status import ConnectionStatusSource
from quarterdeck.backend.picture.text.formatting import age_text, one_line
from quarterdeck.widgets.line_table import TableCell

HOME: ViewName = "beliefs"


class Tab:
    """An open cluster: its session, its views that were opened so far, and which of them lie above each other."""

    def __init__(self, session: Session, requests: Requests, title: str = "") -> None:
        self.session, self.requests = session, requests
        self.title = title or session.cluster.name
        self.views: dict[ViewName, ViewScreen] = {}
        self.stack: list[ViewName] = [HOME]
        self.shown: tuple[int, str, int] = (0, "", 0)
        """What the playhead showed at the last tick."""

    def name_of(self, view: ViewName) -> str:
        """What the screen of a view is installed as."""
        return f"{id(self)}/{view}"


def tab_cells(tabs: Sequence[Tab], in_sight: Tab) -> list[TableCell]:
    """One cell for each open cluster. One that nobody in it can be heard of is grey, and dated."""
    cells = []
    for number, tab in enumerate(tabs, start=1):
        mark = "▸" if tab is in_sight else " "
        lost = disconnected_for(tab.session)
        age = f" lost {lost}" if lost else ""
        tone = "faint" if lost else "strong" if tab is in_sight else "plain"
        cells.append(TableCell(f"{mark}{number} {one_line(tab.title)}{age}", tone))
    return cells


def disconnected_for(session: Session) -> str:
    """How long no member of a remote cluster was heard; empty while at least one is, or none ever was."""
    cluster = session.cluster
    if not isinstance(cluster, ConnectionStatusSource):
        return ""
    connection_status = tuple(cluster.connection_status().values())
    if (
        not connection_status
        or any(one.contact == "connected" for one in connection_status)
        or all(one.contact == "connecting" for one in connection_status)
    ):
        return ""
    return age_text(cluster.now_us() - max(one.since_us for one in connection_status if one.contact == "stale"))

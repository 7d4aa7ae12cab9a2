"""The open clusters: each in a tab with its session, its views, and the commands that were requested of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from textual.app import App

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.commands.requests import Requests
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.clusters.cluster import ConnectionStatusSource
from quarterdeck.backend.picture.text.formatting import age_text, counted, one_line
from quarterdeck.widgets.line_table import TableCell

HOME: ViewName = "overview"


class Tab:
    """An open cluster: its session, the views opened so far, and their order on the screen."""

    def __init__(
        self, session: ConsoleSession, requests: Requests, title: str = "", opened_from: Tab | None = None
    ) -> None:
        self.session, self.requests, self.opened_from = session, requests, opened_from
        self.origin: Tab | None = None
        """The tab of the cluster that this one is a copy or a fork of."""
        self.title = title or session.cluster.name
        self.views: dict[ViewName, ViewScreen] = {}
        self.stack: list[ViewName] = [HOME]
        self.shown: tuple[int, str, int] = (0, "", 0)
        """What the playhead showed at the last tick."""

    def name_of(self, view: ViewName) -> str:
        """Return the name under which a view's screen is installed."""
        return f"{id(self)}/{view}"


class Tabs:
    """All open tabs, at least one. The views of the current one are on the screen, one above the other."""

    def __init__(self, app: App[Any], first: Tab, new_view: Callable[[Tab, ViewName], ViewScreen]) -> None:
        """Create the tabs. `new_view` makes the screen of a view at its first use."""
        self._app, self._new_view = app, new_view
        self._tabs = [first]
        self._first = self.current = first

    def __iter__(self) -> Iterator[Tab]:
        return iter(tuple(self._tabs))

    def __len__(self) -> int:
        return len(self._tabs)

    @property
    def cells(self) -> Sequence[TableCell]:
        """One cell for each open cluster; a cluster without a connection to any member is grey and dated."""
        cells = []
        for number, tab in enumerate(self._tabs, start=1):
            current = tab is self.current
            lost = disconnected_for(tab.session)
            age = f" lost {lost}" if lost else ""
            tone = "faint" if lost else "strong" if current else "plain"
            cells.append(TableCell(f"{'▸' if current else ' '}{number} {one_line(tab.title)}{age}", tone))
        return cells

    @property
    def next(self) -> Tab:
        return self._tabs[(self._tabs.index(self.current) + 1) % len(self._tabs)]

    @property
    def top(self) -> ViewScreen:
        """The view in sight, or the one below a dialog."""
        return self.view(self.current, self.current.stack[-1])

    def named(self, name: str) -> Tab | None:
        return next((tab for number, tab in enumerate(self._tabs, start=1) if name in (tab.title, str(number))), None)

    def view(self, tab: Tab, view: ViewName) -> ViewScreen:
        """Return the screen of a view, made at its first use."""
        known = tab.views.get(view)
        if known is None:
            known = tab.views[view] = self._new_view(tab, view)
            self._app.install_screen(known, tab.name_of(view))
        return known

    def open_view(self, view: ViewName) -> None:
        """Open a view in the current tab: one that lies below comes to the top again, another is put on top."""
        stack = self.current.stack
        if view in stack:
            while stack[-1] != view:
                self.close_view()
        else:
            stack.append(view)
            self._app.push_screen(self.view(self.current, view))

    def close_view(self) -> None:
        self.current.stack.pop()
        self._app.pop_screen()

    def open(self, tab: Tab) -> None:
        self._tabs.append(tab)
        self.show(tab)

    def show(self, tab: Tab) -> None:
        """Show the views of `tab` in place of those in sight."""
        if tab is self.current:
            return
        for _ in self._above_first_view(self.current):
            self._app.pop_screen()
        self.current = tab
        for view in self._above_first_view(tab):
            self._app.push_screen(self.view(tab, view))

    def _above_first_view(self, tab: Tab) -> Sequence[ViewName]:
        """Return the views that are put on the first view of the first tab, which is covered at times and never taken away."""
        return tab.stack[tab is self._first :]

    def close(self) -> Tab:
        """Close the current tab, go back to where it was opened, and return it. Its session still runs."""
        closed, opener = self.current, self.current.opened_from
        self.show(opener if opener in self._tabs else self._tabs[self._tabs.index(closed) - 1])
        self._tabs.remove(closed)
        for view, screen in closed.views.items():
            self._app.uninstall_screen(closed.name_of(view))
            if view not in closed.stack and screen.is_running:
                screen.remove()  # those in sight go as they leave the stack; this one may have an audit under way
        return closed


def disconnected_for(session: ConsoleSession) -> str:
    cluster = session.cluster
    if not isinstance(cluster, ConnectionStatusSource):
        return ""
    connections = tuple(cluster.connection_status().values())
    stale_us = [status.since_us for status in connections if status.contact == "stale"]
    if not stale_us or any(status.contact == "connected" for status in connections):
        return ""
    return age_text(cluster.now_us() - max(stale_us))


def _lives(session: ConsoleSession) -> bool:
    return bool(session.running) or (session.starting is not None and not session.starting.done())


def _members(session: ConsoleSession) -> str:
    return counted(session.running, "member") if session.running else "members that are being started"


def leave(app: App[Any], tabs: Iterable[Tab]) -> None:
    """End `app`. If members of its live clusters would end with it, ask first."""
    ending = [tab for tab in tabs if tab.session.cluster.source == "live" and _lives(tab.session)]
    if not ending:
        app.exit()
        return
    from quarterdeck.app.commands.confirmation import ConfirmScreen

    if isinstance(app.screen, ConfirmScreen):  # something is asked already
        return

    def answered(confirmed: bool | None) -> None:
        if confirmed:
            app.exit()

    ends = "; ".join(f"{one_line(tab.title)}: {_members(tab.session)}" for tab in ending)
    app.push_screen(ConfirmScreen("Leave the console?", f"These members end with it: {ends}.", "Leave"), answered)

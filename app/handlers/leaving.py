"""Leaving the console: at once where nobody ends with it, after a question where members would."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from textual.app import App

from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.tabs import Tab
from quarterdeck.backend.picture.text.formatting import counted, one_line


def _lives(session: ConsoleSession) -> bool:
    """Whether members run, or are being started: they would end too, and nobody would have been asked."""
    return bool(session.running) or (session.starting is not None and not session.starting.done())


def _members(session: ConsoleSession) -> str:
    return counted(session.running, "member") if session.running else "members that are being started"


def leave(app: App[Any], tabs: Iterable[Tab]) -> None:
    """End `app`, which has these clusters open."""
    ending = [tab for tab in tabs if tab.session.cluster.source == "live" and _lives(tab.session)]
    if not ending:
        app.exit()
        return
    from quarterdeck.app.commands.confirm_screens import ConfirmDialog, ConfirmScreen

    if isinstance(app.screen, ConfirmDialog):  # something is asked already
        return

    def answered(confirmed: bool | None) -> None:
        if confirmed:
            app.exit()

    told = "; ".join(f"{one_line(tab.title)}: {_members(tab.session)}" for tab in ending)
    app.push_screen(ConfirmScreen("Leave the console?", f"These members end with it: {told}.", "Leave"), answered)

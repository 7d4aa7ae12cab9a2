"""Undoing faults, in whatever view."""

from __future__ import annotations

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.session import ConsoleSession


def undo(console: ConsoleInterface, session: ConsoleSession, text: str) -> None:
    """Undo the latest fault, or that of the number in `text`."""
    from quarterdeck.backend.picture.network.faults import FaultLedger
    from quarterdeck.backend.picture.network.undoing import NothingToUndo, undo_commands

    faults = FaultLedger.of(session.picture, session.recent, session.cluster.labels).faults()
    try:
        console.request("fault-undo", undo_commands(faults, text))
    except NothingToUndo as problem:
        console.show_message(str(problem), error=True)

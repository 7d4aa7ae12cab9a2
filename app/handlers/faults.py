"""Undoing faults, in whatever view: the latest one, or the one of a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.session import Session
from quarterdeck.backend.core.commands.commands import Command

if TYPE_CHECKING:
    from quarterdeck.backend.picture.network.faults import Fault


class NothingToUndo(ValueError):
    """There is no such fault; the message says what there is."""


def undo_commands(faults: Sequence[Fault], text: str, chosen: Fault | None = None) -> Sequence[Command]:
    """What undoes a fault: that of the number in `text`, else the `chosen` one, else the latest. Raises `NothingToUndo`."""
    if not faults:
        raise NothingToUndo("no fault is in force")
    if not text:
        return (chosen or faults[0]).undo
    if not text.isdecimal() or not 1 <= int(text) <= len(faults):
        raise NothingToUndo(f"there is no fault {text!r}; there are {len(faults)}, the latest has number 1")
    return faults[int(text) - 1].undo


def faults_of(session: Session) -> Sequence[Fault]:
    """The faults in force in what `session` shows, the latest first."""
    from quarterdeck.backend.picture.network.faults import FaultLedger

    return FaultLedger.of(session.picture, session.recent, session.cluster.labels).faults()


def undo(console: ConsoleInterface, session: Session, text: str) -> None:
    """Undo the latest fault, or that of the number in `text`."""
    try:
        console.request("fault-undo", undo_commands(faults_of(session), text))
    except NothingToUndo as problem:
        console.show_message(str(problem), error=True)

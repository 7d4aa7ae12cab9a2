"""What undoes a fault that is in force: the latest one, a chosen one, or the one of a number."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.backend.core.commands.commands import Command
from quarterdeck.backend.picture.network.faults import ActiveFault


class NothingToUndo(ValueError):
    """There is no such fault; the message says what there is."""


def undo_commands(faults: Sequence[ActiveFault], text: str, chosen: ActiveFault | None = None) -> Sequence[Command]:
    """Return what undoes a fault: that of the number in `text`, else the `chosen` one, else the latest.

    Raises:
        NothingToUndo: There is no such fault.
    """
    if not faults:
        raise NothingToUndo("no fault is in force")
    if not text:
        return (chosen or faults[0]).undo
    if not text.isdecimal() or not 1 <= int(text) <= len(faults):
        raise NothingToUndo(f"there is no fault {text!r}; there are {len(faults)}, the latest has number 1")
    return faults[int(text) - 1].undo

"""Whether a deed is asked about first, and how: not at all, with a button that says no, or with the cluster's name to type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quarterdeck.app.actions.action import Action
from quarterdeck.app.session import Session
from quarterdeck.backend.clusters.reach import RemotelyReached
from quarterdeck.backend.core.commands import Command

if TYPE_CHECKING:
    from textual.screen import ModalScreen


def what_to_ask(session: Session, action: Action, commands: Sequence[Command]) -> ModalScreen[bool] | None:
    """The question to ask before `commands` are done; None when they are done at once."""
    # Imported at the first question, so that the console is on the screen sooner.
    from quarterdeck.app.command_line import lines_of, reach_of
    from quarterdeck.app.command_text import question
    from quarterdeck.backend.picture.blast_radius import blast_radius
    from quarterdeck.backend.picture.danger import how_dangerous

    cluster = session.cluster
    danger = how_dangerous(session.picture, commands, remote=isinstance(cluster, RemotelyReached))
    if danger == "none" and not action.destructive:
        return None
    from quarterdeck.app.screens.confirm import ConfirmScreen
    from quarterdeck.app.screens.confirm_typed import ConfirmTypedScreen

    asked, deed = question(commands)
    consequences = blast_radius(session.picture, commands)
    lines = lines_of(commands, reach_of(cluster))
    if danger == "type-name":
        return ConfirmTypedScreen(asked, consequences, deed, cluster.name, lines)
    return ConfirmScreen(asked, consequences, deed, lines)

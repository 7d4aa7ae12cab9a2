"""Whether a command is confirmed first, and how: not at all, with a button that says no, or with the cluster's name to type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quarterdeck.app.actions.action import Action
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.clusters.connection_status import ConnectionStatusSource
from quarterdeck.backend.core.commands.commands import Command

if TYPE_CHECKING:
    from textual.screen import ModalScreen


def confirmation_for(session: ConsoleSession, action: Action, commands: Sequence[Command]) -> ModalScreen[bool] | None:
    """The question to ask before `commands` are done; None when they are done at once, as in a copy, which is there for that."""
    if session.cluster.source == "copy":
        return None
    # Imported at the first question, so that the console is on the screen sooner.
    from quarterdeck.app.commands.command_text import connect_options, lines_of, question
    from quarterdeck.backend.picture.what_if.blast_radius import blast_radius
    from quarterdeck.backend.picture.what_if.confirmation_level import confirmation_level

    cluster = session.cluster
    danger = confirmation_level(session.picture, commands, remote=isinstance(cluster, ConnectionStatusSource))
    if danger == "none" and not action.destructive:
        return None
    from quarterdeck.app.commands.confirm_screens import ConfirmScreen, ConfirmTypedScreen

    asked, verb = question(commands)
    consequences = blast_radius(session.picture, commands)
    lines = lines_of(commands, connect_options(cluster))
    if danger == "type-name":
        return ConfirmTypedScreen(asked, consequences, verb, cluster.name, lines)
    return ConfirmScreen(asked, consequences, verb, lines)

"""Refusing operations while too few members are in sight.

See Emergent Leader, Split Brain Situation; Decisions: Minimum cluster size.

This protects one side of a split from serving clients. It cannot protect the time between the split and its detection.
"""

from __future__ import annotations

from quarterdeck.backend.core.commands.commands import CommandRefused
from quarterdeck.backend.core.membership.events import ProtectionChanged
from quarterdeck.backend.core.membership.facts import Installed
from quarterdeck.backend.core.membership.state import Membership


class NotEnoughMembers(CommandRefused):
    """An operation was refused because the member sees fewer members than `quarterdeck.minimum.cluster.size`."""


def check_operation(state: Membership) -> None:
    """Raise `NotEnoughMembers` unless this member may serve a client now."""
    if not state.operating or not state.joined:
        size = len(state.members.members) if state.members else 0
        needed = state.settings.minimum_cluster_size
        raise NotEnoughMembers(
            f"not enough members: {state.member_configuration.label} sees {size} and needs {max(needed, 1)}"
        )


def on_installed(state: Membership, now: int, fact: Installed) -> None:
    """After a change of the list: say so when operations begin or cease to be served."""
    assert state.members is not None
    size, needed = len(state.members.members), state.settings.minimum_cluster_size
    operating = size >= needed
    if operating != state.operating:
        state.operating = operating
        state.record(now, ProtectionChanged(size, needed, operating))

"""The part of the fold that is about members that a witness reports: what is not known, and what is known in their way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quarterdeck.backend.core.partitions.events import TableChanged
from quarterdeck.backend.core.witnessed import events as witnessed
from quarterdeck.backend.picture.fold.belief import MemberBelief, WitnessConnection
from quarterdeck.backend.picture.fold.partitions import on_table_changed


def _on_member_witnessed(belief: MemberBelief, event: witnessed.MemberWitnessed, at: int) -> None:
    belief.witnessed_by = event.sources
    belief.untold = witnessed.ASPECTS.difference(event.tells)


def _on_owners_told(belief: MemberBelief, event: witnessed.OwnersTold, at: int) -> None:
    """Take a table of owners: one holder for each partition, and no version. `MemberBelief.tells` excludes backups then."""
    if event.state_stamp != belief.state_stamp:
        belief.state_stamp, belief.stamp_since_us = event.state_stamp, at
    if belief.table is not None and (belief.table.digest, belief.table.partitions) == (event.digest, len(event.owners)):
        return  # only the stamp is new
    rows = tuple((partition, 0, place) for partition, place in enumerate(event.owners))
    table = TableChanged(0, event.digest, len(event.owners), event.holders, rows, belief.uuid, "published")
    on_table_changed(belief, table, at)


def _on_connection_changed(belief: MemberBelief, event: witnessed.ConnectionChanged, at: int) -> None:
    belief.connection = WitnessConnection(event.state, event.reason, at)


def _on_member_measured(belief: MemberBelief, event: witnessed.MemberMeasured, at: int) -> None:
    belief.metrics, belief.metrics_us = event, at


WITNESS_FOLDS: dict[type, Callable[[MemberBelief, Any, int], object]] = {
    witnessed.MemberWitnessed: _on_member_witnessed,
    witnessed.OwnersTold: _on_owners_told,
    witnessed.ConnectionChanged: _on_connection_changed,
    witnessed.MemberMeasured: _on_member_measured,
}
"""What each kind of event does to the belief of the member that it is about; called with belief, event and time."""


def inherit_witness(belief: MemberBelief, before: MemberBelief) -> None:
    """Know a new incarnation from the same sources as the one before, until they say otherwise."""
    belief.witnessed_by, belief.untold, belief.connection = before.witnessed_by, before.untold, before.connection

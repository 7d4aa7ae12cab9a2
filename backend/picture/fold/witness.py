"""The part of the fold that is about members that a witness reports: what is not known, and what is known in their way."""

from __future__ import annotations

from quarterdeck.backend.core.events import Event
from quarterdeck.backend.core.partitions.events import TableChanged
from quarterdeck.backend.core.witnessed import events as witnessed
from quarterdeck.backend.picture.fold.belief import MemberBelief, WitnessConnection
from quarterdeck.backend.picture.fold.partitions import change_table

WITNESS_EVENTS = (
    witnessed.MemberWitnessed, witnessed.OwnersTold, witnessed.ConnectionChanged, witnessed.MemberMeasured,
)  # fmt: skip


def fold_witness(belief: MemberBelief, event: Event, at: int) -> None:
    """Change a belief by one of `WITNESS_EVENTS` that is about its member."""
    match event:
        case witnessed.MemberMeasured():
            belief.metrics, belief.metrics_us = event, at
        case witnessed.OwnersTold():
            _take_owners(belief, event, at)
        case witnessed.ConnectionChanged(state, reason):
            belief.connection = WitnessConnection(state, reason, at)
        case witnessed.MemberWitnessed(sources, tells):
            belief.witnessed_by, belief.untold = sources, witnessed.ASPECTS.difference(tells)


def _take_owners(belief: MemberBelief, event: witnessed.OwnersTold, at: int) -> None:
    """Take a table of owners: one holder for each partition, and no version. `MemberBelief.shows` excludes backups then."""
    if event.state_stamp != belief.state_stamp:
        belief.state_stamp, belief.stamp_since_us = event.state_stamp, at
    if belief.table is not None and (belief.table.digest, belief.table.partitions) == (event.digest, len(event.owners)):
        return  # only the stamp is new
    rows = tuple((partition, 0, place) for partition, place in enumerate(event.owners))
    table = TableChanged(0, event.digest, len(event.owners), event.holders, rows, belief.uuid, "published")
    change_table(belief, table, at)


def inherit_witness(belief: MemberBelief, before: MemberBelief) -> None:
    """Know a new incarnation from the same sources as the one before, until they say otherwise."""
    belief.witnessed_by, belief.untold, belief.connection = before.witnessed_by, before.untold, before.connection

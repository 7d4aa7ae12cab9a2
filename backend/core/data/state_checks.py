"""What holds of a member's whole state between two steps: of its data here, of the rest in the chapters below."""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.membership.state_checks import membership_faults
from quarterdeck.backend.core.partitions.state_checks import partition_faults
from quarterdeck.backend.core.partitions.table.partition_table import index_of


def faults(state: MemberState) -> list[str]:
    """Return what does not hold of a member's state between two steps; nothing in a sound member."""
    return [*membership_faults(state), *partition_faults(state), *_data_faults(state)]


def _data_faults(state: MemberState) -> Iterator[str]:
    data, table = state.data, state.partitions.table
    rows = [] if table is None else table.rows
    places = {partition: index_of(state.uuid, row) for partition, row in enumerate(rows)}
    held = {partition for partition, place in places.items() if place >= 0}
    owned = {partition for partition, place in places.items() if place == 0}
    if data.stores.keys() != held:
        yield f"it has stores of {sorted(data.stores)}, and places in the rows of {sorted(held)}"
    if data.owner_states.keys() != owned:
        yield f"it serves {sorted(data.owner_states)} as owner, and owns {sorted(owned)}"
    if not data.unsafe.keys() <= owned or not {partition for partition, _ in data.outgoing} <= owned:
        yield "it looks after backups of a partition that it does not own"
    if not data.early.keys() | data.stale.keys() | data.incoming.keys() | data.out_of_step.keys() <= held - owned:
        yield "it waits for a copy of a partition of which it is no backup"
    for partition, owner_state in data.owner_states.items():
        if len(owner_state.log) != len(owner_state.written_us):
            yield f"the log of partition {partition} and its times differ in length"
        if owner_state.log and owner_state.log[-1].stamp != data.last_stamp(partition):
            yield f"the log of partition {partition} does not end with its stamp"

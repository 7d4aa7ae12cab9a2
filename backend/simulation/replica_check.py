"""Replicas at rest: everybody holds what the table says and nothing else, and backups equal their owners (P11).

This looks into the members, as only a simulation can; everything else is judged by what they record.
"""

from __future__ import annotations

from quarterdeck.backend.simulation.invariants.table_watch import Tables
from quarterdeck.backend.simulation.world import World


def what_is_misplaced(world: World, tables: Tables) -> str:
    """The first replica that is missing, left over or different from its owner's, in words; empty when none is."""
    held: dict[str, dict[int, dict[tuple[str, str], bytes]]] = {}
    for label in world.labels:
        machine = world.machine(label)
        if machine is not None and machine.uuid in tables.of_life:
            held[machine.uuid] = world.replicas(label)
    for uuid, replicas in held.items():
        rows = tables.of_life[uuid].rows
        for partition, row in rows.items():
            if (uuid in row.holders) != (partition in replicas):
                word = "has data of" if partition in replicas else "has no data of"
                return f"{tables.label(uuid)} {word} partition {partition}, which {tables.names(row.holders)} hold"
            owner = row.holders[0]
            if partition in replicas and owner in held and held[owner].get(partition) != replicas[partition]:
                return f"{tables.label(uuid)} and the owner {tables.label(owner)} differ in partition {partition}"
    return ""

"""Anti-entropy: each owner now and then compares its partitions with their backups, whatever it knows about them (Hazelcast)."""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.messages import CheckedReplica
from quarterdeck.backend.core.data.replication import backups
from quarterdeck.backend.core.data.state import MemberState

ANTI_ENTROPY = "anti-entropy"
"""Name of the timer of the comparison."""


def begin_comparing(state: MemberState, now: int) -> None:
    """Begin the comparisons, for this member holds a replica now."""
    if not state.timers.is_set(ANTI_ENTROPY):
        state.timers.set(ANTI_ENTROPY, now + state.settings.backup_sync_interval_us)


def on_list_changed(state: MemberState, now: int) -> None:
    """Remember members that have left.

    Their calls may still be on their way, so what is known of them is dropped some time later.
    """
    if state.members is None:
        return
    data = state.data
    incarnations = state.members.uuids
    for uuid in sorted(data.incarnations - incarnations):
        data.gone[uuid] = now
        data.full_backups.pop(uuid, None)
    for uuid in [uuid for uuid in data.gone if uuid in incarnations]:
        del data.gone[uuid]
    data.incarnations = incarnations


def on_anti_entropy_timer(state: MemberState, now: int) -> None:
    """Ask the backups of all owned partitions whether they have the same; forget the calls of members that left long ago."""
    _forget_sessions(state, now)
    checks: dict[Address, list[CheckedReplica]] = {}
    for partition, owner_state in state.data.owner_states.items():
        # An empty one too: a backup may have a write of an owner before this one that no other member knows.
        if not state.partitions.is_migrating(partition):
            check = backups.checked(state, partition)
            for address in backups.backup_addresses(state, owner_state):
                checks.setdefault(address, []).append(check)
    backups.send_checks(state, checks)
    if state.data.stores:
        begin_comparing(state, now)


def _forget_sessions(state: MemberState, now: int) -> None:
    data = state.data
    # Copies of partitions bring sessions along of incarnations that left before this member came.
    for uuid in sorted(
        set().union(*(store.sessions for store in data.stores.values())) - data.incarnations - data.gone.keys()
    ):
        data.gone[uuid] = now
    long_gone = [uuid for uuid, since in data.gone.items() if now - since >= state.settings.call_timeout_us]
    for uuid in long_gone:
        del data.gone[uuid]
        for store in data.stores.values():
            store.forget(uuid)

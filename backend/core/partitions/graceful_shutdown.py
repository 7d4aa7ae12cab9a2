"""Leaving without a loss: a member that is asked to stop has its data moved away first (Hazelcast: graceful shutdown).

It asks the master every second; the master plans without it, and answers when nothing depends on the member any more, or when
that cannot be waited for. What it holds beyond that it keeps until it has gone (Decisions: Graceful stop). A request names the
incarnation
that wants to leave: a quick restart at the same address is another one.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Reason
from quarterdeck.backend.core.cluster_profile import allows_migrations
from quarterdeck.backend.core.membership.failure_detection import suspicion
from quarterdeck.backend.core.membership.messages import Leave
from quarterdeck.backend.core.partitions.arrangement.repartitioning import data_members
from quarterdeck.backend.core.partitions.events import DrainCause, DrainFinished, DrainStarted
from quarterdeck.backend.core.partitions.messages import ShutdownGranted, ShutdownRequest
from quarterdeck.backend.core.partitions.migration.migration_queue import cancel
from quarterdeck.backend.core.partitions.state import MasterRole, PartitionedMember
from quarterdeck.backend.core.partitions.table.partition_table import index_of
from quarterdeck.backend.core.properties import SECOND_US

DRAIN = "drain"
"""Name of the timer that asks the master again."""

ASK_AGAIN_US = 1 * SECOND_US


# Who leaves


def must_drain(state: PartitionedMember) -> bool:
    """Whether others may need what this member holds."""
    table = state.partitions.table
    if not state.joined or state.member_configuration.lite:
        return False
    if state.brings_entries:
        return True  # what it brings along from another cluster is not placed yet
    if table is None:
        return False
    return any(index_of(state.uuid, row) >= 0 for row in table.rows) and len(data_members(state)) > 1


def begin_drain(state: PartitionedMember, now: int) -> None:
    """Ask to be relieved. The end of it is `may_leave`."""
    drain_until(state, now, now + state.settings.graceful_shutdown_us)


def drain_until(state: PartitionedMember, now: int, until_us: int) -> None:
    """Ask to be relieved, and wait no longer for it than that. An incarnation that follows one in a merge takes its wish over."""
    state.partitions.draining_until_us = until_us
    _ask(state, now)


def on_drain_timer(state: PartitionedMember, now: int) -> None:
    """Ask again; there may be another master meanwhile."""
    if state.partitions.draining_until_us is not None and not state.partitions.drained:
        _ask(state, now)


def on_shutdown_granted(state: PartitionedMember, now: int, sender: Address, granted: ShutdownGranted) -> None:
    """Nothing is left to stay for."""
    if state.partitions.draining_until_us is not None and granted.uuid == state.uuid and sender == state.master:
        state.partitions.drained = True
        state.timers.set(DRAIN, now)  # nothing is sent, but there is something to do


def may_leave(state: PartitionedMember, now: int) -> bool:
    """Whether a member that drains may go: it is relieved, and all that it brought is placed; or it has waited long enough."""
    partitions = state.partitions
    if partitions.draining_until_us is None:
        return False
    return (partitions.drained and not state.brings_entries) or now >= partitions.draining_until_us


def on_goodbye(state: PartitionedMember, now: int, sender: Address, goodbye: Leave) -> None:
    """Note that a member stops gracefully. When its whole cluster is to stop, no member is left to give anything to."""
    peer = state.peers.get(sender)
    if goodbye.all_stop and peer is not None and peer.uuid == goodbye.uuid:
        state.partitions.draining_until_us = now
        state.partitions.drained = state.partitions.cluster_stops = True
        state.timers.set(DRAIN, now)  # nothing is sent, but there is something to do
    else:
        suspicion.on_leave(state, now, sender, goodbye)


def _ask(state: PartitionedMember, now: int) -> None:
    until_us = state.partitions.draining_until_us
    assert until_us is not None
    master_role = state.partitions.master_role
    if master_role is not None:
        accept_shutdown(state, now, master_role, state.address, state.uuid)
    elif state.master is not None and state.master != state.address:
        state.send(state.master, ShutdownRequest(state.uuid))
    state.timers.set(DRAIN, min(now + ASK_AGAIN_US, max(until_us, now + 1)))


# The master


def on_shutdown_request(state: PartitionedMember, now: int, sender: Address, request: ShutdownRequest) -> None:
    """Note that a member wants to leave."""
    master_role, peer = state.partitions.master_role, state.peers.get(sender)
    if master_role is None or not state.is_master or peer is None or peer.uuid != request.uuid:
        return
    accept_shutdown(state, now, master_role, sender, request.uuid)


def accept_shutdown(state: PartitionedMember, now: int, master_role: MasterRole, address: Address, uuid: str) -> None:
    """Plan without this incarnation from now on. One that asks again after it was relieved is told again."""
    if uuid in master_role.shutdown_granted:
        if _is_needed(state, master_role, uuid) and _why_not_wait(state, master_role) is None:
            master_role.shutdown_granted.discard(uuid)  # what it need not have waited for is possible now
        else:
            _grant(state, address, uuid)
    elif uuid not in master_role.shutting_down:
        master_role.shutting_down[uuid] = address
        state.record(now, DrainStarted(address))
        if master_role.recovery is None and state.partitions.table is not None:
            cancel(state, now, Reason("member-leaves", f"{address} wants to leave", state.latest_record))


def grant_shutdowns(state: PartitionedMember, now: int, master_role: MasterRole) -> None:
    """Tell those on whom nothing depends any more that they may leave; those who have left are forgotten."""
    assert state.members is not None
    for uuid, address in list(master_role.shutting_down.items()):
        if not state.members.holds(address, uuid):
            del master_role.shutting_down[uuid]
            master_role.shutdown_granted.discard(uuid)
            continue
        reason = _why_not_wait(state, master_role)
        if reason is None and _is_needed(state, master_role, uuid):
            continue
        if uuid not in master_role.shutdown_granted:
            master_role.shutdown_granted.add(uuid)
            reason = reason or Reason("nothing-left", "")
            state.record(now, DrainFinished(address, reason.text, reason.cause))
            _grant(state, address, uuid)


def _grant(state: PartitionedMember, address: Address, uuid: str) -> None:
    if uuid == state.uuid:
        state.partitions.drained = True
    else:
        state.send(address, ShutdownGranted(uuid))


def _is_needed(state: PartitionedMember, master_role: MasterRole, uuid: str) -> bool:
    """Whether the member owns a partition, or has a replica that the members who stay are still to be given."""
    table = state.partitions.table
    if table is None:
        return False
    leaving = master_role.shutting_down
    for row in table.rows:
        if index_of(uuid, row) < 0:
            continue
        staying = sum(replica is not None and replica.uuid not in leaving for replica in row)
        if index_of(uuid, row) == 0 or staying < master_role.replicas_wanted:
            return True
    return False


def _why_not_wait(state: PartitionedMember, master_role: MasterRole) -> Reason[DrainCause] | None:
    if not allows_migrations(state.standing.state):
        return Reason("no-migrations", f"the cluster is {state.standing.state}, so nothing is moved")
    if all(member.uuid in master_role.shutting_down for member in data_members(state)):
        return Reason("all-leave", "all members that hold data are leaving")
    return None

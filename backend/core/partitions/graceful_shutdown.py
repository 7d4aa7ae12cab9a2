"""Leaving without a loss: a member that is asked to stop has its data moved away first (Hazelcast: graceful shutdown).

It asks the master every second. The master plans without it, and answers when no other member depends on it any more, or when
that cannot be waited for. Until then it keeps what it holds (Decisions: Graceful stop). A request names the incarnation that
wants to leave: a quick restart at the same address is another one.
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
from quarterdeck.backend.core.partitions.migration.replanning import cancel
from quarterdeck.backend.core.partitions.state import MasterRole, PartitionedMember
from quarterdeck.backend.core.partitions.table.partition_table import index_of
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US

DRAIN = "drain"
"""Name of the timer that asks the master again."""

ASK_AGAIN_US = 1 * SECOND_US

PROMOTION_US = 1_500 * MILLISECOND_US
"""How long the last data member waits while there are lite members: one that is being promoted asks its master every second."""


# Who leaves


def must_drain(state: PartitionedMember) -> bool:
    """Return whether other members may need what this member holds."""
    table = state.partitions.table
    if not state.joined or state.lite:
        return False
    if state.brings_entries:
        return True
    if table is None:
        return False
    return any(index_of(state.uuid, row) >= 0 for row in table.rows) and bool(state.peers)


def drain_until(state: PartitionedMember, now: int, until_us: int) -> None:
    """Ask to leave, and wait no longer than `until_us`; `may_leave` says when this member may go.

    The incarnation that follows in a merge goes on asking.
    """
    state.partitions.draining_until_us = until_us
    _ask(state, now)


def on_drain_timer(state: PartitionedMember, now: int) -> None:
    """Ask again; there may be another master meanwhile."""
    if state.partitions.draining_until_us is not None and not state.partitions.drained:
        _ask(state, now)


def on_shutdown_granted(state: PartitionedMember, now: int, sender: Address, granted: ShutdownGranted) -> None:
    """Note that this member may leave."""
    if state.partitions.draining_until_us is not None and granted.uuid == state.uuid and sender == state.master:
        state.partitions.drained = True
        state.timers.set(DRAIN, now)  # nothing is sent, but there is something to do


def may_leave(state: PartitionedMember, now: int) -> bool:
    """Return whether a member that drains may go: all it held and brought is placed, or it has waited long enough."""
    partitions = state.partitions
    if partitions.draining_until_us is None:
        return False
    return (partitions.drained and not state.brings_entries) or now >= partitions.draining_until_us


def on_goodbye(state: PartitionedMember, now: int, sender: Address, goodbye: Leave) -> None:
    """Note that a member stops gracefully.

    When the whole cluster is to stop, this member stops as well: no other could hold its data.
    """
    if goodbye.all_stop and state.is_listed(sender, goodbye.uuid):
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
    master_role = state.partitions.master_role
    if master_role is not None and state.is_master and state.is_listed(sender, request.uuid):
        accept_shutdown(state, now, master_role, sender, request.uuid)


def accept_shutdown(state: PartitionedMember, now: int, master_role: MasterRole, address: Address, uuid: str) -> None:
    """Plan without this incarnation from now on. One that asks again after it was granted is answered again."""
    assert state.members is not None
    if uuid in master_role.shutdown_granted:
        if is_needed(state, master_role, uuid) and _why_not_wait(state, now, master_role) is None:
            master_role.shutdown_granted.discard(uuid)  # what it need not have waited for is possible now
        else:
            _grant(state, address, uuid)
    elif uuid not in master_role.leaving or uuid in master_role.demoting:
        master_role.leaving[uuid] = address
        master_role.demoting.pop(uuid, None)
        if any(member.lite for member in state.members.members):
            master_role.promotions_until_us = now + PROMOTION_US
        state.record(now, DrainStarted(address))
        if master_role.recovery is None and state.partitions.table is not None:
            cancel(state, now, Reason("member-leaves", f"{address} wants to leave"))


def grant_shutdowns(state: PartitionedMember, now: int, master_role: MasterRole) -> None:
    """Let members leave on which no other depends any more, and forget those that have left."""
    assert state.members is not None
    for uuid, address in list(master_role.leaving.items()):
        if not state.members.holds(address, uuid):
            del master_role.leaving[uuid]
            master_role.shutdown_granted.discard(uuid)
            master_role.demoting.pop(uuid, None)
            continue
        if uuid in master_role.demoting:
            continue  # it asks (chapter `lite_members`)
        reason = _why_not_wait(state, now, master_role)
        if reason is None and is_needed(state, master_role, uuid):
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


def is_needed(state: PartitionedMember, master_role: MasterRole, uuid: str) -> bool:
    """Return whether the leaving member owns a partition, or has a replica that the members that stay still lack."""
    table = state.partitions.table
    if table is None:
        return False
    leaving = master_role.leaving
    for row in table.rows:
        if index_of(uuid, row) < 0:
            continue
        staying = sum(replica is not None and replica.uuid not in leaving for replica in row)
        if index_of(uuid, row) == 0 or staying < master_role.replicas_wanted:
            return True
    return False


def _why_not_wait(state: PartitionedMember, now: int, master_role: MasterRole) -> Reason[DrainCause] | None:
    if not allows_migrations(state.standing.state):
        return Reason("no-migrations", f"the cluster is {state.standing.state}, so nothing is moved")
    all_leave = all(member.uuid in master_role.leaving for member in data_members(state))
    if all_leave and now >= master_role.promotions_until_us:
        return Reason("all-leave", "all members that hold data are leaving")
    return None

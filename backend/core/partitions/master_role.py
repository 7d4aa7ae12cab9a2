"""What the master does with partitions, and in which order (Avoid Data Loss on Migration, 3.2).

After every call of the member one look decides what comes next: recover the table after a change of masters, arrange it when
it is wanted first, repair it after members have left, let what runs come to its end, plan, and begin what may begin. There is no
other memory of where it stands than the state itself.
"""

from __future__ import annotations

from quarterdeck.backend.core.causes import Reason
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.partitions.arrangement.repartitioning import arrange_first, data_members, plan
from quarterdeck.backend.core.partitions.graceful_shutdown import accept_shutdown, grant_shutdowns
from quarterdeck.backend.core.partitions.migration import migration_queue
from quarterdeck.backend.core.partitions.migration.replanning import cancel
from quarterdeck.backend.core.partitions.state import MasterRole, PartitionedMember
from quarterdeck.backend.core.partitions.table.table_publishing import follow_list, publish
from quarterdeck.backend.core.partitions.table.table_recovery import begin_recovery, conclude_recovery, is_settled
from quarterdeck.backend.core.partitions.table.table_repair import repair


def follow(state: PartitionedMember, now: int) -> None:
    """React to another list, another master or another state of the cluster."""
    partitions = state.partitions
    members, standing = state.members, state.standing
    before, partitions.members = partitions.members, members
    thawed, partitions.standing = partitions.standing != standing, standing
    if members is None or not state.is_master:
        partitions.master_role = None
        return
    master_role = partitions.master_role
    if master_role is None or master_role.lineage != members.lineage:
        master_role = partitions.master_role = MasterRole(members.lineage, changed=state.listed)
        follow_list(state, master_role)
        begin_recovery(state, now, master_role)
        if partitions.draining_until_us is not None:
            accept_shutdown(state, now, master_role, state.address, state.uuid)  # it plans nothing onto itself
        return
    follow_list(state, master_role)
    if partitions.table is not None and master_role.recovery is None and (thawed or members != before):
        _react(state, now, master_role, before)


def advance(state: PartitionedMember, now: int) -> None:
    """Do whatever comes next, until nothing can be done before something else happens."""
    master_role = state.partitions.master_role
    if master_role is None or not state.is_master:
        return
    if master_role.recovery is not None:
        if not is_settled(state, master_role.recovery):
            return
        conclude_recovery(state, now, master_role, master_role.recovery)
    wanted = state.partitions.wants_arrangement or state.settings.arranges_at_once
    if state.partitions.table is None and not (wanted and arrange_first(state, now, master_role)):
        if master_role.leaving:
            grant_shutdowns(state, now, master_role)
        return
    _step(state, now, master_role)
    migration_queue.plan_timer(state, now)


def _react(state: PartitionedMember, now: int, master_role: MasterRole, before: MemberList | None) -> None:
    """React to other members or another state of the cluster: what is planned may be void."""
    present = {member.uuid for member in data_members(state)}
    migration_queue.give_up_on(state, now, present)
    held_before = {member.uuid for member in before.members if not member.lite} if before is not None else set()
    if present != held_before:
        joined, left = len(present - held_before), len(held_before - present)
        parts = [f"{count} {verb}" for count, verb in ((joined, "joined"), (left, "left")) if count]
        cancel(state, now, Reason("members-changed", f"{' and '.join(parts)} of those that hold data"))
    else:
        master_role.wants_plan = True
        why = f"the cluster is {state.standing.state}, and as many members hold data as before"
        master_role.plan_reason = Reason("state-changed", why, state.context.cause)
    master_role.repair_due = True
    master_role.failures = master_role.not_before_us = 0


def _step(state: PartitionedMember, now: int, master_role: MasterRole) -> None:
    migration_queue.look_at_own_copies(state, now)
    if master_role.repair_due:
        repair(state, now, {member.uuid for member in data_members(state)})
        master_role.repair_due = False
    if state.admission is not None:
        return  # who has just joined does not know it yet
    if master_role.newcomers:
        master_role.newcomers = False
        publish(state, now)
    if master_role.wants_plan and not master_role.running and master_role.not_before_us <= now:
        plan(state, now, master_role)
    migration_queue.start_next(state, now)
    if master_role.leaving and not (master_role.running or master_role.queue or master_role.wants_plan):
        grant_shutdowns(state, now, master_role)

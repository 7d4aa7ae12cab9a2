"""The master's plan: which member should hold what, and the migrations that lead there; and the first table.

See Avoid Data Loss on Migration, 3.2; Hazelcast: first arrangement and repartitioning; Decisions: First arrangement.

A plan is made from the table and the members as they are, and from nothing else. So when anything changes, the rest of a plan is
dropped and another one is made.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Container, Sequence

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Reason
from quarterdeck.backend.core.cluster_profile import allows_migrations, allows_promotions
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.arrangement.arrangement import Arrangement, arrange
from quarterdeck.backend.core.partitions.arrangement.member_groups import groups_of
from quarterdeck.backend.core.partitions.events import MigrationsPlanned, PlannedMigration
from quarterdeck.backend.core.partitions.messages import ArrangeRequest
from quarterdeck.backend.core.partitions.migration.migration_planner import MigrationStep, exchanges, plan_migrations
from quarterdeck.backend.core.partitions.state import MasterRole, PartitionedMember
from quarterdeck.backend.core.partitions.table.partition_table import (
    PartitionTable,
    Replica,
    Replicas,
    Row,
    VersionedRow,
    empty_table,
)
from quarterdeck.backend.core.partitions.table.table_publishing import change, publish
from quarterdeck.backend.core.properties import SECOND_US

ARRANGE = "first arrangement"
"""Name of the timer that asks the master again."""

ASK_AGAIN_US = 1 * SECOND_US


def ask_for_arrangement(state: PartitionedMember, now: int) -> None:
    """Ask the master for the first table, because data is used or an operator wants it. A joiner asks once it has a master."""
    partitions = state.partitions
    if partitions.table is None and not partitions.wants_arrangement:
        partitions.wants_arrangement = True
        _ask(state, now)


def on_arrange_request(state: PartitionedMember, now: int, sender: Address, request: ArrangeRequest) -> None:
    """Note that a member needs partitions. The master makes them as soon as it may; see `master_role`."""
    if state.is_master and sender in state.peers and state.partitions.table is None:
        ask_for_arrangement(state, now)
        state.timers.set(ARRANGE, now)  # nothing is sent yet, but there is something to do


def on_arrange_timer(state: PartitionedMember, now: int) -> None:
    """Ask again while there is no table."""
    if state.partitions.wants_arrangement:
        _ask(state, now)


def _ask(state: PartitionedMember, now: int) -> None:
    if state.members is not None and state.master is not None and state.master != state.address:
        state.send(state.master, ArrangeRequest())
    state.timers.set(ARRANGE, now + ASK_AGAIN_US)


def data_members(state: PartitionedMember) -> tuple[Member, ...]:
    """Return the members that may hold data, in order of age."""
    assert state.members is not None
    return tuple(member for member in state.members.members if not member.lite)


def arrange_first(state: PartitionedMember, now: int, master_role: MasterRole) -> bool:
    """Make the first table, if that is allowed and a member can hold it."""
    if not allows_migrations(state.standing.state):
        return False
    wanted = _arranged(state, None, master_role)
    if wanted is None:
        return False
    members = _replicas(state)
    partitions = state.partitions
    partitions.table = empty_table(state.settings.partition_count, state.settings.backups + 1)
    rows = [VersionedRow(partition, 1, _full_row(state, row, members)) for partition, row in enumerate(wanted.table)]
    partitions.wants_arrangement = False
    state.context.act_for(state.context.cause or state.listed)
    change(state, now, rows, (), "arranged")
    master_role.plan_reason = Reason("arranged", "the partitions are arranged", master_role.changed)
    publish(state, now)
    return True


def plan(state: PartitionedMember, now: int, master_role: MasterRole) -> None:
    """Plan everything anew: give lost partitions new owners, and queue the migrations to where all should be.

    The partitions with the fewest replicas come first, as copies come first within each (Avoid Data Loss on Migration, 3.2.3).
    """
    master_role.wants_plan = master_role.members_busy = False
    master_role.queue.clear()
    table = state.table
    if not allows_promotions(state.standing.state):
        return
    current = [_names(replicas) for replicas in table.rows]
    wanted = _arranged(state, current, master_role)
    if wanted is None:
        return
    _give_lost_rows_owners(state, now, table, wanted)
    if not allows_migrations(state.standing.state):
        return
    master_role.replicas_wanted = len(wanted.table[0])
    for partition, (replicas, target) in enumerate(zip(table.rows, wanted.table, strict=True)):
        row = _names(replicas)
        full = (*target, *(None,) * (len(row) - len(target)))
        if row != full:
            steps = _steps(row, full, master_role.leaving)
            if steps:
                master_role.queue[partition] = deque(steps)
    # Those with most empty places first.
    by_replicas = sorted(master_role.queue.items(), key=lambda planned: -table.rows[planned[0]].count(None))
    master_role.queue = OrderedDict(by_replicas)
    planned = _shown(state, master_role, table)
    reason = master_role.plan_reason
    without = tuple(master_role.leaving.values())
    event = MigrationsPlanned(planned, wanted.moves, wanted.lower_bound, reason.text, reason.cause, without)
    state.record(now, event, reason.because)
    master_role.planned = state.context.cause


def _arranged(state: PartitionedMember, current: Sequence[Row] | None, master_role: MasterRole) -> Arrangement | None:
    """Return the table that there should be; None when no member can hold it."""
    leaving = list(master_role.leaving)
    groups, custom = state.settings.partition_groups, state.settings.custom_groups
    # Those who stay are grouped as they will be without the others: a zone that remains alone is halved, and keeps its backups.
    staying = [member for member in data_members(state) if member.uuid not in master_role.leaving]
    if not staying:
        return None
    members = list(groups_of(staying, groups, custom).items())
    members += [(member.uuid, member.uuid) for member in data_members(state) if member.uuid in master_role.leaving]
    if current is None:
        partitions, backups = state.settings.partition_count, state.settings.backups
    else:  # as the first master had it, whatever this one is set to
        partitions, backups = len(current), len(current[0]) - 1
    return arrange(current, members, partitions, backups, leaving=leaving)


def _replicas(state: PartitionedMember) -> dict[str | None, Replica]:
    return {member.uuid: Replica(member.address, member.uuid) for member in data_members(state)}


def _full_row(state: PartitionedMember, row: Row, members: dict[str | None, Replica]) -> Replicas:
    width = state.settings.backups + 1
    return (*(members.get(name) for name in row), *(None,) * (width - len(row)))


def _steps(row: Row, target: Row, leaving: Container[str]) -> tuple[MigrationStep, ...]:
    """Return the migrations of one partition. Members that leave and hold it get the empty places of the target, as backups.

    Nothing is cleared at a member that is still there: until it has gone, its copy may be the only other one (Decisions: Graceful
    stop).
    """
    leavers = [name for name in row if name is not None and name in leaving]
    if not leavers:
        return plan_migrations(row, target).steps
    staying = iter(leavers)
    target = tuple([name if name is not None else next(staying, None) for name in target])
    plan = plan_migrations(row, target)
    return (*plan.steps, *exchanges(plan.target_after_cycle_fix, target))


def _names(replicas: Replicas) -> Row:
    return tuple([replica.uuid if replica is not None else None for replica in replicas])


def _give_lost_rows_owners(state: PartitionedMember, now: int, table: PartitionTable, wanted: Arrangement) -> None:
    """Give new owners to partitions without any holder: there is nothing to copy, so they begin empty (1.1)."""
    members = _replicas(state)
    rows = []
    for partition in wanted.lost:
        replicas = (members.get(wanted.table[partition][0]), *table.rows[partition][1:])
        rows.append(VersionedRow(partition, table.versions[partition] + 1, replicas))
    if rows:
        change(state, now, rows, (), "repaired")
        publish(state, now)


def _shown(state: PartitionedMember, master_role: MasterRole, table: PartitionTable) -> tuple[PlannedMigration, ...]:
    addresses: dict[str | None, Address] = {uuid: one.address for uuid, one in table.holders().items()}
    addresses |= {name: one.address for name, one in _replicas(state).items()}
    planned = []
    for partition, steps in master_role.queue.items():
        for step in steps:
            source, destination = addresses.get(step.source), addresses.get(step.destination)
            index = step.destination_new if step.destination is not None else step.source_current
            planned.append(PlannedMigration(partition, step.type, source, destination, index, step.unavoidable))
    return tuple(planned)

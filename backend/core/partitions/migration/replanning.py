"""When the master drops its plan of migrations and makes another one (Avoid Data Loss on Migration, 3.2)."""

from __future__ import annotations

from quarterdeck.backend.core.causes import Reason
from quarterdeck.backend.core.partitions.events import MigrationsCancelled, PlanCause
from quarterdeck.backend.core.partitions.state import PartitionedMember
from quarterdeck.backend.core.properties import SECOND_US

FAILURE_PAUSE_US = 1 * SECOND_US
MOST_PAUSES = 6
"""After a failure the next plan is made at once. After each further one in a row it waits a pause more, at most so many."""


def cancel(state: PartitionedMember, now: int, reason: Reason[PlanCause]) -> None:
    """Drop what has not begun, and plan anew when nothing runs any more."""
    master_role = state.master_role
    remaining = sum(map(len, master_role.queue.values()))
    master_role.queue.clear()
    master_role.wants_plan = True
    master_role.plan_reason = reason._replace(because=state.context.cause)
    if remaining:
        state.record(now, MigrationsCancelled(remaining, reason.text, reason.cause))


def cancel_after_failure(state: PartitionedMember, now: int, reason: str) -> None:
    """Drop the plan since a migration failed. Migrations that fail together count as one failure."""
    master_role = state.master_role
    if not master_role.wants_plan:
        master_role.not_before_us = now + min(master_role.failures, MOST_PAUSES) * FAILURE_PAUSE_US
        master_role.failures += 1
    cancel(state, now, Reason("migration-failed", f"a migration failed: {reason}"))

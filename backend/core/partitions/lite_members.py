"""Lite members are promoted to hold data, and data members demoted to hold none, while they run (Hazelcast: lite members).

The member asks its master every second, also a new one, until the list says so or the master refuses. A promotion is another
list, after which the master plans with one more holder. Before a demotion the data is moved away as before a graceful stop; the
member then stays on the list, at its age (Decisions: Lite members). Asked for the opposite meanwhile, it stays what it is. The
master forgets a demotion that it is not asked for any more: a late refusal may have ended it at the member.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import ListCause, LiteRefusalCause, Reason
from quarterdeck.backend.core.cluster_profile import allows_migrations
from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.core.membership.cluster_state import is_changing
from quarterdeck.backend.core.membership.events import LiteChangeRefused
from quarterdeck.backend.core.membership.views import publishing
from quarterdeck.backend.core.partitions.arrangement.repartitioning import data_members
from quarterdeck.backend.core.partitions.graceful_shutdown import is_needed
from quarterdeck.backend.core.partitions.messages import LiteChangeRefusal, LiteChangeRequest
from quarterdeck.backend.core.partitions.migration.replanning import cancel
from quarterdeck.backend.core.partitions.state import LiteChange, MasterRole, PartitionedMember
from quarterdeck.backend.core.properties import SECOND_US

LITE_CHANGE = "lite change"
"""Name of the timer that asks the master again."""

ASK_AGAIN_US = 1 * SECOND_US

DEMOTIONS = "demotions"
"""Name of the timer at which the master forgets demotions."""

FORGOTTEN_US = 5 * SECOND_US
"""When a demotion is forgotten that no member asks for."""


# The member


def request(state: PartitionedMember, now: int, *, lite: bool) -> None:
    """Begin to ask for a promotion, or with `lite` for a demotion. Raises `CommandRefused`."""
    label, waiting = state.member_configuration.label, state.partitions.lite_change
    if not state.joined:
        raise CommandRefused(f"{label} has not joined a cluster")
    if waiting is not None and waiting.lite not in (lite, state.lite):
        _withdraw(state, now, waiting, "withdrawn", f"an operator wants it to {'hold no' if lite else 'hold'} data")
    elif state.lite == lite:
        raise CommandRefused(f"{label} {'is a lite member' if lite else 'holds data'} already")
    else:
        state.partitions.lite_change = LiteChange(lite, now + state.settings.lite_change_us)
        _ask(state, now, lite)


def go_on(state: PartitionedMember, now: int, change: LiteChange | None) -> None:
    """Go on asking in an incarnation that follows one in a merge."""
    if change is not None:
        state.partitions.lite_change = change
        state.timers.set(LITE_CHANGE, now + ASK_AGAIN_US)


def on_lite_change_timer(state: PartitionedMember, now: int) -> None:
    """Ask again, there may be another master meanwhile; or give up."""
    change = state.partitions.lite_change
    if change is None:
        return
    if state.lite == change.lite and state.joined:
        state.partitions.lite_change = None
    elif now >= change.until_us:
        whose = "" if state.is_master else "; the master may be of an earlier release, which cannot do it"
        _withdraw(state, now, change, "not-in-time", "it was not done in time" + whose)
    else:
        _ask(state, now, change.lite)


def on_refusal(state: PartitionedMember, now: int, sender: Address, refusal: LiteChangeRefusal) -> None:
    """Note that the master refuses."""
    change = state.partitions.lite_change
    if change is not None and sender == state.master and (refusal.uuid, refusal.lite) == (state.uuid, change.lite):
        state.partitions.lite_change = None
        state.record(now, LiteChangeRefused(refusal.lite, refusal.reason, refusal.cause))


def _withdraw(state: PartitionedMember, now: int, change: LiteChange, cause: LiteRefusalCause, reason: str) -> None:
    state.partitions.lite_change = None
    state.record(now, LiteChangeRefused(change.lite, reason, cause))
    _ask(state, now, not change.lite)


def _ask(state: PartitionedMember, now: int, lite: bool) -> None:
    asks = LiteChangeRequest(state.uuid, lite)
    master_role = state.partitions.master_role
    state.timers.set(LITE_CHANGE, now + ASK_AGAIN_US)
    if master_role is not None and state.is_master:
        _decide(state, now, master_role, state.address, asks)
    elif state.master is not None and state.master != state.address:
        state.send(state.master, asks)


# The master


def on_request(state: PartitionedMember, now: int, sender: Address, asks: LiteChangeRequest) -> None:
    """Promote or demote a member, or say why not. One whose data has to be moved first asks again."""
    master_role = state.partitions.master_role
    if master_role is not None and state.is_master and state.is_listed(sender, asks.uuid):
        _decide(state, now, master_role, sender, asks)


def _decide(
    state: PartitionedMember, now: int, master_role: MasterRole, address: Address, asks: LiteChangeRequest
) -> None:
    assert state.members is not None
    member = state.members.find(address)
    if member is None or (asks.uuid in master_role.leaving and asks.uuid not in master_role.demoting):
        return  # it stops
    if member.lite == asks.lite:
        _keep_data(state, now, master_role, asks.uuid)
        return
    if (obstacle := _obstacle(state, master_role, asks)) is not None:
        _keep_data(state, now, master_role, asks.uuid)
        refusal = LiteChangeRefusal(asks.uuid, asks.lite, obstacle.text, obstacle.cause)
        if address == state.address:
            on_refusal(state, now, address, refusal)
        else:
            state.send(address, refusal)
        return
    if state.admission is not None or state.merge is not None or is_changing(state, now):
        return
    if asks.lite and not _is_drained(state, now, master_role, address, asks.uuid):
        return
    master_role.leaving.pop(asks.uuid, None)
    master_role.demoting.pop(asks.uuid, None)
    cause: ListCause = "demotion" if asks.lite else "promotion"
    publishing.install(state, now, state.members.with_lite(address, asks.lite), state.address, cause)
    publishing.publish(state)


def _obstacle(
    state: PartitionedMember, master_role: MasterRole, asks: LiteChangeRequest
) -> Reason[LiteRefusalCause] | None:
    if not allows_migrations(state.standing.state):
        return Reason("cluster-state", f"the cluster is {state.standing.state}, so nothing is moved")
    staying = [
        member for member in data_members(state) if member.uuid != asks.uuid and member.uuid not in master_role.leaving
    ]
    if asks.lite and not staying:
        return Reason("last-data-member", "no other member could hold its data")
    return None


def _is_drained(state: PartitionedMember, now: int, master_role: MasterRole, address: Address, uuid: str) -> bool:
    """Return whether no other member needs what this one holds; plan without it if that has not begun."""
    if master_role.recovery is not None:
        return False
    if state.partitions.table is None:
        return True
    master_role.demoting[uuid] = now + FORGOTTEN_US
    state.timers.set(DEMOTIONS, now + FORGOTTEN_US)
    if uuid not in master_role.leaving:
        master_role.leaving[uuid] = address
        cancel(state, now, Reason("members-changed", f"{address} is to hold no data"))
        return False
    if master_role.running or master_role.queue or master_role.wants_plan:
        return False
    return not is_needed(state, master_role, uuid)


def on_demotions_timer(state: PartitionedMember, now: int) -> None:
    """Forget the demotions that this master is not asked for any more."""
    master_role = state.partitions.master_role
    demoting = master_role.demoting if master_role is not None else {}
    for uuid in [uuid for uuid, until_us in demoting.items() if until_us <= now]:
        _keep_data(state, now, state.master_role, uuid)
    if demoting:
        state.timers.set(DEMOTIONS, min(demoting.values()))


def _keep_data(state: PartitionedMember, now: int, master_role: MasterRole, uuid: str) -> None:
    if master_role.demoting.pop(uuid, None) is not None:
        address = master_role.leaving.pop(uuid)
        cancel(state, now, Reason("members-changed", f"{address} goes on holding data"))

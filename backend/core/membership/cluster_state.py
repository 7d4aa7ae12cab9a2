"""The state of the cluster: ACTIVE, NO_MIGRATION, FROZEN or PASSIVE, changed by the master in two phases.

First all members hold still and answer whether they can, then the master sends them what holds. A change that is not decided
within its lease is void: no member waits for a master that is gone. While no joins are allowed, members that leave are missing
rather than gone, and only they may come back (Hazelcast: missing members and start of a merge).

The last section refuses operations while too few members are on the list (Emergent Leader, Split Brain Situation; Decisions:
Minimum cluster size). This keeps one side of a split from serving clients, but not before the split is detected.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Reason, StateCause, StateRefusalCause
from quarterdeck.backend.core.cluster_profile import ClusterStanding, ClusterState, allows_joins
from quarterdeck.backend.core.membership import messages
from quarterdeck.backend.core.membership.events import ClusterStateChanged, ClusterStateRefused, ProtectionChanged
from quarterdeck.backend.core.membership.facts import Installed, Removed, StateChangeEnded
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import (
    Following,
    Leading,
    StateChange,
    StateChangeRequest,
    StateLocked,
)
from quarterdeck.backend.core.properties import SECOND_US

STATE = "cluster state"
"""Name of the timer that asks again those who have not answered."""

STATE_REQUEST = "cluster state wanted"
"""Name of the timer at which a slave asks its master again."""

ASK_AGAIN_US = 1 * SECOND_US


def request(state: Membership, now: int, wanted: ClusterState) -> None:
    """Begin the change of state that an operator wants. A slave passes it on to its master."""
    if isinstance(state.doing, Leading):
        begin_change(state, state.doing, now, ClusterStanding(wanted))
    elif isinstance(state.doing, Following) and state.master is not None and not state.suspects(state.master):
        until_us = now + state.settings.state_lease_us
        state.followed_change.request = StateChangeRequest(wanted, until_us, state.next_token(), state.context.cause)
        _pass_on(state, now, state.master, state.followed_change.request)
    else:
        reason = "there is no master at present that could change it"
        state.record(now, ClusterStateRefused(wanted, reason, "no-master"))


def on_request_timer(state: Membership, now: int) -> None:
    """Ask the master again, until the state is what the operator wants, or the master refuses, or time is up."""
    pending_request = state.followed_change.request
    if pending_request is None:
        return
    state.context.act_for(pending_request.because)
    if now >= pending_request.until_us:
        state.followed_change.request = None
        reason = "the master did not change it in time"
        state.record(now, ClusterStateRefused(pending_request.wanted, reason, "not-in-time"))
    elif state.master is not None:
        _pass_on(state, now, state.master, pending_request)


def on_refusal(state: Membership, _: Following, now: int, sender: Address, refusal: messages.StateRefusal) -> None:
    """Record that the master refuses the change."""
    pending_request = state.followed_change.request
    if pending_request is not None and sender == state.master and refusal.token == pending_request.token:
        state.followed_change.request = None
        state.record(now, ClusterStateRefused(refusal.wanted, refusal.reason, "master-refused"))


def begin_change(state: Membership, leading: Leading, now: int, wanted: ClusterStanding) -> bool:
    """Begin a change to `wanted` as the master, which decides its edition. Return whether it could begin."""
    obstacle = _obstacle(state, leading, wanted)
    if obstacle is not None:
        state.record(now, ClusterStateRefused(wanted.state, obstacle.text, obstacle.cause))
        return False
    wanted = ClusterStanding(wanted.state, state.standing.edition + 1, wanted.thawed)
    deadline_us = now + state.settings.state_lease_us
    leading.state_change = StateChange(state.next_token(), wanted, set(state.peers), deadline_us, state.context.cause)
    _proceed(state, leading, now, leading.state_change)
    return True


def is_changing(state: Membership, now: int) -> bool:
    """Return whether this member holds still for a change."""
    change, locked = state.state_change, state.followed_change.locked
    return (change is not None and not change.decided) or (locked is not None and now < locked.until_us)


def adopt(
    state: Membership, now: int, standing: ClusterStanding, cause: StateCause, reason: str, *, new_lineage: bool = False
) -> None:
    """Install the state that the master sends, unless a later one is known already."""
    if standing.edition <= state.standing.edition and not new_lineage:
        return
    before, state.standing = state.standing, standing
    if state.followed_change.request is not None and state.followed_change.request.wanted == standing.state:
        state.followed_change.request = None
    if allows_joins(standing.state):
        state.missing.clear()
    if before.state != standing.state:
        state.record(now, ClusterStateChanged(standing.state, reason, cause))


def thaw_after_claim(state: Membership, now: int) -> None:
    """Restore the state of a cluster that was frozen for a merge and has lost the master that led it."""
    if state.standing.thawed is not None:
        thawed = ClusterStanding(state.standing.thawed, state.standing.edition + 1)
        adopt(state, now, thawed, "merge-died", "the merge it was frozen for died with its master")


def on_removed(state: Membership, now: int, fact: Removed) -> None:
    """Wait no longer for the answers of members that left."""
    leading, change = state.doing, state.state_change
    if isinstance(leading, Leading) and change is not None and change.waiting & fact.gone:
        change.waiting -= fact.gone
        _proceed(state, leading, now, change)


def on_request(state: Membership, leading: Leading, now: int, sender: Address, message: messages.StateRequest) -> None:
    """Begin the change that a slave passes on from an operator. It may ask again."""
    if not state.is_by(message.token, sender):
        return
    change, wanted = leading.state_change, ClusterStanding(message.wanted)
    if change is not None and not change.decided and change.wanted.state == wanted.state:
        return
    obstacle = _obstacle(state, leading, wanted)
    if obstacle is not None:
        state.send(sender, messages.StateRefusal(wanted.state, obstacle.text, message.token))
    else:
        begin_change(state, leading, now, wanted)


def on_lock(state: Membership, following: Following, now: int, sender: Address, lock: messages.StateLock) -> None:
    """Hold still, in the first phase at a slave. A master leads one change at a time, so a new one ends the one before."""
    if sender != state.master or state.members is None or not state.is_by(lock.token, sender):
        return
    if lock.token == state.followed_change.decided:
        return  # it comes again, after its decision
    if lock.version != state.members.version:
        refusal = f"it stands at list version {state.members.version}, not {lock.version}"
    else:
        refusal = ""
        state.followed_change.locked = StateLocked(lock.token, now + lock.lease_us)
    state.send(sender, messages.StateLockAnswer(lock.token, refusal))


def on_lock_answer(
    state: Membership, leading: Leading, now: int, sender: Address, answer: messages.StateLockAnswer
) -> None:
    """Count an answer, in the first phase at the master: one refusal ends the change."""
    change = leading.state_change
    if change is None or change.decided or change.token != answer.token:
        return
    if answer.refusal:
        _give_up(state, leading, now, change, "member-refused", f"{sender} refused: {answer.refusal}")
    else:
        change.waiting.discard(sender)
        _proceed(state, leading, now, change)


def on_decision(state: Membership, _: Following, now: int, sender: Address, decision: messages.StateDecision) -> None:
    """Install what was decided, in the second phase at a slave."""
    if sender != state.master or not state.is_by(decision.token, sender):
        return
    state.followed_change.decided = decision.token
    if state.followed_change.locked is not None and state.followed_change.locked.token == decision.token:
        state.followed_change.locked = None
    adopt(state, now, decision.standing, "decided", "the master decided it")
    state.send(sender, messages.StateDecisionAck(decision.token))


def on_decision_ack(
    state: Membership, leading: Leading, now: int, sender: Address, ack: messages.StateDecisionAck
) -> None:
    """Count an acknowledgement, in the second phase at the master: the change ends when all members know it."""
    change = leading.state_change
    if change is not None and change.decided and change.token == ack.token:
        change.waiting.discard(sender)
        _proceed(state, leading, now, change)


def on_state_timer(state: Membership, now: int) -> None:
    """Ask again, or give up when the lease is over."""
    leading, change = state.doing, state.state_change
    if not isinstance(leading, Leading) or change is None:
        return
    state.context.act_for(change.because)
    if now < change.deadline_us:
        _ask(state, now, change)
    elif change.decided:
        leading.state_change = None  # the others learn it with the next list
    else:
        _give_up(state, leading, now, change, "no-answer", f"no answer from {', '.join(sorted(change.waiting))}")


def cancel_for_merge(state: Membership, leading: Leading, now: int) -> None:
    """Give up the change that this master leads for a merge that it has given up, unless it is decided."""
    change = leading.state_change
    if change is not None and not change.decided:
        _give_up(state, leading, now, change, "merge-given-up", "the merge that it was for is given up")


def _pass_on(state: Membership, now: int, master: Address, pending_request: StateChangeRequest) -> None:
    state.send(master, messages.StateRequest(pending_request.wanted, pending_request.token))
    state.timers.set(STATE_REQUEST, now + ASK_AGAIN_US)


def _obstacle(state: Membership, leading: Leading, wanted: ClusterStanding) -> Reason[StateRefusalCause] | None:
    change, merge = leading.state_change, leading.merge
    if change is not None and not change.decided:
        return Reason("changing-already", f"it is being changed to {change.wanted.state} already")
    if merge is not None and wanted.thawed is None:
        return Reason("merging", f"the cluster is merging into that of {merge.remote.address}")
    if wanted.state == state.standing.state and wanted.thawed is None:
        return Reason("is-so-already", f"the cluster is {wanted.state} already")
    return None


def _proceed(state: Membership, leading: Leading, now: int, change: StateChange) -> None:
    """Ask the members that have not answered; when all have, go on to the next phase."""
    if change.waiting:
        if not state.timers.is_set(STATE):
            _ask(state, now, change)
        return
    state.timers.clear(STATE)
    if change.decided:
        leading.state_change = None
        return
    change.decided = True
    change.waiting = set(state.peers)
    adopt(state, now, change.wanted, "decided", "the master decided it")
    if change.waiting:
        _ask(state, now, change)
    else:
        leading.state_change = None
    state.report(StateChangeEnded(""))


def _ask(state: Membership, now: int, change: StateChange) -> None:
    assert state.members is not None
    message: messages.StateLock | messages.StateDecision
    if change.decided:
        message = messages.StateDecision(change.token, change.wanted)
    else:
        lease_us = change.deadline_us - now
        message = messages.StateLock(change.token, change.wanted.state, state.members.version, lease_us)
    state.send_all(tuple(sorted(change.waiting)), message)
    state.timers.set(STATE, now + ASK_AGAIN_US)


def _give_up(
    state: Membership, leading: Leading, now: int, change: StateChange, cause: StateRefusalCause, reason: str
) -> None:
    leading.state_change = None
    state.timers.clear(STATE)
    state.record(now, ClusterStateRefused(change.wanted.state, reason, cause))
    state.send_all(tuple(state.peers), messages.StateDecision(change.token, state.standing))
    state.report(StateChangeEnded(reason))


# Minimum cluster size


def why_not_operating(state: Membership) -> str:
    """Return why this member must not serve a client now; empty when it may."""
    if state.operating and state.joined:
        return ""
    size = len(state.members.members) if state.members else 0
    needed = max(state.settings.minimum_cluster_size, 1)
    return f"not enough members: {state.member_configuration.label} sees {size} and needs {needed}"


def on_installed(state: Membership, now: int, fact: Installed) -> None:
    """Record after a change of the list when operations begin or cease to be served."""
    assert state.members is not None
    size, needed = len(state.members.members), state.settings.minimum_cluster_size
    operating = size >= needed
    if operating != state.operating:
        state.operating = operating
        state.record(now, ProtectionChanged(size, needed, operating))

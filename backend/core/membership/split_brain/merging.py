"""The merge of a losing cluster into the winner's.

See Split-brain Recovery Improvements; Emergent Leader, Recovering from split brain; Hazelcast: start of a merge and merge on
each member.

The losing master asks the members that the winner lists for their master, until those that name the winner outweigh its own
cluster: one peer alone can claim to lead any number of members. It proves the links where partial disconnections are resolved,
freezes its cluster, offers it to the winner, and when that agrees orders every member to join the winner's cluster, itself last.
Each goes on under a new uuid and names the version it has seen, so that the winner's list jumps above it and the version never
goes back. If anything fails on the way, the state of the cluster is restored, and the next search begins anew.
"""

from __future__ import annotations

from msgspec import structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import ObstacleCause, Reason
from quarterdeck.backend.core.cluster_profile import ClusterStanding, allows_joins
from quarterdeck.backend.core.membership import cluster_state, events, facts, mastership_claim, messages
from quarterdeck.backend.core.membership.failure_detection import link_probes
from quarterdeck.backend.core.membership.split_brain import cluster_search
from quarterdeck.backend.core.membership.split_brain.merge_decision import decide_merge
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Doing, Following, Leading, MergePhase, MergeUndertaking
from quarterdeck.backend.core.membership.views import joining, readmission
from quarterdeck.backend.core.membership.views.identity import fresh_uuid, next_draw
from quarterdeck.backend.core.properties import SECOND_US

MERGE = "merge"
"""Name of the timer that asks again, and ends a merge that takes too long."""

ASK_AGAIN_US = 1 * SECOND_US
PHASE_US = 10 * SECOND_US
"""How long one phase of the merge may take. After so long in the last one the master leaves without the members that
do not answer.
"""


# The losing master


def on_merge_decided(state: Membership, now: int, fact: facts.MergeDecided) -> None:
    """Begin to merge this cluster into that one, unless something forbids it just now."""
    leading = state.doing
    if not isinstance(leading, Leading) or not allows_joins(state.standing.state):
        return
    if leading.merge or leading.state_change or leading.admission or now < state.merge_backoff.not_before_us:
        return
    token, cause = state.next_token(), state.context.cause
    merge = leading.merge = MergeUndertaking(token, fact.remote, now + PHASE_US, "confirming", cause)
    _enter(state, now, merge, "confirming")
    merge.confirmed = {fact.remote.address}
    merge.waiting = {member.address for member in fact.remote.members} - merge.confirmed
    _ask_for_master(state, merge)
    _go_on_when_confirmed(state, leading, now, merge)


def on_master_named(state: Membership, leading: Leading, now: int, sender: Address, answer: messages.MasterIs) -> None:
    """Count a member of the winner that names its master; an answer to another question is for the search."""
    merge = leading.merge
    if not answer.token:
        cluster_search.on_master_named(state, leading, now, sender, answer)
    elif merge is not None and merge.phase == "confirming" and answer.token == merge.token and sender in merge.waiting:
        if answer.master == merge.remote.address:
            merge.waiting.discard(sender)
            merge.confirmed.add(sender)
            _go_on_when_confirmed(state, leading, now, merge)


def _go_on_when_confirmed(state: Membership, leading: Leading, now: int, merge: MergeUndertaking) -> None:
    """Go on as soon as the confirmed part of the other cluster wins by itself."""
    members = tuple(member for member in merge.remote.members if member.address in merge.confirmed)
    data_members = sum(not member.lite for member in members)
    proven = structs.replace(merge.remote, members=members, data_member_count=data_members)
    if decide_merge(cluster_search.profile(state), proven).decision != "local-merges":
        return
    if state.settings.disconnection_heartbeats:
        _prove(state, leading, now, merge)
    else:
        _freeze(state, leading, now, merge)


def on_links_report(
    state: Membership, leading: Leading, now: int, sender: Address, report: messages.LinksReport
) -> None:
    """Note that a member has proven its links to the winner's members, or names those that are missing."""
    merge = leading.merge
    if merge is None or merge.phase != "proving" or report.token != merge.token or sender not in merge.waiting:
        return
    if report.missing:
        _wait_for_links(state, leading, now, f"{sender} does not reach {', '.join(report.missing)} both ways")
        return
    merge.waiting.discard(sender)
    if not merge.waiting:
        _freeze(state, leading, now, merge)


def on_own_links_reported(state: Membership, now: int, fact: facts.LinksReported) -> None:
    """Note that this master has tried its own links."""
    if isinstance(state.doing, Leading):
        on_links_report(state, state.doing, now, state.address, fact.report)


def on_state_change_ended(state: Membership, now: int, fact: facts.StateChangeEnded) -> None:
    """Go on with the merge when the freeze is done, or end it when the freeze was refused."""
    leading, merge = state.doing, state.merge
    if not isinstance(leading, Leading) or merge is None or merge.phase != "freezing":
        return
    if fact.refusal:
        _give_up(state, leading, now, "not-frozen", f"the cluster could not be frozen: {fact.refusal}")
        return
    _enter(state, now, merge, "offering")
    _offer(state, merge)


def on_reply(state: Membership, leading: Leading, now: int, sender: Address, reply: messages.MergeReply) -> None:
    """Go on with the merge when the winner agrees, or end it."""
    merge = leading.merge
    if merge is None or merge.phase != "offering" or reply.token != merge.token:
        return
    if reply.refusal:
        _give_up(state, leading, now, "refused", f"{sender} refused: {reply.refusal}")
        return
    _enter(state, now, merge, "ordering")
    merge.waiting = set(state.peers)
    _order_members(state, now, merge)


def on_merge_clusters_ack(
    state: Membership, leading: Leading, now: int, sender: Address, ack: messages.MergeClustersAck
) -> None:
    """Note that a member is on its way."""
    merge = leading.merge
    if merge is not None and merge.phase == "ordering" and ack.token == merge.token:
        merge.waiting.discard(sender)
        if not merge.waiting:
            state.report(facts.Departing(merge.remote.address))


def on_merge_timer(state: Membership, now: int) -> None:
    """Ask again; when the phase has taken too long, go on without the rest or give up."""
    leading, merge = state.doing, state.merge
    if not isinstance(leading, Leading) or merge is None:
        return
    state.context.act_for(merge.started)
    if now < merge.deadline_us:
        if merge.phase == "confirming":
            _ask_for_master(state, merge)
        elif merge.phase == "proving":
            _ask_for_proof(state, now, merge)
        elif merge.phase == "offering":
            _offer(state, merge)
        elif merge.phase == "ordering":
            _order_members(state, now, merge)
        state.timers.set(MERGE, min(merge.deadline_us, now + ASK_AGAIN_US))
    elif merge.phase == "ordering":
        state.report(facts.Departing(merge.remote.address))
    elif merge.phase == "confirming":
        why = f"{', '.join(sorted(merge.waiting))} did not confirm that {merge.remote.address} leads it"
        _wait_for_links(state, leading, now, why)
    elif merge.phase == "proving":
        _wait_for_links(state, leading, now, f"{', '.join(sorted(merge.waiting))} did not report its links")
    elif merge.phase == "freezing":
        _give_up(state, leading, now, "not-frozen", "the cluster could not be frozen in time")
    else:
        _give_up(state, leading, now, "no-answer", "the other cluster does not answer any more")


def on_removed(state: Membership, now: int, fact: facts.Removed | facts.LostInMerge) -> None:
    """Wait no longer for members that left."""
    leading, merge = state.doing, state.merge
    if not isinstance(leading, Leading) or merge is None or not merge.waiting & fact.gone:
        return
    merge.waiting -= fact.gone
    if merge.waiting:
        return
    if merge.phase == "ordering":
        state.report(facts.Departing(merge.remote.address))
    elif merge.phase == "proving":
        _freeze(state, leading, now, merge)


def _give_up(state: Membership, leading: Leading, now: int, cause: ObstacleCause, reason: str) -> None:
    """Stay a cluster of its own, as before. Until its freeze, nothing has begun yet."""
    merge, leading.merge = leading.merge, None
    if merge is None:
        return
    state.timers.clear(MERGE)
    if merge.phase == "freezing":
        cluster_state.cancel_for_merge(state, leading, now)
    state.context.act_for(merge.started)
    if merge.phase not in ("confirming", "proving"):
        state.record(now, events.MergeAbandoned(merge.remote.address, reason, cause))
    cluster_search.explain(state, now, Reason(cause, reason), merge.remote.address)
    if state.standing.thawed is not None:
        cluster_state.begin_change(state, leading, now, ClusterStanding(state.standing.thawed))


# The winning master


def on_offer_to_slave(state: Membership, _: Following, now: int, sender: Address, offer: messages.MergeOffer) -> None:
    """Name the own master to a losing cluster that is ready to come."""
    state.send(sender, messages.MergeReply(offer.token, f"it is no master; ask {state.master}"))


def on_offer(state: Membership, leading: Leading, now: int, sender: Address, offer: messages.MergeOffer) -> None:
    """Accept a losing cluster if the decision still stands."""
    refusal = _why_refuse(state, leading, now, offer)
    if not refusal:
        for member in offer.profile.members:
            readmission.mark_proven(state, now, member.address)
    state.send(sender, messages.MergeReply(offer.token, refusal))


def _has_newcomers_since(state: Membership, version: int) -> bool:
    return state.members is not None and any(member.join_version > version for member in state.members.members)


def _why_refuse(state: Membership, leading: Leading, now: int, offer: messages.MergeOffer) -> str:
    if leading.merge is not None:
        return f"it is itself merging into the cluster of {leading.merge.remote.address}"
    if cluster_state.is_changing(state, now):
        return "its state is just being changed"
    if state.settings.disconnection_heartbeats and _has_newcomers_since(state, offer.seen_version):
        return "a member has joined it since the links were proven"
    decision = decide_merge(cluster_search.profile(state), offer.profile)
    return "" if decision.decision == "remote-merges" else decision.why


# Every member of the loser


def on_merge_clusters(state: Membership, _: Doing, now: int, sender: Address, order: messages.MergeClusters) -> None:
    """Join the cluster to which the master sends this member. One that has left already only acknowledges again."""
    state.send(sender, messages.MergeClustersAck(order.token))
    if sender == state.master and state.is_by(order.token, sender) and order.to_uuid == state.uuid:
        state.report(facts.Departing(order.target))


def on_departing(state: Membership, now: int, fact: facts.Departing) -> None:
    """End this incarnation when the step ends."""
    state.context.departing_for = fact.target


def rejoin_as_new_incarnation(state: Membership, now: int, target: Address, *, brings_entries: bool) -> None:
    """End this incarnation and begin another, under a new uuid and without knowledge of the old cluster, that joins `target`'s.

    It may have entries of the old cluster to offer.
    """
    mastership_claim.abandon(state, now, "merging", "it merges into another cluster")
    bits, state.randomness = next_draw(state.randomness)
    old_uuid, uuid = state.uuid, fresh_uuid(bits)
    left = [address for address in state.peers if address in state.remembered]
    state.record(now, events.MemberMerging(target, uuid, brings_entries))
    state.timers.clear_all()
    seen_version = state.members.version if state.members is not None else state.seen_version
    state.begin_incarnation(uuid)
    state.seen_version = seen_version
    state.join_list_confirmed = None  # the edit was meant for the cluster that ends here
    state.remembered.update(dict.fromkeys(left, now))
    state.disconnect()  # the others are to know the uuid of the next incarnation
    settings = state.settings.not_as_documented()
    started = events.MemberStarted(state.address, state.lite, state.join_list, old_uuid, settings)
    state.record(now, started)
    if left:
        state.record(now, events.AddressesRemembered(tuple(left)))
    joining.begin_search(state, now, target)


# The steps


def _enter(state: Membership, now: int, merge: MergeUndertaking, phase: MergePhase) -> None:
    merge.phase = phase
    merge.deadline_us = now + PHASE_US
    merge.waiting = set()
    state.timers.set(MERGE, now + ASK_AGAIN_US)


def _ask_for_master(state: Membership, merge: MergeUndertaking) -> None:
    state.send_all(tuple(sorted(merge.waiting)), messages.WhoIsMaster(state.uuid, merge.token))


def _prove(state: Membership, leading: Leading, now: int, merge: MergeUndertaking) -> None:
    _enter(state, now, merge, "proving")
    merge.waiting = {state.address, *state.peers}
    _ask_for_proof(state, now, merge)


def _ask_for_proof(state: Membership, now: int, merge: MergeUndertaking) -> None:
    """Ask all whose reports are missing, this member too: a request or a report may be lost."""
    targets = tuple((member.address, member.uuid) for member in merge.remote.members)
    request = messages.ProveLinks(merge.token, targets)
    state.send_all(tuple(address for address in state.peers if address in merge.waiting), request)
    if state.address in merge.waiting:
        link_probes.prove(state, now, state.address, request)


def _wait_for_links(state: Membership, leading: Leading, now: int, reason: str) -> None:
    """Give up for now and search again after the back-off, which is shorter than the time to the next search."""
    _give_up(state, leading, now, "links-missing", reason)
    state.merge_backoff.delay_us = link_probes.next_delay_us(state, state.merge_backoff.delay_us)
    state.merge_backoff.not_before_us = now + min(state.merge_backoff.delay_us, state.settings.merge_next_run_delay_us)
    cluster_search.plan_search(state, now, state.merge_backoff.not_before_us)


def _freeze(state: Membership, leading: Leading, now: int, merge: MergeUndertaking) -> None:
    assert state.members is not None
    state.merge_backoff.delay_us = 0
    state.record(now, events.MergeStarted(merge.remote.address, state.members.addresses), merge.started)
    merge.started = state.context.cause
    _enter(state, now, merge, "freezing")
    frozen = ClusterStanding("FROZEN", thawed=state.standing.state)
    if not cluster_state.begin_change(state, leading, now, frozen):
        _give_up(state, leading, now, "not-frozen", "the cluster could not be frozen")


def _offer(state: Membership, merge: MergeUndertaking) -> None:
    shown = cluster_search.profile(state, cluster_state=state.standing.thawed)
    state.send(merge.remote.address, messages.MergeOffer(merge.token, shown, merge.remote.list_version))


def _order_members(state: Membership, now: int, merge: MergeUndertaking) -> None:
    if not merge.waiting:
        state.report(facts.Departing(merge.remote.address))
        return
    for address in sorted(merge.waiting):
        state.send(address, messages.MergeClusters(merge.token, state.peers[address].uuid, merge.remote.address))

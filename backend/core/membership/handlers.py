"""Which chapter of membership handles which message, which timer and which fact, in which order.

Facts are handled in the order in which they were reported, each by all its chapters. What these report follows at once, before
what was reported earlier and waits. So a chapter never sees the state in the midst of another one's work, and no second list is
installed before every chapter has reacted to the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership import cluster_state, facts, mastership_claim, messages
from quarterdeck.backend.core.membership.failure_detection import (
    connection_loss,
    explicit_suspicion,
    heartbeat_ring,
    heartbeats,
    link_probes,
    master_confirmation,
    suspicion,
)
from quarterdeck.backend.core.membership.partial_disconnection import disconnection_reports
from quarterdeck.backend.core.membership.split_brain import (
    cluster_search,
    merging,
    remembered_addresses,
    runtime_join_list,
)
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import (
    HAS_JOINED,
    Claim,
    Doing,
    Following,
    Idle,
    JoinSearch,
    Leading,
)
from quarterdeck.backend.core.membership.views import (
    admission,
    joining,
    list_updates,
    present_incarnation,
    publishing,
    readmission,
)


def ignore(state: Membership, doing: Doing, now: int, sender: Address, message: Any) -> None:
    """Ignore a message that has no rule for what the member is doing."""


Rule = Callable[[Membership, Any, int, Address, Any], None]
"""What a member does with a message; the rule gets what the member is doing."""


def _joined(rule: Rule) -> dict[type[Doing], Rule]:
    return dict.fromkeys(HAS_JOINED, rule)


def _always(rule: Rule) -> dict[type[Doing], Rule]:
    return dict.fromkeys((Idle, JoinSearch, *HAS_JOINED), rule)


_RULES: dict[type, dict[type[Doing], Rule]] = {
    messages.WhoIsMaster: {
        JoinSearch: joining.on_question_of_joiner,
        Following: joining.on_who_is_master,
        Leading: joining.on_who_is_master,
    },
    messages.MasterIs: {
        JoinSearch: joining.on_master_is,
        Following: cluster_search.on_master_named_to_slave,
        Claim: cluster_search.on_master_named_to_slave,
        Leading: merging.on_master_named,
    },
    messages.FormationBid: {
        JoinSearch: joining.on_formation_bid,
        Following: joining.on_late_bid,
        Leading: joining.on_late_bid,
    },
    messages.FormationVote: {JoinSearch: joining.on_formation_vote},
    messages.JoinRequest: {Following: admission.on_request_to_slave, Leading: admission.on_join_request},
    messages.JoinRefused: {JoinSearch: joining.on_join_refused},
    messages.JoinHeld: {JoinSearch: readmission.on_join_held},
    messages.FinalizeJoin: _joined(joining.on_foreign_join_answer) | {JoinSearch: joining.on_finalize_join},
    messages.MembersUpdate: {
        JoinSearch: list_updates.on_early_update,
        Following: list_updates.on_members_update,
        Claim: list_updates.on_list_for_claimant,
        Leading: list_updates.on_foreign_list,
    },
    messages.MembersUpdateAck: {Leading: admission.on_acknowledgement},
    messages.Heartbeat: {JoinSearch: explicit_suspicion.on_heartbeat_for_joiner} | _joined(heartbeats.on_heartbeat),
    messages.HeartbeatComplaint: {Leading: explicit_suspicion.on_complaint},
    messages.ExplicitSuspicion: _joined(explicit_suspicion.on_explicit_suspicion),
    messages.TriggerExplicitSuspicion: {Following: explicit_suspicion.on_trigger},
    messages.MastershipClaim: _always(mastership_claim.on_claim),
    messages.ClaimAccepted: {Claim: mastership_claim.on_claim_accepted},
    messages.ClaimRefused: {Claim: mastership_claim.on_claim_refused},
    messages.MasterConfirmation: {
        Following: master_confirmation.on_confirmation_of_slave,
        Claim: master_confirmation.on_confirmation,
        Leading: master_confirmation.on_confirmation,
    },
    messages.FailureReport: _joined(heartbeat_ring.on_failure_report),
    messages.LinkProbe: _always(link_probes.on_probe),
    messages.LinkProbeReply: _always(link_probes.on_reply),
    messages.SplitBrainProbe: {Following: cluster_search.on_probe_of_slave, Leading: cluster_search.on_probe},
    messages.SplitBrainAnswer: {Leading: cluster_search.on_answer},
    messages.ProveLinks: {Following: link_probes.on_prove_links},
    messages.LinksReport: {Leading: merging.on_links_report},
    messages.MergeOffer: {Following: merging.on_offer_to_slave, Leading: merging.on_offer},
    messages.MergeReply: {Leading: merging.on_reply},
    messages.MergeClusters: _always(merging.on_merge_clusters),
    messages.MergeClustersAck: {Leading: merging.on_merge_clusters_ack},
    messages.JoinListUpdate: _joined(runtime_join_list.on_update),
    messages.JoinListUpdateAck: _always(runtime_join_list.on_acknowledgement),
    messages.StateRequest: {Leading: cluster_state.on_request},
    messages.StateRefusal: {Following: cluster_state.on_refusal},
    messages.StateLock: {Following: cluster_state.on_lock},
    messages.StateLockAnswer: {Leading: cluster_state.on_lock_answer},
    messages.StateDecision: {Following: cluster_state.on_decision},
    messages.StateDecisionAck: {Leading: cluster_state.on_decision_ack},
}
MESSAGE_RULES: dict[type, dict[type[Doing], Rule]] = {
    kind: {**dict.fromkeys(get_args(Doing), ignore), **rules} for kind, rules in _RULES.items()
}
"""What a member does with each message, by what it is doing. It ignores what is not here."""

MEMBERSHIP_TIMER_HANDLERS: dict[str, tuple[Callable[[Membership, int], None], ...]] = {
    joining.JOIN: (joining.on_join_timer,),
    admission.ADMISSION: (admission.on_admission_timer,),
    heartbeats.HEARTBEAT: (
        heartbeats.look_for_silence,
        mastership_claim.look_at_asked,
        heartbeat_ring.suspect_reported_silent,
        disconnection_reports.resolve_when_quiet,
        heartbeat_ring.report_findings,
        heartbeats.end_round,
    ),
    disconnection_reports.RESOLUTION: (disconnection_reports.on_resolution_timer,),
    publishing.PUBLISH: (publishing.on_publish_timer,),
    mastership_claim.CLAIM: (mastership_claim.on_claim_timer,),
    master_confirmation.CONFIRMATION: (master_confirmation.on_confirmation_timer,),
    link_probes.PROBE: (link_probes.on_probe_timer,),
    link_probes.PROOF: (link_probes.on_proof_timer,),
    cluster_search.SEARCH: (cluster_search.on_search_timer,),
    merging.MERGE: (merging.on_merge_timer,),
    cluster_state.STATE: (cluster_state.on_state_timer,),
    cluster_state.STATE_REQUEST: (cluster_state.on_request_timer,),
    runtime_join_list.SPREAD: (runtime_join_list.on_spread_timer,),
}
"""Which handlers answer which timer, in order: the facts that a handler reports are settled before the next one."""

ADDRESS_TIMER_HANDLERS: dict[str, Callable[[Membership, int, Address], None]] = {
    connection_loss.CONNECTION: connection_loss.on_connection_timer
}
"""The timers of which there is one for each address, by the prefix of their names."""


# Facts


Reaction = Callable[[Membership, int, Any], None]

REACTIONS: dict[type, tuple[Reaction, ...]] = {
    facts.Installed: (
        heartbeat_ring.on_installed,
        connection_loss.on_installed,
        cluster_search.on_installed,
        present_incarnation.on_installed,
        remembered_addresses.on_installed,
        cluster_state.on_installed,
    ),
    # The first round of heartbeats begins at once.
    facts.Joined: (lambda state, now, _: heartbeats.end_round(state, now), master_confirmation.on_joined),
    facts.BecameMaster: (publishing.on_mastership, cluster_search.on_mastership),
    facts.ListReceived: (list_updates.on_list_received,),
    facts.EvidenceFound: (suspicion.on_evidence,),
    facts.SuspectedFact: (link_probes.on_suspected, mastership_claim.on_suspected),
    facts.SuspicionEnded: (heartbeat_ring.on_suspicion_ended, mastership_claim.on_suspicion_ended),
    facts.Removed: (
        disconnection_reports.on_removed,
        admission.on_removed,
        cluster_state.on_removed,
        merging.on_removed,
    ),
    facts.LostInMerge: (merging.on_removed,),
    facts.LinkProven: (
        present_incarnation.on_link_proven,
        readmission.on_link_proven,
        heartbeat_ring.on_link_proven,
        suspicion.on_link_proven,
    ),
    facts.HeldLinksProven: (joining.on_held_links_proven,),
    facts.LinksReported: (merging.on_own_links_reported,),
    facts.AliveConfirmed: (admission.on_alive_confirmed,),
    facts.AdmissionEnded: (admission.on_admission_ended,),
    facts.MergeDecided: (merging.on_merge_decided,),
    facts.Departing: (merging.on_departing,),
    facts.StateChangeEnded: (merging.on_state_change_ended,),
}
"""The chapters for each fact, in order."""


def settle(state: Membership, now: int) -> None:
    """Let chapters react to all facts reported, until no further fact follows."""
    context = state.context
    handled, waiting = context.cause, context.facts
    while waiting:
        fact, cause = waiting.popleft()
        context.facts = type(waiting)()
        for react in REACTIONS[type(fact)]:
            context.cause, context.latest = cause, None
            react(state, now, fact)
        waiting.extendleft(reversed(context.facts))
    context.facts = waiting
    context.act_for(handled)

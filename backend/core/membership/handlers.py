"""Which chapter of membership answers which message and which timer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership import cluster_state, mastership_claim
from quarterdeck.backend.core.membership.facts import (
    AdmissionEnded,
    AliveConfirmed,
    BecameMaster,
    Departing,
    EvidenceFound,
    HeldLinksProven,
    Installed,
    Joined,
    LinkProven,
    LinksReported,
    ListReceived,
    LostInMerge,
    MergeDecided,
    Removed,
    StateChangeEnded,
    SuspectedFact,
    SuspicionEnded,
)
from quarterdeck.backend.core.membership.failure_detection import (
    connection_loss,
    explicit_suspicion,
    heartbeat_ring,
    heartbeats,
    link_probes,
    master_confirmation,
    suspicion,
)
from quarterdeck.backend.core.membership.messages import (
    ClaimAccepted,
    ClaimRefused,
    ExplicitSuspicion,
    FailureReport,
    FinalizeJoin,
    FormationBid,
    FormationVote,
    Heartbeat,
    HeartbeatComplaint,
    JoinHeld,
    JoinListUpdate,
    JoinListUpdateAck,
    JoinRefused,
    JoinRequest,
    LinkProbe,
    LinkProbeReply,
    LinksReport,
    MasterConfirmation,
    MasterIs,
    MastershipClaim,
    MembersUpdate,
    MembersUpdateAck,
    MergeClusters,
    MergeClustersAck,
    MergeOffer,
    MergeReply,
    ProveLinks,
    SplitBrainAnswer,
    SplitBrainProbe,
    StateDecision,
    StateDecisionAck,
    StateLock,
    StateLockAnswer,
    StateRefusal,
    StateRequest,
    TriggerExplicitSuspicion,
    WhoIsMaster,
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
"""What a member that is doing something, which is handed to the rule, does with a message."""


def _joined(rule: Rule) -> dict[type[Doing], Rule]:
    return dict.fromkeys(HAS_JOINED, rule)


def _all_rules(table: dict[type, dict[type[Doing], Rule]]) -> dict[type, dict[type[Doing], Rule]]:
    nothing: dict[type[Doing], Rule] = dict.fromkeys(get_args(Doing), ignore)
    return {kind: nothing | rules for kind, rules in table.items()}


def _always(rule: Rule) -> dict[type[Doing], Rule]:
    return dict.fromkeys((Idle, JoinSearch, *HAS_JOINED), rule)


MESSAGE_RULES = _all_rules(
    {
        WhoIsMaster: {
            JoinSearch: joining.on_question_of_joiner,
            Following: joining.on_who_is_master,
            Leading: joining.on_who_is_master,
        },
        MasterIs: {
            JoinSearch: joining.on_master_is,
            Following: cluster_search.on_master_named_to_slave,
            Claim: cluster_search.on_master_named_to_slave,
            Leading: cluster_search.on_master_named,
        },
        FormationBid: {
            JoinSearch: joining.on_formation_bid,
            Following: joining.on_late_bid,
            Leading: joining.on_late_bid,
        },
        FormationVote: {JoinSearch: joining.on_formation_vote},
        JoinRequest: {Following: admission.on_request_to_slave, Leading: admission.on_join_request},
        JoinRefused: {JoinSearch: joining.on_join_refused},
        JoinHeld: {JoinSearch: readmission.on_join_held},
        FinalizeJoin: _joined(joining.on_foreign_join_answer) | {JoinSearch: joining.on_finalize_join},
        MembersUpdate: {
            JoinSearch: list_updates.on_early_update,
            Following: list_updates.on_members_update,
            Claim: list_updates.on_list_for_claimant,
            Leading: list_updates.on_foreign_list,
        },
        MembersUpdateAck: {Leading: admission.on_acknowledgement},
        Heartbeat: {JoinSearch: explicit_suspicion.on_heartbeat_for_joiner} | _joined(heartbeats.on_heartbeat),
        HeartbeatComplaint: {Leading: explicit_suspicion.on_complaint},
        ExplicitSuspicion: _joined(explicit_suspicion.on_explicit_suspicion),
        TriggerExplicitSuspicion: {Following: explicit_suspicion.on_trigger},
        MastershipClaim: _always(mastership_claim.on_claim),
        ClaimAccepted: {Claim: mastership_claim.on_claim_accepted},
        ClaimRefused: {Claim: mastership_claim.on_claim_refused},
        MasterConfirmation: {
            Following: master_confirmation.on_confirmation_of_slave,
            Claim: master_confirmation.on_confirmation,
            Leading: master_confirmation.on_confirmation,
        },
        FailureReport: _joined(heartbeat_ring.on_failure_report),
        LinkProbe: _always(link_probes.on_probe),
        LinkProbeReply: _always(link_probes.on_reply),
        SplitBrainProbe: {Following: cluster_search.on_probe_of_slave, Leading: cluster_search.on_probe},
        SplitBrainAnswer: {Leading: cluster_search.on_answer},
        ProveLinks: {Following: link_probes.on_prove_links},
        LinksReport: {Leading: merging.on_links_report},
        MergeOffer: {Following: merging.on_offer_to_slave, Leading: merging.on_offer},
        MergeReply: {Leading: merging.on_reply},
        MergeClusters: _always(merging.on_merge_clusters),
        MergeClustersAck: {Leading: merging.on_merge_clusters_ack},
        JoinListUpdate: _joined(runtime_join_list.on_update),
        JoinListUpdateAck: _always(runtime_join_list.on_acknowledgement),
        StateRequest: {Leading: cluster_state.on_request},
        StateRefusal: {Following: cluster_state.on_refusal},
        StateLock: {Following: cluster_state.on_lock},
        StateLockAnswer: {Leading: cluster_state.on_lock_answer},
        StateDecision: {Following: cluster_state.on_decision},
        StateDecisionAck: {Leading: cluster_state.on_decision_ack},
    }
)
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
"""Which handlers answer which timer, in order: what a handler has told is settled before the next one."""

ADDRESS_TIMER_HANDLERS: dict[str, Callable[[Membership, int, Address], None]] = {
    connection_loss.CONNECTION: connection_loss.on_connection_timer,
}
"""The timers of which there is one for each address, by the prefix of their names."""


# Facts


Reaction = Callable[[Membership, int, Any], None]

REACTIONS: dict[type, tuple[Reaction, ...]] = {
    Installed: (
        heartbeat_ring.on_installed,
        connection_loss.on_installed,
        cluster_search.on_installed,
        present_incarnation.on_installed,
        remembered_addresses.on_installed,
        cluster_state.on_installed,
    ),
    Joined: (heartbeats.on_joined, master_confirmation.on_joined),
    BecameMaster: (publishing.on_mastership, cluster_search.on_mastership),
    ListReceived: (list_updates.on_list_received,),
    EvidenceFound: (suspicion.on_evidence,),
    SuspectedFact: (link_probes.on_suspected, mastership_claim.on_suspected),
    SuspicionEnded: (heartbeat_ring.on_suspicion_ended, mastership_claim.on_suspicion_ended),
    Removed: (
        disconnection_reports.on_removed,
        admission.on_removed,
        cluster_state.on_removed,
        merging.on_removed,
    ),
    LostInMerge: (merging.on_removed,),
    LinkProven: (
        present_incarnation.on_link_proven,
        readmission.on_link_proven,
        heartbeat_ring.on_link_proven,
        suspicion.on_link_proven,
    ),
    HeldLinksProven: (joining.on_held_links_proven,),
    LinksReported: (merging.on_own_links_reported,),
    AliveConfirmed: (admission.on_alive_confirmed,),
    AdmissionEnded: (admission.on_admission_ended,),
    MergeDecided: (merging.on_merge_decided,),
    Departing: (merging.on_departing,),
    StateChangeEnded: (merging.on_state_change_ended,),
}
"""The chapters for each fact, in order."""


def settle(state: Membership, now: int) -> None:
    """Hand on all that was told, until nothing follows from it any more."""
    context = state.context
    waiting = context.facts
    while waiting:
        fact = waiting.popleft()
        context.facts = type(waiting)()
        for react in REACTIONS[type(fact)]:
            react(state, now, fact)
        waiting.extendleft(reversed(context.facts))
    context.facts = waiting

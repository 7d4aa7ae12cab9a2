"""Which chapter of membership answers which message and which timer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership import cluster_state, mastership_claim
from quarterdeck.backend.core.membership.failure_detection import (
    connection_loss,
    explicit_suspicion,
    heartbeat_ring,
    heartbeats,
    link_probes,
    master_confirmation,
)
from quarterdeck.backend.core.membership.partial_disconnection import disconnection_reports
from quarterdeck.backend.core.membership.split_brain import cluster_search, merging, runtime_join_list
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.views import admission, joining, list_updates, publishing, readmission
from quarterdeck.backend.core.messages import (
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

MEMBERSHIP_MESSAGE_HANDLERS: dict[type, Callable[[Membership, int, Address, Any], None]] = {
    WhoIsMaster: joining.on_who_is_master,
    MasterIs: joining.on_master_is,
    FormationBid: joining.on_formation_bid,
    FormationVote: joining.on_formation_vote,
    JoinRequest: admission.on_join_request,
    JoinRefused: joining.on_join_refused,
    FinalizeJoin: joining.on_finalize_join,
    MembersUpdate: list_updates.on_members_update,
    MembersUpdateAck: admission.on_acknowledgement,
    Heartbeat: heartbeats.on_heartbeat,
    HeartbeatComplaint: explicit_suspicion.on_complaint,
    ExplicitSuspicion: explicit_suspicion.on_explicit_suspicion,
    TriggerExplicitSuspicion: explicit_suspicion.on_trigger,
    MastershipClaim: mastership_claim.on_claim,
    ClaimAccepted: mastership_claim.on_claim_accepted,
    ClaimRefused: mastership_claim.on_claim_refused,
    JoinHeld: readmission.on_join_held,
    MasterConfirmation: master_confirmation.on_confirmation,
    FailureReport: heartbeat_ring.on_failure_report,
    LinkProbe: link_probes.on_probe,
    LinkProbeReply: link_probes.on_reply,
    SplitBrainProbe: cluster_search.on_probe,
    SplitBrainAnswer: cluster_search.on_answer,
    ProveLinks: link_probes.on_prove_links,
    LinksReport: merging.on_links_report,
    MergeOffer: merging.on_offer,
    MergeReply: merging.on_reply,
    MergeClusters: merging.on_merge_clusters,
    MergeClustersAck: merging.on_merge_clusters_ack,
    JoinListUpdate: runtime_join_list.on_update,
    JoinListUpdateAck: runtime_join_list.on_acknowledgement,
    StateRequest: cluster_state.on_request,
    StateRefusal: cluster_state.on_refusal,
    StateLock: cluster_state.on_lock,
    StateLockAnswer: cluster_state.on_lock_answer,
    StateDecision: cluster_state.on_decision,
    StateDecisionAck: cluster_state.on_decision_ack,
}
"""Which handler answers which message."""

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

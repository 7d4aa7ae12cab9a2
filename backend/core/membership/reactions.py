"""Which chapters react to which fact, in which order; and the loop that lets them.

Facts are handed on in the order in which they were told, each to all its chapters. What these tell follows at once, before what
was told earlier and waits. So a chapter never sees the state in the midst of another one's work, and no second list is installed
before every chapter has reacted to the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    heartbeat_ring,
    heartbeats,
    link_probes,
    master_confirmation,
    suspicion,
)
from quarterdeck.backend.core.membership.partial_disconnection import disconnection_reports
from quarterdeck.backend.core.membership.split_brain import cluster_search, merging, remembered_addresses
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.views import (
    admission,
    joining,
    list_updates,
    minimum_cluster_size,
    present_incarnation,
    publishing,
    readmission,
)

Reaction = Callable[[Membership, int, Any], None]

REACTIONS: dict[type, tuple[Reaction, ...]] = {
    Installed: (
        heartbeat_ring.on_installed,
        connection_loss.on_installed,
        cluster_search.on_installed,
        present_incarnation.on_installed,
        remembered_addresses.on_installed,
        minimum_cluster_size.on_installed,
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

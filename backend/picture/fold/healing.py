"""The part of the fold that is about healing: partial disconnections, merges, the join list, the state of the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.fold.belief import (
    MemberBelief,
    Obstacle,
    Resolved,
    SearchPlan,
    Unusable,
    VerdictOn,
    WaitsForLinks,
)
from quarterdeck.backend.picture.fold.partitions import settle_leading


def _on_disconnection_reported(belief: MemberBelief, event: events.DisconnectionReported, at: int) -> None:
    """Take a report of disconnections; an empty one withdraws the one before it."""
    if event.suspects:
        belief.reports[event.reporter] = event.suspects
    else:
        belief.reports.pop(event.reporter, None)


def _on_disconnection_resolved(belief: MemberBelief, event: events.DisconnectionResolved, at: int) -> None:
    """Those removed have to prove their links before they come back; to whom they are missing is known when they ask."""
    belief.resolution = Resolved(event.keep, event.remove, event.exact, event.why, at)
    belief.reports.clear()
    for address in event.remove:
        belief.held_back.setdefault(address, ())


def _on_member_held_back(belief: MemberBelief, event: events.MemberHeldBack, at: int) -> None:
    belief.held_back[event.address] = event.missing


def _on_join_delayed(belief: MemberBelief, event: events.JoinDelayed, at: int) -> None:
    belief.delay = WaitsForLinks(event.master, event.missing, at + event.wait)


def _on_merge_verdict(belief: MemberBelief, event: events.MergeVerdict, at: int) -> None:
    """Take a verdict. What was in the way is so no more, unless it is recorded again."""
    belief.verdicts[event.remote] = VerdictOn(event.remote, event.decision, event.rule, event.why, at)
    belief.obstacles.pop(event.remote, None)
    if event.decision != "local-merges":
        belief.obstacles[event.remote] = Obstacle(event.remote, event.why, "verdict")


def _on_not_merging(belief: MemberBelief, event: events.NotMerging, at: int) -> None:
    belief.obstacles.pop(event.remote, None)  # the latest stands last
    if event.reason:
        belief.obstacles[event.remote] = Obstacle(event.remote, event.reason, event.cause, event.silent)


def _on_merge_started(belief: MemberBelief, event: events.MergeStarted, at: int) -> None:
    belief.merging = event.target
    belief.obstacles.clear()


def _on_merge_abandoned(belief: MemberBelief, event: events.MergeAbandoned, at: int) -> None:
    """No reason of the core's own follows before the next search, so this is the reason until then."""
    belief.merging = None
    belief.obstacles[event.target] = Obstacle(event.target, event.reason, event.cause)


def _on_member_merging(belief: MemberBelief, event: events.MemberMerging, at: int) -> None:
    """End the incarnation, but not the process: it is on its way into the cluster of `target`."""
    belief.claiming = False
    belief.merging = event.target
    if belief.status == "member":
        belief.status = "joining"
    settle_leading(belief)


def _on_search_planned(belief: MemberBelief, event: events.SearchPlanned, at: int) -> None:
    belief.search = SearchPlan(at + event.wait, event.every)


def _on_addresses_remembered(belief: MemberBelief, event: events.AddressesRemembered, at: int) -> None:
    belief.remembered.update(dict.fromkeys(event.addresses, at))
    for address in event.forgotten:
        belief.remembered.pop(address, None)


def _on_join_list_changed(belief: MemberBelief, event: events.JoinListChanged, at: int) -> None:
    belief.join_list, belief.join_list_edition, belief.join_list_author = event.addresses, event.edition, event.author


def _on_cluster_state_changed(belief: MemberBelief, event: events.ClusterStateChanged, at: int) -> None:
    belief.cluster_state = event.state


def _on_protection_changed(belief: MemberBelief, event: events.ProtectionChanged, at: int) -> None:
    belief.operating, belief.needed = event.operating, event.needed


def _on_address_unusable(belief: MemberBelief, event: events.AddressUnusable, at: int) -> None:
    """Note what is wrong with an address, until a member there is on the list."""
    belief.unusable[event.address] = Unusable(event.cause, event.reason)


RECOVERY_FOLDS: dict[type, Callable[[MemberBelief, Any, int], object]] = {
    events.DisconnectionReported: _on_disconnection_reported,
    events.DisconnectionResolved: _on_disconnection_resolved,
    events.MemberHeldBack: _on_member_held_back,
    events.JoinDelayed: _on_join_delayed,
    events.MergeVerdict: _on_merge_verdict,
    events.NotMerging: _on_not_merging,
    events.MergeStarted: _on_merge_started,
    events.MergeAbandoned: _on_merge_abandoned,
    events.MemberMerging: _on_member_merging,
    events.SearchPlanned: _on_search_planned,
    events.AddressesRemembered: _on_addresses_remembered,
    events.AddressUnusable: _on_address_unusable,
    events.JoinListChanged: _on_join_list_changed,
    events.ClusterStateChanged: _on_cluster_state_changed,
    events.ProtectionChanged: _on_protection_changed,
}
"""What each kind of event does to the belief of the member that it happened to; called with belief, event and time."""


def settle_with_list(belief: MemberBelief) -> None:
    """After a new list: what it has made void. A list ends every wait to be let in, and only masters judge."""
    belief.delay = None
    if belief.unusable:
        belief.unusable = {who: why for who, why in belief.unusable.items() if who not in belief.listed}
    if belief.held_back:
        belief.held_back = {who: missing for who, missing in belief.held_back.items() if who not in belief.listed}
    if belief.reports:
        listed = belief.listed
        still = {
            who: tuple(suspect for suspect in them if suspect in listed)
            for who, them in belief.reports.items()
            if who in listed
        }
        belief.reports = {who: them for who, them in still.items() if them}
    if not belief.is_master:
        belief.held_back.clear()
        belief.reports.clear()
        belief.obstacles.clear()
        belief.merging = None
        belief.search = None
    elif belief.obstacles:  # those that have come in are no other cluster any more
        belief.obstacles = {who: why for who, why in belief.obstacles.items() if who not in belief.listed}


def inherit(belief: MemberBelief, before: MemberBelief) -> None:
    """Take over what outlives a merge: the edits of the join list, what is remembered, and the trouble of the journal."""
    belief.journal_failure = before.journal_failure
    belief.join_list_edition, belief.join_list_author = before.join_list_edition, before.join_list_author
    belief.remembered = dict(before.remembered)

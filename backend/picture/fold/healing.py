"""The part of the fold that is about healing: partial disconnections, merges, the join list, the state of the cluster."""

from __future__ import annotations

from quarterdeck.backend.core.events import Event
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

HEALING_EVENTS = (
    events.DisconnectionReported, events.DisconnectionResolved, events.MemberHeldBack, events.JoinDelayed,
    events.MergeVerdict, events.NotMerging, events.MergeStarted, events.MergeAbandoned, events.MemberMerging,
    events.SearchPlanned, events.AddressesRemembered, events.AddressUnusable, events.JoinListChanged,
    events.ClusterStateChanged, events.ProtectionChanged,
)  # fmt: skip


def fold_healing(belief: MemberBelief, event: Event, at: int) -> None:
    """Change a belief by one of `HEALING_EVENTS` that happened to its member."""
    match event:
        case events.NotMerging(remote, reason, cause):
            belief.obstacles.pop(remote, None)  # the latest stands last
            if reason:
                belief.obstacles[remote] = Obstacle(remote, reason, cause, event.silent)
        case events.MergeVerdict(remote, decision, rule, why):
            # What was in the way is so no more, unless it is recorded again.
            belief.verdicts[remote] = VerdictOn(remote, decision, rule, why, at)
            belief.obstacles.pop(remote, None)
            if decision != "local-merges":
                belief.obstacles[remote] = Obstacle(remote, why, "verdict")
        case events.DisconnectionReported(reporter, suspects):
            if suspects:
                belief.reports[reporter] = suspects
            else:  # it withdraws the report before
                belief.reports.pop(reporter, None)
        case events.DisconnectionResolved(keep, remove):
            belief.resolution = Resolved(keep, remove, event.exact, event.why, at)
            belief.reports.clear()
            for address in remove:  # they have to prove links before they come back; to whom is known when they ask
                belief.held_back.setdefault(address, ())
        case events.MemberHeldBack(address, missing):
            belief.held_back[address] = missing
        case events.JoinDelayed(master, missing):
            belief.delay = WaitsForLinks(master, missing, at + event.wait)
        case events.MergeStarted():
            belief.merging = event.target
            belief.obstacles.clear()
        case events.MergeAbandoned(target, reason):
            # No reason of the core's own follows before the next search, so this is the reason until then.
            belief.merging = None
            belief.obstacles[target] = Obstacle(target, reason, event.cause)
        case events.MemberMerging():  # the incarnation ends, and the process goes on
            belief.claiming, belief.merging = False, event.target
            if belief.status == "member":
                belief.status = "joining"
            settle_leading(belief)
        case events.SearchPlanned():
            belief.search = SearchPlan(at + event.wait, event.every)
        case events.AddressesRemembered(addresses):
            belief.remembered.update(dict.fromkeys(addresses, at))
            for address in event.forgotten:
                belief.remembered.pop(address, None)
        case events.AddressUnusable():  # until a member there is on the list
            belief.unusable[event.address] = Unusable(event.cause, event.reason)
        case events.JoinListChanged(addresses):
            belief.join_list, belief.join_list_edition = addresses, event.edition
            belief.join_list_author = event.author
        case events.ClusterStateChanged(state):
            belief.cluster_state = state
        case events.ProtectionChanged():
            belief.operating, belief.needed = event.operating, event.needed


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

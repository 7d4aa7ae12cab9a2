"""Partial disconnection resolution by the master.

See Partial Member Disconnection Resolution; Hazelcast: partial disconnections; Decisions: Equal cliques.

Slaves report with their heartbeats whom they suspect. When no new report has come for some heartbeats, their master keeps
the greatest set of members between whom nothing was reported, and removes the others in one go. A long search for that set is
made in slices, between which the master does all else. Another report or another list makes it void.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence
from quarterdeck.backend.core.membership.events import DisconnectionReported, DisconnectionResolved
from quarterdeck.backend.core.membership.facts import EvidenceFound, Removed
from quarterdeck.backend.core.membership.partial_disconnection.conflict_graph import (
    CliqueCandidate,
    ConflictResolution,
    ConflictSearch,
    visits_within,
)
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import DisconnectionSearch
from quarterdeck.backend.core.membership.views import publishing, readmission
from quarterdeck.backend.core.timers import NEVER

RESOLUTION = "disconnection"
"""Name of the timer of the next slice of a search."""


def on_report(state: Membership, now: int, reporter: Address, suspects: tuple[Address, ...], version: int) -> None:
    """Take a slave's complete suspicions at the list `version` that it has: an empty report withdraws the one before it.

    Every change starts the quiet period anew, the mirror image of a known suspicion too: others may follow. A report that a slave
    repeats at each heartbeat changes nothing. It is about the incarnations on its list, not about one that has joined since.
    """
    if not state.settings.disconnection_heartbeats or not state.is_master or state.address in suspects:
        return
    assert state.members is not None
    reports, find = state.disconnections.by_reporter, state.members.find
    suspects = tuple(
        address
        for address in suspects
        if (one := find(address)) and one.join_version <= version and address != reporter
    )
    if suspects == reports.get(reporter, ()):
        return
    if suspects:
        reports[reporter] = suspects
    else:
        del reports[reporter]
    state.disconnections.changed_us = now
    state.record(now, DisconnectionReported(reporter, suspects))
    state.disconnections.latest = state.context.cause
    _drop_search(state)


def resolve_when_quiet(state: Membership, now: int) -> None:
    """At each heartbeat of the master: decide when so many heartbeats have passed since the last report that was new.

    Who does not know yet that a member has joined is silent towards that member, and no link need be broken: the master waits
    until it knows, or is removed because it confirms no list (chapter `publishing`).
    """
    reports, settings = state.disconnections, state.settings
    if not reports.by_reporter:
        return
    quiet_us = settings.disconnection_heartbeats * settings.heartbeat_interval_us
    if not state.is_master or now - reports.changed_us < quiet_us:
        return
    assert state.members is not None
    if not all(_know_each_other(state, *conflict) for conflict in _conflicts(state)):
        return
    if reports.search is None:
        until_us = now + settings.disconnection_timeout_us if settings.disconnection_timeout_us else NEVER
        reports.search = DisconnectionSearch(state.members.version, until_us)
        _search_on(state, now)


def on_resolution_timer(state: Membership, now: int) -> None:
    """Go on with the search, if it is still about the present list."""
    search, members = state.disconnections.search, state.members
    if search is None:
        return
    if state.is_master and members is not None and members.version == search.version:
        _search_on(state, now)
    else:
        _drop_search(state)


def _search_on(state: Membership, now: int) -> None:
    reports = state.disconnections
    under_way, search = reports.search, _search_of(state)
    assert under_way is not None
    under_way.slices += 1
    resolution = search.search_on() if now < under_way.until_us else search.stop()
    if resolution is None:
        state.timers.set(RESOLUTION, now + 1)
        return
    reports.by_reporter.clear()
    _drop_search(state)
    _apply(state, now, resolution)


def _search_of(state: Membership) -> ConflictSearch:
    """Return the search under way. Equal input, equal search: a member that goes on from a snapshot repeats its slices."""
    assert state.members is not None
    search = state.context.conflict_search
    if search is None:
        reports = state.disconnections
        search = state.context.conflict_search = ConflictSearch(
            [CliqueCandidate(member.address, member.lite) for member in state.members.members],
            _conflicts(state),
            work_budget=visits_within(state.settings.disconnection_timeout_us),
        )
        for _ in range(reports.search.slices if reports.search is not None else 0):
            search.search_on()
    return search


def _drop_search(state: Membership) -> None:
    state.disconnections.search = state.context.conflict_search = None
    state.timers.clear(RESOLUTION)


def _apply(state: Membership, now: int, resolution: ConflictResolution) -> None:
    remove = tuple(map(Address, resolution.remove))
    resolved = DisconnectionResolved(tuple(map(Address, resolution.keep)), remove, resolution.exact, resolution.why)
    state.record(now, resolved, state.disconnections.latest)
    why = Evidence("disconnected", "it is disconnected from some of the members", because=state.context.cause)
    for address in remove:
        readmission.hold_back(state, now, address)
    state.report(EvidenceFound(dict.fromkeys(remove, why)))


def _conflicts(state: Membership) -> list[tuple[Address, Address]]:
    reports = state.disconnections.by_reporter
    return [(reporter, other) for reporter, suspects in reports.items() for other in suspects]


def on_removed(state: Membership, now: int, fact: Removed) -> None:
    """Drop the reports of members that left, and those about them."""
    _drop_search(state)
    reports = state.disconnections.by_reporter
    for reporter in list(reports):
        left = tuple(address for address in reports[reporter] if address not in fact.gone)
        if reporter in fact.gone or not left:
            del reports[reporter]
        else:
            reports[reporter] = left


def _know_each_other(state: Membership, one: Address, other: Address) -> bool:
    assert state.members is not None
    first, second = state.members.find(one), state.members.find(other)
    if first is None or second is None:
        return True
    return publishing.knows(state.peers[one], second) and publishing.knows(state.peers[other], first)

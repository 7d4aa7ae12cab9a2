"""Partial disconnection resolution by the master.

See Partial Member Disconnection Resolution; Hazelcast: partial disconnections; Decisions: Equal cliques.

Slaves report with their heartbeats whom they suspect. When no new report has come for some heartbeats, their master keeps
the greatest set of members between whom nothing was reported, and removes the others in one go.
"""

from __future__ import annotations

from collections.abc import Callable

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence
from quarterdeck.backend.core.membership.events import DisconnectionReported, DisconnectionResolved
from quarterdeck.backend.core.membership.facts import EvidenceFound, Removed
from quarterdeck.backend.core.membership.partial_disconnection.conflict_graph import (
    CliqueCandidate,
    resolve_conflicts,
    visits_within,
)
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.views import publishing, readmission


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
    conflicts = [(reporter, other) for reporter, suspects in reports.by_reporter.items() for other in suspects]
    if not all(_know_each_other(state, *conflict) for conflict in conflicts):
        return
    reports.by_reporter.clear()
    resolution = resolve_conflicts(
        [CliqueCandidate(member.address, member.lite) for member in state.members.members],
        conflicts,
        work_budget=visits_within(state.settings.disconnection_timeout_us),
        out_of_time=_outer_guard(state),
    )
    remove = tuple(map(Address, resolution.remove))
    resolved = DisconnectionResolved(tuple(map(Address, resolution.keep)), remove, resolution.exact, resolution.why)
    state.record(now, resolved, reports.latest)
    why = Evidence("disconnected", "it is disconnected from some of the members", because=state.context.cause)
    for address in remove:
        readmission.hold_back(state, now, address)
    state.report(EvidenceFound(dict.fromkeys(remove, why)))


def on_removed(state: Membership, now: int, fact: Removed) -> None:
    """Those who left neither report nor are reported."""
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


def _outer_guard(state: Membership) -> Callable[[], bool] | None:
    """Return what ends the search on machines that do less work in the time set; simulations go by the work alone."""
    stopwatch, limit_us = state.context.stopwatch, state.settings.disconnection_timeout_us
    if stopwatch is None or not limit_us:
        return None
    until = stopwatch() + limit_us
    return lambda: stopwatch() > until

"""Convergence: when nothing disturbs the members any more they become one cluster, and its data safe and even.

A simulated run proves it with an expectation while it goes on. Here it is judged of records that end, however they were made.
How long they may take follows from the settings, term by term, so that a run that misses the bound shows a fault of the core
and not a bound that is too short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import (
    ListInstalled,
    MemberMerging,
    MemberStarted,
    MemberStopped,
    SuspicionCleared,
    SuspicionRaised,
)
from quarterdeck.backend.core.membership.views.joining import REQUESTS_BEFORE_NEW_SEARCH, round_us
from quarterdeck.backend.core.partitions.migration.replanning import FAILURE_PAUSE_US, MOST_PAUSES
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US, Settings
from quarterdeck.backend.invariants.incarnations import IncarnationHistory
from quarterdeck.backend.invariants.invariant import Invariant, PendingObligation, Rule

FEW_SPARE_GROUPS = 3
"""The number of member groups beyond one row's groups, below which a step towards an even table may cost a copy for a while."""


@dataclass(eq=False)
class Convergence(Invariant):
    """Within a stated bound after the last fault heals, one cluster has one view and one table, balanced and safe."""

    name = "convergence"

    _bound_us: int | None = None
    """How long it may take; by default as long as the documented settings allow, which others hardly exceed."""
    _known: dict[str, Record] = field(default_factory=dict)
    """By incarnation, the latest record by which it is known."""
    _begins_us: int | None = None

    def rules(self) -> Mapping[type, Rule]:
        kinds = (ListInstalled, SuspicionRaised, SuspicionCleared, MemberStarted, MemberStopped, MemberMerging)
        return dict.fromkeys(kinds, self._know)

    def _know(self, record: Record, _: object) -> None:
        self._known[record.uuid] = record
        if self._begins_us is None:
            self._begins_us = record.at

    def pending_obligations(self) -> Iterator[PendingObligation]:
        alive = [one for uuid in self._known if not (one := self._tables.incarnations.by_uuid[uuid]).ended]
        if not alive or (why := self._why_not(alive)) == "":
            return
        latest = max(alive, key=_listed_at)
        shown = latest.view_record or max((self._known[incarnation.uuid] for incarnation in alive), key=_when)
        bound_us = self._bound_us if self._bound_us is not None else documented_bound_us(len(alive))
        # Before the first record nothing is known: that time does not count as undisturbed.
        yield PendingObligation(self.violated(why, shown), self._begins_us or 0, tuple(alive), bound_us)

    def _why_not(self, alive: Sequence[IncarnationHistory]) -> str:
        """Return the first thing that is not as it should be; empty when all is."""
        for incarnation in alive:
            if incarnation.view is None:
                return f"{incarnation.label} belongs to no cluster"
        views = [known.view for known in alive if known.view is not None]
        lists = {(view.lineage, view.version, view.master) for view in views}
        if len(lists) > 1:
            return f"{len(lists)} different lists among {len(alive)} members"
        latest = max(alive, key=_listed_at).label
        listed, running = {member.uuid for member in views[0].members}, {one.uuid for one in alive}
        if strangers := len(running - listed):
            return f"{strangers} members run that are not on the list of {latest}"
        if gone := len(listed - running):
            return f"{gone} members on the list of {latest} do not run"
        for incarnation in alive:
            if suspects := [self._tables.label(uuid) for uuid in incarnation.suspected if uuid in listed]:
                return f"{incarnation.label} suspects {', '.join(sorted(suspects))}"
        return self._why_no_even_table(alive)

    def _why_no_even_table(self, alive: Sequence[IncarnationHistory]) -> str:
        held = [self._tables.by_incarnation.get(incarnation.uuid) for incarnation in alive]
        tables = {(table.version, table.digest) if table is not None else None for table in held}
        if len(tables) > 1:
            return f"{len(tables)} different tables among {len(alive)} members"
        if unsafe := self._tables.why_not_safe():
            return f"the data is not safe: {unsafe}"
        uneven = self._tables.imbalance(within_groups=True)
        if uneven is None or not uneven.spare_groups:
            return ""
        allowed = 2 if uneven.spare_groups < FEW_SPARE_GROUPS else 1
        if uneven.difference <= allowed:
            return ""
        return f"the shares of members at replica index {uneven.replica_index} are not even"


@cache
def documented_bound_us(members: int) -> int:
    """Return how long this number of members may take with the documented settings."""
    settings = Settings.of()
    return convergence_bound_us(settings, members) + table_bound_us(settings)


def _listed_at(one: IncarnationHistory) -> int:
    return -1 if one.view_record is None else one.view_record.at


def _when(record: Record) -> int:
    return record.at


CLOCK_SLACK = 1.06
"""The factor by which the slowest clock of a swarm run is late."""

MARGIN = 1.5
"""Steps meet timers at their worst moment, and some have to be tried twice."""

PHI_TIMEOUTS = 5
"""How many timeouts the accrual detector may need when it has learnt that heartbeats of this member come unevenly."""


def convergence_bound_us(settings: Settings, members: int) -> int:
    """Return within which time after the last fault heals `members` members are one cluster, in whole milliseconds as µs."""
    terms = convergence_terms_us(settings, members)
    return int(MARGIN * CLOCK_SLACK * sum(terms.values())) // MILLISECOND_US * MILLISECOND_US


def convergence_terms_us(settings: Settings, members: int) -> dict[str, int]:
    """Return the parts of the bound by name: the longest duration of each step. The steps follow one another."""
    detection = settings.max_no_heartbeat_us + 2 * settings.heartbeat_interval_us
    if settings.failure_detector == "phi-accrual":
        detection *= PHI_TIMEOUTS
    joining = (
        2 * round_us(settings)  # a round of asking that began before the end of the faults, and one that reaches all
        + REQUESTS_BEFORE_NEW_SEARCH * SECOND_US  # requests to a master that is none any more
        + settings.stale_join_prevention_us
    )
    meeting = (
        settings.merge_next_run_delay_us
        + settings.max_join_merge_target_us
        + settings.probe_backoff_most_us  # links are proven before a merge, and by those held back before they join
        + joining
    )
    return {
        # Members that are gone, or that the others do not know any more, are noticed and suspected.
        "detection": detection,
        # A slave that its master does not know any more gives up following it; so does a master without confirmations.
        "confirmation": settings.max_no_master_confirmation_us + settings.master_confirmation_interval_us,
        # A claim that waits for a silent member, and the one after it that leaves the silent out.
        "claims": 2 * settings.mastership_claim_timeout_us,
        # The master collects reports of broken links before it decides who stays.
        "partial disconnection": detection + settings.disconnection_heartbeats * settings.heartbeat_interval_us,
        # Who belongs to no cluster finds one.
        "joining": joining,
        # A lock on the state of the cluster that is not lifted runs out, and then the operator's change passes.
        "state": 2 * settings.state_lease_us,
        # The last list is published again to the members that missed it.
        "publishing": settings.list_publish_interval_us,
        # Masters look for one another for the first time.
        "first search": settings.merge_first_run_delay_us,
        # At worst every member is a cluster of its own, and in each search one of two that meet merges into the other;
        # those that meet at the same time do so at once, so the number of clusters halves.
        "merges": (max(members - 1, 1).bit_length() + 1) * meeting,
    }


def table_bound_us(settings: Settings) -> int:
    """Return within which time one cluster has its data safe and evenly spread, in whole milliseconds as µs."""
    terms = {
        # A migration whose participant was gone is given up, and another begins after the longest pause.
        "migrations": 2 * settings.migration_timeout_us + MOST_PAUSES * FAILURE_PAUSE_US,
        # Each replica may have to move, and a pause follows each migration.
        "pauses": settings.partition_count * (1 + settings.backups) * settings.migration_interval_us,
        # A member that wants to leave is drained, or goes when it has waited long enough.
        "draining": settings.graceful_shutdown_us,
        # Tables are compared, and so are replicas; a member that lags gets the whole.
        "repairs": 2 * (settings.table_send_interval_us + settings.backup_sync_interval_us),
        # What was under way when the members changed ends.
        "calls": settings.call_timeout_us,
    }
    return int(MARGIN * CLOCK_SLACK * sum(terms.values())) // MILLISECOND_US * MILLISECOND_US

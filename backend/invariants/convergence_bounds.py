"""How long the members may take to become one cluster with safe data once nothing disturbs them.

The bound is made of the settings, term by term, so that a run that misses it
shows a fault of the core and not a bound that is too short.
"""

from __future__ import annotations

from quarterdeck.backend.core.membership.views.joining import REQUESTS_BEFORE_NEW_SEARCH, round_us
from quarterdeck.backend.core.partitions.migration.migration_queue import FAILURE_PAUSE_US, MOST_PAUSES
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US, Settings

CLOCK_SLACK = 1.06
"""The slowest clock of a swarm run shows a time so much later."""

MARGIN = 1.5
"""Steps meet timers at their worst moment, and some have to be tried twice."""

PHI_TIMEOUTS = 5
"""How many timeouts the accrual detector may need when it has learnt that heartbeats of this member come unevenly."""


def convergence_bound_us(settings: Settings, members: int) -> int:
    """Return within which time after the last fault heals `members` members are one cluster, in whole milliseconds as µs."""
    terms = convergence_terms_us(settings, members)
    return int(MARGIN * CLOCK_SLACK * sum(terms.values())) // MILLISECOND_US * MILLISECOND_US


def convergence_terms_us(settings: Settings, members: int) -> dict[str, int]:
    """Return the parts of the bound by name: what each step takes at worst, one after another."""
    detection = settings.max_no_heartbeat_us + 2 * settings.heartbeat_interval_us
    if settings.failure_detector == "phi-accrual":
        detection *= PHI_TIMEOUTS
    joining = (
        2
        * round_us(
            settings
        )  # a round of asking that began before the end of the faults, and one that reaches everybody
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
        # A claim that waits for somebody who is silent, and the one after it that leaves the silent out.
        "claims": 2 * settings.mastership_claim_timeout_us,
        # The master collects reports of broken links before it decides who stays.
        "partial disconnection": detection + settings.disconnection_heartbeats * settings.heartbeat_interval_us,
        # Who belongs to no cluster finds one.
        "joining": joining,
        # A lock on the state of the cluster that nobody lifts runs out, and then the operator's change passes.
        "state": 2 * settings.state_lease_us,
        # The last list is published again to whoever missed it.
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
        # A member that wants to leave is drained, or goes when it has waited long enough.
        "draining": settings.graceful_shutdown_us,
        # Tables are compared, and so are replicas; whoever lags gets the whole.
        "repairs": 2 * (settings.table_send_interval_us + settings.backup_sync_interval_us),
        # What was under way when the members changed ends.
        "calls": settings.call_timeout_us,
    }
    return int(MARGIN * CLOCK_SLACK * sum(terms.values())) // MILLISECOND_US * MILLISECOND_US

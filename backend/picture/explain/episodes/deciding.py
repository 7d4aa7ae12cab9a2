"""The event of an episode that decided what came of it: that of which somebody asks why."""

from __future__ import annotations

from quarterdeck.backend.core import events
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.picture.explain.episodes.decisions import is_decision
from quarterdeck.backend.picture.explain.episodes.episode import Episode

DECIDING: tuple[type[events.Event], ...] = (
    events.MergeAbandoned,
    events.MergeStarted,
    events.MemberMerging,
    events.NotMerging,
    events.MergeVerdict,
    events.DisconnectionResolved,
    events.ClaimFinished,
    events.ClaimAbandoned,
    events.MemberRemoved,
    events.ClaimStarted,
    events.SuspicionCleared,
    events.SuspicionRaised,
    events.MemberHeldBack,
    events.MemberAdmitted,
    events.ListInstalled,
    events.JoinFailed,
    partition_events.TableRecovered,
    partition_events.MigrationsCancelled,
    partition_events.MigrationsPlanned,
)
"""The most telling first."""

RANKS = {kind: rank for rank, kind in enumerate(DECIDING)}


def deciding_record(episode: Episode) -> Record:
    """Return the first of its most telling records; without any such its first decision, else what it began with."""
    telling = [record for record in episode.records if type(record.event) in RANKS]
    if telling:
        return min(telling, key=lambda record: RANKS[type(record.event)])
    return next((record for record in episode.records if is_decision(record)), episode.first)

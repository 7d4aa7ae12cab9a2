"""How grave each kind of event is: the tone of its line in the event tail."""

from __future__ import annotations

from quarterdeck.backend.core import events
from quarterdeck.backend.core.data.events import (
    BackupInStep,
    BackupOutOfStep,
    CallFinished,
    CallStarted,
    DataMeasured,
    EntriesMerged,
)
from quarterdeck.backend.core.partitions.events import (
    CompletedEvicted,
    DrainFinished,
    DrainStarted,
    MigrationAccepted,
    MigrationCommitting,
    MigrationCopied,
    MigrationDecided,
    MigrationFinished,
    MigrationRejected,
    MigrationsCancelled,
    MigrationsPlanned,
    PartitionLost,
    TableChanged,
    TableRecovered,
    TableRecoveryStarted,
)

ALARMING = (
    events.ProcessKilled,
    events.JoinFailed,
    events.MemberRemoved,
    events.ListRejected,
    events.DisconnectionResolved,
    events.MergeAbandoned,
    events.ClusterStateRefused,
    PartitionLost,
)
WORRYING = (
    events.AddressUnusable,
    events.JournalChanged,
    events.SuspicionRaised,
    events.ClaimStarted,
    events.ClaimAbandoned,
    events.LinkChanged,
    events.ProcessPaused,
    events.DisconnectionReported,
    events.MemberHeldBack,
    events.JoinDelayed,
    events.ClusterStateChanged,
    events.ProtectionChanged,
    BackupOutOfStep,
    MigrationRejected,
    MigrationsCancelled,
    TableRecoveryStarted,
)
TELLING = (
    events.MasterChanged,
    events.MemberStarted,
    events.MergeStarted,
    events.MemberMerging,
    events.MergeVerdict,
    events.JoinListChanged,
    MigrationsPlanned,
    DrainStarted,
    EntriesMerged,
)
REASSURING = (
    events.SuspicionCleared,
    events.MemberAdmitted,
    events.ProcessResumed,
    events.ClaimFinished,
    BackupInStep,
    TableRecovered,
    DrainFinished,
)
FREQUENT = (
    TableChanged,
    MigrationAccepted,
    MigrationCopied,
    MigrationCommitting,
    MigrationFinished,
    CompletedEvicted,
    CallStarted,
    DataMeasured,
)
"""Those that come many at a time: they are not to drown the others."""


def tone_of(event: events.Event) -> str:
    """How a line of the tail is painted."""
    if isinstance(event, events.HeartbeatLate):
        return "good" if event.over else "warning"
    if isinstance(event, ALARMING):
        return "bad"
    if isinstance(event, WORRYING):
        return "warning"
    if isinstance(event, REASSURING):
        return "good"
    if isinstance(event, FREQUENT):
        return "faint"
    if (isinstance(event, MigrationDecided) and not event.committed) or (
        isinstance(event, CallFinished) and event.problem
    ):
        return "warning"
    return "strong" if isinstance(event, TELLING) else "plain"

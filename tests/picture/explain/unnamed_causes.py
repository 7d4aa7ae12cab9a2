"""Which kinds of events may name no cause, and why."""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.data import events as data_events
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.picture.events.catalogue import ROWS

OPERATOR, SILENCE, CLOCK = "an operator asks for it", "nothing arrived", "the member looks for it now and then"
MAY_BE_WITHOUT: dict[type, str] = {
    events.MemberStarted: "the process was started",
    events.MemberStopped: OPERATOR,
    events.JoinListChanged: OPERATOR,
    events.ClusterStateChanged: OPERATOR,
    events.ListInstalled: "an operator asks for a promotion or demotion",
    events.HeartbeatLate: SILENCE,
    events.ObserverPaused: "the process stood still",
    events.SuspicionRaised: "a connection failed, or an operator says so",
    events.MemberRemoved: "a connection failed, nothing was confirmed, or an operator says so",
    events.DisconnectionReported: "a heartbeat that suspects no member any more names no record",
    events.MergeVerdict: CLOCK,
    events.NotMerging: CLOCK,
    events.AddressesRemembered: CLOCK,
    partition_events.CompletedEvicted: CLOCK,
    partition_events.MigrationsPlanned: "a demotion is forgotten when it is not asked for again",
    data_events.BackupOutOfStep: CLOCK,
}
"""Kinds that may have no cause that was recorded, besides those that always come from outside. In scenarios no one records what
operators ask for.
"""


def assert_causes_are_named(records: Iterable[Record]) -> None:
    """Every record names the one before it that brought it about, but for those that may have none."""
    seen: set[RecordId] = set()
    for record in records:
        kind = type(record.event)
        if record.because is None:
            assert ROWS[kind].external or kind in MAY_BE_WITHOUT, record
        else:
            assert record.because in seen, record
        seen.add(RecordId(record.uuid, record.seq))

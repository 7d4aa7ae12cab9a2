"""How long things take in a cluster, as far as its records show: by the settings of a member, or by what happened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import (
    DisconnectionReported,
    DisconnectionResolved,
    MemberRemoved,
    Record,
    SettingsChanged,
    SuspicionRaised,
)
from quarterdeck.backend.core.properties import DOCUMENTED, SECOND_US
from quarterdeck.backend.picture.fold.belief import Belief

TIMEOUT = "hazelcast.max.no.heartbeat.seconds"
INTERVAL = "hazelcast.heartbeat.interval.seconds"
QUIET_HEARTBEATS = "hazelcast.partial.member.disconnection.resolution.heartbeat.count"


@dataclass(frozen=True, slots=True)
class Timing:
    """Lengths of time in microseconds; None for what nobody has told or shown."""

    timeout_us: int | None = None
    """After how much silence a member is suspected, or removed by the master."""
    timeout_seen: bool = False
    """Whether that is only the shortest silence that was ever punished, and not what is set."""
    interval_us: int | None = None
    """Between two heartbeats."""
    quiet_heartbeats: int | None = None
    """For how many heartbeats reports have to stay the same before a master settles them; 0: it never does."""
    quiet_seen_us: int | None = None
    """How long they had stayed the same when one did, the last time."""
    settles: bool | None = None
    """Whether masters settle reports at all."""

    @property
    def quiet_us(self) -> int | None:
        """How long reports have to stay the same before the master decides."""
        if self.quiet_heartbeats and self.interval_us:
            quiet_us = self.quiet_heartbeats * self.interval_us
            return quiet_us if self.timeout_us is None or self.timeout_seen else min(quiet_us, self.timeout_us)
        return self.quiet_seen_us


def timing_of(records: Iterable[Record], belief: Belief | None = None) -> Timing:
    """What `records`, in order, tell of timing; the latest change counts. A member whose settings are known goes before."""
    told = _told_by(belief)
    shortest_us: int | None = None
    news: dict[str, ReportClock] = {}
    quiet_seen_us: int | None = None
    reported = False
    for record in records:
        match record.event:
            case SettingsChanged(properties):
                if belief is None or belief.settings is None:
                    told.update(properties)
            case SuspicionRaised() | MemberRemoved() as found:
                silence_us = found.silence
                if found.cause == "no-heartbeat" and silence_us is not None:
                    shortest_us = silence_us if shortest_us is None else min(shortest_us, silence_us)
            case DisconnectionReported():
                reported = True
                news.setdefault(record.uuid, ReportClock()).take(record)
            case DisconnectionResolved():
                reported = True
                clock = news.setdefault(record.uuid, ReportClock())
                if clock.changed_us is not None:
                    quiet_seen_us = record.at - clock.changed_us
                clock.take(record)
            case _:
                pass
    timeout_us, heartbeats = _seconds(told.get(TIMEOUT)), told.get(QUIET_HEARTBEATS)
    quiet_heartbeats = int(float(heartbeats)) if heartbeats is not None else None
    return Timing(
        timeout_us=shortest_us if timeout_us is None else timeout_us,
        timeout_seen=timeout_us is None and shortest_us is not None,
        interval_us=_seconds(told.get(INTERVAL)),
        quiet_heartbeats=quiet_heartbeats,
        quiet_seen_us=quiet_seen_us,
        settles=True
        if reported and quiet_heartbeats is None
        else None
        if quiet_heartbeats is None
        else quiet_heartbeats > 0,
    )


class ReportClock:
    """When the reports that one master has changed last, by the rule of the core: the mirror image of a report is no news."""

    def __init__(self) -> None:
        self.changed_us: int | None = None
        self._reports: dict[Address, tuple[Address, ...]] = {}

    def take(self, record: Record) -> None:
        """Take in one record of the master."""
        match record.event:
            case DisconnectionReported(reporter, suspects):
                known = self._reports.get(reporter, ())
                new = any(one not in known and reporter not in self._reports.get(one, ()) for one in suspects)
                withdrawn = any(one not in suspects for one in known)
                self._reports[reporter] = suspects
                if new or withdrawn or self.changed_us is None:
                    self.changed_us = record.at
            case DisconnectionResolved():
                self._reports.clear()
                self.changed_us = None
            case _:
                pass


def reports_changed_us(records: Iterable[Record], master_uuid: str) -> int | None:
    """When the reports of this incarnation of a master changed last; None when `records` do not tell."""
    clock = ReportClock()
    for record in records:
        if record.uuid == master_uuid and isinstance(record.event, DisconnectionReported | DisconnectionResolved):
            clock.take(record)
    return clock.changed_us


def _told_by(belief: Belief | None) -> dict[str, str]:
    """The settings of a member: what it told, and the documented defaults for the rest."""
    if belief is None or belief.settings is None:
        return {}
    return {name: belief.settings.get(name, str(DOCUMENTED[name])) for name in (TIMEOUT, INTERVAL, QUIET_HEARTBEATS)}


def _seconds(text: str | None) -> int | None:
    return None if text is None else round(float(text) * SECOND_US)

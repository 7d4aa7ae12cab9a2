"""How long things take in a cluster, as far as its records show: by the settings of a member, or by what happened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import DisconnectionReported, DisconnectionResolved, SettingsChanged
from quarterdeck.backend.core.properties import DOCUMENTED, SECOND_US
from quarterdeck.backend.picture.fold.belief import MemberBelief

INTERVAL = "hazelcast.heartbeat.interval.seconds"
QUIET_HEARTBEATS = "hazelcast.partial.member.disconnection.resolution.heartbeat.count"


@dataclass(frozen=True, slots=True)
class Timing:
    """Lengths of time in microseconds; None for what is not known."""

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
            return self.quiet_heartbeats * self.interval_us
        return self.quiet_seen_us


def timing_of(records: Iterable[Record], belief: MemberBelief | None = None) -> Timing:
    """Return what `records`, in order, show of timing; the latest change counts.

    A member whose settings are known goes before.
    """
    known = _properties_of(belief)
    changed_us: dict[str, int] = {}
    quiet_seen_us: int | None = None
    reported = False
    for record in records:
        match record.event:
            case SettingsChanged(properties):
                if belief is None or belief.settings is None:
                    known.update(properties)
            case DisconnectionReported():
                reported = True
                changed_us[record.uuid] = record.at
            case DisconnectionResolved():
                reported = True
                if record.uuid in changed_us:
                    quiet_seen_us = record.at - changed_us.pop(record.uuid)
    heartbeats = known.get(QUIET_HEARTBEATS)
    quiet_heartbeats = int(float(heartbeats)) if heartbeats is not None else None
    return Timing(
        interval_us=_seconds(known.get(INTERVAL)),
        quiet_heartbeats=quiet_heartbeats,
        quiet_seen_us=quiet_seen_us,
        settles=True
        if reported and quiet_heartbeats is None
        else None
        if quiet_heartbeats is None
        else quiet_heartbeats > 0,
    )


def reports_changed_us(records: Iterable[Record], master_uuid: str) -> int | None:
    """When the reports of this incarnation of a master changed last, which it records each time; None before any did.

    A decision uses them up.
    """
    changed_us: int | None = None
    for record in records:
        if record.uuid == master_uuid and isinstance(record.event, DisconnectionReported | DisconnectionResolved):
            changed_us = record.at if isinstance(record.event, DisconnectionReported) else None
    return changed_us


def _properties_of(belief: MemberBelief | None) -> dict[str, str]:
    """Return the settings of a member: what it reported, and the documented defaults for the rest."""
    if belief is None or belief.settings is None:
        return {}
    return {name: belief.settings.get(name, str(DOCUMENTED[name])) for name in (INTERVAL, QUIET_HEARTBEATS)}


def _seconds(text: str | None) -> int | None:
    return None if text is None else round(float(text) * SECOND_US)

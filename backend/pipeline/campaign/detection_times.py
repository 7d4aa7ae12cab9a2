"""How soon the members notice: measured from the records of a run while it goes on."""

from __future__ import annotations

from quarterdeck.backend.core.events import (
    LinkChanged,
    ListInstalled,
    MemberRemoved,
    MemberStarted,
    ProcessKilled,
    ProcessPaused,
    ProcessResumed,
    Record,
    SuspicionRaised,
)
from quarterdeck.backend.core.properties import SECOND_US


class DetectionTimes:
    """Takes records as a journal does. `seconds` holds, for each incarnation that was killed or paused, the time until somebody
    suspected or removed it; one that went on before is not counted."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._lives: dict[str, str] = {}
        self._since: dict[str, int] = {}
        self._disturbed_us: int | None = None
        self._listed_us = 0

    @property
    def settled_seconds(self) -> float | None:
        """From the last fault or repair until the last change of a member list; None when nothing was done to the cluster."""
        if self._disturbed_us is None:
            return None
        return max(0, self._listed_us - self._disturbed_us) / SECOND_US

    def append(self, record: Record) -> None:
        """Take the next record of the run."""
        match record.event:
            case ListInstalled():
                self._listed_us = record.at
            case SuspicionRaised(suspect_uuid=uuid) | MemberRemoved(removed_uuid=uuid):
                since_us = self._since.pop(uuid, None)
                if since_us is not None:
                    self.seconds.append((record.at - since_us) / SECOND_US)
            case MemberStarted():
                self._lives[record.member] = record.uuid
            case ProcessKilled(target) | ProcessPaused(target):
                self._disturbed_us = record.at
                if target in self._lives:
                    self._since.setdefault(self._lives[target], record.at)
            case ProcessResumed(target):
                self._disturbed_us = record.at
                self._since.pop(self._lives.get(target, ""), None)
            case LinkChanged():
                self._disturbed_us = record.at

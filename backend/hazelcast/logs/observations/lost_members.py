"""Members that were removed and never came back, although nobody had stopped them: killed, crashed, frozen or cut off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quarterdeck.backend.core.causes import SuspicionCause
from quarterdeck.backend.core.events import ListInstalled, MemberMerging, MemberRemoved, SuspicionRaised
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.observations.observation import (
    EvidenceLines,
    LogEnds,
    Observation,
    has_ended,
    lasted,
    records_of_kind,
)
from quarterdeck.backend.hazelcast.logs.parsed_messages import LoggedStart
from quarterdeck.backend.hazelcast.logs.told_messages import ToldMessage

SAME_MOMENT_US = 2 * SECOND_US
"""Who says nothing later than this after its removal has ended with it: logs tell time in seconds, and clocks differ."""

_IN_SHORT: dict[SuspicionCause, str] = {
    "disconnected": "partial disconnection",
    "no-heartbeat": "silence",
    "no-confirmation": "silence",
    "no-connection": "no connection",
}


@dataclass
class _Removal:
    """How an address got off the lists of others."""

    first: ToldMessage
    was_master: bool
    version: int
    next_master: str
    cause: SuspicionCause
    missing_on: set[str] = field(default_factory=set)
    """Members whose list had it and has it no more."""
    evidence: EvidenceLines = field(default_factory=EvidenceLines)


class LostMembers:
    """Follows who gets off whose list; back is who stands again on a list that had lost it."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._lists: dict[str, ListInstalled] = {}
        self._removals: dict[str, _Removal] = {}
        self._reasons: dict[str, tuple[SuspicionCause, ToldMessage]] = {}
        self._has_stopped: set[str] = set()

    def take(self, told: ToldMessage) -> None:
        """One more message."""
        member = told.place.member
        if isinstance(told.parsed, LoggedStart) or records_of_kind(told, MemberMerging):
            self._lists.pop(member, None)
        if isinstance(told.parsed, LoggedStart):
            self._has_stopped.discard(member)
        elif has_ended(told) and not records_of_kind(told, MemberMerging):
            self._has_stopped.add(member)
        for _, raised in records_of_kind(told, SuspicionRaised):
            self._reasons.setdefault(str(raised.suspect), (raised.cause, told))
        for _, removed in records_of_kind(told, MemberRemoved):
            self._reasons[str(removed.address)] = removed.cause, told
        for _, installed in records_of_kind(told, ListInstalled):
            self._compare(told, self._lists.get(member), installed)
            self._lists[member] = installed

    def _compare(self, told: ToldMessage, before: ListInstalled | None, new: ListInstalled) -> None:
        member = told.place.member
        now = {str(one.address) for one in new.members}
        for address in sorted(now):
            if address in self._removals and (before is None or member in self._removals[address].missing_on):
                del self._removals[address]
                self._reasons.pop(address, None)
        for address in sorted({str(one.address) for one in before.members} - now) if before is not None else ():
            removal = self._removals.get(address)
            if removal is None:
                assert before is not None
                cause, reason = self._reasons.get(address, ("unknown", told))
                was_master = str(before.master) == address
                removal = _Removal(told, was_master, new.version, str(new.master), cause)
                removal.evidence.add(reason)
                self._removals[address] = removal
            removal.missing_on.add(member)
            removal.evidence.add(told)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Those whom nobody who still speaks has on a list."""
        for address, removal in self._removals.items():
            silent_from = removal.first.at + SAME_MOMENT_US
            speaking = {member for member, last_us in ends.members.items() if last_us > silent_from}
            kept_by = (self._lists[one] for one in speaking - self._has_stopped if one in self._lists)
            is_gone = address in self._has_stopped or removal.cause == "goodbye"
            if is_gone or address in speaking or any(_has(one, address) for one in kept_by):
                continue
            yield self._observation(address, removal, ends)

    def _observation(self, address: str, removal: _Removal, ends: LogEnds) -> Observation:
        first = removal.first
        reason = _IN_SHORT.get(removal.cause, "")
        why = f" ({reason})" if reason else ""
        what = "the master " if removal.was_master else ""
        after = f"; {removal.next_master} led from then on" if removal.was_master else ""
        last_us = ends.members.get(address)
        before_us = 0 if last_us is None else max(0, first.at - last_us)
        when = f"{lasted(before_us)} before" if before_us else "at that moment"
        own = "Its own log is not among these."
        if last_us is not None:
            own = f"Its own log ends {when}, without a word of stopping."
        return Observation(
            kind="member-lost",
            run=self._run,
            start_us=first.at - before_us,
            end_us=first.at,
            is_open=True,
            members=(address,),
            headline=f"{what}{address} was removed{why} and did not come back{after}",
            detail=f"The list of version {removal.version} is the first one without it. {own}",
            cause="Its process was killed (often by the kernel for want of memory) or crashed, its machine stopped, or it has "
            "been frozen or cut off since.",
            remedy="Look for its process: at its exit code, for hs_err files, at the kernel's log for its out-of-memory killer. "
            "Start it again when the cluster is safe; with one backup, a second loss before that loses data.",
            evidence=removal.evidence.kept,
            evidence_lines=removal.evidence.count,
            start_utc=first.place.utc - before_us,
            end_utc=first.place.utc,
        )


def _has(installed: ListInstalled, address: str) -> bool:
    return any(str(one.address) == address for one in installed.members)

"""Members that were removed and never came back, although they were not stopped: killed, crashed, frozen or cut off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quarterdeck.backend.core.causes import SuspicionCause
from quarterdeck.backend.core.events import ListInstalled, MemberMerging, MemberRemoved, SuspicionRaised
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.hazelcast.logs.observations.observation import (
    LogEnds,
    Observation,
    ObservationEvidence,
    lasted,
    observation,
)
from quarterdeck.backend.hazelcast.logs.observations.readmission import REMOVAL_REASONS
from quarterdeck.backend.hazelcast.logs.parsed_messages import LoggedStart

SAME_MOMENT_US = 2 * SECOND_US
"""A member that logs nothing later than this after its removal ended with it: log times have seconds, and clocks differ."""


@dataclass
class _Loss:
    """How an address got off the lists of others."""

    first: InterpretedMessage
    was_master: bool
    version: int
    next_master: str
    cause: SuspicionCause
    missing_on: set[str] = field(default_factory=set)
    """Members whose list had it and has it no more."""
    evidence: ObservationEvidence = field(default_factory=ObservationEvidence)


class LostMembers:
    """Follows which members leave whose list; one is back when it is again on a list that had lost it."""

    def __init__(self) -> None:
        self._lists: dict[str, ListInstalled] = {}
        self._losses: dict[str, _Loss] = {}
        self._reasons: dict[str, tuple[SuspicionCause, InterpretedMessage]] = {}
        self._has_stopped: set[str] = set()

    def add(self, message: InterpretedMessage) -> None:
        member = message.member
        is_start, is_merging = isinstance(message.parsed, LoggedStart), bool(message.events(MemberMerging))
        if is_start or is_merging:
            self._lists.pop(member, None)
        if is_start:
            self._has_stopped.discard(member)
        elif message.ends_incarnation and not is_merging:
            self._has_stopped.add(member)
        for raised in message.events(SuspicionRaised):
            self._reasons.setdefault(str(raised.suspect), (raised.cause, message))
        for removed in message.events(MemberRemoved):
            self._reasons[str(removed.address)] = removed.cause, message
        for installed in message.events(ListInstalled):
            self._compare(message, self._lists.get(member), installed)
            self._lists[member] = installed

    def _compare(self, message: InterpretedMessage, before: ListInstalled | None, new: ListInstalled) -> None:
        member = message.member
        now = {str(listed.address) for listed in new.members}
        for address in sorted(now):
            if address in self._losses and (before is None or member in self._losses[address].missing_on):
                del self._losses[address]
                self._reasons.pop(address, None)
        if before is None:
            return
        for address in sorted({str(listed.address) for listed in before.members} - now):
            loss = self._losses.get(address)
            if loss is None:
                cause, reason = self._reasons.get(address, ("unknown", message))
                loss = _Loss(message, str(before.master) == address, new.version, str(new.master), cause)
                loss.evidence.add(reason)
                self._losses[address] = loss
            loss.missing_on.add(member)
            loss.evidence.add(message)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return the members that no member that still logs has on its list."""
        for address, loss in self._losses.items():
            silent_from = loss.first.at + SAME_MOMENT_US
            logging = {member for member, last_us in ends.members.items() if last_us > silent_from}
            lists = (self._lists[member] for member in logging - self._has_stopped if member in self._lists)
            is_kept = any(str(listed.address) == address for installed in lists for listed in installed.members)
            has_left = address in self._has_stopped or loss.cause == "goodbye"
            if not (has_left or address in logging or is_kept):
                yield self._lost(address, loss, ends)

    def _lost(self, address: str, loss: _Loss, ends: LogEnds) -> Observation:
        first = loss.first
        why = f" ({REMOVAL_REASONS[loss.cause].words})" if loss.cause in REMOVAL_REASONS else ""
        what = "the master " if loss.was_master else ""
        after = f"; {loss.next_master} led from then on" if loss.was_master else ""
        before_us, own = 0, "Its own log is not among these."
        if (last_us := ends.members.get(address)) is not None:
            before_us = max(0, first.at - last_us)
            when = f"{lasted(before_us)} before" if before_us else "at that moment"
            own = f"Its own log ends {when}, without a word of stopping."
        return observation(
            "member-lost",
            (address,),
            f"{what}{address} was removed{why} and did not come back{after}",
            detail=f"The list of version {loss.version} is the first one without it. {own}",
            cause="Its process was killed (often by the kernel for want of memory) or crashed, its machine stopped, or it has "
            "been frozen or cut off since.",
            remedy="Look for its process: at its exit code, for hs_err files, at the kernel's log for its out-of-memory killer. "
            "Start it again when the cluster is safe; with one backup, a second loss before that loses data.",
            evidence=loss.evidence,
            first=first,
            last=first,
            start_us=first.at - before_us,
            is_open=True,
        )

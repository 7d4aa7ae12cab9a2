"""Members that were removed and not seen again: those whose process has ended, and those of which nothing is known since.

At the end, clusters of which all members have ended, so that nothing is left of what they held in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from quarterdeck.backend.core.causes import SuspicionCause
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, MemberWitnessed
from quarterdeck.backend.hazelcast.last_words import NOTICED_US, LastStanding, LastWords
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.judgement.observations.observation import (
    LogEnds,
    LogEvidence,
    Observation,
    consecutive_groups,
    observation,
)
from quarterdeck.backend.judgement.observations.readmission import REMOVAL_REASONS
from quarterdeck.backend.judgement.observations.wording import lasted, listed

_HEARD: tuple[SuspicionCause, ...] = ("goodbye", "disconnected", "asked")
"""Causes of removals of members that were heard at that very moment."""
_ENDED = (
    "No process listens at its address: it has ended, or is about to. It was stopped, was killed (often by the kernel for want "
    "of memory) or crashed: what was read does not show which, for even one that is asked to end by a signal may log nothing.",
    "If it was not stopped on purpose: look at its exit code, for hs_err files, at the kernel's log for its out-of-memory "
    "killer. Start it again when the cluster is safe; with one backup, a second loss before that loses data.",
)
_UNKNOWN = (
    "It is frozen or cut off, or its process has ended: what was read does not show which.",
    "Look whether its process runs, and what its own log and console say: one that runs has a list of its own. Restart it only "
    "if it has ended or stands still; with one backup, a second loss before it is back loses data.",
)


@dataclass
class _Loss:
    """How an address got off the lists of others."""

    address: str
    uuid: str
    first: InterpretedMessage
    was_master: bool
    installed: ListInstalled
    """The first list without it."""
    cause: SuspicionCause
    missing_on: set[str] = field(default_factory=set)
    """Members whose list had it and has it no more."""
    evidence: LogEvidence = field(default_factory=LogEvidence)


class LostMembers:
    """Follows which members leave whose list; one is back when it is again on a list that had lost it."""

    def __init__(self, words: LastWords) -> None:
        """Begin. All records are added to `words`."""
        self._last_words = words
        self._losses: dict[str, _Loss] = {}
        self._reasons: dict[str, tuple[SuspicionCause, InterpretedMessage]] = {}

    def add(self, message: InterpretedMessage) -> None:
        for raised in message.events(events.SuspicionRaised):
            self._reasons.setdefault(str(raised.suspect), (raised.cause, message))
        for removed in message.events(events.MemberRemoved):
            self._reasons[str(removed.address)] = removed.cause, message
        for record in message.records:
            before = self._last_words.list_of(record.member)
            self._last_words.add(record)
            if isinstance(record.event, ListInstalled):
                self._compare(message, before, record.event)

    def _compare(self, message: InterpretedMessage, before: ListInstalled | None, new: ListInstalled) -> None:
        member = message.member
        now = {str(listed.address) for listed in new.members}
        for address in now & self._losses.keys():
            if before is None or member in self._losses[address].missing_on:
                del self._losses[address]
                self._reasons.pop(address, None)
        if before is None:
            return
        for gone in before.members:
            address = str(gone.address)
            if address in now:
                continue
            if (loss := self._losses.get(address)) is None:
                cause, reason = self._reasons.get(address, ("unknown", message))
                loss = _Loss(address, gone.uuid, message, str(before.master) == address, new, cause)
                loss.evidence.add(reason)
                self._losses[address] = loss
            loss.missing_on.add(member)
            loss.evidence.add(message)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return those that have ended, each by itself, and those of which nothing is known, as they were removed together."""
        unknown: list[tuple[_Loss, LastStanding]] = []
        for loss in self._losses.values():
            standing = self._last_words.standing(loss.address, loss.uuid, ends.members)
            if standing.fate == "ended" and standing.by:
                yield _lost([loss], _ENDED, ends)
            elif standing.fate == "unknown" and loss.cause not in _HEARD:
                unknown.append((loss, standing))
        for group in consecutive_groups(unknown, _are_together):
            losses, by = [loss for loss, _ in group], group[0][1].by
            left = len(losses[-1].installed.members)
            if len(group) > 1 and len(group) >= left:
                yield _majority(losses, by, left, ends)
            else:
                yield _lost(losses, _UNKNOWN, ends)


def _are_together(group: list[tuple[_Loss, LastStanding]], found: tuple[_Loss, LastStanding]) -> bool:
    (latest, before), (loss, standing) = group[-1], found
    return before.by == standing.by and loss.first.at - latest.first.at <= NOTICED_US


def _lost(losses: Sequence[_Loss], explanation: tuple[str, str], ends: LogEnds) -> Observation:
    first = losses[0]
    whom = ("the master " if first.was_master else "") + listed([loss.address for loss in losses])
    verb = "was" if len(losses) == 1 else "were"
    after = f"; {first.installed.master} led from then on" if first.was_master else ""
    headline = f"{whom} {verb} removed{_why(losses)} and did not come back{after}"
    return _observed(losses, headline, explanation, ends)


def _majority(losses: Sequence[_Loss], by: str, left: int, ends: LogEnds) -> Observation:
    """Observe that a member removed as many as are left, or more: it may itself be the one that was cut off."""
    cause = f"{by} was cut off from them, or stood still; or all of them were. What was read does not show which."
    remedy = (
        f"Look at the logs and lists of the others: if they go on with a master of their own, {by} is the one to mend, and it "
        "merges with them when the network is whole."
    )
    headline = f"{by} removed {len(losses)} of {len(losses) + left} members{_why(losses)}, and they were not seen again"
    return _observed(losses, headline, (cause, remedy), ends)


def _why(losses: Sequence[_Loss]) -> str:
    cause = losses[0].cause
    return f" ({REMOVAL_REASONS[cause].words})" if cause in REMOVAL_REASONS else ""


def _observed(losses: Sequence[_Loss], headline: str, explanation: tuple[str, str], ends: LogEnds) -> Observation:
    first = losses[0].first
    own = " ".join(_own_words(loss, ends, named=len(losses) > 1) for loss in losses[:6])
    if len(losses) == 1:
        own = f"The list of version {losses[0].installed.version} is the first one without it. {own}"
    cause, remedy = explanation
    return observation(
        "member-lost",
        [loss.address for loss in losses],
        headline,
        detail=own,
        cause=cause,
        remedy=remedy,
        evidence=LogEvidence.joined([loss.evidence for loss in losses]),
        first=first,
        is_open=True,
    )


def _own_words(loss: _Loss, ends: LogEnds, *, named: bool) -> str:
    last_us = ends.members.get(loss.address)
    if ends.is_witnessed:
        who = loss.address if named else "It"
        return f"{who} was heard last {lasted(max(0, loss.first.at - (last_us or 0)))} before."
    whose = f"The log of {loss.address}" if named else "Its own log"
    if last_us is None:
        return f"{whose} is not among these."
    before_us = max(0, loss.first.at - last_us)
    when = f"{lasted(before_us)} before" if before_us else "at that moment"
    return f"{whose} ends {when}, without a word of stopping."


TOGETHER_US = 300 * SECOND_US
"""Members that stop in one go stop within such a time of each other: each may give its data away first."""


@dataclass
class _EndingIncarnation:
    """One incarnation, as far as its log shows."""

    member: str
    uuid: str
    first_us: int
    last_us: int
    """When it ended; of one that ended without a word, when it was found to be started again."""
    last: InterpretedMessage
    """The message that shows that."""
    silent_us: int = 0
    """Of one that ended without a word, when it logged last."""
    is_logged: bool = False
    """Whether it would be known if it had said that it stops."""
    end: str = ""
    """``said``, ``silent``, ``gone`` (a witness found no process there) or ``merged``; empty while it goes on."""

    @property
    def has_ended(self) -> bool:
        """Whether its process has ended. One that merged goes on as another incarnation."""
        return self.end in ("said", "silent", "gone")


class FullStops:
    """Follows which incarnations end, and looks for lineages of which none is left."""

    def __init__(self, words: LastWords) -> None:
        """Begin. Another observer adds all records to `words`."""
        self._last_words = words
        self._incarnations: dict[str, _EndingIncarnation] = {}
        self._latest: dict[str, str] = {}
        """By member, its latest incarnation."""
        self._views: dict[str, ListInstalled] = {}
        """By lineage, its newest list."""
        self._listed: dict[str, set[str]] = {}
        """By lineage, all incarnations that were ever on its lists."""

    def add(self, message: InterpretedMessage) -> None:
        for record in message.records:
            uuid, event = record.uuid, record.event
            if uuid not in self._incarnations:
                self._incarnations[uuid] = _EndingIncarnation(record.member, uuid, record.at, record.at, message)
            incarnation = self._incarnations[uuid]
            before = self._incarnations.get(self._latest.get(record.member, uuid), incarnation)
            if before is not incarnation and not before.end:
                before.end, before.silent_us = "silent", before.last_us
                before.last_us, before.last = record.at, message
            self._latest[record.member] = uuid
            if not incarnation.end:
                incarnation.last_us, incarnation.last = record.at, message
            match event:
                case MemberWitnessed(sources=sources):
                    incarnation.is_logged = "logs" in sources
                case events.MemberStopped():
                    incarnation.end = "said"
                case ConnectionChanged(state="gone"):
                    incarnation.end = "gone"
                case ConnectionChanged(state="connected") if incarnation.end == "gone":
                    incarnation.end = ""
                case events.MemberMerging():
                    incarnation.end = "merged"
                case ListInstalled():
                    self._listed.setdefault(event.lineage, set()).update(member.uuid for member in event.members)
                    newest = self._views.get(event.lineage)
                    if newest is None or newest.version <= event.version:
                        self._views[event.lineage] = event

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return each time that all members of a cluster ended while no other one went on."""
        groups = [group for lineage, view in self._views.items() if (group := self._ended_of(lineage, view, ends))]
        for group in groups:
            uuids = {ending.uuid for ending in group}
            if any(uuids < {ending.uuid for ending in other} for other in groups):
                continue  # the last master's lineage: it led those that were left
            later = (ending.first_us for ending in self._incarnations.values() if ending.first_us >= group[0].last_us)
            yield _full_stop(group, min(later, default=None))

    def _ended_of(self, lineage: str, view: ListInstalled, ends: LogEnds) -> list[_EndingIncarnation]:
        """Return the members of a lineage that ended together, if all of its newest list have and no other one went on."""
        known = {uuid: self._incarnations.get(uuid) for uuid in self._listed[lineage]}
        ended = [ending for ending in known.values() if ending is not None and ending.has_ended]
        if not {member.uuid for member in view.members} <= {ending.uuid for ending in ended}:
            return []
        ended.sort(key=lambda ending: (ending.last_us, ending.member))
        *_, group = consecutive_groups(ended, lambda group, ending: ending.last_us - group[-1].last_us <= TOGETHER_US)
        first_us, end_us = group[0].last_us, group[-1].last_us
        uuids = {ending.uuid for ending in group}
        others = (
            ending for ending in self._incarnations.values() if ending.first_us < first_us and ending.uuid not in uuids
        )
        return [] if len(group) == 1 or any(self._goes_on(ending, end_us, ends) for ending in others) else group

    def _goes_on(self, incarnation: _EndingIncarnation, end_us: int, ends: LogEnds) -> bool:
        if incarnation.end:
            return incarnation.last_us > end_us
        return self._last_words.standing(incarnation.member, incarnation.uuid, ends.members).fate == "there"


def _full_stop(group: Sequence[_EndingIncarnation], start_us: int | None) -> Observation:
    said = [ending for ending in group if ending.end != "silent"]
    silent = [ending for ending in group if ending.end == "silent"]
    if said:
        verb = "stopped" if any(ending.end == "said" for ending in said) else "ended"
        within = f" within {lasted(said[-1].last_us - said[0].last_us)}" if len(said) > 1 else ""
        what = verb + within + (f" ({len(silent)} without a goodbye)" if silent else "")
    else:
        what = "ended without a goodbye" if any(ending.is_logged for ending in group) else "ended"
    again = ""
    if start_us is not None:
        later = f" {lasted(start_us - said[-1].last_us)} later" if said and start_us > said[-1].last_us else ""
        again = f", and were started again{later} as a new cluster"
    each = (
        f"{ending.member} {'said that it stops' if ending.end == 'said' else 'said nothing'}" for ending in group[:10]
    )
    return observation(
        "full-stop",
        [ending.member for ending in group],
        f"all {len(group)} members {what}{again}",
        detail=f"In this order: {'; '.join(each)}. No other member was there.",
        cause="A planned stop, something that stops or restarts all members at once (an orchestrator, a deployment), or what "
        "all of them share: the host, its memory, its power.",
        remedy="What was only in memory is gone: load it again from its source. Stop members one after the other, each once the "
        "cluster is safe; with persistence configured, a cluster that is stopped as a whole keeps its data.",
        evidence=[ending.last for ending in group],
        start_us=group[0].last_us if said else max(ending.silent_us for ending in silent),
        end_us=max(group[-1].last_us, start_us or 0),
        is_open=start_us is None,
    )

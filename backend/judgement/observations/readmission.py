"""Members that are removed and come back, again and again: one of them (flapping), or several (oscillation)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import structs

from quarterdeck.backend.core.causes import SuspicionCause
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.hazelcast.logs.parsed_messages import LoggedStart
from quarterdeck.backend.judgement.observations.observation import (
    MAX_EVIDENCE,
    LogEnds,
    LogEvidence,
    Observation,
    consecutive_groups,
    observation,
)
from quarterdeck.backend.judgement.observations.wording import lasted, listed, times

RETURNS_OF_FLAPPING = 2
"""A member that came back so often after removals flaps; once is a recovery."""
QUIET_US = 600 * SECOND_US
"""Removals that lie further apart have nothing to do with each other."""
RESTARTED_US = 60 * SECOND_US
"""A process may be started again so long before its old incarnation is removed."""


class LoggedRemovalReason(NamedTuple):
    """Why a member was removed, in short, with what usually causes and mends it."""

    words: str
    cause: str
    remedy: str


_SILENCE = LoggedRemovalReason(
    "silence",
    "Its heartbeats do not arrive for a while: pauses of garbage collection, an overloaded machine, or a network that "
    "loses packets.",
    "Look at its pauses and load at these times, and at the network; a longer hazelcast.max.no.heartbeat.seconds hides "
    "short pauses.",
)
REMOVAL_REASONS: dict[SuspicionCause, LoggedRemovalReason] = {
    "disconnected": LoggedRemovalReason(
        "partial disconnection",
        "The member reaches the master but not some other members, so it is removed and joins again at once.",
        "Mend the link between the members that suspect each other (the evidence names them), or stop one of the two "
        "until it is mended. The product does not keep out whom it has removed.",
    ),
    "no-heartbeat": _SILENCE,
    "no-confirmation": _SILENCE,
    "no-connection": LoggedRemovalReason(
        "lost connection",
        "Its connections break and are made again: an unstable network, a firewall that drops idle connections, or a "
        "process that is restarted.",
        "Look at the network between it and the master, and whether something restarts the process.",
    ),
    "refused": LoggedRemovalReason(
        "connection refused",
        "No process listened at its address: it ended, and was started again.",
        "Look what ends the process: its exit code, hs_err files, the kernel's log for its out-of-memory killer.",
    ),
}
_NO_REASON = LoggedRemovalReason(
    "", "The logs do not say why it was removed.", "Read the master's log around the lines of evidence."
)


@dataclass
class _Readmission:
    """The removals of one address that belong together."""

    address: str
    first: InterpretedMessage
    last: InterpretedMessage
    first_version: int
    last_version: int
    removals: int = 0
    returns: int = 0
    is_out: bool = False
    restarts: int = 0
    returned_uuid: str = ""
    """The incarnation that came back last; empty once its start is known."""
    reasons: Counter[LoggedRemovalReason] = field(default_factory=Counter)
    evidence: LogEvidence = field(default_factory=LogEvidence)

    @property
    def is_flapping(self) -> bool:
        """Whether it came back too often, and not because it was started again each time."""
        return self.returns - self.restarts >= RETURNS_OF_FLAPPING

    def add(self, message: InterpretedMessage, version: int) -> None:
        self.last, self.last_version = message, version
        self.evidence.add(message)

    def overlaps(self, other: _Readmission) -> bool:
        return self.first.at <= other.last.at and other.first.at <= self.last.at


class Readmissions:
    """Follows the lists of all members; each version of a lineage counts once, whichever member installs it first."""

    def __init__(self) -> None:
        self._lists: dict[str, events.ListInstalled] = {}
        self._seen: set[tuple[str, int]] = set()
        self._open: dict[str, _Readmission] = {}
        self._done: list[_Readmission] = []
        self._reasons: dict[str, tuple[int, SuspicionCause]] = {}
        self._started_us: dict[str, int] = {}

    def add(self, message: InterpretedMessage) -> None:
        if isinstance(message.parsed, LoggedStart):
            self._lists.pop(message.member, None)
            self._note_start(message)
        if isinstance(report := message.parsed, events.DisconnectionReported):
            for address in (report.reporter, *report.suspects):
                if address in self._open:
                    self._open[address].evidence.add(message)
        for raised in message.events(events.SuspicionRaised):
            self._reasons.setdefault(raised.suspect, (message.at, raised.cause))
        for removal in message.events(events.MemberRemoved):
            self._reasons[removal.address] = (message.at, removal.cause)
        for installed in message.events(events.ListInstalled):
            self._compare(message, installed)

    def _note_start(self, message: InterpretedMessage) -> None:
        """Count a start of the incarnation that came back last. A witness reaches it after others have listed it."""
        episode = self._open.get(message.member)
        if episode is not None and episode.returned_uuid in {record.uuid for record in message.records}:
            episode.restarts, episode.returned_uuid = episode.restarts + 1, ""
        else:
            self._started_us[message.member] = message.at

    def _compare(self, message: InterpretedMessage, new: events.ListInstalled) -> None:
        before = self._lists.get(message.member)
        self._lists[message.member] = new
        key = (new.lineage, new.version)
        if before is None or before.lineage != new.lineage or key in self._seen:
            return  # a list of another master is no removal: halves of a split, or a merge
        self._seen.add(key)
        old, now = ({member.address: member.uuid for member in view.members} for view in (before, new))
        for address in old:
            if old[address] != now.get(address):
                self._removed(message, str(address), new.version)
        for address in now:
            if old.get(address) != now[address]:
                self._returned(message, str(address), now[address], new.version)

    def _removed(self, message: InterpretedMessage, address: str, version: int) -> None:
        episode = self._open.get(address)
        if episode is not None and message.at - episode.last.at > QUIET_US:
            self._done.append(self._open.pop(address))
            episode = None
        if episode is None:
            episode = self._open[address] = _Readmission(address, message, message, version, version)
        episode.removals += 1
        episode.is_out = True
        at, cause = self._reasons.pop(address, (message.at, "unknown"))
        if message.at - at < QUIET_US and cause in REMOVAL_REASONS:
            episode.reasons[REMOVAL_REASONS[cause]] += 1
        episode.add(message, version)

    def _returned(self, message: InterpretedMessage, address: str, uuid: str, version: int) -> None:
        episode = self._open.get(address)
        if episode is None or not episode.is_out:
            return
        episode.is_out = False
        episode.returns += 1
        episode.returned_uuid = uuid
        started_us = self._started_us.pop(address, None)
        if started_us is not None and started_us >= episode.last.at - RESTARTED_US:
            episode.restarts, episode.returned_uuid = episode.restarts + 1, ""
        episode.add(message, version)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return the members that flap: each by itself, or together where several do so at one time."""
        flapping = [episode for episode in (*self._done, *self._open.values()) if episode.is_flapping]
        flapping.sort(key=lambda episode: (episode.first.at, episode.address))
        alike: dict[tuple[str, ...], list[Observation]] = {}
        for group in consecutive_groups(flapping, lambda group, episode: any(map(episode.overlaps, group))):
            found = _observed(group)
            alike.setdefault(tuple(sorted(set(found.members))), []).append(found)
        yield from (_together(spells) for spells in alike.values())


def _observed(group: list[_Readmission]) -> Observation:
    first = min((episode.first for episode in group), key=lambda message: message.at)
    last = max(group, key=lambda episode: episode.last.at)
    names = [episode.address for episode in group]
    reasons = Counter(reason for episode in group for reason in episode.reasons.elements())
    why = max(reasons, key=lambda reason: (reasons[reason], reason)) if reasons else _NO_REASON
    removals, returns = sum(episode.removals for episode in group), sum(episode.returns for episode in group)
    evidence = LogEvidence.joined([episode.evidence for episode in group])
    evidence.lines.sort(key=lambda line: line.utc)
    took = lasted(last.last.at - first.at)
    happened = f"removed {times(removals)} and readmitted {times(returns)} in {took}"
    if removals == returns:
        happened = f"removed and readmitted {times(returns)} in {took}"
    each = (f"{episode.address}: {episode.removals} removals, {episode.returns} returns" for episode in group)
    return observation(
        "flapping" if len(group) == 1 else "oscillation",
        names,
        f"{listed(names)} {happened}" + (f" ({why.words})" if why.words else ""),
        detail=f"The member list went from version {group[0].first_version} to {last.last_version}; {'; '.join(each)}.",
        cause=why.cause,
        remedy=why.remedy,
        evidence=evidence,
        first=first,
        last=last.last,
        is_open=any(episode.is_out for episode in group),
    )


def _together(spells: list[Observation]) -> Observation:
    """Make one observation of the spells of the same members, in the words of the first."""
    first, last = spells[0], spells[-1]
    if len(spells) == 1:
        return first
    evidence = [line for spell in spells for line in spell.evidence]
    return structs.replace(
        first,
        end_us=last.end_us,
        end_utc=last.end_utc,
        is_open=last.is_open,
        headline=f"{first.headline}, and {times(len(spells) - 1)} more in the same way",
        evidence=(*evidence[: MAX_EVIDENCE - 1], evidence[-1]),
        evidence_lines=sum(spell.evidence_lines for spell in spells),
    )

"""Members that are removed and come back, again and again: one of them (flapping), or several (oscillation)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec import structs

from quarterdeck.backend.core.causes import SuspicionCause
from quarterdeck.backend.core.events import ListInstalled, MemberRemoved, Record, SuspicionRaised
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.observations.observation import (
    MAX_EVIDENCE,
    EvidenceLines,
    LogEnds,
    Observation,
    lasted,
    listed,
    records_of_kind,
    times,
)
from quarterdeck.backend.hazelcast.logs.parsed_messages import LoggedDisconnectionReport, LoggedStart
from quarterdeck.backend.hazelcast.logs.told_messages import ToldMessage

RETURNS_OF_FLAPPING = 2
"""A member that came back so often after removals flaps; once is a recovery."""
QUIET_US = 600 * SECOND_US
"""Removals that lie further apart have nothing to do with each other."""

RESTARTED_US = 60 * SECOND_US
"""A process may be started again so long before its old life is removed."""

_IN_SHORT: dict[SuspicionCause, str] = {
    "disconnected": "partial disconnection",
    "no-heartbeat": "silence",
    "no-confirmation": "silence",
    "no-connection": "lost connection",
}
_REMEDIES = {
    "partial disconnection": (
        "The member reaches the master but not some other members, so it is removed and joins again at once.",
        "Mend the link between the members that suspect each other (the evidence names them), or stop one of the two "
        "until it is mended. The product does not keep out whom it has removed.",
    ),
    "silence": (
        "Its heartbeats do not arrive for a while: pauses of garbage collection, an overloaded machine, or a network that "
        "loses packets.",
        "Look at its pauses and load at these times, and at the network; a longer hazelcast.max.no.heartbeat.seconds hides "
        "short pauses.",
    ),
    "lost connection": (
        "Its connections break and are made again: an unstable network, a firewall that drops idle connections, or a "
        "process that is restarted.",
        "Look at the network between it and the master, and whether something restarts the process.",
    ),
}
_UNTOLD = ("The logs do not tell why it was removed.", "Read the master's log around the lines of evidence.")


@dataclass
class _Readmission:
    """The removals of one address that belong together."""

    address: str
    start_us: int
    start_utc: int
    first_version: int
    removals: int = 0
    returns: int = 0
    last_us: int = 0
    last_utc: int = 0
    last_version: int = 0
    is_out: bool = False
    restarts: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    reports: set[str] = field(default_factory=set)
    evidence: EvidenceLines = field(default_factory=EvidenceLines)

    @property
    def is_flapping(self) -> bool:
        """Whether it came back too often, and not because it was started again each time."""
        return self.returns - self.restarts >= RETURNS_OF_FLAPPING

    @property
    def reason(self) -> str:
        """Why it was removed, most of the times."""
        told = [(reason, count) for reason, count in self.reasons.items() if reason]
        return max(told, key=lambda one: (one[1], one[0]))[0] if told else ""

    def overlaps(self, other: _Readmission) -> bool:
        """Whether both were going on at one time."""
        return self.start_us <= other.last_us and other.start_us <= self.last_us


class Readmissions:
    """Follows the lists of all members; each version of a lineage counts once, whoever installs it first."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._lists: dict[str, ListInstalled] = {}
        self._seen: set[tuple[str, int]] = set()
        self._open: dict[str, _Readmission] = {}
        self._done: list[_Readmission] = []
        self._reasons: dict[str, tuple[int, str]] = {}
        self._started_us: dict[str, int] = {}

    def take(self, told: ToldMessage) -> None:
        """One more message."""
        member = told.place.member
        if isinstance(told.parsed, LoggedStart):
            self._lists.pop(member, None)
            self._started_us[member] = told.at
        if isinstance(told.parsed, LoggedDisconnectionReport):
            for one in (told.parsed.reporter, *told.parsed.suspects):
                if one.address in self._open:
                    self._open[one.address].evidence.add(told)
        for _, event in records_of_kind(told, SuspicionRaised):
            self._reasons.setdefault(event.suspect, (told.at, _IN_SHORT.get(event.cause, "")))
        for _, removal in records_of_kind(told, MemberRemoved):
            self._reasons[removal.address] = (told.at, _IN_SHORT.get(removal.cause, ""))
        for record, installed in records_of_kind(told, ListInstalled):
            self._list(told, record, installed)

    def _list(self, told: ToldMessage, record: Record, new: ListInstalled) -> None:
        member = record.member
        before = self._lists.get(member)
        self._lists[member] = new
        key = (new.lineage, new.version)
        if before is None or before.lineage != new.lineage or key in self._seen:
            return  # a list of another master is no removal: halves of a split, or a merge
        self._seen.add(key)
        old, now = ({one.address: one.uuid for one in lists.members} for lists in (before, new))
        for address in old:
            if old[address] != now.get(address):
                self._removed(told, str(address), new.version)
        for address in now:
            if old.get(address) != now[address]:
                self._returned(told, str(address), new.version)

    def _removed(self, told: ToldMessage, address: str, version: int) -> None:
        episode = self._open.get(address)
        if episode is not None and told.at - episode.last_us > QUIET_US:
            self._done.append(self._open.pop(address))
            episode = None
        if episode is None:
            episode = self._open[address] = _Readmission(address, told.at, told.place.utc, version)
        episode.removals += 1
        episode.is_out = True
        episode.last_us, episode.last_utc, episode.last_version = told.at, told.place.utc, version
        at, reason = self._reasons.pop(address, (told.at, ""))
        episode.reasons[reason if told.at - at < QUIET_US else ""] += 1
        episode.evidence.add(told)

    def _returned(self, told: ToldMessage, address: str, version: int) -> None:
        episode = self._open.get(address)
        if episode is None or not episode.is_out:
            return
        episode.is_out = False
        episode.returns += 1
        started_us = self._started_us.pop(address, None)
        if started_us is not None and started_us >= episode.last_us - RESTARTED_US:
            episode.restarts += 1
        episode.last_us, episode.last_utc, episode.last_version = told.at, told.place.utc, version
        episode.evidence.add(told)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Members that flap, each by itself, or together where several do so at one time."""
        flapping = [one for one in (*self._done, *self._open.values()) if one.is_flapping]
        flapping.sort(key=lambda one: (one.start_us, one.address))
        alike: dict[tuple[str, ...], list[Observation]] = {}
        for group in _groups(flapping):
            found = self._observation(group)
            alike.setdefault(tuple(sorted(set(found.members))), []).append(found)
        yield from (_together(spells) for spells in alike.values())

    def _observation(self, group: list[_Readmission]) -> Observation:
        first, last = min(group, key=lambda one: one.start_us), max(group, key=lambda one: one.last_us)
        took = last.last_us - first.start_us
        names = [one.address for one in group]
        reasons = Counter(reason for one in group for reason in one.reasons.elements() if reason)
        why = max(reasons, key=lambda reason: (reasons[reason], reason)) if reasons else ""
        removals, returns = (sum(getattr(one, what) for one in group) for what in ("removals", "returns"))
        cause, remedy = _REMEDIES.get(why, _UNTOLD)
        evidence = sorted((line for one in group for line in one.evidence.kept), key=lambda line: line.utc)
        happened = f"removed {times(removals)} and readmitted {times(returns)} in {lasted(took)}"
        if removals == returns:
            happened = f"removed and readmitted {times(returns)} in {lasted(took)}"
        return Observation(
            kind="flapping" if len(group) == 1 else "oscillation",
            run=self._run,
            start_us=first.start_us,
            end_us=last.last_us,
            is_open=any(one.is_out for one in group),
            members=tuple(names),
            headline=f"{listed(names)} {happened}" + (f" ({why})" if why else ""),
            detail=f"The member list went from version {first.first_version} to {last.last_version}; "
            + "; ".join(f"{one.address}: {one.removals} removals, {one.returns} returns" for one in group)
            + ".",
            cause=cause,
            remedy=remedy,
            evidence=tuple(evidence),
            evidence_lines=sum(one.evidence.count for one in group),
            start_utc=first.start_utc,
            end_utc=last.last_utc,
        )


def _together(spells: list[Observation]) -> Observation:
    """The spells of the same members as one observation, told by the first one."""
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


def _groups(episodes: list[_Readmission]) -> Iterator[list[_Readmission]]:
    """Episodes that go on at one time, together."""
    group: list[_Readmission] = []
    for one in episodes:
        if group and not any(one.overlaps(other) for other in group):
            yield group
            group = []
        group.append(one)
    if group:
        yield group

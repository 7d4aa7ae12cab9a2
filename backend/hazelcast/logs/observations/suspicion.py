"""Members that suspect others for long without an end, and members that are removed because some suspect each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quarterdeck.backend.core.events import (
    ListInstalled,
    MemberRemoved,
    SuspicionCleared,
    SuspicionRaised,
)
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.observations.observation import (
    EvidenceLines,
    LogEnds,
    Observation,
    has_ended,
    lasted,
    listed,
    records_of_kind,
    times,
)
from quarterdeck.backend.hazelcast.logs.parsed_messages import LoggedDisconnectionReport, LoggedStart
from quarterdeck.backend.hazelcast.logs.told_messages import ToldMessage

LASTING_US = 15 * SECOND_US
"""A suspicion is followed by a removal or by a heartbeat, normally within seconds."""

_Place = tuple[str, str, str]
"""Who suspects, whom, and the suspect's uuid."""


@dataclass
class _Spell:
    observer: str
    suspect: str
    start_us: int
    start_utc: int
    end_us: int
    is_open: bool
    lines: tuple[ToldMessage, ...]


class LastingSuspicion:
    """Follows every suspicion until it is withdrawn, the suspect is off the list, or the life of the observer ends."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._open: dict[_Place, ToldMessage] = {}
        self._spells: list[_Spell] = []

    def take(self, told: ToldMessage) -> None:
        """One more message."""
        member = told.place.member
        if isinstance(told.parsed, LoggedStart) or has_ended(told):
            for place in [one for one in self._open if one[0] == member]:
                self._close(place, told)
        for _, raised in records_of_kind(told, SuspicionRaised):
            self._open.setdefault((member, str(raised.suspect), raised.suspect_uuid), told)
        for _, cleared in records_of_kind(told, SuspicionCleared):
            self._close((member, str(cleared.suspect), cleared.suspect_uuid), told)
        for _, removed in records_of_kind(told, MemberRemoved):
            self._close((member, str(removed.address), removed.removed_uuid), told)
        for _, installed in records_of_kind(told, ListInstalled):
            listed_now = {(str(one.address), one.uuid) for one in installed.members}
            for place in [one for one in self._open if one[0] == member and one[1:] not in listed_now]:
                self._close(place, told)

    def _close(self, place: _Place, told: ToldMessage) -> None:
        raised = self._open.pop(place, None)
        if raised is not None and told.at - raised.at >= LASTING_US:
            lines = (raised, told)
            self._spells.append(_Spell(*place[:2], raised.at, raised.place.utc, told.at, is_open=False, lines=lines))

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Pairs that suspect each other, then suspects with all who suspect them."""
        for place, raised in self._open.items():
            end_us = ends.of(place[0])
            if end_us - raised.at >= LASTING_US:
                spell = _Spell(*place[:2], raised.at, raised.place.utc, end_us, is_open=True, lines=(raised,))
                self._spells.append(spell)
        pairs = {(one.observer, one.suspect) for one in self._spells}
        mutual = {frozenset(pair) for pair in pairs if pair[::-1] in pairs}
        groups: dict[tuple[str, ...], list[_Spell]] = {}
        for one in self._spells:
            both = frozenset((one.observer, one.suspect))
            key = tuple(sorted(both)) if both in mutual else (one.suspect,)
            groups.setdefault(key, []).append(one)
        for key, spells in groups.items():
            yield self._observation(key, spells)

    def _observation(self, key: tuple[str, ...], spells: list[_Spell]) -> Observation:
        start, end = min(one.start_us for one in spells), max(one.end_us for one in spells)
        observers = sorted({one.observer for one in spells})
        longest = lasted(max(one.end_us - one.start_us for one in spells))
        is_open = any(one.is_open for one in spells)
        until = ", until the logs end" if is_open else ""
        if len(key) == 2:
            headline = f"{listed(key)} suspected each other for {longest}{until}, and both stayed on the list"
        else:
            headline = f"{listed(observers)} suspected {key[0]} for {longest}{until}, and it stayed on the list"
        lines = EvidenceLines(sorted((line for one in spells for line in one.lines), key=lambda line: line.at))
        spoken = "; ".join(
            f"{one.observer} suspected {one.suspect} for {lasted(one.end_us - one.start_us)}" for one in spells[:10]
        )
        return Observation(
            kind="lasting-suspicion",
            run=self._run,
            start_us=start,
            end_us=end,
            is_open=is_open,
            members=tuple(sorted({*key, *observers})),
            headline=headline,
            detail=f"{spoken}.",
            cause="These members do not reach each other while the master reaches both. With "
            "hazelcast.partial.member.disconnection.resolution.heartbeat.count at 0 (its default) nobody resolves that: "
            "calls between them fail or wait.",
            remedy="Mend the link between them. To have the master remove one of them, set that property to 3 or more.",
            evidence=lines.kept,
            evidence_lines=lines.count,
            start_utc=min(one.start_utc for one in spells),
            end_utc=min(one.start_utc for one in spells) + end - start,
        )


@dataclass
class _Removals:
    removed: dict[str, int] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    evidence: EvidenceLines = field(default_factory=EvidenceLines)
    first: ToldMessage | None = None
    last: ToldMessage | None = None


class MutualSuspicion:
    """Collects the removals by which a master ends a partial disconnection, and the reports that led to them."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._found = _Removals()
        self._reports: list[ToldMessage] = []

    def take(self, told: ToldMessage) -> None:
        """One more message."""
        if isinstance(told.parsed, LoggedDisconnectionReport):
            self._reports.append(told)
        for _, removed in records_of_kind(told, MemberRemoved):
            if removed.cause != "disconnected":
                continue
            found = self._found
            for report in self._reports:
                found.evidence.add(report)
                if isinstance(report.parsed, LoggedDisconnectionReport):
                    found.others.add(str(report.parsed.reporter.address))
                    found.others |= {str(one.address) for one in report.parsed.suspects}
            self._reports.clear()
            found.removed[str(removed.address)] = found.removed.get(str(removed.address), 0) + 1
            found.evidence.add(told)
            found.first, found.last = found.first or told, told

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """All such removals together."""
        found = self._found
        if found.first is None or found.last is None:
            return
        names, others = sorted(found.removed), sorted(found.others - set(found.removed))
        whom = f", who disagreed with {listed(others)} about who is alive" if others else ""
        yield Observation(
            kind="mutual-suspicion",
            run=self._run,
            start_us=found.first.at,
            end_us=found.last.at,
            is_open=False,
            members=(*names, *others),
            headline=f"{listed(names)} removed {times(sum(found.removed.values()))} by mutual suspicion"
            + (f" with {listed(others)}" if others else ""),
            detail=f"The master removed {listed(names)}{whom}. It keeps the greatest set of members that reach each other.",
            cause="The link between these members is broken in one direction or both, while the master reaches all of them.",
            remedy="Mend that link before the removed member comes back: otherwise it is removed again.",
            evidence=found.evidence.kept,
            evidence_lines=found.evidence.count,
            start_utc=found.first.place.utc,
            end_utc=found.last.place.utc,
        )

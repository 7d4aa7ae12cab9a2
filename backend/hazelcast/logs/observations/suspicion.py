"""Members that suspect others for long without an end, and members that are removed because some suspect each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.hazelcast.logs.observations.observation import (
    LogEnds,
    Observation,
    ObservationEvidence,
    lasted,
    listed,
    observation,
    times,
)
from quarterdeck.backend.hazelcast.logs.parsed_messages import LoggedStart

LASTING_US = 15 * SECOND_US
"""A suspicion is followed by a removal or by a heartbeat, normally within seconds."""
LASTING_REMEDY = (
    "Mend the link between them; if they still suspect each other then, restart one of the two: neither sends the other "
    "heartbeats again (measured with 5.3.8 and 5.5.0, links cut both ways and one way), so that it does not clear by itself. "
    "To have the master remove one of them, set that property to 3 or more."
)
_Pair = tuple[str, str, str]
"""Which member suspects, which one, and the suspect's uuid."""


class _Spell(NamedTuple):
    observer: str
    suspect: str
    raised: InterpretedMessage
    ended: InterpretedMessage | None
    end_us: int

    @property
    def lasted_us(self) -> int:
        return self.end_us - self.raised.at


class LastingSuspicion:
    """Follows each suspicion until it is withdrawn, the suspect is off the list, or the observer's incarnation ends."""

    reads = (
        LoggedStart, events.MemberMerging, events.MemberStopped, events.SuspicionRaised, events.SuspicionCleared,
        events.MemberRemoved, events.ListInstalled,
    )  # fmt: skip

    def __init__(self) -> None:
        self._open: dict[_Pair, InterpretedMessage] = {}
        self._spells: list[_Spell] = []
        self._listed: dict[str, set[str]] = {}
        """The addresses on each member's present list: the line of a suspicion may be read after the list that ends it."""

    def add(self, message: InterpretedMessage) -> None:
        member = message.member
        if isinstance(message.parsed, LoggedStart) or message.ends_incarnation:
            for pair in [pair for pair in self._open if pair[0] == member]:
                self._close(pair, message)
            self._listed.pop(member, None)
        for raised in message.events(events.SuspicionRaised):
            if str(raised.suspect) not in self._listed.get(member, (str(raised.suspect),)):
                continue
            self._open.setdefault((member, str(raised.suspect), raised.suspect_uuid), message)
        for cleared in message.events(events.SuspicionCleared):
            self._close((member, str(cleared.suspect), cleared.suspect_uuid), message)
        for removed in message.events(events.MemberRemoved):
            self._close((member, str(removed.address), removed.removed_uuid), message)
        for installed in message.events(events.ListInstalled):
            listed_now = {(str(listed.address), listed.uuid) for listed in installed.members}
            self._listed[member] = {address for address, _ in listed_now}
            for pair in [pair for pair in self._open if pair[0] == member and pair[1:] not in listed_now]:
                self._close(pair, message)

    def _close(self, pair: _Pair, ended: InterpretedMessage) -> None:
        raised = self._open.pop(pair, None)
        if raised is not None:
            self._spells.append(_Spell(*pair[:2], raised, ended, ended.at))

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return pairs that suspect each other, and suspects with all that suspect them."""
        still = [_Spell(*pair[:2], raised, None, ends.of(pair[0])) for pair, raised in self._open.items()]
        spells = [spell for spell in (*self._spells, *still) if spell.lasted_us >= LASTING_US]
        pairs = {(spell.observer, spell.suspect) for spell in spells}
        groups: dict[tuple[str, ...], list[_Spell]] = {}
        for spell in spells:
            is_mutual = (spell.suspect, spell.observer) in pairs
            key = tuple(sorted((spell.observer, spell.suspect))) if is_mutual else (spell.suspect,)
            groups.setdefault(key, []).append(spell)
        for key, group in groups.items():
            yield _observed(key, group, ends)


def _observed(key: tuple[str, ...], spells: list[_Spell], ends: LogEnds) -> Observation:
    first = min((spell.raised for spell in spells), key=lambda message: message.at)
    observers = sorted({spell.observer for spell in spells})
    is_open = any(spell.ended is None for spell in spells)
    for_long = f"for {lasted(max(spell.lasted_us for spell in spells))}{f', {ends.words}' if is_open else ''}"
    if len(key) == 2:
        headline = f"{listed(key)} suspected each other {for_long}, and both stayed on the list"
    else:
        headline = f"{listed(observers)} suspected {key[0]} {for_long}, and it stayed on the list"
    lines = [line for spell in spells for line in (spell.raised, spell.ended) if line is not None]
    each = (f"{spell.observer} suspected {spell.suspect} for {lasted(spell.lasted_us)}" for spell in spells[:10])
    return observation(
        "lasting-suspicion",
        sorted({*key, *observers}),
        headline,
        detail=f"{'; '.join(each)}.",
        cause=f"These members {'do' if is_open else 'did'} not reach each other while the master reaches both. With "
        "hazelcast.partial.member.disconnection.resolution.heartbeat.count at 0 (its default) no member resolves that: "
        "calls between them fail or wait.",
        remedy=LASTING_REMEDY
        if is_open
        else f"It has ended; look what was between them. Where it lasts: {LASTING_REMEDY}",
        evidence=ObservationEvidence(sorted(lines, key=lambda line: line.at)),
        first=first,
        last=first,
        end_us=max(spell.end_us for spell in spells),
        is_open=is_open,
    )


class MutualSuspicion:
    """Collects the removals by which a master ends a partial disconnection, and the reports that led to them."""

    reads = (events.DisconnectionReported, events.MemberRemoved)

    def __init__(self) -> None:
        self._reports: list[InterpretedMessage] = []
        self._removals: list[InterpretedMessage] = []
        self._removed: Counter[str] = Counter()
        self._others: set[str] = set()
        self._evidence = ObservationEvidence()

    def add(self, message: InterpretedMessage) -> None:
        if isinstance(message.parsed, events.DisconnectionReported):
            self._reports.append(message)
        for removed in message.events(events.MemberRemoved):
            if removed.cause != "disconnected":
                continue
            for line in self._reports:
                self._evidence.add(line)
                if isinstance(report := line.parsed, events.DisconnectionReported):
                    self._others |= {str(address) for address in (report.reporter, *report.suspects)}
            self._reports.clear()
            self._removed[str(removed.address)] += 1
            self._removals.append(message)
            self._evidence.add(message)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return all such removals together."""
        if not self._removals:
            return
        names, others = sorted(self._removed), sorted(self._others - self._removed.keys())
        whom = f", who disagreed with {listed(others)} about who is alive" if others else ""
        yield observation(
            "mutual-suspicion",
            (*names, *others),
            f"{listed(names)} removed {times(self._removed.total())} by mutual suspicion"
            + (f" with {listed(others)}" if others else ""),
            detail=f"The master removed {listed(names)}{whom}. It keeps the greatest set of members that reach each other.",
            cause="The link between these members is broken in one direction or both, while the master reaches all of them.",
            remedy="Mend that link before the removed member comes back: otherwise it is removed again.",
            evidence=self._evidence,
            first=self._removals[0],
            last=self._removals[-1],
        )

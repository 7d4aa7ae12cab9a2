"""Suspicions without an end, removals because members suspect each other, and claims of the mastership that are not accepted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs import parsed_messages as logged
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.judgement.observations.observation import LogEnds, LogEvidence, Observation, observation
from quarterdeck.backend.judgement.observations.wording import lasted, listed, times

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

    def __init__(self) -> None:
        self._open: dict[_Pair, InterpretedMessage] = {}
        self._spells: list[_Spell] = []
        self._listed: dict[str, set[str]] = {}
        """The addresses on each member's present list: the line of a suspicion may be read after the list that ends it."""
        self._cut_us: dict[str, int] = {}
        """When each member logged a list that is cut away: a suspicion from before may become known only later."""

    def add(self, message: InterpretedMessage) -> None:
        member = message.member
        if isinstance(message.parsed, logged.LoggedStart) or message.ends_incarnation:
            for pair in [pair for pair in self._open if pair[0] == member]:
                self._close(pair, message)
            self._listed.pop(member, None)
        if isinstance(message.parsed, logged.LoggedCutList):  # nothing shows any more who is on its list
            self._open = {pair: raised for pair, raised in self._open.items() if pair[0] != member}
            self._listed.pop(member, None)
            self._cut_us[member] = message.at
        is_late = any(record.at <= self._cut_us.get(member, -1) for record in message.records)
        for raised in [] if is_late else message.events(events.SuspicionRaised):
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
        if (raised := self._open.pop(pair, None)) is not None:
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
        evidence=LogEvidence(sorted(lines, key=lambda line: line.at)),
        first=first,
        end_us=max(spell.end_us for spell in spells),
        is_open=is_open,
    )


class MutualSuspicion:
    """Collects the removals by which a master ends a partial disconnection, and the reports that led to them."""

    def __init__(self) -> None:
        self._reports: list[InterpretedMessage] = []
        self._removals: list[InterpretedMessage] = []
        self._removed: Counter[str] = Counter()
        self._others: set[str] = set()
        self._evidence = LogEvidence()

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


CLAIMING_US = 15 * SECOND_US
"""Where the logs end sooner after a claim began, it may just go on."""


@dataclass
class _Claimant:
    messages: list[InterpretedMessage] = field(default_factory=list)
    """Those that show trouble with its claims."""
    refusers: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    reasons: Counter[str] = field(default_factory=Counter)
    unfinished: int = 0

    def without_end(self, began: InterpretedMessage) -> _Claimant:
        """Return the same with one more claim that has not ended."""
        return replace(self, messages=[*self.messages, began], unfinished=self.unfinished + 1)


class ClaimsNotAccepted:
    """Collects, for each claimant, the members that refused, those left out, and claims without an end."""

    def __init__(self) -> None:
        self._claimants: dict[str, _Claimant] = {}
        self._open: dict[str, InterpretedMessage] = {}

    def add(self, message: InterpretedMessage) -> None:
        member = message.member
        match message.parsed:
            case logged.LoggedClaimStart():
                self._open[member] = message
            case logged.LoggedClaimFinish():
                self._open.pop(member, None)
            case logged.LoggedClaimRefusal(claimant=claimant, reason=reason):
                found = self._claimants.setdefault(str(claimant), _Claimant())
                found.refusers.add(member)
                found.reasons[reason] += 1
                found.messages.append(message)
            case logged.LoggedStart():
                self._give_up(member)
        if message.ends_incarnation:
            self._give_up(member)
        for finished in message.events(events.ClaimFinished):
            if finished.left_out:
                found = self._claimants.setdefault(member, _Claimant())
                found.left_out |= {str(address) for address in finished.left_out}
                found.messages.append(message)

    def _give_up(self, member: str) -> None:
        if (began := self._open.pop(member, None)) is not None:
            self._claimants[member] = self._claimants.get(member, _Claimant()).without_end(began)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return for each claimant what became of its claims."""
        still_open = {name: began for name, began in self._open.items() if ends.of(name) - began.at >= CLAIMING_US}
        for claimant in {**self._claimants, **still_open}:
            found = self._claimants.get(claimant, _Claimant())
            if claimant in still_open:
                found = found.without_end(still_open[claimant])
            parts = []
            if found.refusers:
                parts.append(f"refused by {listed(sorted(found.refusers))}")
            if others := found.left_out - found.refusers:
                parts.append(f"not accepted by {listed(sorted(others))}")
            if found.unfinished:
                waited = f" for {lasted(ends.of(claimant) - still_open[claimant].at)}" if claimant in still_open else ""
                parts.append(f"not finished {times(found.unfinished)}{waited}")
            said = "; ".join(f"“{reason}” {times(count)}" for reason, count in found.reasons.most_common(3))
            yield observation(
                "claim-not-accepted",
                sorted({claimant, *found.refusers, *found.left_out}),
                f"the mastership claim of {claimant} was {listed(parts)}",
                detail=f"Those who refused said: {said}." if said else "No member says why.",
                cause="The claimant and the others do not agree who is alive: the network is broken in parts, or a member that "
                "was removed still takes itself for one.",
                remedy="A member that is left out ends in a cluster of its own and merges later. Look at the network between "
                "the claimant and those who refused or did not answer.",
                evidence=found.messages,
                is_open=claimant in still_open,
            )

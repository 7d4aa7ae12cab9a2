"""Clusters that lead themselves apart from each other: halves of a split, or one master alone; and what they say of merging."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from quarterdeck.backend.core.events import ListInstalled, MemberMerging, MemberStopped
from quarterdeck.backend.hazelcast.logs.observations.observation import (
    EvidenceLines,
    LogEnds,
    Observation,
    ObservationKind,
    lasted,
    listed,
    records_of_kind,
    times,
)
from quarterdeck.backend.hazelcast.logs.parsed_messages import (
    LoggedLifecycle,
    LoggedMergeAbandonment,
    LoggedMergeStart,
    LoggedMergeVerdict,
    LoggedSearchRedirected,
    LoggedStart,
)
from quarterdeck.backend.hazelcast.logs.told_messages import ToldMessage

_MEETING = LoggedMergeVerdict | LoggedMergeStart | LoggedMergeAbandonment | LoggedSearchRedirected
_QUOTED = 200

_CAUSES: dict[str, tuple[str, str]] = {
    "abandoned": (
        "A merge was begun and given up: the losing side could not freeze its state, because migrations were pending or the "
        "state was locked.",
        "Wait until the migrations of the smaller side have ended; look for 'pending migration tasks' in its master's log.",
    ),
    "cannot": (
        "The sides met and found that they cannot merge: one still has a member of the other on its list, their versions "
        "differ, or a state does not allow it. The last words say which.",
        "Where lists overlap, wait for the failure detector or end the process that is on both lists; where a state forbids "
        "it, set it to ACTIVE.",
    ),
    "waiting": (
        "The sides met and agree which one is to merge, and that one does not begin: only its own search begins a merge, and "
        "that is not due yet (hazelcast.merge.first.run.delay.seconds, 300 by default, then "
        "hazelcast.merge.next.run.delay.seconds, 120) or does not look at the other side's addresses.",
        "Wait for the next search of the smaller side's master, or shorten these delays; see that its join list names the "
        "other side.",
    ),
    "redirected": (
        "One side's master searches and reaches members of the other side, but not their master: the link between the two "
        "masters is broken, and only masters merge.",
        "Mend the link between the two masters, or stop the one that is alone: it joins again when it is started.",
    ),
    "unmet": (
        "No side says that it met the other: the network between them is cut, or their join lists do not name each other.",
        "Mend the network; then, if they still do not meet, add the other side's addresses to the join list of a master "
        "(POST hazelcast/rest/config/tcp-ip/member-list).",
    ),
    "merged": (
        "The network between the sides was cut for a time, or one of them stood still.",
        "They have merged again. What was written on the smaller side is merged by the map's merge policy, or lost.",
    ),
    "ended": (
        "The network between the sides was cut for a time.",
        "It ended without a merge: the members of one side stopped or were started again.",
    ),
}


@dataclass
class _Side:
    lineage: str
    master: str
    members: frozenset[str]


@dataclass
class _Words:
    """What a side said of merging while it was apart."""

    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By decision and remote, lines."""
    abandoned: int = 0
    redirected: int = 0
    last: ToldMessage | None = None

    @property
    def lines(self) -> int:
        """How often it met the other side's master, or else was asked for its own."""
        return sum(self.verdicts.values()) + self.abandoned or self.redirected


@dataclass
class _Separation:
    start: ToldMessage
    sides: list[_Side]
    words: dict[str, _Words] = field(default_factory=dict)
    evidence: EvidenceLines = field(default_factory=EvidenceLines)
    end: ToldMessage | None = None
    has_merged: bool = False


class Separation:
    """Follows which lists are in use; clusters are apart while their lists have nobody in common."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._lists: dict[str, ListInstalled] = {}
        self._companions: dict[str, set[str]] = {}
        self._met: set[frozenset[str]] = set()
        self._episode: _Separation | None = None
        self._done: list[_Separation] = []

    def take(self, told: ToldMessage) -> None:
        """One more message."""
        member = told.place.member
        changed = False
        if records_of_kind(told, MemberMerging):
            changed = self._lists.pop(member, None) is not None
            if self._episode is not None:
                self._episode.has_merged = True
        ended = isinstance(told.parsed, LoggedStart) or told.parsed == LoggedLifecycle("SHUTDOWN")
        if ended or records_of_kind(told, MemberStopped):
            changed = self._lists.pop(member, None) is not None or changed
        if isinstance(told.parsed, LoggedMergeVerdict):
            self._met.add(frozenset((member, str(told.parsed.remote))))
        for record, installed in records_of_kind(told, ListInstalled):
            self._lists[record.member] = installed
            addresses = [str(one.address) for one in installed.members]
            for address in addresses:
                self._companions.setdefault(address, set()).update(addresses)
            changed = True
        if changed:
            self._compare(told)
        if self._episode is not None and isinstance(told.parsed, _MEETING):
            self._hear(self._episode, told)

    def _sides(self) -> list[_Side]:
        """The clusters that lead themselves: of each lineage in use the newest list."""
        newest: dict[str, ListInstalled] = {}
        for installed in self._lists.values():
            known = newest.get(installed.lineage)
            if known is None or known.version < installed.version:
                newest[installed.lineage] = installed
        return [
            _Side(lineage, str(one.master), frozenset(str(member.address) for member in one.members))
            for lineage, one in sorted(newest.items())
        ]

    def _compare(self, told: ToldMessage) -> None:
        sides = self._sides()
        apart = [
            side
            for side in sides
            if any(not side.members & other.members and self._have_met(side, other) for other in sides)
        ]
        if len(apart) < 2:
            if self._episode is not None:
                self._episode.end = told
                self._episode.evidence.add(told)
                self._done.append(self._episode)
                self._episode = None
        elif self._episode is None:
            self._episode = _Separation(told, apart)
            self._episode.evidence.add(told)
        elif apart != self._episode.sides:
            self._episode.sides = apart
            self._episode.evidence.add(told)

    def _have_met(self, one: _Side, other: _Side) -> bool:
        if any(self._companions.get(member, set()) & other.members for member in one.members):
            return True
        return any(frozenset((a, b)) in self._met for a in one.members for b in other.members)

    def _hear(self, episode: _Separation, told: ToldMessage) -> None:
        side = next((one for one in episode.sides if told.place.member in one.members), None)
        if side is None:
            return
        words = episode.words.setdefault(side.lineage, _Words())
        if words.last is None or not isinstance(told.parsed, LoggedSearchRedirected):
            words.last = told
        match told.parsed:
            case LoggedMergeVerdict(remote=remote, decision=decision):
                words.verdicts[decision, str(remote)] += 1
            case LoggedMergeAbandonment():
                words.abandoned += 1
            case LoggedSearchRedirected():
                words.redirected += 1
            case _:
                pass
        episode.evidence.add(told)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Every time that clusters were apart; those of the same clusters together."""
        episodes = [*self._done, *([self._episode] if self._episode else [])]
        alike: dict[frozenset[frozenset[str]], list[_Separation]] = {}
        for one in episodes:
            alike.setdefault(frozenset(side.members for side in one.sides), []).append(one)
        for group in alike.values():
            yield self._observation(group, ends)

    def _observation(self, group: list[_Separation], logs: LogEnds) -> Observation:
        first, last = group[0], group[-1]
        ends = [one.end.at if one.end else _last_known_us(one, logs) for one in group]
        apart_us = sum(end - one.start.at for one, end in zip(group, ends, strict=True))
        sides = sorted(last.sides, key=lambda side: (-len(side.members), side.master))
        lone = next((side for side in sides if len(side.members) == 1), None)
        is_lone = lone is not None and len(sides[0].members) > 1
        kind: ObservationKind = "lone-master" if is_lone else "halves-apart"
        names = [f"{side.master} ({len(side.members)} members)" for side in sides]
        often = f"{times(len(group))}, " if len(group) > 1 else ""
        until = ", until the logs end" if last.end is None else ""
        if is_lone and lone is not None:
            others = sum(len(side.members) for side in sides) - 1
            headline = f"{lone.master} led itself alone against {others} others: {often}{lasted(apart_us)}{until}"
        else:
            headline = f"{listed(names)} were apart: {often}{lasted(apart_us)}{until}"
        cause, remedy = _CAUSES[_situation(last)]
        evidence = [line for one in group for line in one.evidence.kept]
        return Observation(
            kind=kind,
            run=self._run,
            start_us=first.start.at,
            end_us=ends[-1],
            is_open=last.end is None,
            members=tuple(sorted({member for side in sides for member in side.members})),
            headline=headline,
            detail=" ".join(_last_words(last, sides)),
            cause=cause,
            remedy=remedy,
            evidence=tuple(evidence),
            evidence_lines=sum(one.evidence.count for one in group),
            start_utc=first.start.place.utc,
            end_utc=first.start.place.utc + ends[-1] - first.start.at,
        )


def _last_known_us(episode: _Separation, logs: LogEnds) -> int:
    """Until when it is known that all sides were there: the logs of one may end long before those of another."""
    return max(episode.start.at, min(logs.of(*side.members) for side in episode.sides))


def _situation(episode: _Separation) -> str:
    """Why the sides stayed apart, or how it ended."""
    if episode.end is not None:
        return "merged" if episode.has_merged else "ended"
    words = list(episode.words.values())
    decisions = {decision for one in words for decision, _ in one.verdicts}
    if any(one.abandoned for one in words):
        return "abandoned"
    if decisions & {"local-merges", "remote-merges"}:
        return "waiting"
    if decisions:
        return "cannot"
    return "redirected" if any(one.redirected for one in words) else "unmet"


def _last_words(episode: _Separation, sides: list[_Side]) -> Iterator[str]:
    """For each side, what it said of merging, how often, and its last word."""
    yield "; ".join(f"{side.master} led {listed(sorted(side.members))}" for side in sides) + "."
    for side in sides:
        words = episode.words.get(side.lineage)
        if words is None or words.last is None:
            yield f"The side of {side.master} said nothing of merging."
            continue
        text = " ".join(words.last.place.text.split())[:_QUOTED]
        yield f"The side of {side.master} spoke of merging {times(words.lines)}; its last word: “{text}”."

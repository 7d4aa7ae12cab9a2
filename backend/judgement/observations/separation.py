"""Clusters with masters of their own apart from each other: halves of a split, or one master alone.

Why they do not merge, and what to do about it, is said as it fits how their members find each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from quarterdeck.backend.commands.discovery import ANY, JOIN_LIST, JOINER, discovery_remedies
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged
from quarterdeck.backend.hazelcast.logs import parsed_messages as logged
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.judgement.observations.observation import LogEnds, LogEvidence, Observation, observation
from quarterdeck.backend.judgement.observations.wording import lasted, listed, quoted, times

Situation = Literal[
    "abandoned", "begun", "cannot", "waiting", "redirected", "unmet", "untold", "late", "merged", "merged-untold",
    "ended", "ended-untold",
]  # fmt: skip
"""Why the sides stay apart, or how that ended."""

JOIN_LIST_PATH = "hazelcast/rest/config/tcp-ip/member-list"
_SEARCH = "only its own search begins a merge, and that"
_AGREE = f"The sides met and agree which one is to merge, and that one does not begin: {_SEARCH}"
_AGREED = f"The sides met long before they merged, and agreed which is to merge, but that one did not begin: {_SEARCH}"
_DUE = "hazelcast.merge.first.run.delay.seconds, 300 by default, then hazelcast.merge.next.run.delay.seconds, 120"
_CUT = "The network between the sides was cut for a time, or one of them stood still."
_MERGED = "What was written on the smaller side is merged by the map's merge policy, or lost."

_CAUSES: dict[Situation, tuple[str, str]] = {
    "abandoned": (
        "A merge was begun and given up: the losing side could not freeze its state, because migrations were pending or the "
        "state was locked.",
        "Wait until the migrations of the smaller side have ended; look for 'pending migration tasks' in its master's log.",
    ),
    "begun": (
        "A merge has begun: the smaller side freezes its cluster first, which it cannot as long as partitions migrate there.",
        "Wait: it goes on within seconds, or is given up and tried again at the next search.",
    ),
    "cannot": (
        "The sides met and found that they cannot merge: one still has a member of the other on its list, their versions "
        "differ, or a state does not allow it. The last words say which.",
        "Where lists overlap, wait for the failure detector or end the process that is on both lists; where a state forbids "
        "it, set it to ACTIVE.",
    ),
    "waiting": (
        f"{_AGREE} is not due yet ({_DUE}) or does not look at the other side's addresses.",
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
        f"(POST {JOIN_LIST_PATH}). {ANY}",
    ),
    "untold": (
        "The network between them is cut, their join lists do not name each other, or a merge is not due: what masters find out "
        "about each other stands in their logs alone.",
        "Read the logs of both masters (--logs), or look whether each reaches the other and whether its join list names it. "
        f"{ANY}",
    ),
    "merged-untold": (
        "The network between the sides was cut for a time, one of them stood still, or they met and did not merge at once: "
        "which, only their logs say.",
        f"They have merged. {_MERGED}",
    ),
    "late": (
        f"{_AGREED} was not due ({_DUE}), or did not look at the other side's addresses.",
        f"Let the join list of every member name members of both sides: at runtime by POST {JOIN_LIST_PATH} (5.2 on) to the "
        f"smaller side's master, for good in the configuration. Or shorten these delays. {_MERGED}",
    ),
    "merged": (_CUT, f"They have merged. {_MERGED}"),
    "ended": (_CUT, "It ended without a merge: the members of one side stopped or were started again."),
    "ended-untold": (
        _CUT,
        "They are one cluster again. Whether one side has merged or was started again is not known yet.",
    ),
}
_UNSEEN = "or what they find each other by ({joiner}) does not show them each other"
_BY_DISCOVERY: dict[Situation, tuple[str, str]] = {
    "waiting": (
        f"{_AGREE} is not due yet, {_UNSEEN}.",
        "Wait for the next search of the smaller side's master. {wider}",
    ),
    "unmet": (
        f"No side says that it met the other: the network between them is cut, {_UNSEEN}.",
        "Mend the network. {wider}",
    ),
    "untold": (
        f"The network between them is cut, {_UNSEEN}, or a merge is not due: what masters find out about each other stands in "
        "their logs alone.",
        "Read the logs of both masters (--logs), or look whether each reaches the other. {wider}",
    ),
    "late": (
        f"{_AGREED} was not due, {_UNSEEN.replace('does', 'did')}.",
        f"{{wider}} {_MERGED}",
    ),
}
"""The same where neither side has a join list."""


def explained(situation: Situation, joiners: Collection[str]) -> tuple[str, str]:
    """Return the cause and the remedy. `joiners` are the ways in which members of both sides find others, as far as known."""
    wider = discovery_remedies(joiners)
    if not wider or situation not in _BY_DISCOVERY:
        return _CAUSES[situation]
    cause, remedy = _BY_DISCOVERY[situation]
    return cause.format(joiner=", ".join(joiners)), remedy.format(wider=wider)


LATE_US = 15 * SECOND_US
"""Sides that merge so long after they first agreed to are late: not the network kept them apart meanwhile."""


@dataclass
class _Side:
    lineage: str
    master: str
    members: frozenset[str]
    since: InterpretedMessage = field(compare=False)
    """The first message that shows this list."""


@dataclass
class _Words:
    """What a side logged of merging while it was apart."""

    decisions: Counter[str] = field(default_factory=Counter)
    agreed_us: int | None = None
    """When it first found that one of the two is to merge."""
    begins: bool = False
    """Whether it has begun to merge."""
    abandoned: int = 0
    redirected: int = 0
    last: InterpretedMessage | None = None

    @property
    def lines(self) -> int:
        """How often it met the other side's master, or else was asked for its own."""
        return self.decisions.total() + self.abandoned or self.redirected


@dataclass
class _Apart:
    """A time during which clusters were apart."""

    start: InterpretedMessage
    sides: list[_Side]
    every_word: bool
    """Whether all is known that its masters say of merging."""
    words: dict[str, _Words] = field(default_factory=dict)
    evidence: LogEvidence = field(default_factory=LogEvidence)
    end: InterpretedMessage | None = None
    merged_us: int | None = None
    """When the first of them began to merge."""
    edits: list[InterpretedMessage] = field(default_factory=list)
    """The messages that show an edit of a join list meanwhile."""
    has_stopped: bool = False
    """Whether a member of a side is known to have ended, or to have been started again."""
    awaited: set[str] = field(default_factory=set)
    """The members whose next list has not come since the end: what they did is not known yet."""

    def follow_end(self, message: InterpretedMessage, *, merges: bool, stops: bool) -> None:
        """Note what a member of a side did: what ended it may be known only after that."""
        if self.end is not None and message.member not in self.awaited:
            return
        if merges and self.merged_us is None:
            self.merged_us = message.at
        self.has_stopped |= stops and any(message.member in side.members for side in self.sides)
        if self.end is not None and message.events(events.ListInstalled):
            self.awaited.discard(message.member)

    @property
    def agreed_us(self) -> int | None:
        """When the sides first agreed which one is to merge."""
        return min((words.agreed_us for words in self.words.values() if words.agreed_us is not None), default=None)

    @property
    def late_us(self) -> int:
        """How long after that they merged, if that was late."""
        if self.merged_us is None or self.agreed_us is None or self.merged_us - self.agreed_us < LATE_US:
            return 0
        return self.merged_us - self.agreed_us

    def situation(self) -> Situation:
        """Return why the sides stay apart, or how that ended."""
        if self.end is not None:
            merged: Situation = "merged" if self.every_word or self.words else "merged-untold"
            if self.merged_us is None:
                return "ended" if self.has_stopped else "ended-untold"
            return "late" if self.late_us else merged
        words = self.words.values()
        decisions = {decision for of_side in words for decision in of_side.decisions}
        if any(of_side.abandoned for of_side in words):
            return "abandoned"
        if any(of_side.begins for of_side in words):
            return "begun"
        if decisions & {"local-merges", "remote-merges"}:
            return "waiting"
        if decisions:
            return "cannot"
        if not self.every_word:
            return "untold"
        return "redirected" if any(of_side.redirected for of_side in words) else "unmet"


MERGE_WORDS = (
    events.MergeVerdict, logged.LoggedMergeStart, logged.LoggedMergeAbandonment, logged.LoggedSearchRedirected,
)  # fmt: skip


class Separation:
    """Follows which lists are in use; clusters are apart while their lists have no member in common."""

    def __init__(self, *, every_word: bool = True) -> None:
        """`every_word`: each message about merging comes, as logs have it; of a recording, only what makes a record."""
        self._every_word = every_word
        self._lists: dict[str, events.ListInstalled] = {}
        self._leaving: set[str] = set()
        """The members that have left their cluster to merge, or start."""
        self._sides_of: dict[tuple[str, int], _Side] = {}
        """The cluster that a list makes, by lineage and version, since the message that shows it first."""
        self._companions: dict[str, set[str]] = {}
        self._joiners: dict[str, str] = {}
        """How each member finds others, as far as its log or its configuration says."""
        self._met: set[frozenset[str]] = set()
        self._episode: _Apart | None = None
        self._done: list[_Apart] = []

    def add(self, message: InterpretedMessage) -> None:
        member, parsed = message.member, message.parsed
        changed = False
        if isinstance(parsed, logged.LoggedJoiner):
            self._joiners[member] = parsed.joiner
        for settings in message.events(events.SettingsChanged):
            self._joiners[member] = settings.properties.get(JOINER, JOIN_LIST)
        is_merging = bool(message.events(events.MemberMerging))
        connections = message.events(ConnectionChanged)
        if is_merging or any(connection.state == "merging" for connection in connections):
            self._leaving.add(member)
        elif connections or events.MemberStarted in message.kinds:
            self._leaving.discard(member)
        if self._episode is not None and any(edit.edition > 0 for edit in message.events(events.JoinListChanged)):
            self._episode.edits.append(message)
        stops = (
            isinstance(parsed, logged.LoggedStart)
            or parsed == logged.LoggedLifecycle("SHUTDOWN")
            or any(connection.state == "gone" for connection in connections)
            or bool(message.events(events.MemberStopped))
        )
        followed = self._episode or (self._done[-1] if self._done else None)
        if followed is not None:
            followed.follow_end(message, merges=is_merging, stops=stops)
        if is_merging or stops:
            changed = self._lists.pop(member, None) is not None
        if isinstance(parsed, events.MergeVerdict):
            pair = frozenset((member, str(parsed.remote)))
            changed |= pair not in self._met
            self._met.add(pair)
        for installed in message.events(events.ListInstalled):
            if member in self._leaving:
                continue  # a last list of the cluster that it has left
            self._lists[member] = installed
            name = (installed.lineage, installed.version)
            if name not in self._sides_of:
                addresses = frozenset(str(listed.address) for listed in installed.members)
                self._sides_of[name] = _Side(installed.lineage, str(installed.master), addresses, message)
                for address in addresses:
                    self._companions.setdefault(address, set()).update(addresses)
            changed = True
        if changed:
            self._compare(message)
        if self._episode is not None:
            self._add_words(self._episode, message)

    def _compare(self, message: InterpretedMessage) -> None:
        newest: dict[str, int] = {}  # by lineage in use; each is a cluster with a master of its own
        for installed in self._lists.values():
            newest[installed.lineage] = max(installed.version, newest.get(installed.lineage, 0))
        sides, episode = [self._sides_of[name] for name in sorted(newest.items())], self._episode
        apart = [side for side in sides if any(self._are_apart(side, other) for other in sides)]
        members = [member for side in apart for member in side.members]
        if len(apart) < 2:
            if episode is not None:
                episode.end = message
                episode.awaited = {member for side in episode.sides for member in side.members} - {message.member}
                episode.evidence.add(message)
                self._done.append(episode)
                self._episode = None
        elif episode is None:
            start = max((side.since for side in apart), key=lambda since: since.at)
            self._episode = _Apart(start, apart, self._every_word, evidence=LogEvidence([start]))
        elif apart != episode.sides and len(members) == len(set(members)):  # not while some go over to the other side
            episode.sides = apart
            episode.evidence.add(message)

    def _are_apart(self, side: _Side, other: _Side) -> bool:
        """Return whether two clusters have met and have no member in common, though one that merges may be listed by both."""
        if side.members.isdisjoint(other.members):
            pairs = [(a, b) for a in side.members for b in other.members]
            return any(b in self._companions.get(a, ()) or frozenset((a, b)) in self._met for a, b in pairs)
        if self._episode is None or not self._leaving.isdisjoint((side.master, other.master)):
            return False
        held = [self._lists[half.master] for half in (side, other) if half.master in self._lists]
        both_lead = [view.lineage for view in held] == [side.lineage, other.lineage]
        return both_lead and set(held[0].members).isdisjoint(held[1].members)

    def _add_words(self, episode: _Apart, message: InterpretedMessage) -> None:
        parsed = message.parsed
        side = next((side for side in episode.sides if message.member in side.members), None)
        if side is None or not isinstance(parsed, MERGE_WORDS):
            return
        words = episode.words.setdefault(side.lineage, _Words())
        if words.last is None or not isinstance(parsed, logged.LoggedSearchRedirected):
            words.last = message
        words.begins |= isinstance(parsed, logged.LoggedMergeStart)
        match parsed:
            case events.MergeVerdict(decision=decision):
                words.decisions[decision] += 1
                if words.agreed_us is None and decision != "cannot-merge":
                    words.agreed_us = message.at
            case logged.LoggedMergeAbandonment():
                words.abandoned += 1
            case logged.LoggedSearchRedirected():
                words.redirected += 1
        episode.evidence.add(message)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return every time that clusters were apart; those of the same clusters together."""
        alike: dict[frozenset[frozenset[str]], list[_Apart]] = {}
        for episode in (*self._done, *([self._episode] if self._episode else [])):
            alike.setdefault(frozenset(side.members for side in episode.sides), []).append(episode)
        for group in alike.values():
            yield _observed(group, ends, self._joiners)


def _observed(group: list[_Apart], logs: LogEnds, joiners: Mapping[str, str]) -> Observation:
    first, last = group[0], group[-1]
    ends = [  # an open episode lasts as long as all sides are known to exist: the logs of one may end before those of another
        episode.end.at if episode.end else max(episode.start.at, min(logs.of(*side.members) for side in episode.sides))
        for episode in group
    ]
    apart_us = sum(end - episode.start.at for episode, end in zip(group, ends, strict=True))
    sides = sorted(last.sides, key=lambda side: (-len(side.members), side.master))
    lone = next((side for side in sides if len(side.members) == 1 < len(sides[0].members)), None)
    often = f"{times(len(group))}, " if len(group) > 1 else ""
    is_out_of_sight = logs.is_witnessed and ends[-1] < logs.end_us
    words = "until one side was lost sight of" if is_out_of_sight else logs.words
    until = f", {words}" if last.end is None else ""
    if last.late_us and last.agreed_us is not None:
        met = lasted(last.agreed_us - last.start.at)
        until = f"; they met after {met}, and did not merge for {lasted(last.late_us)}"
    if lone is not None:
        others = sum(len(side.members) for side in sides) - 1
        headline = f"{lone.master} led itself alone against {others} others: {often}{lasted(apart_us)}{until}"
    else:
        names = [f"{side.master} ({len(side.members)} member{'s' * (len(side.members) > 1)})" for side in sides]
        headline = f"{listed(names)} were apart: {often}{lasted(apart_us)}{until}"
    known = (joiners[member] for side in sides for member in sorted(side.members) if member in joiners)
    cause, remedy = explained(last.situation(), dict.fromkeys(known))
    return observation(
        "lone-master" if lone is not None else "halves-apart",
        sorted({member for side in sides for member in side.members}),
        headline,
        detail=" ".join(_last_words(last, sides)),
        cause=cause,
        remedy=remedy,
        evidence=LogEvidence.joined([episode.evidence for episode in group]),
        first=first.start,
        end_us=ends[-1],
        is_open=last.end is None,
    )


def _last_words(episode: _Apart, sides: list[_Side]) -> Iterator[str]:
    """Say for each side what it logged of merging, how often, and its last words."""
    yield "; ".join(f"{side.master} led {listed(sorted(side.members))}" for side in sides) + "."
    untold = "made no record of merging, which its logs may show"
    for side in sides:
        words = episode.words.get(side.lineage)
        if words is None or words.last is None:
            yield f"The side of {side.master} {'said nothing of merging' if episode.every_word else untold}."
        else:
            said = f"The side of {side.master} spoke of merging {times(words.lines)}"
            yield f"{said}; its last word: “{quoted(words.last)}”."
    if episode.edits and episode.merged_us is not None:
        edit = episode.edits[-1]
        yield f"The join list of {edit.member} was edited {lasted(max(0, episode.merged_us - edit.at))} before they merged."

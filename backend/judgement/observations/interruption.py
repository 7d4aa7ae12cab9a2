"""Members that stood still, whose clock was set or is in another zone, and members that were started again."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from quarterdeck.backend.core.membership.events import ListInstalled, ObserverPaused, SuspicionRaised
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, MemberWitnessed
from quarterdeck.backend.hazelcast.logs import parsed_messages as logged
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.hazelcast.logs.log_set import AlignedClock
from quarterdeck.backend.judgement.observations.observation import (
    EvidenceLine,
    LogEnds,
    LogEvidence,
    Observation,
    consecutive_groups,
    observation,
)
from quarterdeck.backend.judgement.observations.wording import lasted, listed, times

SILENT_US = 8 * SECOND_US
"""Shorter silences are those of every day."""
RESET_US = 3 * SECOND_US
"""A clock that is set back goes by so much more or less than it was set forward."""
MAX_ACCUSATIONS = 256
"""Suspicions of one member, the last ones, that are compared with its next jump."""


@dataclass
class _Jumps:
    first: InterpretedMessage
    last: InterpretedMessage
    gaps_us: list[int] = field(default_factory=list)
    backwards_us: list[int] = field(default_factory=list)
    """Those of `gaps_us` by which the clock went back, as logs say."""
    accusers: set[str] = field(default_factory=set)
    evidence: LogEvidence = field(default_factory=LogEvidence)

    @property
    def was_set_and_reset(self) -> bool:
        """Whether the clock went forward, and back by as much: no pause does that."""
        forward = Counter(self.gaps_us) - Counter(self.backwards_us)
        return any(
            abs(gap - back) <= max(RESET_US, gap // 10) for gap in forward.elements() for back in self.backwards_us
        )

    def accuse(self, accusation: InterpretedMessage) -> None:
        self.accusers.add(accusation.member)
        self.evidence.add(accusation)


class ClockJumps:
    """Collects the jumps of time that members notice themselves, and tells a clock that was set from a pause.

    Those after a merge or a start do not count: a member sends no heartbeats meanwhile. A clock was set if the member's log dates
    a later list by as much later than the logs of others.
    """

    def __init__(self) -> None:
        self._members: dict[str, _Jumps] = {}
        self._accusations: dict[str, deque[InterpretedMessage]] = {}
        self._lists: dict[tuple[str, int], dict[str, int]] = {}
        """By lineage and version, when each member logged that list. Lists that a witness reports are dated by its clock."""
        self._is_witnessed = False

    def add(self, message: InterpretedMessage) -> None:
        self._is_witnessed |= any("client-protocol" in one.sources for one in message.events(MemberWitnessed))
        for installed in () if self._is_witnessed else message.events(ListInstalled):
            self._lists.setdefault((installed.lineage, installed.version), {})[message.member] = message.at
        for raised in message.events(SuspicionRaised):
            suspect = str(raised.suspect)
            jumped = self._members.get(suspect)
            if jumped is not None and message.at <= jumped.last.at + jumped.gaps_us[-1]:
                jumped.accuse(message)
            else:
                self._accusations.setdefault(suspect, deque(maxlen=MAX_ACCUSATIONS)).append(message)
        for paused in message.events(ObserverPaused):
            found = self._members.setdefault(message.member, _Jumps(message, message))
            found.last = message
            found.gaps_us.append(paused.gap)
            found.evidence.add(message)
            if paused.is_backwards:
                found.backwards_us.append(paused.gap)
            for accusation in self._accusations.pop(message.member, ()):
                if message.at - 2 * paused.gap <= accusation.at:
                    found.accuse(accusation)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return for each member all its jumps, and which members suspected it meanwhile."""
        yield from (self._observed(member, found) for member, found in self._members.items())

    def _observed(self, member: str, found: _Jumps) -> Observation:
        gaps = listed([lasted(gap) for gap in found.gaps_us])
        accusers = sorted(found.accusers)
        most = lasted(max(found.gaps_us))
        often = f" {times(len(found.gaps_us))}, at most" if len(found.gaps_us) > 1 else ""
        was_set = self._was_set(member, found)
        what = "stood still" if was_set is False else "stood still, or its clock was set forward,"
        if found.was_set_and_reset:
            what, often = "had its clock set forward and back", ", at most" if often else ""
        elif found.backwards_us == found.gaps_us:
            what = "had its clock set back"
        elif was_set:
            what = "had its clock set forward"
        blamed = f"; {listed(accusers)} held it for dead meanwhile" if accusers else ""
        return observation(
            "clock-jump",
            (member, *accusers),
            f"{member} {what}{often} for {most}{blamed}",
            detail=f"It noticed {times(len(found.gaps_us))} that time had jumped, by {gaps}, "
            "and let all heartbeats count from then on.",
            cause="A long pause of garbage collection, a frozen virtual machine or container, or a clock that was set.",
            remedy="Look at the log of the garbage collector and at the host at these times; let clocks be slewed, not set.",
            evidence=found.evidence,
            first=found.first,
            last=found.last,
            start_us=found.first.at - (found.gaps_us[0] if what.startswith("stood still") else 0),
        )

    def _was_set(self, member: str, found: _Jumps) -> bool | None:
        """Return whether the clock was set forward and the member did not stand still; None where nothing shows it."""
        gap_us = max(found.gaps_us)
        slack_us = max(RESET_US, gap_us // 10)
        if self._is_witnessed or gap_us < SILENT_US:
            return None
        for logged_us in self._lists.values():
            others_us = [at_us for other, at_us in logged_us.items() if other != member]
            if others_us and logged_us.get(member, 0) >= found.last.at + RESET_US:
                late_us = logged_us[member] - max(others_us)
                return True if abs(late_us - gap_us) <= slack_us else False if late_us < gap_us // 2 else None
        return None


class Silences:
    """Follows how a witness reaches members over the network: those that say nothing, or said nothing for a while."""

    def __init__(self) -> None:
        self._is_followed: set[str] = set()
        self._silent: dict[str, tuple[str, InterpretedMessage]] = {}
        """By member, the incarnation that says nothing, and since when."""
        self._spells: dict[str, list[tuple[InterpretedMessage, InterpretedMessage]]] = {}
        self._away: set[str] = set()
        """Those that ended, merge or start: until they are ready they accept connections and say nothing."""

    def add(self, message: InterpretedMessage) -> None:
        for record in message.records:
            if isinstance(record.event, MemberWitnessed) and "client-protocol" in record.event.sources:
                self._is_followed.add(record.uuid)
            if not isinstance(record.event, ConnectionChanged) or record.uuid not in self._is_followed:
                continue
            uuid, began = self._silent.pop(message.member, ("", message))
            if record.event.state == "silent" and message.member not in self._away:
                self._silent[message.member] = record.uuid, began
            elif record.event.state == "connected" and uuid == record.uuid and message.at - began.at >= SILENT_US:
                self._spells.setdefault(message.member, []).append((began, message))
            if record.event.state == "connected":
                self._away.discard(message.member)
            elif record.event.state != "silent":
                self._away.add(message.member)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """Return how often and how long each member said nothing, and together those that still say nothing."""
        for member, spells in self._spells.items():
            most = lasted(max(ended.at - began.at for began, ended in spells))
            often = f" {times(len(spells))}, at most" if len(spells) > 1 else ""
            headline = f"{member} sent its witness nothing{often} for {most}, and went on"
            yield _unresponsive((member,), headline, [message for spell in spells for message in spell])
        still = sorted((began for _, began in self._silent.values()), key=lambda began: began.at)
        still = [began for began in still if ends.end_us - began.at >= SILENT_US]
        for group in consecutive_groups(still, lambda group, began: began.at - group[-1].at <= SILENT_US):
            members = [began.member for began in group]
            silent = f"for {lasted(ends.end_us - group[0].at)}, {ends.words}"
            headline = f"{listed(members)} sent the witness nothing {silent}"
            yield _unresponsive(members, headline, group, end_us=ends.end_us)


def _unresponsive(
    members: Sequence[str], headline: str, shown_by: Sequence[InterpretedMessage], end_us: int | None = None
) -> Observation:
    """Observe that members said nothing; with `end_us`, that they still say nothing."""
    return observation(
        "unresponsive",
        members,
        headline,
        detail="No answer came, on the connection or to attempts at one"
        + ("; then the same incarnation answered." if end_us is None else "."),
        cause="They stood still (a long pause of garbage collection, a frozen machine or process), or only their connections to "
        "the witness did: the network between was cut, or, as measured with 5.5.0 and 5.7.0, a healthy new master left one "
        "of its clients without an answer for 13 s while the old one was frozen.",
        remedy="Look what the other members say of them at these times: if they removed them, they stood still or were cut off "
        "from those too; if nothing, and other clients got answers, only the connection stood still. Look at the logs of their "
        "garbage collectors and at their hosts.",
        evidence=shown_by,
        end_us=end_us,
        is_open=end_us is not None,
    )


_STARTED_AGAIN = "New join request has been received from current master"
"""The reason of a suspicion that proves that the master's process was started again: another incarnation asks at its address."""


class Restarts:
    """Counts the starts of every member whose log begins before them."""

    def __init__(self) -> None:
        self._is_logged: set[str] = set()
        """Members whose words of stopping would be known."""
        self._has_logged: set[str] = set()
        self._is_stopping: set[str] = set()
        self._starts: dict[str, list[InterpretedMessage]] = {}
        self._silent = 0
        """Starts before which the log says nothing of an end."""
        self._is_every_end_logged = True
        """Whether a log was read before each start; else it is not known how many said nothing."""

    def add(self, message: InterpretedMessage) -> None:
        member = message.member
        if any("logs" in witnessed.sources for witnessed in message.events(MemberWitnessed)):
            self._is_logged.add(member)
        for raised in message.events(SuspicionRaised):
            suspect = str(raised.suspect)
            if _STARTED_AGAIN in raised.reason and suspect not in self._is_logged:
                self._starts.setdefault(suspect, []).append(message)
                self._silent += suspect not in self._is_stopping
        match message.parsed:
            case logged.LoggedStart():
                if member in self._has_logged:
                    self._starts.setdefault(member, []).append(message)
                    self._silent += member not in self._is_stopping
                    self._is_every_end_logged &= member in self._is_logged
                self._is_stopping.discard(member)
            case logged.LoggedShutdown() | logged.LoggedLifecycle(state="SHUTTING_DOWN" | "SHUTDOWN"):
                self._is_stopping.add(member)
            case logged.NoEvent() if any(isinstance(record.event, MemberWitnessed) for record in message.records):
                return  # a witness begins, which is before the start in a recording
        self._has_logged.add(member)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        if not self._starts:
            return
        starts = sorted((start for many in self._starts.values() for start in many), key=lambda start: start.at)
        counts = [f"{member} {times(len(many))}" for member, many in sorted(self._starts.items())]
        silent = self._silent if self._is_every_end_logged else 0
        goodbye = f" ({silent} without a goodbye)" if silent else ""
        yield observation(
            "restart",
            sorted(self._starts),
            f"started again: {listed(counts)}{goodbye}",
            detail=f"Starts of members that had been there before: {len(starts)}"
            + (f"; before {silent} of them the log says nothing of an end." if self._is_every_end_logged else "."),
            cause="A restart by hand or by a supervisor. One without a goodbye was killed, crashed, or was asked to end by a "
            "signal, at which java.util.logging may close the log before that is logged.",
            remedy="After a crash look at the end of the log before each start, and for hs_err files and the kernel's "
            "out-of-memory killer. Stop members gracefully, one after the other, once the cluster is safe.",
            evidence=starts,
        )


def zone_observation(clock: AlignedClock, began_us: int) -> Observation:
    """Return how a member's clock was corrected, or that its zone is unknown. The run's clock began at `began_us`."""
    shift_us = clock.ahead_us or 0
    start, end = clock.first_us - shift_us, clock.last_us - shift_us
    if clock.ahead_us is None:
        headline = f"the clock of {clock.member} may be in another zone: its log has nothing in common with the others"
        detail = "Its times lie more than half an hour before or after theirs, and no member list stands in both."
    else:
        way = "ahead of" if clock.ahead_us > 0 else "behind"
        headline = f"the clock of {clock.member} is {lasted(abs(clock.ahead_us))} {way} the others, and was put right"
        detail = f"Concluded from {clock.lists} member lists that it logged, and others too."
    name = clock.file.rpartition("/")[2] or "FILE"
    return Observation(
        kind="zones-differ",
        run=clock.run,
        start_us=max(0, start - began_us),
        end_us=max(0, end - began_us),
        is_open=False,
        members=(clock.member,),
        headline=headline,
        detail=detail,
        cause="The members run in different time zones, and the layout of their logs writes no zone.",
        remedy=f"Give its zone if this is wrong, as with --zone {name}=+05:30, or let the layout write the zone.",
        evidence=(EvidenceLine(clock.file, clock.line, start, clock.member, "the first list that it logged"),),
        evidence_lines=clock.lists,
        start_utc=start,
        end_utc=end,
    )

"""Members that stood still or whose clock was set, and members that were started again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from quarterdeck.backend.core.events import ObserverPaused, SuspicionRaised
from quarterdeck.backend.hazelcast.logs.observations.observation import (
    EvidenceLines,
    LogEnds,
    Observation,
    lasted,
    listed,
    records_of_kind,
    times,
)
from quarterdeck.backend.hazelcast.logs.parsed_messages import (
    LoggedClockJump,
    LoggedLifecycle,
    LoggedShutdown,
    LoggedStart,
)
from quarterdeck.backend.hazelcast.logs.told_messages import ToldMessage

ACCUSATIONS = 256
"""Of one member, the last ones that are compared with its next jump."""


@dataclass
class _Jumps:
    first: ToldMessage
    last: ToldMessage
    gaps_us: list[int] = field(default_factory=list)
    is_backwards: bool = False
    accusers: set[str] = field(default_factory=set)
    lines: EvidenceLines = field(default_factory=EvidenceLines)


class ClockJumps:
    """Collects the jumps that a member notices itself. Those after a merge or a start are none: its heartbeats rested."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._members: dict[str, _Jumps] = {}
        self._accusations: dict[str, deque[ToldMessage]] = {}

    def take(self, told: ToldMessage) -> None:
        """One more message."""
        for _, raised in records_of_kind(told, SuspicionRaised):
            suspect = str(raised.suspect)
            jumped = self._members.get(suspect)
            if jumped is not None and told.at <= jumped.last.at + jumped.gaps_us[-1]:
                self._accuse(jumped, told)
            else:
                self._accusations.setdefault(suspect, deque(maxlen=ACCUSATIONS)).append(told)
        for _, paused in records_of_kind(told, ObserverPaused):
            member = told.place.member
            found = self._members.setdefault(member, _Jumps(told, told))
            found.last = told
            found.gaps_us.append(paused.gap)
            found.lines.add(told)
            found.is_backwards |= isinstance(told.parsed, LoggedClockJump) and told.parsed.is_backwards
            for accusation in self._accusations.pop(member, ()):
                if told.at - 2 * paused.gap <= accusation.at:
                    self._accuse(found, accusation)

    def _accuse(self, found: _Jumps, accusation: ToldMessage) -> None:
        found.accusers.add(accusation.place.member)
        found.lines.add(accusation)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """For each member all its jumps, and who held it for dead meanwhile."""
        for member, found in self._members.items():
            gaps = listed([lasted(gap) for gap in found.gaps_us])
            accusers = found.accusers
            most = lasted(max(found.gaps_us))
            often = f" {times(len(found.gaps_us))}, at most" if len(found.gaps_us) > 1 else ""
            what = "stood still" if accusers else "stood still, or its clock was set forward,"
            if found.is_backwards and not accusers:
                what = "had its clock set back"
            blamed = f"; {listed(sorted(accusers))} held it for dead meanwhile" if accusers else ""
            first, last = found.first, found.last
            yield Observation(
                kind="clock-jump",
                run=self._run,
                start_us=first.at - found.gaps_us[0],
                end_us=last.at,
                is_open=False,
                members=(member, *sorted(accusers)),
                headline=f"{member} {what}{often} for {most}{blamed}",
                detail=f"It noticed {times(len(found.gaps_us))} that time had jumped, by {gaps}, "
                "and let all heartbeats count from then on.",
                cause="A long pause of garbage collection, a frozen virtual machine or container, or a clock that was set.",
                remedy="Look at the log of the garbage collector and at the host at these times; let clocks be slewed, not set.",
                evidence=found.lines.kept,
                evidence_lines=found.lines.count,
                start_utc=first.place.utc,
                end_utc=last.place.utc,
            )


class Restarts:
    """Counts the starts of every member whose log begins before them."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._speaks: set[str] = set()
        self._is_stopping: set[str] = set()
        self._starts: dict[str, list[ToldMessage]] = {}
        self._silent: dict[str, int] = {}

    def take(self, told: ToldMessage) -> None:
        """One more message."""
        member = told.place.member
        match told.parsed:
            case LoggedStart():
                if member in self._speaks:
                    self._starts.setdefault(member, []).append(told)
                    if member not in self._is_stopping:
                        self._silent[member] = self._silent.get(member, 0) + 1
                self._is_stopping.discard(member)
            case LoggedShutdown() | LoggedLifecycle(state="SHUTTING_DOWN" | "SHUTDOWN"):
                self._is_stopping.add(member)
            case _:
                pass
        self._speaks.add(member)

    def end(self, ends: LogEnds) -> Iterable[Observation]:
        """All restarts of the run together."""
        if not self._starts:
            return
        starts = sorted((one for many in self._starts.values() for one in many), key=lambda one: one.at)
        lines = EvidenceLines(starts)
        silent = sum(self._silent.values())
        told = [f"{member} {times(len(many))}" for member, many in sorted(self._starts.items())]
        goodbye = f" ({silent} without a goodbye)" if silent else ""
        yield Observation(
            kind="restart",
            run=self._run,
            start_us=starts[0].at,
            end_us=starts[-1].at,
            is_open=False,
            members=tuple(sorted(self._starts)),
            headline=f"started again: {listed(told)}{goodbye}",
            detail=f"{len(starts)} starts in the middle of a log; before {silent} of them the log says nothing of an end.",
            cause="A restart by hand or by a supervisor; without a goodbye the process was killed or crashed.",
            remedy="After a crash look at the end of the log before each start, and for hs_err files and the kernel's "
            "out-of-memory killer. Stop members gracefully, one after the other, once the cluster is safe.",
            evidence=lines.kept,
            evidence_lines=lines.count,
            start_utc=starts[0].place.utc,
            end_utc=starts[-1].place.utc,
        )

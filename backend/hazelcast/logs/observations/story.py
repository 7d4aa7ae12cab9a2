"""All that is observed in the logs of a run, from what its members said in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.log_set import LogSet
from quarterdeck.backend.hazelcast.logs.observations.claims import ClaimsNotAccepted
from quarterdeck.backend.hazelcast.logs.observations.interruption import ClockJumps, Restarts
from quarterdeck.backend.hazelcast.logs.observations.lost_members import LostMembers
from quarterdeck.backend.hazelcast.logs.observations.observation import LogEnds, Observation, ObservationKind, Observer
from quarterdeck.backend.hazelcast.logs.observations.partitions import LoggedRounds, MigrationRound, PartitionsLost
from quarterdeck.backend.hazelcast.logs.observations.readmission import Readmissions
from quarterdeck.backend.hazelcast.logs.observations.separation import Separation
from quarterdeck.backend.hazelcast.logs.observations.suspicion import LastingSuspicion, MutualSuspicion
from quarterdeck.backend.hazelcast.logs.observations.verdicts import VerdictCount, VerdictCounts
from quarterdeck.backend.hazelcast.logs.observations.zones import zone_observation
from quarterdeck.backend.hazelcast.logs.told_messages import ToldMessage

IN_HEADLINE = 6
"""Observations that are told in one line."""

_EXPLAINS: dict[ObservationKind, tuple[ObservationKind, ...]] = {
    "flapping": ("mutual-suspicion", "lone-master"),
    "halves-apart": ("oscillation",),
    "clock-jump": ("lone-master",),
    "oscillation": ("mutual-suspicion", "lone-master"),
}
"""An observation that says already what another one of the same members at the same time would say."""


class LogStory(Struct, frozen=True):
    """What the logs of one run tell beyond its records."""

    run: str
    observations: tuple[Observation, ...] = ()
    migrations: tuple[MigrationRound, ...] = ()
    verdicts: tuple[VerdictCount, ...] = ()


class StoryTeller:
    """Takes what the members of one run say, in the order of time. Call `end` when nothing more comes."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._rounds = LoggedRounds(run)
        self._verdicts = VerdictCounts(run)
        membership = (Readmissions, Separation, LostMembers, LastingSuspicion, MutualSuspicion, ClaimsNotAccepted)
        kinds = (*membership, ClockJumps, Restarts, PartitionsLost)
        self._observers: list[Observer] = [*(kind(run) for kind in kinds), self._rounds]
        self._last_us = 0

    def take(self, told: ToldMessage) -> None:
        """One more message."""
        self._last_us = max(self._last_us, told.at)
        self._verdicts.take(told)
        for observer in self._observers:
            observer.take(told)

    def end(self, ends: LogEnds, clocks: Iterable[Observation] = ()) -> LogStory:
        """All observations, by the time at which they begin. `clocks`: what was observed of the members' clocks."""
        if ends.end_us < self._last_us:
            ends = LogEnds(self._last_us, ends.members)
        found = [*clocks, *(one for observer in self._observers for one in observer.end(ends))]
        found.sort(key=lambda one: (one.start_us, one.kind, one.members))
        told = tuple(one for one in found if not any(_explains(other, one) for other in found))
        return LogStory(self._run, told, tuple(self._rounds.rounds), tuple(self._verdicts.counts.values()))


def stories_of(told: Iterable[ToldMessage], whole: LogSet) -> Iterator[LogStory]:
    """The story of each run, from messages in order (see `told_messages.in_order`)."""
    return (one for one in records_and_stories(told, whole) if isinstance(one, LogStory))


def records_and_stories(told: Iterable[ToldMessage], whole: LogSet) -> Iterator[Record | LogStory]:
    """The same, and before the story of each run its records, as they become known."""
    for run, messages in groupby(told, key=lambda one: one.place.run):
        teller = StoryTeller(run)
        for message in messages:
            teller.take(message)
            yield from message.records
        began_us = whole.run_began_us(run)
        clocks = [zone_observation(one, began_us) for one in whole.aligned_clocks if one.run == run]
        yield teller.end(LogEnds(whole.run_ended_us(run), whole.spoke_until_us(run)), clocks)


def headline(observations: Sequence[Observation]) -> str:
    """All of them in one line; empty when there are none."""
    if not observations:
        return ""
    count = f"{len(observations)} observation{'s' if len(observations) > 1 else ''}"
    told = [one.headline for one in observations[:IN_HEADLINE]]
    if more := len(observations) - len(told):
        told.append(f"and {more} more")
    return f"{count}: {'; '.join(told)}"


def _explains(greater: Observation, one: Observation) -> bool:
    if one.kind not in _EXPLAINS.get(greater.kind, ()) or one.is_open:
        return False
    slack = greater.end_us - greater.start_us
    is_within = greater.start_us - slack <= one.start_us and one.end_us <= greater.end_us + slack
    return is_within and bool(set(greater.members) & set(one.members))

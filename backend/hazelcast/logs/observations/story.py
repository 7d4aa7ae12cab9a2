"""All that is observed in the logs of a run, from what its members logged in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.last_words import LastWords
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.hazelcast.logs.log_set import LogSet
from quarterdeck.backend.hazelcast.logs.observations.claims import ClaimsNotAccepted
from quarterdeck.backend.hazelcast.logs.observations.diagnosed import Diagnosed
from quarterdeck.backend.hazelcast.logs.observations.full_stop import FullStops
from quarterdeck.backend.hazelcast.logs.observations.interruption import (
    ClockJumps,
    Restarts,
    Silences,
    zone_observation,
)
from quarterdeck.backend.hazelcast.logs.observations.lost_members import LostMembers
from quarterdeck.backend.hazelcast.logs.observations.observation import LogEnds, Observation, ObservationKind, Observer
from quarterdeck.backend.hazelcast.logs.observations.partitions import LoggedRounds, MigrationRound, PartitionsLost
from quarterdeck.backend.hazelcast.logs.observations.readmission import Readmissions
from quarterdeck.backend.hazelcast.logs.observations.separation import Separation, VerdictCount, VerdictCounts
from quarterdeck.backend.hazelcast.logs.observations.suspicion import LastingSuspicion, MutualSuspicion
from quarterdeck.backend.hazelcast.logs.observations.waiting import (
    FrozenStates,
    RefusedJoins,
    UnresolvedNames,
    WaitingShutdowns,
)

IN_HEADLINE = 6
"""Observations that are named in one line."""

_EXPLAINS: dict[ObservationKind, tuple[ObservationKind, ...]] = {
    "flapping": ("mutual-suspicion", "lone-master"),
    "halves-apart": ("oscillation",),
    "clock-jump": ("lone-master",),
    "oscillation": ("mutual-suspicion", "lone-master"),
    "full-stop": ("restart",),
}
"""An observation that says already what another one of the same members at the same time would say."""


class LogStory(Struct, frozen=True):
    """What the logs or the recording of one run show beyond its records."""

    run: str
    observations: tuple[Observation, ...] = ()
    migrations: tuple[MigrationRound, ...] = ()
    verdicts: tuple[VerdictCount, ...] = ()


def records_and_stories(messages: Iterable[InterpretedMessage], whole: LogSet) -> Iterator[Record | LogStory]:
    """Yield the records of each run as they become known, then its story."""
    for run, of_run in groupby(messages, key=lambda message: message.place.run):
        observers = RunObservers(run)
        end_us = whole.run_ended_us(run)
        for message in of_run:
            end_us = max(end_us, message.at)
            observers.add(message)
            yield from message.records
        yield story_of(observers, run, end_us, whole)


def story_of(observers: RunObservers, run: str, end_us: int, whole: LogSet) -> LogStory:
    """Return what is observed in the logs of a run up to `end_us`, with what the logs show as a whole."""
    began_us = whole.run_began_us(run)
    zones = [zone_observation(clock, began_us) for clock in whole.aligned_clocks if clock.run == run]
    return observers.story(LogEnds(end_us, whole.last_logged_us(run)), zones)


class RunObservers:
    """Looks for every kind of trouble in what the members of one run log and report."""

    def __init__(self, run: str, *, every_word: bool = True) -> None:
        """`every_word`: all messages come, as logs have them, and not only those that make a record."""
        self._run = run
        words = LastWords()
        self._rounds, self._verdicts = LoggedRounds(), VerdictCounts()
        self._observers: list[Observer] = [
            Readmissions(), Separation(every_word=every_word), LostMembers(words), LastingSuspicion(), MutualSuspicion(),
            ClaimsNotAccepted(), ClockJumps(), Silences(), Restarts(), FullStops(words), PartitionsLost(), self._rounds,
            WaitingShutdowns(), FrozenStates(), RefusedJoins(), UnresolvedNames(), Diagnosed(),
        ]  # fmt: skip
        self._reading: dict[frozenset[type], list[Observer]] = {}
        """By what a message says, who reads it."""

    def add(self, message: InterpretedMessage) -> None:
        self._verdicts.add(message)
        said = frozenset((type(message.parsed), *message.kinds))
        reading = self._reading.get(said)
        if reading is None:
            reading = [
                observer for observer in self._observers if not observer.reads or said.intersection(observer.reads)
            ]
            self._reading[said] = reading
        for observer in reading:
            observer.add(message)

    def story(self, ends: LogEnds, zones: Iterable[Observation] = ()) -> LogStory:
        """Return what is observed if no more messages come; more may come all the same."""
        found = [*zones, *(observation for observer in self._observers for observation in observer.end(ends))]
        found.sort(key=lambda observation: (observation.start_us, observation.kind, observation.members))
        kept = tuple(observation for observation in found if not any(_explains(other, observation) for other in found))
        return LogStory(self._run, kept, tuple(self._rounds.all_rounds), tuple(self._verdicts.counts.values()))


def headline(observations: Sequence[Observation]) -> str:
    """Name all of them in one line; empty when there are none."""
    if not observations:
        return ""
    count = f"{len(observations)} observation{'s' if len(observations) > 1 else ''}"
    named = [observation.headline for observation in observations[:IN_HEADLINE]]
    if more := len(observations) - len(named):
        named.append(f"and {more} more")
    return f"{count}: {'; '.join(named)}"


def _explains(greater: Observation, smaller: Observation) -> bool:
    if smaller.kind not in _EXPLAINS.get(greater.kind, ()) or smaller.is_open:
        return False
    if greater.kind == "clock-jump" and smaller.end_us - smaller.start_us >= SECOND_US:
        return False  # it led itself alone after it stood still, not only while it found that out
    slack = greater.end_us - greater.start_us
    is_within = greater.start_us - slack <= smaller.start_us and smaller.end_us <= greater.end_us + slack
    return is_within and bool(set(greater.members) & set(smaller.members))

"""All that is observed in the logs of a run, from what its members logged in the order of time.

The records of a witness count as messages: what is observed in logs is observed in a recording and in live members as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal

from msgspec import Struct, structs

from quarterdeck.backend.core.events import Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed import events as witnessed
from quarterdeck.backend.core.witnessed.events import ConnectionChanged, MemberWitnessed, ReplicaMigrated
from quarterdeck.backend.hazelcast.last_words import LastWords
from quarterdeck.backend.hazelcast.logs import parsed_messages as logged
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.hazelcast.logs.log_set import LogSet, MemberMessage
from quarterdeck.backend.judgement.losses.loss import Loss
from quarterdeck.backend.judgement.observations import suspicion, waiting
from quarterdeck.backend.judgement.observations.account import RunAccount
from quarterdeck.backend.judgement.observations.interruption import (
    ClockJumps,
    Restarts,
    Silences,
    zone_observation,
)
from quarterdeck.backend.judgement.observations.lost_members import FullStops, LostMembers
from quarterdeck.backend.judgement.observations.observation import LogEnds, Observation, ObservationKind, Observer
from quarterdeck.backend.judgement.observations.partitions import LoggedRounds, MigrationRound, PartitionsLost
from quarterdeck.backend.judgement.observations.readmission import Readmissions
from quarterdeck.backend.judgement.observations.separation import Separation

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


class VerdictCount(Struct):
    """How often a member logged the same verdict on a remote master. Times are on the run's clock."""

    run: str
    member: str
    remote: str
    decision: str
    """local-merges, remote-merges or cannot-merge."""
    rule: str
    times: int
    first_us: int
    last_us: int
    why: str
    """Its last words."""
    file: str
    line: int
    """Where the last ones stand."""


class VerdictCounts:
    """Counts every line with a merge verdict; in a journal a verdict is an event only when it changes."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str, str, str], VerdictCount] = {}

    def add(self, message: InterpretedMessage) -> None:
        if not isinstance(message.parsed, events.MergeVerdict):
            return
        place, verdict = message.place, message.parsed
        key = (place.member, str(verdict.remote), verdict.decision, verdict.rule)
        if (count := self.counts.get(key)) is None:
            count = self.counts[key] = VerdictCount(place.run, *key, 0, message.at, message.at, "", "", 0)
        count.times += 1
        count.last_us, count.why, count.file, count.line = message.at, verdict.why, place.file, place.line


class LogStory(Struct, frozen=True):
    """What the logs or the recording of one run show beyond its records."""

    run: str
    observations: tuple[Observation, ...] = ()
    migrations: tuple[MigrationRound, ...] = ()
    verdicts: tuple[VerdictCount, ...] = ()
    account: tuple[str, ...] = ()
    """What a colleague would say first of logs."""
    reading: tuple[str, ...] = ()
    """What was concluded of the files as they were read, such as the order of their dates."""


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
    ends = LogEnds(end_us, whole.last_logged_us(run))
    found = observers.story(ends, zones)
    account = observers.account.sentences(began_us, ends, found.observations)
    return structs.replace(found, account=account, reading=tuple(whole.notes(run)))


class RunObservers:
    """Looks for every kind of trouble in what the members of one run log and report."""

    def __init__(self, run: str, *, every_word: bool = True) -> None:
        """`every_word`: all messages come, as logs have them, and not only those that make a record."""
        self._run = run
        words = LastWords()
        self._rounds, self._verdicts = LoggedRounds(), VerdictCounts()
        self.account = RunAccount()
        self._observers: list[Observer] = [
            Readmissions(), Separation(every_word=every_word), LostMembers(words), suspicion.LastingSuspicion(),
            suspicion.MutualSuspicion(), suspicion.ClaimsNotAccepted(), ClockJumps(), Silences(), Restarts(), FullStops(words),
            PartitionsLost(), self._rounds, waiting.WaitingShutdowns(), waiting.FrozenStates(), waiting.RefusedJoins(),
            waiting.UnresolvedNames(), waiting.Diagnosed(),
        ]  # fmt: skip

    def add(self, message: InterpretedMessage) -> None:
        self._verdicts.add(message)
        self.account.add(message)
        for observer in self._observers:
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


OBSERVED: tuple[type[Event], ...] = (
    MemberWitnessed, ConnectionChanged, ReplicaMigrated, PartitionLost, events.MemberStarted, events.MemberStopped,
    events.MemberMerging, events.MemberRemoved, events.ListInstalled, events.SuspicionRaised, events.SuspicionCleared,
    events.ClaimStarted, events.ClaimFinished, events.MergeVerdict, events.MergeStarted, events.MergeAbandoned,
    events.DisconnectionReported, events.JoinListChanged, events.ObserverPaused, events.JoinFailed,
    events.ClusterStateChanged, events.SettingsChanged, events.HeartbeatLate, events.AddressUnusable,
    witnessed.LeaveRequested, witnessed.MigrationsRemaining, witnessed.MigrationFailed, witnessed.JoinerRefused,
    witnessed.InvocationsSlow,
)  # fmt: skip
"""The kinds of events in which something is observed."""

RENEWED_AFTER = 20_000
"""After so many records of live members what was observed is kept as it is, and observing begins anew when nothing goes on."""
RENEWED_ANYWAY = 4 * RENEWED_AFTER
"""Also while something goes on, which is observed anew then."""
SIDE_BY_SIDE = 40
"""So many migrations may run side by side, and are not counted in order."""
PAST_KEPT = 500
"""Observations, and rounds of migrations, that are kept of the time before."""
_STANDING = (MemberWitnessed, ConnectionChanged, events.ListInstalled, events.SettingsChanged)
"""What holds until the next one of its kind: observing anew begins with these."""

_ENDS: dict[Literal["recording", "live"], str] = {"recording": "until the recording ends", "live": "until now"}


class RecordObservers:
    """Follows the records of one run, in the order of time. Only those of members that a witness records count."""

    def __init__(self, run: str, ends: Literal["recording", "live"] = "recording") -> None:
        """Begin. `ends` says whether what lasts to the end goes on."""
        self._run, self._ends = run, ends
        self._now_us = 0
        self._losses: tuple[Loss, ...] | None = None
        """Those that were known when the story was asked for last."""
        self._begin()

    def _begin(self, past: LogStory | None = None) -> None:
        self._past = past or LogStory(self._run)
        self._observers: RunObservers | None = None
        self._last_words = LastWords()
        self._members: dict[str, None] = {}
        self._rounds: dict[str, tuple[int, int]] = {}
        """By master, how many migrations its round has, and how many of them have ended."""
        self._standing: dict[str, dict[type, tuple[Record, str, int]]] = {}
        """By member, the latest records that hold, with their places."""
        self._count = 0
        self._latest: tuple[tuple[int, int], LogStory] | None = None
        """The story that was asked for last, after how many records and at which second."""

    def add(self, record: Record, file: str = "", line: int = 0) -> None:
        """Take one more record into account, which stands in this line of a journal."""
        self._now_us = max(self._now_us, record.at)
        kind = type(record.event)
        if kind is MemberWitnessed and self._observers is None:
            self._observers = RunObservers(self._run, every_word=False)
        if self._observers is None or kind not in OBSERVED:
            return
        self._count += 1
        if self._ends == "live":
            if kind in _STANDING:
                self._standing.setdefault(record.member, {})[kind] = record, file, line
            if self._count % RENEWED_AFTER == 0:
                self._renew()
                assert self._observers is not None
        self._members[record.member] = None
        self._last_words.add(record)
        message = message_of(record, file, line)
        if isinstance(record.event, ReplicaMigrated):
            for parsed in self._of_round(record.member, record.event):
                self._observers.add(structs.replace(message, parsed=parsed))
            return
        self._observers.add(message)

    def _renew(self) -> None:
        """Keep what was observed, and observe anew from what holds of the members that are reached."""
        found = self.story(losses=self._losses)
        assert found is not None
        if self._count < RENEWED_ANYWAY and any(seen.is_open for seen in found.observations):
            return
        connected = filter(self._last_words.is_connected, self._standing)
        standing = [record for member in connected for record in self._standing[member].values()]
        self._begin(
            LogStory(
                self._run,
                tuple(seen for seen in found.observations if not seen.is_open)[-PAST_KEPT:],
                found.migrations[-PAST_KEPT:],
                found.verdicts[-PAST_KEPT:],
            )
        )
        self._observers = RunObservers(self._run, every_word=False)
        for record, file, line in sorted(standing, key=lambda one: (one[0].at, one[0].uuid, one[0].seq)):
            self.add(record, file, line)

    def _of_round(self, master: str, migrated: ReplicaMigrated) -> Iterator[logged.ParsedMessage]:
        """Yield what the master would log of a round of migrations when the first and the last of it have ended.

        No round begins with a backup that becomes the owner's copy: those are reported, but planned and logged nowhere.
        """
        planned, done = migrated.planned_count, migrated.done_count
        known, most_done = self._rounds.get(master, (0, 0))
        behind = most_done - done > SIDE_BY_SIDE or most_done == planned
        if known != planned or (behind and done <= most_done // 2):
            if migrated.index == 0 and migrated.source is None:
                return
            most_done = 0
            yield logged.LoggedMigrationPlan(planned)
        self._rounds[master] = planned, max(done, most_done)
        if done == planned > most_done:
            yield logged.LoggedMigrationsDone(planned, done)

    def story(self, now_us: int = 0, losses: tuple[Loss, ...] | None = None) -> LogStory | None:
        """Return what is observed up to the latest record, or up to now, with these losses; None where no witness recorded.

        It may be asked for as often as a screen is painted: it is made once a second, where nothing has happened.
        """
        if self._observers is None:
            return None
        self._now_us, self._losses = max(self._now_us, now_us), losses
        asked = self._count, self._now_us // SECOND_US
        if self._latest is None or self._latest[0] != asked:
            words = self._last_words
            now_us = self._now_us
            lasts_us = {
                member: now_us if words.is_connected(member) else words.last_us(member) for member in self._members
            }
            present = self._observers.story(
                LogEnds(now_us, lasts_us, _ENDS[self._ends], is_witnessed=True, losses=losses)
            )
            if self._past.observations or self._past.migrations:
                present = LogStory(
                    self._run,
                    (*self._past.observations, *present.observations),
                    (*self._past.migrations, *present.migrations),
                    (*self._past.verdicts, *present.verdicts),
                )
            self._latest = asked, present
        return self._latest[1]


def message_of(record: Record, file: str = "", line: int = 0) -> InterpretedMessage:
    """Return a record as the message of its member that says the same."""
    text = _words(record.event)
    place = MemberMessage(record.run, record.member, record.utc, record.utc, 0, file, 0, "", text, "", line)
    return InterpretedMessage.of(place, record.at, _parsed(record.event), (record,))


def _parsed(event: Event) -> logged.ParsedMessage:
    match event:
        case events.MergeVerdict() | events.DisconnectionReported() | PartitionLost():
            return event
        case events.MemberStarted(merged_from=""):
            return logged.LoggedStart()
        case events.MemberStopped():
            return logged.LoggedLifecycle("SHUTDOWN")
        case events.ClaimStarted():
            return logged.LoggedClaimStart()
        case events.ClaimFinished(version=version):
            return logged.LoggedClaimFinish(version, ())
        case events.MergeStarted(target=target):
            return logged.LoggedMergeStart(target)
        case events.MergeAbandoned(reason=reason):
            return logged.LoggedMergeAbandonment(reason)
        case _:
            return logged.NoEvent()


def _words(event: Event) -> str:
    """Say in a few words what a record says, for the evidence."""
    match event:
        case events.ListInstalled(version=version, members=members):
            return f"list of version {version}: {', '.join(member.address for member in members)}"
        case events.MergeVerdict(why=why):
            return why
        case ConnectionChanged(state=state, reason=reason):
            return f"{state}: {reason}" if reason else state
        case _:
            kind = str(type(event).__struct_config__.tag)
            return f"{kind}: {reason}" if (reason := getattr(event, "reason", "")) else kind

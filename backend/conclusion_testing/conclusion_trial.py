"""One run of the swarm, watched: at random moments every conclusion of every watcher is compared with what is true."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from random import Random

from msgspec import Struct

from quarterdeck.backend.conclusion_testing.client_watcher import ClientOfHazelcast
from quarterdeck.backend.conclusion_testing.comparison import Compared, Truths, Verdict, compare
from quarterdeck.backend.conclusion_testing.entries import EntryLedger, held_entries
from quarterdeck.backend.conclusion_testing.log_watcher import LogsOfMembers
from quarterdeck.backend.conclusion_testing.situations import judged_scenario
from quarterdeck.backend.conclusion_testing.truth import Truth, running_members, truth_of
from quarterdeck.backend.conclusion_testing.watchers import CutStreams, RunWatcher, WholeStream
from quarterdeck.backend.core.data.events import EntriesMerged
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.membership.events import ListInstalled, MemberMerging, MemberStarted, MemberStopped
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US, Settings
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.run_state import RunState
from quarterdeck.backend.simulation.swarm_testing.trial import run_trial
from quarterdeck.backend.simulation.virtual_time.world import World

GRID_US = 250 * MILLISECOND_US
"""How often holders of entries are looked at besides the moments at which one goes."""
PAUSE_SECONDS = 2.0
"""Between two random moments, on average."""
SOON_US = SECOND_US // 2
SOON_PROBABILITY = 0.3
"""After what changes much a moment follows soon, as often as this."""
TRUTHS_KEPT = 1_000
"""Looks whose truth is remembered."""

GOING = ProcessKilled | MemberStopped | MemberMerging | MemberStarted | EntriesMerged | PartitionLost
MERGING = MemberMerging | MemberStarted | EntriesMerged
CHANGING = (
    ProcessKilled | ProcessPaused | ProcessResumed | MemberStopped | MemberStarted | ListInstalled | PartitionLost
)


class FalseStatement(Struct, frozen=True):
    """A conclusion that is not true, at the first moment of the episode in which it stands."""

    seed: int
    at_us: int
    watcher: str
    statement: Compared

    @property
    def kind(self) -> tuple[str, str, str]:
        """Return the watcher, the question and the answer: false statements of one kind have one fault."""
        return self.watcher, self.statement.question, "" if "metric" in self.statement.question else self.statement.said


class ConclusionTrial(Struct, frozen=True):
    """What the watchers of one run concluded."""

    seed: int
    fingerprint: str
    moments: int
    counts: dict[tuple[str, str, str], int]
    """By watcher, question and verdict."""
    false: tuple[FalseStatement, ...]
    crash: str = ""
    """The error with which the run ended, if it did."""


def judge_seed(seed: int, sizes: tuple[int, int]) -> ConclusionTrial:
    """Draw the run of `seed` and judge its conclusions."""
    try:
        return judge_run(judged_scenario(seed, sizes), seed)
    except RunCrashed as problem:
        return ConclusionTrial(seed, "", 0, {}, (), str(problem))


def judge_run(scenario: Scenario, seed: int) -> ConclusionTrial:
    """Run `scenario` under `seed`, and compare what its watchers conclude with what is true.

    Raises:
        RunCrashed: The run ended with an error.
    """
    run = JudgedRun(seed, scenario.timing())
    trial = run_trial(scenario, seed, run_state=run, bystander=run)
    if trial.verdict == "crash":
        raise RunCrashed(f"seed {seed}: {trial.text}")
    return ConclusionTrial(seed, trial.fingerprint, run.moments, dict(run.counts), tuple(run.false))


class RunCrashed(Exception):
    """The core, a watcher or a comparison raised an error that it must not raise."""


class JudgedRun(RunState):
    """The state of a run, and those who watch it."""

    def __init__(self, seed: int, settings: Settings) -> None:
        super().__init__()
        self.next_us = 0
        self.moments = 0
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.false: list[FalseStatement] = []
        self._seed = seed
        self._draws = Random(f"{seed}/moments")
        self._is_stopped = False
        """Whether the process that went last was asked to stop."""
        self._ledger = EntryLedger(settings.partition_count)
        self._watchers: tuple[RunWatcher, ...] = (
            WholeStream(self.picture),
            CutStreams(seed),
            ClientOfHazelcast(seed),
            LogsOfMembers(seed, settings.max_no_heartbeat_us),
        )
        self._truths: deque[Truth] = deque(maxlen=TRUTHS_KEPT)
        self._open: set[tuple[str, str, str]] = set()
        self._confirmed: dict[str, set[int]] = {}
        """By watcher, the partitions of which it has said for certain that they were lost."""
        self._judge_us = SECOND_US
        self._grid_us = 0
        self._world: World | None = None

    def begin(self, world: World) -> None:
        """Watch this world."""
        self._world = world

    def observe(self, record: Record) -> None:
        """Take in a record, and look at what is held when a holder goes."""
        super().observe(record)
        self._ledger.observe(record)
        for watcher in self._watchers:
            watcher.take(record)
        if isinstance(record.event, GOING) and self._world is not None:
            self._is_stopped = isinstance(record.event, MemberStopped) and record.event.cause == "asked"
            self._look_at_entries(self._world, is_meant=isinstance(record.event, MERGING))
        if isinstance(record.event, CHANGING) and self._world is not None:
            self._truths.append(truth_of(self._world, self._ledger))
        if isinstance(record.event, CHANGING) and self._draws.random() < SOON_PROBABILITY:
            self._judge_us = min(self._judge_us, record.at + int(SOON_US * self._draws.random()))
            self.next_us = min(self.next_us, max(self._judge_us, record.at))

    def look(self) -> None:
        """Look at what is held, and judge if it is time to."""
        world = self._world
        assert world is not None
        now_us = world.now_us
        self._look_at_entries(world, is_meant=False)
        self._truths.append(truth_of(world, self._ledger))
        if now_us >= self._grid_us:
            self._grid_us = now_us + GRID_US
            for watcher in self._watchers:
                watcher.look(world)
        if now_us >= self._judge_us:
            self._judge(now_us)
            self._judge_us = now_us + 1 + int(self._draws.expovariate(1 / PAUSE_SECONDS) * SECOND_US)
        self.next_us = min(self._grid_us, self._judge_us)

    def compare(self, judge: Judge, truths: Truths) -> Iterator[Compared]:
        """Yield the conclusions of one watcher beside the truth."""
        return compare(judge, truths)

    def _look_at_entries(self, world: World, *, is_meant: bool) -> None:
        states = [member.state for member in running_members(world)]
        self._ledger.look(held_entries(states), world.now_us, is_meant=is_meant or (self._is_stopped and not states))

    def _since(self, span_us: int, until_us: int) -> list[Truth]:
        return [truth for truth in self._truths if until_us - span_us <= truth.at_us <= until_us]

    def _judge(self, now_us: int) -> None:
        self.moments += 1
        still: set[tuple[str, str, str]] = set()
        for watcher in self._watchers:
            if self.moments % watcher.every:
                still |= {episode for episode in self._open if episode[0] == watcher.name}
                continue
            judge = watcher.judge(now_us)
            measured = self._since(watcher.measured_us + watcher.late_us, judge.now_us)
            lately = self._since(watcher.late_us, judge.now_us)
            if not lately:
                continue  # it speaks of a time that is long past
            sight = watcher.late_us, watcher.sees_links, watcher.sees_backups
            truths = Truths(lately, measured, self._ledger, *sight, watcher.label_of)
            for statement in (*self.compare(judge, truths), self._remembered(watcher.name, judge)):
                self.counts[watcher.name, statement.question, statement.verdict] += 1
                if statement.verdict == "false":
                    episode = (watcher.name, statement.question, statement.subject)
                    still.add(episode)
                    if episode not in self._open:
                        self.false.append(FalseStatement(self._seed, now_us, watcher.name, statement))
        self._open = still

    def _remembered(self, watcher: str, judge: Judge) -> Compared:
        """Judge whether a watcher still knows each loss that it has said to be certain."""
        known = {partition for loss in judge.losses if loss.state in ("confirmed", "healed") for partition in loss.lost}
        said = self._confirmed.setdefault(watcher, set())
        forgotten = said - known
        said &= known
        said.update(*(loss.lost for loss in judge.losses if loss.is_confirmed))
        verdict: Verdict = "false" if forgotten else "true"
        return Compared("loss remembered", "", f"{len(said)} partitions", f"{len(forgotten)} forgotten", verdict)

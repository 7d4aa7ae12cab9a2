"""The search through all states of a model, beginning with the states that few choices lead to."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec import Struct

from quarterdeck.backend.invariants import Violation
from quarterdeck.backend.simulation.model_checking.checkpoint import Checkpoint, Checkpoints
from quarterdeck.backend.simulation.model_checking.model import Model
from quarterdeck.backend.simulation.model_checking.schedule import ScheduledStep
from quarterdeck.backend.simulation.model_checking.share import Broken, ShareSettings, StateShare
from quarterdeck.backend.simulation.model_checking.share_processes import OwnShare, ShareProcesses, ShareProcessPool

PROGRESS_INTERVAL_SECONDS = 2.0

LOOK = 2_000
"""The number of states that a process looks at before it reports its results to the others."""

LEAST_CHECKPOINT_SECONDS = 30.0
CHECKPOINT_SHARE = 0.05
"""The largest share of the time that goes into checkpoints, as far as the last one shows how long they take."""


class SearchProgress(Struct, frozen=True):
    """How far the search has come."""

    states: int
    transitions: int
    depth: int
    """How many choices lead to the states that are looked at now."""
    frontier: int
    """How many states were found and not looked at."""
    seconds: float

    @property
    def states_per_second(self) -> float:
        return self.states / max(self.seconds, 1e-9)


class Found(Struct, frozen=True):
    """A way to a violation."""

    violation: Violation
    steps: tuple[ScheduledStep, ...]


class Exploration(Struct, frozen=True):
    """The result of a search."""

    model: str
    progress: SearchProgress
    exhausted: bool
    """Whether every state within the bounds was looked at."""
    interrupted: bool
    """Whether it was asked to stop; it can be gone on with where checkpoints are kept."""
    histories: int
    """Different things that were recorded on ways through the model: the invariants were shown each."""
    converged: int
    """After how many states the cluster was left alone, and had to become one."""
    seen: dict[str, int]
    """In how many transitions each kind of event was recorded: a model in which little happens proves little."""
    found: Found | None


class Explorer:
    """Explores one model."""

    def __init__(
        self,
        model: Model,
        *,
        most_states: int,
        processes: int = 1,
        memory_bytes: int = 1_000_000_000,
        by_history: bool = False,
        folder: Path | None = None,
    ) -> None:
        """Prepare a search that ends soon after `most_states`.

        With `by_history` states that were reached by other histories are others. In `folder` it keeps checkpoints, and goes on
        from the one that is there.

        Raises:
            BadCheckpoint: The checkpoint is damaged, or not of this search.
        """
        self.model = model
        self._most_states = most_states
        self._settings = ShareSettings(model, processes, memory_bytes // processes, by_history)
        self._checkpoints = Checkpoints(folder, self._settings) if folder is not None else None

    def explore(
        self,
        on_progress: Callable[[SearchProgress], None] = lambda progress: None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> Exploration:
        """Look at all states, until one breaks an invariant, their number exceeds the bound, or the search is asked to stop."""
        checkpoint = self._checkpoints.latest() if self._checkpoints is not None else None
        settings = self._settings if checkpoint is None else checkpoint.settings
        if self._checkpoints is not None:
            self._checkpoints.settings = settings
        shares: ShareProcessPool = ShareProcesses(settings) if settings.shares > 1 else OwnShare(settings)
        try:
            search = StateSearch(shares, checkpoint)
            self._run(search, on_progress, is_stopped)
            return self._exploration(search, interrupted=is_stopped())
        finally:
            shares.close()

    def _run(
        self, search: StateSearch, on_progress: Callable[[SearchProgress], None], is_stopped: Callable[[], bool]
    ) -> None:
        reported = kept = time.monotonic()
        interval_seconds = LEAST_CHECKPOINT_SECONDS
        while search.goes_on(self._most_states, self.model.bounds.steps) and not is_stopped():
            search.look(LOOK)
            if time.monotonic() - reported > PROGRESS_INTERVAL_SECONDS:
                reported = time.monotonic()
                on_progress(search.progress())
            if self._checkpoints is not None and time.monotonic() - kept > interval_seconds:
                began = time.monotonic()
                search.keep(self._checkpoints)
                kept = time.monotonic()
                interval_seconds = max(LEAST_CHECKPOINT_SECONDS, (kept - began) / CHECKPOINT_SHARE)
        if not is_stopped():
            search.end()
        if self._checkpoints is not None:
            if search.broken or search.is_exhausted:
                self._checkpoints.remove()
            else:
                search.keep(self._checkpoints)

    def _exploration(self, search: StateSearch, *, interrupted: bool) -> Exploration:
        broken = min(search.broken, key=lambda one: (len(one.way), one.way), default=None)
        found = None
        if broken is not None:
            found = Found(broken.violation, StateShare(self._settings, 0).steps(broken.way))
        seen: Counter[str] = Counter()
        for report in search.reports:
            seen.update(report.seen)
        return Exploration(
            self.model.name,
            search.progress(),
            search.is_exhausted and found is None,
            interrupted,
            sum(report.histories for report in search.reports),
            sum(report.calm for report in search.reports),
            dict(sorted(seen.items(), key=lambda one: (-one[1], one[0]))),
            found,
        )


class StateSearch:
    """One search under way: the reports of its shares, and the present depth."""

    def __init__(self, shares: ShareProcessPool, checkpoint: Checkpoint | None) -> None:
        self._shares = shares
        self._began = time.monotonic()
        self._depth = 0
        self._is_at_the_bound = False
        if checkpoint is None:
            self.reports = shares.ask("begin")
        else:
            self.reports = shares.ask("read", checkpoint.folder)
            self._depth, self._began = checkpoint.depth, self._began - checkpoint.seconds

    @property
    def broken(self) -> list[Broken]:
        return [report.broken for report in self.reports if report.broken is not None]

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing is left to be looked at."""
        return self._is_at_the_bound or not any(
            report.left + report.next + report.on_their_way for report in self.reports
        )

    def goes_on(self, most_states: int, most_steps: int | None) -> bool:
        """Whether to look at more: goes one choice deeper where nothing is left of the present depth."""
        if self.broken or self.is_exhausted or sum(report.states for report in self.reports) >= most_states:
            return False
        if not any(report.left + report.on_their_way for report in self.reports):
            if most_steps is not None and self._depth >= most_steps:
                self._is_at_the_bound = True
                return False
            self._depth += 1
            self.reports = self._shares.ask("go_deeper")
        return True

    def look(self, most: int) -> None:
        self.reports = self._shares.ask("look", most)

    def end(self) -> None:
        if not self.broken:
            self.reports = self._shares.ask("leave_last_alone")

    def keep(self, checkpoints: Checkpoints) -> None:
        while any(report.on_their_way for report in self.reports):
            self.reports = self._shares.ask("look", 0)
        checkpoints.write(partial(self._shares.ask, "write"), self._depth, time.monotonic() - self._began)

    def progress(self) -> SearchProgress:
        reports = self.reports
        return SearchProgress(
            sum(report.states for report in reports),
            sum(report.transitions for report in reports),
            max(0, self._depth - 1),
            sum(report.left + report.next + report.on_their_way for report in reports),
            time.monotonic() - self._began,
        )

"""The search through all states of a model on Spark: a level of states after the other.

For each level: tasks look at the states of a file each, and what they reach comes together by code. Of several ways to a state
the first one stays, as in one process; states that were met are left out. Small levels are looked at in this process.
"""

from __future__ import annotations

import pickle
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import msgspec
import pyarrow as pa
from msgspec import Struct
from pyspark.sql import SparkSession

from quarterdeck.backend.pipeline.checking.level import (
    KEPT,
    REACHED,
    LevelShare,
    LevelWork,
    file_of,
    last_in,
    learnt_of,
    read_learnt,
    share_of,
)
from quarterdeck.backend.pipeline.spark.arrow import in_tasks
from quarterdeck.backend.pipeline.spark.session import parallelism
from quarterdeck.backend.simulation.model_checking.checkpoint import BadCheckpoint, digest_of, program_digest
from quarterdeck.backend.simulation.model_checking.exploration import Exploration, Found, SearchProgress
from quarterdeck.backend.simulation.model_checking.model import Model
from quarterdeck.backend.simulation.model_checking.share import Broken, ShareSettings, StateShare

STATES_A_PART = 40_000
"""Some seconds of work; a task costs some hundredths of one."""

FEW_STATES = 2_000
"""So many states this process looks at sooner than Spark plans a job."""

MANIFEST = "search.json"


class _Manifest(Struct):
    """How far a search has come: levels up to `level` are there, and those before it were looked at."""

    search: str
    """What is searched: the model and its bounds, by which program, and how states are distinguished."""
    level: int = 0
    states: int = 0
    frontier: int = 0
    transitions: int = 0
    calm: int = 0
    seconds: float = 0.0
    seen: dict[str, int] = {}
    """In how many transitions each kind of event was recorded."""


class SparkExplorer:
    """Explores one model. `folder` has to be one that all executors see; a search that is there is gone on with."""

    def __init__(
        self,
        spark: SparkSession,
        model: Model,
        folder: Path,
        *,
        most_states: int,
        memory_bytes: int = 1_000_000_000,
        by_history: bool = False,
    ) -> None:
        """Prepare a search, or take up the one in the folder. Raises `BadCheckpoint` where that is another one."""
        self._spark, self._folder, self._most_states = spark, folder, most_states
        self._tasks = parallelism(spark)
        self._settings = ShareSettings(model, 1, memory_bytes // self._tasks, by_history)
        self._search = uuid4().hex
        self._began = time.monotonic()
        self._broken: list[Broken] = []
        what = digest_of(f"{model!r} {program_digest()} {by_history}")
        kept = self._kept(what)
        self._manifest = kept or _Manifest(what)
        if kept is None:
            self._begin()

    def explore(
        self,
        on_progress: Callable[[SearchProgress], None] = lambda progress: None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> Exploration:
        """Look at all states, until one breaks an invariant, there are too many, or it is asked to stop."""
        manifest, most_steps = self._manifest, self._settings.model.bounds.steps
        ends = False
        while not (ends or self._broken or is_stopped() or manifest.states >= self._most_states):
            ends = not manifest.frontier or (most_steps is not None and manifest.level >= most_steps)
            if ends:
                self._end()
            else:
                self._expand()
                on_progress(self._progress())
        exploration = self._exploration(exhausted=ends and not self._broken, interrupted=is_stopped())
        if ends or self._broken:
            shutil.rmtree(self._folder)
        return exploration

    # Levels

    def _begin(self) -> None:
        for leftover in ("states", "learnt"):  # of a search that was killed at once
            shutil.rmtree(self._folder / leftover, ignore_errors=True)
        share, work = self._share(), LevelWork(self._search, self._settings, self._folder, level=0, parts=1)
        share.begin_task(self._folder)
        share.begin()
        share.end_task(learnt_of(self._folder, 0, 0))
        self._manifest.states = self._manifest.frontier = sum(_counts(work.keep(work.rows_of(share))))
        self._keep()

    def _expand(self) -> None:
        """Look at the states of the present level, and keep the next one."""
        manifest = self._manifest
        manifest.level += 1
        manifest.frontier = self._look(self._files(manifest.level - 1), manifest.frontier, expands=True)
        manifest.states += manifest.frontier
        self._keep()

    def _end(self) -> None:
        """See what becomes of states at the bound, and of the one that was looked at last."""
        manifest = self._manifest
        if manifest.frontier:
            manifest.level += 1
            self._look(self._files(manifest.level - 1), manifest.frontier, expands=False)
            manifest.level -= 1
        if manifest.level and not self._broken:
            share, learnt = self._share(), learnt_of(self._folder, manifest.level + 2, 0)
            share.begin_task(self._folder)
            share.leave_alone(last_in(self._files(manifest.level - 1)))
            share.end_task(learnt)
            self._take_in(learnt)

    def _look(self, files: Sequence[Path], count: int, *, expands: bool) -> int:
        """Look at these states, so many in all. Return how many new ones the present level has, and take in what was learnt."""
        level, parts = self._manifest.level, 1
        while parts * STATES_A_PART < 2 * count or (count > FEW_STATES and parts < self._tasks):
            parts *= 2
        for leftover in (file_of(self._folder, level, 0, 1).parent, learnt_of(self._folder, level, 0).parent):
            shutil.rmtree(leftover, ignore_errors=True)  # of a search that was killed
        work = LevelWork(self._search, self._settings, self._folder, level, parts, expands)
        tasks = list(enumerate(files))
        if count > FEW_STATES:
            reached = in_tasks(self._spark, tasks, work.look, REACHED).repartitionById(parts, "part")
            new = sum(int(row.states) for row in reached.mapInArrow(work.keep, KEPT).collect())
        else:
            given = pa.table({"task": [pickle.dumps(task) for task in tasks]}).to_batches()
            new = sum(_counts(work.keep(work.look(iter(given)))))
        for number, _ in tasks:
            self._take_in(learnt_of(self._folder, level, number))
        return new

    def _take_in(self, learnt: Path) -> None:
        manifest, (report, _) = self._manifest, read_learnt(learnt)
        manifest.transitions += report.transitions
        manifest.calm += report.calm
        manifest.seen = dict(Counter(manifest.seen) + report.seen)
        self._broken += [report.broken] if report.broken is not None else []

    def _share(self) -> LevelShare:
        """Return what this process knows of the search."""
        return share_of(self._search, self._settings)

    def _files(self, level: int) -> list[Path]:
        return sorted(file_of(self._folder, level, 0, 1).parent.glob("*.parquet"))

    def _keep(self) -> None:
        """Let the level count, from now on."""
        self._manifest.seconds += time.monotonic() - self._began
        self._began = time.monotonic()
        new = self._folder / f"{MANIFEST}.new"
        new.write_bytes(msgspec.json.encode(self._manifest))
        new.replace(self._folder / MANIFEST)

    def _kept(self, what: str) -> _Manifest | None:
        """Return how far the search in the folder has come, if there is one. Raises `BadCheckpoint`."""
        file = self._folder / MANIFEST
        try:
            manifest = msgspec.json.decode(file.read_bytes(), type=_Manifest)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as problem:
            raise BadCheckpoint(f"{file}: {problem}; delete the folder to begin anew") from None
        if manifest.search != what:
            raise BadCheckpoint(
                f"{file}: is of another model, of other bounds or of another version of the program; "
                "give another folder, or delete this one to begin anew"
            )
        return manifest

    # Reports

    def _progress(self) -> SearchProgress:
        manifest = self._manifest
        seconds = manifest.seconds + time.monotonic() - self._began
        return SearchProgress(
            manifest.states, manifest.transitions, max(0, manifest.level - 1), manifest.frontier, seconds
        )

    def _exploration(self, *, exhausted: bool, interrupted: bool) -> Exploration:
        found = None
        broken = min(self._broken, key=lambda one: (len(one.way), one.way), default=None)
        if broken is not None:
            found = Found(broken.violation, StateShare(self._settings, 0).steps(broken.way))
        share = self._share()
        share.begin_task(self._folder)
        share.is_busy = False
        seen = sorted(self._manifest.seen.items(), key=lambda one: (-one[1], one[0]))
        return Exploration(
            self._settings.model.name,
            self._progress(),
            exhausted,
            interrupted,
            share.report().histories,
            self._manifest.calm,
            dict(seen),
            found,
        )


def _counts(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    return (states for batch in batches for states in batch["states"].to_pylist())

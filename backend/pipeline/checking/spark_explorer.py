"""The search through all states of a model as tables of Spark's: a level of states after the other.

For each level: states of similar members together in a task, with the snapshots that they need and no others; then what they
lead to together by code. Of several ways to a state the first one stays, as in one process; states that were met are left out.
"""

from __future__ import annotations

import pickle
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Struct
from pyarrow.dataset import dataset
from pyarrow.parquet import read_table
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.checking.level import (
    LEARNT,
    MEMBER,
    REPORT,
    ROWS,
    STATE,
    Learnt,
    LevelShare,
    look_at_rows,
    looking,
)
from quarterdeck.backend.pipeline.spark.session import parallelism
from quarterdeck.backend.simulation.model_checking.checkpoint import BadCheckpoint, digest_of, program_digest
from quarterdeck.backend.simulation.model_checking.exploration import Exploration, Found, SearchProgress
from quarterdeck.backend.simulation.model_checking.model import Model
from quarterdeck.backend.simulation.model_checking.share import Broken, ShareReport, ShareSettings, StateShare

STATES_A_TASK = 20_000
"""Some seconds of work; a task costs some hundredths of one."""

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
        self._learnt: Learnt = ({}, {}, {})
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
        exhausted = ends and not self._broken
        if exhausted or self._broken:
            shutil.rmtree(self._folder)
        return self._exploration(exhausted=exhausted, interrupted=is_stopped())

    # Levels

    def _expand(self) -> None:
        """Look at the states of the present level, and keep the next one."""
        manifest = self._manifest
        found = self._found(self._states(manifest.level), manifest.frontier, "expand")
        following = manifest.level + 1
        self._read(found, MEMBER).dropDuplicates(["number"]).join(
            self._all("members").select("number"), "number", "left_anti"
        ).select("number", "payload").write.mode("overwrite").parquet(self._path("members", following))
        first = F.min(F.struct("way", "members", "payload")).alias("first")
        self._read(found, STATE).groupBy("code").agg(first).select("code", "first.*").join(
            self._all("states"), "code", "left_anti"
        ).write.mode("overwrite").parquet(self._path("states", following))
        manifest.frontier = dataset(self._path("states", following), format="parquet").count_rows()
        manifest.states += manifest.frontier
        manifest.level = following
        self._keep(found)

    def _end(self) -> None:
        """See what becomes of states at the bound, and of the one that was looked at last."""
        manifest = self._manifest
        if manifest.frontier:
            self._found(self._states(manifest.level), manifest.frontier, "leave")
        if manifest.level and not self._broken:
            last = self._states(manifest.level - 1).orderBy(F.desc("way")).limit(1)
            self._found(last, 1, "leave all")

    def _found(self, states: DataFrame, count: int, work: str) -> Path:
        found = self._folder / "found"
        rows = self._job(states, count, work)
        rows.write.mode("overwrite").partitionBy("holds").parquet(str(found))
        self._take_in(found)
        return found

    def _job(self, states: DataFrame, count: int, work: str) -> DataFrame:
        """Return the rows that come of looking at these states: those of similar members in one task, with their snapshots."""
        tasks = max(self._tasks, count // STATES_A_TASK)
        placed = states.withColumn("part", F.pmod(F.hash("members"), F.lit(tasks)))
        needed = placed.select("part", F.explode("members").alias("number")).distinct()
        members = needed.join(self._all("members"), "number").withColumn("holds", F.lit(MEMBER))
        rows = placed.withColumn("holds", F.lit(STATE)).unionByName(members, allowMissingColumns=True)
        together = rows.repartition(tasks, "part").sortWithinPartitions("part", "holds", "way")
        packed = pickle.dumps(self._learnt, protocol=5)
        return together.mapInArrow(looking(self._search, self._settings, packed, work), ROWS)

    def _take_in(self, found: Path) -> None:
        manifest, seen = self._manifest, Counter(self._manifest.seen)
        for holds in (LEARNT, REPORT):
            # This process sees the folder, too: jobs of Spark's would cost each depth a second.
            for payload in read_table(found / f"holds={holds}", columns=["payload"]).column("payload").to_pylist():
                taken = pickle.loads(payload)
                if isinstance(taken, ShareReport):
                    manifest.transitions += taken.transitions
                    manifest.calm += taken.calm
                    seen.update(taken.seen)
                    self._broken += [taken.broken] if taken.broken is not None else []
                else:
                    for known, more in zip(self._learnt, taken, strict=True):
                        known.update(more)
        manifest.seen = dict(seen)

    # Tables

    def _begin(self) -> None:
        share = LevelShare(self._settings)
        share.first()
        rows = list(look_at_rows(share, self._learnt, iter(()), "expand", begins=False))
        self._folder.mkdir(parents=True, exist_ok=True)
        found = self._folder / "found"
        self._spark.createDataFrame(rows, ROWS).write.mode("overwrite").partitionBy("holds").parquet(str(found))
        self._take_in(found)
        for name, holds, columns in (
            ("members", MEMBER, ["number", "payload"]),
            ("states", STATE, ["code", "way", "members", "payload"]),
        ):
            self._read(found, holds).select(columns).write.mode("overwrite").parquet(self._path(name, 0))
        self._manifest.states = self._manifest.frontier = 1
        self._keep(found)

    def _keep(self, found: Path) -> None:
        """Let the level count, from now on."""
        self._manifest.seconds += time.monotonic() - self._began
        self._began = time.monotonic()
        (self._folder / "learnt.new").write_bytes(pickle.dumps(self._learnt, protocol=5))
        (self._folder / "learnt.new").replace(self._folder / f"learnt-{self._manifest.level:04}")
        new = self._folder / f"{MANIFEST}.new"
        new.write_bytes(msgspec.json.encode(self._manifest))
        new.replace(self._folder / MANIFEST)
        for old in self._folder.glob("learnt-*"):
            if old.name != f"learnt-{self._manifest.level:04}":
                old.unlink()
        shutil.rmtree(found)

    def _kept(self, what: str) -> _Manifest | None:
        """Return how far the search in the folder has come, if there is one. Raises `BadCheckpoint`."""
        file = self._folder / MANIFEST
        try:
            manifest = msgspec.json.decode(file.read_bytes(), type=_Manifest)
            learnt = (self._folder / f"learnt-{manifest.level:04}").read_bytes() if manifest.search == what else b""
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as problem:
            raise BadCheckpoint(f"{file}: {problem}; delete the folder to begin anew") from None
        if manifest.search != what:
            raise BadCheckpoint(
                f"{file}: is of another model, of other bounds or of another version of the program; "
                "give another folder, or delete this one to begin anew"
            )
        self._learnt = pickle.loads(learnt)
        return manifest

    def _path(self, name: str, level: int) -> str:
        return str(self._folder / name / f"level={level:04}")

    def _states(self, level: int) -> DataFrame:
        return (
            self._spark.read.schema(ROWS)
            .parquet(self._path("states", level))
            .select("code", "way", "members", "payload")
        )

    def _all(self, name: str) -> DataFrame:
        """Return a table of all levels that count."""
        paths = [self._path(name, level) for level in range(self._manifest.level + 1)]
        return (
            self._spark.read.schema(ROWS)
            .parquet(*paths)
            .select(*(("number", "payload") if name == "members" else ("code",)))
        )

    def _read(self, found: Path, holds: str) -> DataFrame:
        part = found / f"holds={holds}"
        if not part.exists():
            return self._spark.createDataFrame([], ROWS)
        return self._spark.read.schema(ROWS).parquet(str(part))

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
        seen = sorted(self._manifest.seen.items(), key=lambda one: (-one[1], one[0]))
        return Exploration(
            self._settings.model.name,
            self._progress(),
            exhausted,
            interrupted,
            len(self._learnt[2]),
            self._manifest.calm,
            dict(seen),
            found,
        )

"""The search through all states of a model on Spark: a level of states after the other.

For each level: tasks look at the states of a file each, and what they reach comes together by code. Of several ways to a state
the first one stays, as in one process; states that were met are left out. Small levels are looked at in this process.

Files say all there is: of each level the states in each part, and what each task has learnt of inputs, members, records and
histories. A worker reads what the others have learnt before it looks at states, and remembers it for later tasks.
"""

from __future__ import annotations

import pickle
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from pyarrow.parquet import read_table, write_table
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from quarterdeck.backend.pipeline.spark.arrow import batches_of, exit_with_task, in_tasks, tasks_in
from quarterdeck.backend.pipeline.spark.session import parallelism
from quarterdeck.backend.simulation.model_checking.checkpoint import BadCheckpoint, digest_of, program_digest
from quarterdeck.backend.simulation.model_checking.exploration import Exploration, Found, SearchProgress
from quarterdeck.backend.simulation.model_checking.model import Model, State
from quarterdeck.backend.simulation.model_checking.share import Broken, Reached, ShareReport, ShareSettings, StateShare
from quarterdeck.backend.simulation.model_checking.spilling import CODE_BYTES

STATES_A_PART = 20_000
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


# What tasks do with a level of states

REACHED = StructType(
    [
        StructField("part", IntegerType()),
        StructField("code", BinaryType()),
        StructField("way", BinaryType()),
        StructField("payload", BinaryType()),
    ]
)
"""A state that was reached: the part of the level that it belongs to, its code, the way to it, and what it is."""

KEPT = StructType([StructField("states", LongType())])
"""How many new states a part has."""

ROWS_IN_A_BATCH = 10_000


class LevelShare(StateShare):
    """Looks at states that it is given, and keeps where they lead instead of following."""

    def __init__(self, settings: ShareSettings) -> None:
        super().__init__(settings, 0)
        self.reached: dict[int, Reached] = {}
        self.is_busy = False
        """Whether a task began that has not written what it learnt: if it was broken off, others will never know."""
        self._read = set[Path]()

    def begin_task(self, search: Path) -> None:
        """Learn what all others have learnt, and forget what was reached and counted."""
        self.is_busy = True
        for file in sorted((search / "learnt").glob("*/*.task")):
            if file not in self._read:
                self._read.add(file)
                self.learn(read_learnt(file)[1])
        self.news()  # which no other has to hear
        self.reached, self._report = {}, ShareReport()
        self._recorded.clear()

    def end_task(self, learnt: Path) -> None:
        """Write what was counted and learnt. If the task was done before, what was written then stands: it refers to no other."""
        content = pickle.dumps((self.report(), self.news()), protocol=5)
        if not learnt.exists():
            write_in_one_step(learnt, content)
        self._read.add(learnt)
        self.is_busy = False

    def look_at(self, code: int, reached: Reached, *, expands: bool) -> None:
        """Leave the state alone where it is one of those that are, and look one choice further if it `expands`."""
        if self.is_left_alone(code, reached):
            self.leave_alone(reached)
        if expands and self._report.broken is None:
            self._look_at(reached)

    def _take(self, code: int, reached: Reached) -> None:
        known = self.reached.get(code)
        if known is None or reached.way < known.way:
            self.reached[code] = reached


_shares: dict[str, LevelShare] = {}
"""In a worker: that of the search under way."""


def share_of(search: str, settings: ShareSettings) -> LevelShare:
    """Return what this process knows of the search; a new one for another search, or where its last task was broken off."""
    share = _shares.get(search)
    if share is None or share.is_busy:
        for other in _shares.values():
            other.close()
        _shares.clear()
        share = _shares[search] = LevelShare(settings)
    return share


class LevelWork(NamedTuple):
    """What the tasks of one level have in common."""

    search: str
    """A name that no other search has."""
    settings: ShareSettings
    folder: Path
    level: int
    """The level that is reached."""
    parts: int
    """Its number of parts, a power of two: a part has all states whose codes begin with the same bits."""
    expands: bool = True

    def look(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Look at the states of the files that the tasks name, and yield those that were reached."""
        exit_with_task()
        for number, file in tasks_in(batches):
            share = share_of(self.search, self.settings)
            share.begin_task(self.folder)
            for code, reached in _states_in(file):
                share.look_at(int.from_bytes(code), reached, expands=self.expands)
            share.end_task(learnt_of(self.folder, self.level, number))
            yield from self.rows_of(share)

    def rows_of(self, share: LevelShare) -> Iterator[pa.RecordBatch]:
        """Yield the states that a share has reached."""
        encode = msgspec.msgpack.Encoder().encode
        shift = 8 * CODE_BYTES - (self.parts - 1).bit_length()
        rows = (
            (code >> shift, code.to_bytes(CODE_BYTES), reached.way, encode((reached.state, reached.history)))
            for code, reached in share.reached.items()
        )
        return batches_of(rows, REACHED, ROWS_IN_A_BATCH)

    def keep(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the states that were not met before, each with the first of the ways to it, and yield how many these are."""
        exit_with_task()
        some = list(batches)
        if not some:
            return
        table = pa.Table.from_batches(some)
        for part in pc.unique(table["part"]).to_pylist():
            new = self._new(table.filter(pc.equal(table["part"], part)), part)
            write_states(file_of(self.folder, self.level, part, self.parts), new)
            yield from batches_of([(new.num_rows,)], KEPT)

    def _new(self, reached: pa.Table, part: int) -> pa.Table:
        ordered = reached.drop(["part"]).sort_by([("code", "ascending"), ("way", "ascending")]).combine_chunks()
        codes = ordered["code"]
        changes = pc.not_equal(codes[1:], codes[:-1]).combine_chunks()
        once = ordered.filter(pa.concat_arrays([pa.array([True]), changes]))
        for file in met_files(self.folder, self.level, part, self.parts):
            met = read_table(file, columns=["code"])["code"]
            once = once.filter(pc.invert(pc.is_in(once["code"], value_set=met)))
        return once


def _states_in(file: Path) -> Iterator[tuple[bytes, Reached]]:
    decode = msgspec.msgpack.Decoder(tuple[State, int]).decode
    for batch in read_table(file).to_batches(ROWS_IN_A_BATCH):
        for code, way, payload in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            state, history = decode(payload)
            yield code, Reached(state, way, history)


def last_in(files: Iterable[Path]) -> Reached:
    """Return the state with the greatest of all ways."""
    return max((reached for file in files for _, reached in _states_in(file)), key=lambda reached: reached.way)


# Files


def learnt_of(folder: Path, level: int, task: int) -> Path:
    """Return the file of what a task has counted and learnt that reached this level."""
    return folder / "learnt" / f"level={level:04}" / f"{task:05}.task"


def read_learnt(file: Path) -> tuple[ShareReport, bytes]:
    """Return what is in it: the counts, and what was learnt, as a share takes it in."""
    content: tuple[ShareReport, bytes] = pickle.loads(file.read_bytes())
    return content


def file_of(folder: Path, level: int, part: int, parts: int) -> Path:
    """Return the file of the states in this part of a level."""
    return folder / "states" / f"level={level:04}" / f"{part}-of-{parts}.parquet"


def met_files(folder: Path, level: int, part: int, parts: int) -> list[Path]:
    """Return the files of earlier levels that may have states of this part."""
    found = []
    for file in (folder / "states").glob("level=*/*.parquet"):
        other, others = map(int, re.findall(r"\d+", file.stem))
        is_earlier = int(file.parent.name.partition("=")[2]) < level
        if is_earlier and part * others < (other + 1) * parts and other * parts < (part + 1) * others:
            found.append(file)
    return found


def write_states(file: Path, states: pa.Table) -> None:
    """Write a file of states."""
    sink = pa.BufferOutputStream()
    write_table(states, sink, compression="zstd", use_dictionary=False)
    write_in_one_step(file, sink.getvalue())


def write_in_one_step(file: Path, content: bytes | pa.Buffer) -> None:
    """Write a file that other processes see as a whole or not at all."""
    new = file.with_suffix(f".{uuid4().hex}")  # a task may be carried out twice at a time
    new.parent.mkdir(parents=True, exist_ok=True)
    new.write_bytes(content)
    new.replace(file)

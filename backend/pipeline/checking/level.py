"""What tasks do with a level of states: some look where the states of a file lead, others keep what is new of a part of that.

Files say all there is: of each level the states in each part, and what each task has learnt of inputs, members, records and
histories. A worker reads what the others have learnt before it looks at states, and remembers it for later tasks.
"""

from __future__ import annotations

import pickle
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile, write_table
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from quarterdeck.backend.pipeline.spark.arrow import batches_of, tasks_in
from quarterdeck.backend.pipeline.spark.work import exit_with_task
from quarterdeck.backend.pipeline.tasks import collector_paused
from quarterdeck.backend.simulation.model_checking.model import State
from quarterdeck.backend.simulation.model_checking.share import Reached, ShareReport, ShareSettings, StateShare
from quarterdeck.backend.simulation.model_checking.spilling import CODE_BYTES

STATES = pa.schema({"code": pa.binary(CODE_BYTES), "way": pa.binary(), "history": pa.int64(), "state": pa.binary()})
"""States: the code of each, the way to it, the history on that way, and what it is."""

REACHED = StructType([StructField("part", IntegerType()), StructField("states", BinaryType())])
"""All states that a task has reached in a part of the level. Java passes them on as one value, whatever their number."""

KEPT = StructType([StructField("states", LongType())])
"""How many new states a part has."""

ROWS_IN_A_BATCH = 10_000
COMPRESSION = "zstd"


class LevelShare(StateShare):
    """Looks at states that it is given, and keeps where they lead instead of following."""

    def __init__(self, settings: ShareSettings) -> None:
        super().__init__(settings, 0)
        self.reached: dict[bytes, tuple[bytes, int, bytes]] = {}
        """By code; the columns of `STATES` that follow it."""
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
        self.reported = self.known  # what others have learnt they know already
        self.reached, self._report = {}, ShareReport()
        self._recorded.clear()

    def end_task(self, learnt: Path) -> None:
        """Write what was counted and learnt. If the task was done before, what was written then stands: it refers to no other."""
        content = pickle.dumps((self.report(), self.news()), protocol=5)
        if not learnt.exists():
            write_in_one_step(learnt, content)
        self._read.add(learnt)
        self.is_busy = False

    def look_at(self, code: bytes, reached: Reached, *, expands: bool) -> None:
        """Leave the state alone where it is one of those that are, and look one choice further if it `expands`."""
        if self.is_left_alone(int.from_bytes(code), reached):
            self.leave_alone(reached)
        if expands and self._report.broken is None:
            self._look_at(reached)

    def _reach(self, reached: Reached) -> None:
        state, way, history = reached
        encoded = self._encode(state)
        code = self._code_of(encoded, history)
        known = self.reached.get(code)
        if known is None or way < known[0]:
            self.reached[code] = (way, history, encoded)


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
            with collector_paused():  # states are in no cycle, and there are many
                for code, reached in _states_in(file):
                    share.look_at(code, reached, expands=self.expands)
            share.end_task(learnt_of(self.folder, self.level, number))
            yield from self.rows_of(share)

    def rows_of(self, share: LevelShare) -> Iterator[pa.RecordBatch]:
        """Yield the states that a share has reached, those of each part in a batch of its own."""
        if not share.reached:
            return
        columns = [list(share.reached), *zip(*share.reached.values(), strict=True)]
        states = pa.table(columns, schema=STATES)
        share.reached = {}
        first_bits = np.frombuffer(states["code"].chunk(0).buffers()[1], ">u4")[:: CODE_BYTES // 4]
        part_of = first_bits >> (32 - (self.parts - 1).bit_length())
        for part in np.unique(part_of).tolist():
            content = pa.BufferOutputStream()
            options = pa.ipc.IpcWriteOptions(compression=COMPRESSION)
            with pa.ipc.new_stream(content, STATES, options=options) as stream:
                stream.write_table(states.filter(pa.array(part_of == part)))
            yield from batches_of([(part, content.getvalue().to_pybytes())], REACHED)

    def keep(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the states that were not met before, each with the first of the ways to it, and yield how many these are."""
        exit_with_task()
        reached = defaultdict[int, list[pa.Table]](list)
        for batch in batches:
            for part, states in zip(batch["part"].to_pylist(), batch["states"], strict=True):
                reached[part].append(pa.ipc.open_stream(states.as_buffer()).read_all())
        for part, tables in reached.items():
            new = self._new(pa.concat_tables(tables), part)
            write_states(file_of(self.folder, self.level, part, self.parts), new)
            yield from batches_of([(new.num_rows,)], KEPT)

    def _new(self, reached: pa.Table, part: int) -> pa.Table:
        ordered = reached.sort_by([("code", "ascending"), ("way", "ascending")]).combine_chunks()
        codes = ordered["code"]
        changes = pc.not_equal(codes[1:], codes[:-1]).combine_chunks()
        once = ordered.filter(pa.concat_arrays([pa.array([True]), changes]))
        for file in met_files(self.folder, self.level, part, self.parts):
            met = ParquetFile(file).read(columns=["code"])["code"]
            again = met.filter(pc.is_in(met, value_set=once["code"]))  # the smaller one is hashed
            once = once.filter(pc.invert(pc.is_in(once["code"], value_set=again)))
        return once.sort_by("way")  # as one process looks at them: what is alike is near each other


def _states_in(file: Path) -> Iterator[tuple[bytes, Reached]]:
    decode = msgspec.msgpack.Decoder(State).decode
    for batch in ParquetFile(file).iter_batches(ROWS_IN_A_BATCH):
        for code, way, history, state in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield code, Reached(decode(state), way, history)


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
    write_table(states, sink, compression=COMPRESSION, use_dictionary=False)
    write_in_one_step(file, sink.getvalue())


def write_in_one_step(file: Path, content: bytes | pa.Buffer) -> None:
    """Write a file that other processes see as a whole or not at all."""
    new = file.with_suffix(f".{uuid4().hex}")  # a task may be carried out twice at a time
    new.parent.mkdir(parents=True, exist_ok=True)
    new.write_bytes(content)
    new.replace(file)

"""One update of a store in either format: folds new lines into the events, and makes the tables of the runs that have changed.

The kept tables are datasets of pyarrow. What is new is written into a folder; whose kept rows it replaces is said beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.dataset import Dataset

from quarterdeck.backend.journal.files import OPEN_DIRECTORY, OPEN_SUFFIX
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit_input import AuditInput, Group
from quarterdeck.backend.pipeline.judging.lines import file_order
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.tables.batches import ARROW, ROWS_A_GROUP, TABLES, BatchWriter, needed
from quarterdeck.backend.pipeline.tables.run_events import QuarantineRow, RecordLine, RunLines, shares_of
from quarterdeck.backend.pipeline.tasks import collector_paused, tasks_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_AT_ONCE = 200_000
KEPT = ("events", "quarantine")
"""The tables that hold the lines, of which all others are made."""

Counts = dict[str, tuple[int, int]]
"""By run, how many records it has, and how many quarantined lines."""


class RunDivided(Exception):
    """Raised where lines of one run come in several groups of files: these have to be read as one."""


OpenKept = Callable[[], Mapping[str, Dataset]]
"""Opens the kept tables, also in a task of Spark's."""


def fold_in(
    kept: OpenKept,
    new: AuditInput,
    folder: Path,
    unfinished: Collection[str] = (),
    spark: SparkSession | None = None,
) -> Fold:
    """Fold the lines of these files into the tables `kept`; on Spark where a session is given. Raises OSError.

    The tables of `unfinished` runs are made of their kept events, if no lines of theirs are new.
    """
    groups, again = new.groups(), names_read_again(new)
    while True:
        fold = Fold(kept(), folder, again)
        try:
            if spark is None:
                for group in groups:
                    fold.add(group)
            else:
                for counts, replaced in _on_spark(spark, kept, groups, folder, again):
                    fold.include(counts, replaced)
            fold.end(unfinished)
            return fold
        except RunDivided:  # rare: parts of one run are in several groups
            groups = [tuple(new.files)]
            for table in ARROW:
                commit.remove(folder / table)


TASKS_A_CORE = 2
LEAST_BYTES_A_TASK, MOST_BYTES_A_TASK = 16 << 20, 1 << 30
"""Of lines, which become a fifteenth of that in a file of the table `events`."""

Folded = tuple["Counts", dict[str, set[str]]]
"""The counts of some runs, and by table the runs whose kept rows give way."""


def _on_spark(
    spark: SparkSession, kept: OpenKept, groups: Sequence[Group], folder: Path, again: Collection[str]
) -> list[Folded]:
    """Fold in the lines of these groups of files in tasks, each of which writes files of its own."""
    from quarterdeck.backend.pipeline.spark.arrow import carry_out_in_rows
    from quarterdeck.backend.pipeline.spark.session import parallelism

    sizes = [sum(file.size_bytes for file in group) for group in groups]
    wanted = sum(sizes) // (TASKS_A_CORE * parallelism(spark))
    bytes_a_task = max(LEAST_BYTES_A_TASK, min(wanted, MOST_BYTES_A_TASK))
    tasks = [
        [(place, [group for _, group in task])] for place, task in enumerate(tasks_of(groups, sizes, bytes_a_task))
    ]
    work = partial(_fold_groups, kept, folder, again)
    done = carry_out_in_rows(spark, tasks, work, "fold new lines into the tables")
    if any(result is None for _, result in done):
        raise RunDivided
    return [result for _, result in done if result is not None]


def _fold_groups(kept: OpenKept, folder: Path, again: Collection[str], groups: Sequence[Group]) -> Folded | None:
    """Return None where lines of one run are in several of the groups."""
    with collector_paused():
        fold = Fold(kept(), folder, again)
        try:
            for group in groups:
                fold.add(group)
        except RunDivided:
            return None
        fold.close()
    return fold.counts, fold.replaced


class Fold:
    """Writes what is new into `folder`, a directory for each table. `again`: the names of files that are read once more."""

    def __init__(self, kept: Mapping[str, Dataset], folder: Path, again: Collection[str] = ()) -> None:
        self._kept, self._again = kept, again
        self._writer = BatchWriter(folder)
        self._known = {table: _rows_by_run(kept[table]) for table in KEPT}
        self._derived: set[str] = set()
        self.counts: Counts = {}
        """Of the runs whose lines were read."""
        self.replaced: dict[str, set[str]] = {table: set() for table in ARROW}
        """By table, the runs whose kept rows give way to those in the folder."""

    def make_anew(self) -> None:
        """Make all tables anew from the lines that are kept, which may be of another form."""
        for share in self._shares(self._known["events"].keys() | self._known["quarantine"].keys()):
            self._fold(RunLines(), share, anew=share)
        self._writer.close()

    def add(self, group: Group) -> None:
        """Fold in the lines of some files. Raises `RunDivided` and OSError."""
        lines = RunLines()
        lines.read(group)
        runs = lines.runs()
        if not self.counts.keys().isdisjoint(runs):
            raise RunDivided
        self._fold(lines, runs, anew=self._leave_known_out(lines, runs))

    def include(self, counts: Counts, replaced: Mapping[str, set[str]]) -> None:
        """Add what another one has folded in. Raises `RunDivided`."""
        if not self.counts.keys().isdisjoint(counts):
            raise RunDivided
        self.counts |= counts
        self._derived.update(counts)
        for table, runs in replaced.items():
            self.replaced[table] |= runs

    def close(self) -> None:
        self._writer.close()

    def end(self, unfinished: Collection[str]) -> None:
        """Finish what is left to do: runs of which files that are read again hold nothing any more, and unfinished ones."""
        if self._again and self._known["quarantine"]:
            of_files = pc.field("file").isin(sorted(self._again))
            rows = self._kept["quarantine"].to_table(columns=["run"], filter=of_files)
            if left := set(rows["run"].to_pylist()) - self.counts.keys():
                self._fold(RunLines(), sorted(left), anew=())
        for share in self._shares(set(unfinished) - self._derived):
            self._derive(share, *self._rows("events", RECORD.names, share))
        self._writer.close()

    def _fold(self, lines: RunLines, runs: Collection[str], anew: Collection[str]) -> None:
        """Fold in the lines of these runs. The kept lines of those `anew` are read with them, and written once more."""
        for table in self._rows("events", ["run", "raw", "file", "line"], anew):
            for run, raw, file, number in zip(*(column.to_pylist() for column in table.columns), strict=True):
                lines.add(raw.encode(), file, number or 0, run)
        before: dict[str, list[QuarantineRow]] = defaultdict(list)
        for table in self._rows("quarantine", QuarantineRow._fields, runs):
            for row in table.to_pylist():
                before[row["run"]].append(QuarantineRow(**(row | {"line": row["line"] or 0})))
        for run in runs:
            aside = [row for row in before[run] if row.file not in self._again]
            if run in anew:
                self.replaced["events"].add(run)
                for row in aside:
                    lines.add(row.raw.encode(), row.file, row.line, run)
                aside = []
            events, columns = lines.events(run)
            aside += lines.quarantine.get(run, ())
            stay = 0 if run in anew else self._known["events"].get(run, 0)
            self.counts[run] = stay + len(events), len(aside)
            self._writer.add_lines(events, columns)
            if sorted(aside) != sorted(before[run]):
                self.replaced["quarantine"].add(run)
                self._writer.add_quarantined(aside)
            if events:
                self._derive([run], columns, *(self._rows("events", RECORD.names, [run]) if stay else ()))
            self._writer.end_run()

    def _derive(self, runs: Sequence[str], *events: pa.Table) -> None:
        """Make all tables of these runs, of all their events."""
        self._derived.update(runs)
        for table in TABLES:
            self.replaced[table].update(self._known["events"].keys() & runs)
        self._writer.derive(pa.concat_tables(map(needed, events)))

    def _leave_known_out(self, lines: RunLines, runs: Collection[str]) -> set[str]:
        """Leave out the lines that these runs contain already. Return the runs with a contradicted record, or an earlier line.

        Those have to be made anew: which record is the first shows only when all are side by side.
        """
        new = {(run, line.uuid, line.seq) for run in self._known["events"].keys() & runs for line in lines.records[run]}
        known: dict[tuple[str, str, int], tuple[bytes, tuple[str, int]]] = {}
        names = ["run", "uuid", "seq", "file", "line", "raw"]
        for table in self._rows("events", names, {identity[0] for identity in new}):
            columns = (table[name].to_pylist() for name in names[:5])
            for place, (*identity, file, number) in enumerate(zip(*columns, strict=True)):
                if (key := tuple(identity)) in new:
                    known[key] = table["raw"][place].as_py().encode(), (file_order(file), number or 0)

        def is_as_known(run: str, line: RecordLine) -> bool:
            raw, place = known.get((run, line.uuid, line.seq), (line.raw, line.place))
            return raw == line.raw and place <= line.place

        changed = set[str]()
        for run in {identity[0] for identity in known}:
            if all(is_as_known(run, line) for line in lines.records[run]):
                lines.records[run] = [line for line in lines.records[run] if (run, line.uuid, line.seq) not in known]
            else:
                changed.add(run)
        return changed

    def _rows(self, table: str, columns: Sequence[str], runs: Collection[str]) -> Iterator[pa.Table]:
        """Yield these columns of the kept rows of some runs, some at a time."""
        if wanted := sorted(self._known[table].keys() & runs):
            batches = self._kept[table].to_batches(
                columns=list(columns), filter=pc.field("run").isin(wanted), batch_size=ROWS_A_GROUP
            )
            yield from (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)

    def _shares(self, runs: Collection[str]) -> Iterator[list[str]]:
        """Divide runs among shares with not too many kept events."""
        return shares_of({run: self._known["events"].get(run, 0) for run in sorted(runs)}, ROWS_AT_ONCE)


def _rows_by_run(table: Dataset) -> dict[str, int]:
    counts = table.to_table(columns=["run"])["run"].value_counts().to_pylist()
    return {count["values"]: count["counts"] for count in counts}


def names_read_again(new: AuditInput) -> set[str]:
    """Return the names of these files, also those that they had while they were open: with the same lines."""
    places = {file.place for file in new.files}
    finished = [] if new.is_far else list(map(Path, places))
    return places | {str(path.parent.parent / OPEN_DIRECTORY / f"{path.stem}{OPEN_SUFFIX}") for path in finished}

"""Works on each run of an input: in processes of this machine, or on Spark. Importing this file imports no Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.reader import LogRecords
from quarterdeck.backend.pipeline.audit_input import AuditInput, InputFile
from quarterdeck.backend.pipeline.judging.group_judge import PARQUET, ReadLines, lines_of_file
from quarterdeck.backend.pipeline.judging.lines import NO_RUN, run_of_line
from quarterdeck.backend.pipeline.tables.run_events import RunLines, shares_of
from quarterdeck.backend.pipeline.tasks import collector_paused, of_log_runs, results_of_whole_runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES_AT_ONCE = 200_000
"""So many lines take about 200 MB."""

ResultT = TypeVar("ResultT")
RunWork = Callable[[str, RunLines], ResultT]
"""What is done with the lines of each run."""


class RunResults(NamedTuple):
    """What some work made of the runs, by run, and how many lines among theirs are no records, or contradict one."""

    by_run: Mapping[str, Any]
    quarantined: int


@dataclass(frozen=True)
class RunReader:
    """Reads the runs of `source`; on Spark where a session is given."""

    source: AuditInput
    spark: SparkSession | None = None
    log_options: LogOptions | None = None

    def each(self, work: RunWork[ResultT], runs: Collection[str] | None = None) -> dict[str, ResultT]:
        """Return what `work` makes of each run, or only of these. Raises OSError for what cannot be read."""
        return {run: result for done in self.results(work, runs) for run, result in done.by_run.items()}

    def results(self, work: RunWork[ResultT], runs: Collection[str] | None = None) -> Sequence[RunResults]:
        """Do the same, and say how many lines were quarantined: a store has its own table of these."""
        worked = partial(_work_on_group, work, None if runs is None else frozenset(runs))
        if self.source.kind == "logs":
            return of_log_runs(self.source, partial(_work_on_records, worked), self.spark, self.log_options)
        return results_of_whole_runs(
            self.source.groups(), worked, lambda done: done.by_run, self.spark, "read each run"
        )


def _work_on_records(worked: Callable[[Sequence[InputFile], ReadLines], RunResults], logs: LogRecords) -> RunResults:
    return worked([InputFile("", "")], lambda _: map(msgspec.json.encode, logs.records))


def _work_on_group(
    work: RunWork[Any],
    wanted: Collection[str] | None,
    files: Sequence[InputFile],
    read: ReadLines = lines_of_file,
) -> RunResults:
    results: dict[str, Any] = {}
    quarantined = 0
    for share in _shares(wanted, files, read):
        lines = RunLines(share)
        with collector_paused():
            lines.read(files, read)
            results |= {run: work(run, lines) for run in sorted(lines.records)}
        quarantined += sum(map(len, lines.quarantine.values()))
    return RunResults(results, quarantined)


def _shares(
    wanted: Collection[str] | None, files: Sequence[InputFile], read: ReadLines
) -> Iterator[Collection[str] | None]:
    """Divide the runs in files of a store, which has many of them side by side, among readings of not too many lines."""
    if not any(file.read.endswith(PARQUET) for file in files):
        yield wanted
        return
    counts = Counter(run_of_line(raw).run or NO_RUN for file in files for raw in read(file))
    yield from shares_of({run: many for run, many in counts.items() if wanted is None or run in wanted}, LINES_AT_ONCE)

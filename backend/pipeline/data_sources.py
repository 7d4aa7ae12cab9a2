"""Journals, and logs of members, as data sources of Spark: `spark.read.format("quarterdeck").load(path)` returns their records.

Both have the columns of a record. One task reads some files of a journal, or the logs of one run: these need each other, because
one file identifies the member that another names, and shows by how much clocks differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import ClassVar

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, In, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.log_set import LogSet
from quarterdeck.backend.hazelcast.logs.reader import log_files, read_logs
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.journal.files import as_record, current_path, journal_files
from quarterdeck.backend.journal.old_form import upgraded
from quarterdeck.backend.pipeline.judging.spark_judge import BYTES_A_TASK, contents
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.spark.arrow import exit_with_task, rows_of
from quarterdeck.backend.pipeline.tables.run_events import NO_RUN, ROWS_AT_ONCE, record_columns

JOURNAL_FORMAT = "quarterdeck"
LOG_FORMAT = "quarterdeck-logs"

MEANINGS = {
    "run": f"the run; `{NO_RUN}` where the record names none",
    "member": "label of the member, or the name of the cluster for what was done from outside",
    "uuid": "the incarnation; with `seq` the identity of the event",
    "seq": "number of the event within its incarnation, from 1 without gaps",
    "at": "microseconds on the run's clock",
    "utc": "microseconds since 1970, UTC",
    "because": "the record that brought this one about, where the member knows it",
    "form": "the form of the journal; null is 1, which had no causes but in sentences",
    "event": "`kind` and the fields of all kinds; null where a field belongs to another kind",
}
"""What the columns of a record contain."""

SCHEMA = StructType(
    [StructField(field.name, field.dataType, metadata={"comment": MEANINGS[field.name]}) for field in RECORD.fields]
)

_ARROW = to_arrow_schema(RECORD)
_BATCH = 1024
_PATHS = ("path", "paths")
"""The options in which Spark passes the argument of `load`."""


class BadOption(ValueError):
    """An option that the format does not have, or a wrong value for it."""


class _Files(InputPartition):
    """The files that one task reads."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)


class JournalSource(DataSource):
    """The records of journals: folders of runs, folders of one run, or single files. Open files are read to their end so far.

    Option `mode`: with ``DROPMALFORMED``, the default, lines that are no records are left out; ``FAILFAST`` fails at one, but for
    an unfinished last line.
    """

    NAME: ClassVar[str] = JOURNAL_FORMAT

    def __init__(self, options: dict[str, str]) -> None:
        exit_with_task()  # planning, too, is done by workers of Spark's
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return cls.NAME

    def schema(self) -> StructType:
        """Return the columns of a record, each with its meaning as a comment."""
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what finds the files and reads them."""
        return JournalReader(dict(self.options))


class LogDataSource(JournalSource):
    """The records of logs of Hazelcast members: files, or folders that are searched for logs.

    Options `run`, `zone` and `date` say what the logs do not contain, as in `LogOptions`.
    """

    NAME: ClassVar[str] = LOG_FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what finds the logs and reads them."""
        return LogReader(dict(self.options))


class JournalReader(DataSourceReader):
    """Reads journals, several files in each task. Raises `BadOption`."""

    def __init__(self, options: dict[str, str]) -> None:
        self._paths = _paths_of(JOURNAL_FORMAT, options)
        mode = _options(JOURNAL_FORMAT, options, ("mode",)).get("mode", "DROPMALFORMED").upper()
        if mode not in ("DROPMALFORMED", "FAILFAST"):
            raise BadOption(f"mode: {mode} is neither DROPMALFORMED nor FAILFAST")
        self._fails_fast = mode == "FAILFAST"
        self._mentions: list[list[bytes]] = []
        """A wanted line has one word of each."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - the name is Spark's
        """Note which runs and kinds of events are wanted: other lines are left out before they are decoded."""
        for wanted in filters:
            match wanted:
                case EqualTo(("run",) | ("event", "kind"), str(word)):
                    self._mentions.append(_mentions([word]))
                case In(("run",) | ("event", "kind"), words):
                    self._mentions.append(_mentions(words))
            yield wanted  # Spark still applies it: a line may only mention the word

    def partitions(self) -> Sequence[InputPartition]:
        """Return partitions of several files each, of about as many bytes. Raises `NoJournal`."""
        partitions, size_bytes = list[list[Path]](), BYTES_A_TASK
        for file in dict.fromkeys(file for path in self._paths for file in journal_files(path)):
            if size_bytes >= BYTES_A_TASK:
                partitions.append([])
                size_bytes = 0
            partitions[-1].append(file)
            size_bytes += file.stat().st_size if file.exists() else 0  # a living writer may have finished it since
        return [_Files(files) for files in partitions]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the records of the files, as they were written."""
        assert isinstance(partition, _Files)
        exit_with_task()
        lines = (line for file in partition.files for line in self._lines(file))
        while some := list(islice(lines, ROWS_AT_ONCE)):
            yield from record_columns(some).to_batches()

    def _lines(self, listed: Path) -> Iterator[bytes]:
        """Yield the lines of a file that are records, those of form 1 with their causes."""
        file = current_path(listed)  # a living writer may have finished it since
        if file is None:
            return
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not all(any(word in line for word in words) for words in self._mentions):
                    continue
                record = as_record(line)
                if record is not None:
                    newer = upgraded(record)
                    yield line if newer is record else msgspec.json.encode(newer)
                elif self._fails_fast and line.endswith(b"\n"):
                    raise ValueError(f"{file}:{number}: this line is not a record")


class LogReader(DataSourceReader):
    """Reads logs, those of one run in each task. Raises `BadOption`."""

    def __init__(self, options: dict[str, str]) -> None:
        self._paths = _paths_of(LOG_FORMAT, options)
        self._options = LogOptions(**_options(LOG_FORMAT, options, LogOptions.__struct_fields__))
        self._names = LogSet([], self._options)  # a wrong value is an error here, not in a task

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition for each run: without the option `run`, for each name of a folder. Raises `NoLogs`."""
        by_run: dict[str, list[Path]] = {}
        for file in log_files(self._paths):
            by_run.setdefault(self._names.run_of(str(file)), []).append(file)
        return [_Files(files) for files in by_run.values()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the records that the logs contain."""
        assert isinstance(partition, _Files)
        return _batches(read_logs(partition.files, self._options).records)


def records_at(spark: SparkSession, addresses: Sequence[str]) -> DataFrame:
    """Return the records in the files at these addresses, each as often as it stands there."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        exit_with_task()
        for (content,) in rows_of(batches, "content"):
            lines = [line for line in content.split(b"\n") if as_record(line) is not None]
            yield from record_columns(lines).to_batches()

    return contents(spark, addresses).select("content").mapInArrow(read, RECORD)


def _mentions(words: Iterable[str]) -> list[bytes]:
    """Return what a line with one of these words contains; any line where a word may be written in several ways."""
    wanted = list(words)
    plain = all(re.fullmatch(r"[\w .:-]+", word, re.ASCII) for word in wanted)
    return [f'"{word}"'.encode() for word in wanted] if plain else [b""]


def _paths_of(name: str, options: dict[str, str]) -> list[Path]:
    given = [options["path"]] if "path" in options else json.loads(options.get("paths", "[]"))
    if not given:
        raise BadOption(f"{name}: say what to read, as in load(path)")
    paths = [path.removeprefix("file://") for path in given]
    elsewhere = next((path for path in paths if "://" in path), None)
    if elsewhere is not None:
        raise BadOption(
            f"{elsewhere}: the format {name} reads files that executors can open; "
            "quarterdeck.spark.register(spark, path) makes views of journals and tables there, quarterdeck.audit judges them"
        )
    return [Path(path) for path in paths]


def _options(name: str, options: dict[str, str], known: Sequence[str]) -> dict[str, str]:
    """Return the options other than the paths. Their names come in lower case, as Spark keeps them."""
    given = {option: value for option, value in options.items() if option not in _PATHS}
    for option in given:
        if option not in known:
            raise BadOption(f"{name} has no option {option!r}; there are: {', '.join(known)}")
    return given


def _batches(records: Iterable[Record]) -> Iterator[pa.RecordBatch]:
    exit_with_task()
    left = iter(records)
    while batch := list(islice(left, _BATCH)):
        rows = [msgspec.to_builtins(record) | {"run": record.run or NO_RUN} for record in batch]
        yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)

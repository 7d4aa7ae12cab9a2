"""Journals, and logs of members, as data sources of Spark: `spark.read.format("quarterdeck").load(path)` returns their records.

Both have the columns of a record. One task reads some files of a journal, or the logs of one run: these need each other, because
one file identifies the member that another names, and shows by how much clocks differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from itertools import islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, DateType, StringType, StructField, StructType

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.log_files import check_zones, log_files
from quarterdeck.backend.hazelcast.logs.log_set import LogSet
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.journal.files import (
    NoJournal,
    as_record,
    current_path,
)
from quarterdeck.backend.journal.reader import upgraded
from quarterdeck.backend.judgement.observations.reader import read_logs
from quarterdeck.backend.pipeline.audit_input import AuditInput, InputFile
from quarterdeck.backend.pipeline.growth import GrowingJournals, Offset, Piece, pieces_between, with_merged
from quarterdeck.backend.pipeline.judging.group_judge import lines_of_file
from quarterdeck.backend.pipeline.judging.lines import NO_RUN
from quarterdeck.backend.pipeline.schemas import RECORD, schema
from quarterdeck.backend.pipeline.spark.arrow import batches_of, exit_with_task, in_tasks
from quarterdeck.backend.pipeline.tables.batches import TABLES
from quarterdeck.backend.pipeline.tables.run_events import ROWS_AT_ONCE, RunEvents, record_columns
from quarterdeck.backend.pipeline.tasks import tasks_of
from quarterdeck.backend.pipeline.wanted_records import WantedRecords, dates_of

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

LOG_SCHEMA = StructType(
    [StructField(field.name, field.dataType, metadata={"comment": MEANINGS[field.name]}) for field in RECORD.fields]
)
PLACE = schema(
    """
    file string the file in which the line stands
    line bigint its number there, from 1; null in a stream
    date date the day of `utc`, null before the year 1 and after 9999
    """,
    date=DateType(),
)
SCHEMA = StructType([*LOG_SCHEMA.fields, *PLACE.fields])

HEAD = StructType(
    [
        *(field for field in LOG_SCHEMA.fields if field.name not in ("because", "event")),
        StructField("kind", StringType(), metadata={"comment": "the kind of the event"}),
    ]
)
"""The columns that are read without the fields of events."""

BLOCKS = schema(
    """
    run
    file string the finished file, or what the open one will be
    start bigint where the lines begin in the file, in bytes
    lines binary whole lines of the file
    """,
    binary=BinaryType(),
)
"""What a stream reads with the option `rows` as ``blocks``: lines as they stand in a file, many in a row."""

BLOCK_BYTES = 1 << 20
File = TypeVar("File", Path, Piece, InputFile)
FoundRecord = tuple[Record, bytes, str, int | None]
"""A record, its line, the file in which it stands, and its number there."""

_PATHS = ("path", "paths")
"""The options in which Spark passes the argument of `load`."""


class BadOption(ValueError):
    """An option that the format does not have, or a wrong value for it."""


class JournalSource(DataSource):
    """The records of journals: folders of runs, folders of one run, or single files. Open files are read to their end so far.

    Option `mode`: with ``DROPMALFORMED``, the default, lines that are no records are left out; ``FAILFAST`` fails at one, but for
    an unfinished last line. `readStream` reads what writers add, soon after they do; there, option `rows` with ``blocks`` reads
    lines as they are, many in a row, with the columns of `BLOCKS`. Option `columns`: only these of `HEAD`, for less CPU.
    """

    NAME: ClassVar[str] = JOURNAL_FORMAT

    def __init__(self, options: dict[str, str]) -> None:
        exit_with_task()
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return cls.NAME

    def schema(self) -> StructType:
        """Return the columns of a record, each with its meaning as a comment. Raises `BadOption`."""
        names = [name.strip() for name in self.options.get("columns", "").split(",") if name.strip()]
        unknown = next((name for name in names if name not in HEAD.names), None)
        if unknown is not None:
            readable = ", ".join(HEAD.names)
            raise BadOption(f"columns: there is no {unknown!r} that is read by itself; there are: {readable}")
        if self.options.get("rows") == "blocks":
            return BLOCKS
        return StructType([HEAD[name] for name in names]) if names else SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return JournalReader(dict(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - the name is Spark's
        return JournalStreamReader(dict(self.options), schema)


class LogDataSource(JournalSource):
    """The records of logs of Hazelcast members: files, or folders that are searched for logs.

    Options `run`, `zone` and `date` say what the logs do not contain, as in `LogOptions`.
    """

    NAME: ClassVar[str] = LOG_FORMAT

    def schema(self) -> StructType:
        """Return the columns of a record, each with its meaning as a comment."""
        return LOG_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return LogReader(dict(self.options))


class JournalReader(DataSourceReader):
    """Reads journals, several files in each task. Raises `BadOption`."""

    def __init__(self, options: dict[str, str], schema: StructType = SCHEMA) -> None:
        self._paths = _paths_of(JOURNAL_FORMAT, options)
        self._schema = schema
        self._fails_fast = _fails_fast(_options(JOURNAL_FORMAT, options, ("mode", "columns")))
        self._wanted = WantedRecords()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - the name is Spark's
        """Note which runs, days and kinds of events are wanted.

        Folders of other runs are not listed, and lines that mention none of the words are left out before they are decoded.
        """
        return [wanted for wanted in filters if not self._wanted.narrow(wanted)]

    def partitions(self) -> Sequence[InputPartition]:
        """Return partitions of several files each, of about as many bytes. Raises `NoJournal`."""
        files = dict.fromkeys(file for path in self._paths for file in self._wanted.files(path))
        # A living writer may have finished a file since it was listed.
        tasks = _tasks(files, lambda file: file.stat().st_size if file.exists() else 0)
        return [InputPartition(some) for some in tasks or [[]]]  # Spark reads one with no value where there is none

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the records of the files, as they were written."""
        exit_with_task()
        found = (record for file in partition.value for record in self._records(file))
        return _record_batches(found, self._schema)

    def _records(self, listed: Path) -> Iterator[FoundRecord]:
        file = current_path(listed)  # a living writer may have finished it since
        if file is None:
            return
        with file.open("rb") as lines:
            wanted = (line for line in enumerate(lines, start=1) if self._wanted.may_have(line[1]))
            for found in _records(wanted, str(file), self._fails_fast):
                if self._wanted.has(found[0]):
                    yield found


class JournalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what is added to journals, by file and byte. Raises `BadOption` and `NoJournal`."""

    def __init__(self, options: dict[str, str], schema: StructType = SCHEMA) -> None:
        self._target: Offset | None = None
        """Where a query ends that reads what is available now."""
        self._journals = GrowingJournals(_paths_of(JOURNAL_FORMAT, options))
        self._schema = schema
        given = _options(JOURNAL_FORMAT, options, ("mode", "rows", "columns"))
        self._fails_fast = _fails_fast(given)
        rows = given.get("rows", "records")
        if rows not in ("records", "blocks"):
            raise BadOption(f"rows: {rows} is neither records nor blocks")
        self._reads_blocks = rows == "blocks"

    def initialOffset(self) -> Offset:  # noqa: N802 - the name is Spark's
        """Begin with everything that is there."""
        return {}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - the name is Spark's
        self._target = self._journals.offset()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - the name is Spark's
        return self._journals.offset() if self._target is None else self._target

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return partitions of several pieces each, of about as many bytes."""
        return [InputPartition(pieces) for pieces in _tasks(with_merged(pieces_between(start, end)), Piece.size_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the pieces; of a file that was removed nothing, unless that is to fail."""
        exit_with_task()
        for piece in partition.value:
            try:
                content = piece.read()
            except FileNotFoundError:
                if self._fails_fast:
                    raise
                continue
            if self._reads_blocks:
                blocks = _blocks(content, piece.start)
                yield from batches_of(((piece.run, str(piece.file), *block) for block in blocks), BLOCKS, size=1)
                continue
            where = f"{piece.file}, byte {piece.start}" if piece.start else str(piece.file)
            found = _records(enumerate(BytesIO(content), start=1), where, self._fails_fast)
            unnumbered = ((record, raw, str(piece.file), None) for record, raw, _, _ in found)
            yield from _record_batches(unnumbered, self._schema)


class LogReader(DataSourceReader):
    """Reads logs, those of one run in each task. Raises `BadOption`."""

    def __init__(self, options: dict[str, str]) -> None:
        self._paths = _paths_of(LOG_FORMAT, options)
        self._options = LogOptions(**_options(LOG_FORMAT, options, LogOptions.__struct_fields__))
        self._names = LogSet([], self._options)  # a wrong value is an error here, not in a task

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition for each run: without the option `run`, for each name of a folder. Raises `NoLogs`."""
        by_run: dict[str, list[Path]] = {}
        files = log_files(self._paths)
        check_zones(self._options, files)
        for file in files:
            by_run.setdefault(self._names.run_of(str(file)), []).append(file)
        return [InputPartition(files) for files in by_run.values()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        exit_with_task()
        records = read_logs(partition.value, self._options).records
        return _record_batches(((record, msgspec.json.encode(record), "", None) for record in records), LOG_SCHEMA)


def made_of(events: DataFrame, name: str) -> DataFrame:
    """Make one of `TABLES` of events, each of which occurs once. One task has all of a run that the table needs."""
    table = TABLES[name]

    def make(of_run: pa.Table) -> pa.Table:
        exit_with_task()
        return table.arrow(RunEvents(of_run))

    if table.kinds:
        events = events.where(F.col("event.kind").isin(*table.kinds))
    event = F.struct(*(F.col(f"event.{name}").alias(name) for name in table.fields.split()))
    rows = events.select(*RECORD.names[:6], "form", event.alias("event"))
    return rows.groupBy("run").applyInArrow(make, table.schema)


def records_of_files(spark: SparkSession, found: AuditInput) -> DataFrame:
    """Return the records in files at addresses, each as often as it stands there. Raises `NoJournal` for those of logs."""
    if found.kind == "logs":
        raise NoJournal(
            f"{found.paths[0]}: holds logs, of which views are made on this machine only; `audit` reads them there"
        )

    def read(tasks: Iterator[list[InputFile]]) -> Iterator[pa.RecordBatch]:
        for files in tasks:
            for file in files:
                records = _records(enumerate(lines_of_file(file), start=1), file.place, fails_fast=False)
                yield from _record_batches(records, SCHEMA, upgrades=False)

    return in_tasks(spark, _tasks(found.files, lambda file: file.size_bytes), read, SCHEMA)


def each_once(records: DataFrame) -> DataFrame:
    """Return each record of `records` once: of several with one identity the first one by `file_order` and line."""
    if "line" not in records.columns:
        return records.dropDuplicates(["run", "uuid", "seq"])  # of logs, whose records are numbered once
    name = F.regexp_replace(F.element_at(F.split("file", "/"), -1), r"\.jsonl(\.open)?$", "")
    places = Window.partitionBy("run", "uuid", "seq").orderBy(name, "file", "line")
    return records.withColumn("place", F.row_number().over(places)).where("place = 1").drop("place")


def _tasks(files: Iterable[File], size_bytes: Callable[[File], int]) -> list[list[File]]:
    """Divide files, or pieces of them, among tasks of about the same size, in their order."""
    listed = list(files)
    tasks = tasks_of(listed, list(map(size_bytes, listed)))
    return [[file for _, file in sorted(task, key=itemgetter(0))] for task in tasks]


def _records(lines: Iterable[tuple[int, bytes]], where: str, fails_fast: bool) -> Iterator[FoundRecord]:
    for number, line in lines:
        record = as_record(line)
        if record is not None:
            yield record, line, where, number
        elif fails_fast and line.endswith(b"\n"):
            raise ValueError(f"{where}:{number}: this line is not a record")


_VALUES: dict[str, Callable[[Record], Any]] = {
    "run": lambda record: record.run or NO_RUN,
    "kind": lambda record: type(record.event).__struct_config__.tag,
}
"""How columns are made of a record that are not its fields as they are."""


def _record_batches(
    found: Iterator[FoundRecord], schema: StructType, *, upgrades: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield records in the columns of `schema`; where one `upgrades`, whole ones of form 1 with their causes."""
    if "event" not in schema.names:
        values = [_VALUES.get(name, attrgetter(name)) for name in schema.names]
        rows = (tuple(value(record) for value in values) for record, *_ in found)
        yield from batches_of(rows, schema, ROWS_AT_ONCE)
        return
    while some := list(islice(found, ROWS_AT_ONCE)):
        newest = ((upgraded(record) if upgrades else record, record, line) for record, line, _, _ in some)
        lines = [line if newer is record else msgspec.json.encode(newer) for newer, record, line in newest]
        table = record_columns(lines)
        if "line" in schema.names:
            table = table.append_column("file", pa.array([file for _, _, file, _ in some], pa.string()))
            table = table.append_column("line", pa.array([number for *_, number in some], pa.int64()))
            table = table.append_column("date", dates_of(table["utc"]))
        yield from table.to_batches()


def _blocks(content: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    begin = 0
    while begin < len(content):
        end = content.find(b"\n", begin + BLOCK_BYTES) + 1 or len(content)
        yield start + begin, content[begin:end]
        begin = end


def _fails_fast(options: dict[str, str]) -> bool:
    mode = options.get("mode", "DROPMALFORMED").upper()
    if mode not in ("DROPMALFORMED", "FAILFAST"):
        raise BadOption(f"mode: {mode} is neither DROPMALFORMED nor FAILFAST")
    return mode == "FAILFAST"


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

"""Opens the records of a run: a journal, or the logs of real members.

Logs become records as of any other run, each with the line of the log that made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from quarterdeck.backend.clusters.observed_story import story_notes
from quarterdeck.backend.clusters.recorded.log_lines import ImportedLogs, RecordLines, imported_logs, short_name
from quarterdeck.backend.clusters.recorded.log_reading import LogReading, ReadingFailed
from quarterdeck.backend.clusters.recorded.recorded_cluster import PastRun, RecordedCluster
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.journal import files as journal
from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.judgement.observations.run_reader import (
    LogLine,
    ReadProgress,
    RecordsRead,
    RunRead,
    check_logs,
)
from quarterdeck.backend.judgement.observations.story import LogStory
from quarterdeck.backend.picture.text.formatting import bytes_text

RECORDS_A_DRAIN = 4_000


class LoggedCluster:
    """A cluster that is known from members' logs, which stand below `logs`; `story` is observed in them, and may grow."""

    story: LogStory = LogStory("")
    logs: Path
    lines: RecordLines

    def line_of(self, record: Record) -> LogLine | None:
        """Return where in the logs a record comes from."""
        return self.lines.get(record)

    def place_of(self, record: Record) -> str:
        """Return the line of the log as people write it; empty when that is not known."""
        line = self.lines.get(record)
        return short_name(line, self.logs) if line is not None else ""


class LogCluster(LoggedCluster, PastRun):
    """The logs at `path`: a directory, or one file. With `follow` they are read on as they grow. Raises `NoLogs`."""

    refusal = "these are members' logs; nothing can be done to them"

    def __init__(self, path: Path, options: LogOptions | None = None, *, follow: bool = False) -> None:
        self.journal_path = self.logs = path
        super().__init__((options.run if options else "") or (path.resolve().name if path.is_dir() else path.name))
        self.story = LogStory(self.run)
        self._follow = follow
        self._reading = LogReading(path, options or LogOptions(), follow=follow)
        self._waiting: list[Record] = []
        self._taken = 0
        self.lines = RecordLines()
        self._now_us = self._end_us = 0
        self._progress = ReadProgress(0, 0)
        self._is_read = False

    @property
    def complete(self) -> bool:
        """Whether nothing is read any more."""
        return bool(self.failure) or (self._is_read and not self._follow and self._taken == len(self._waiting))

    def now_us(self) -> int:
        return self._now_us

    def drain(self) -> list[Record]:
        self._hear()
        fresh = self._waiting[self._taken : self._taken + RECORDS_A_DRAIN]
        self._taken += len(fresh)
        for record in fresh:
            self._labels[record.member] = None
            self._now_us = max(self._now_us, record.at)
        if self._taken == len(self._waiting):
            self._waiting.clear()
            self._taken = 0
            self._now_us = max(self._now_us, self._end_us)
        return fresh

    def notes(self) -> Sequence[str]:
        """Return the progress of the reading, its problems, and the observations."""
        if self.failure:
            return [f"reading stopped: {self.failure}"]
        if not self._is_read:
            done, total = self._progress.done, self._progress.total
            return [f"reading the logs: {done * 100 // max(1, total)} % of {bytes_text(total)}"]
        return story_notes(self.story)

    def moment_of(self, member: str, seq: int) -> int | None:
        """When a member, named by label or uuid, had its event of this number. Waits for the reading, leaves nothing to drain."""
        at_us = None
        self._reading.join()
        while fresh := self.drain():
            for record in fresh:
                if record.seq == seq and member in (record.member, record.uuid):
                    at_us = record.at
        return at_us

    def close(self) -> None:
        self._reading.close()

    def _hear(self) -> None:
        for piece in self._reading.news():
            match piece:
                case ReadProgress():
                    self._progress = piece
                case RecordsRead(records, lines):
                    self._waiting += records
                    self.lines.add(records, lines)
                case RunRead(story, end_us):
                    self.story, self._end_us, self._is_read = story, end_us, True
                case ReadingFailed(why):
                    self.failure = why


LINES_LOOKED_AT = 200
"""A file without a record in its first lines is no journal."""


def recorded_run(
    path: Path, *, run: str = "", until_us: int | None = None, options: LogOptions | None = None, follow: bool = False
) -> RecordedCluster | LogCluster:
    """Open the run at `path`, of several the one that is called `run`.

    With `follow`, logs are read on as they grow; a journal is read once.

    Raises `NoJournal` when there is neither journal nor log, or no single run, `OSError` when something cannot be read.
    """
    if is_journal(path):
        if follow:
            raise NoJournal(f"{path}: is a journal; only members' logs can be followed")
        recorded = RecordedCluster(path, run=run, until_us=until_us)
        imported = imported_logs((path, journal.run_directory(path, recorded.run), path.parent))
        return recorded if imported is None else ImportedRun(path, imported, run=run, until_us=until_us)
    if run:
        raise NoJournal(f"{path}: holds members' logs, which are one run; leave out --run")
    try:
        check_logs(path, options, follow=follow)
    except ValueError as problem:  # a zone that nothing shows, too
        raise NoJournal(str(problem)) from problem
    return LogCluster(path, options, follow=follow)


def is_journal(path: Path) -> bool:
    """Whether `path` holds records, or cannot hold anything else. Raises `NoJournal` where nothing is."""
    if path.is_file():
        return path.name.endswith((journal.SEALED_SUFFIX, journal.OPEN_SUFFIX)) or _has_record(path)
    if not path.exists():
        raise NoJournal(f"{path}: no such file or directory; name a journal, a run=… directory, or logs of members")
    try:
        return any(_has_record(file) for file in journal.journal_files(path))
    except NoJournal:
        return False


def _has_record(file: Path) -> bool:
    try:
        with file.open("rb") as lines:
            return any(journal.as_record(line) is not None for line in islice(lines, LINES_LOOKED_AT))
    except FileNotFoundError:  # finished between listing and looking, by a writer
        return True


class ImportedRun(LoggedCluster, RecordedCluster):
    """The run in the journal at `path`, with what was `imported` beside it. The lines can be read where the logs still stand."""

    def __init__(self, path: Path, imported: ImportedLogs, *, run: str = "", until_us: int | None = None) -> None:
        super().__init__(path, run=run, until_us=until_us)
        self.story = imported.story  # the journal has only the events
        self.logs = Path(imported.logs)
        self.lines = RecordLines.of(imported.lines)

    def notes(self) -> Sequence[str]:
        """Return the progress of the reading, and the observations."""
        return [*super().notes(), *story_notes(self.story)]

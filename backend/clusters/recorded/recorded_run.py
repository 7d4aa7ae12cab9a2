"""Opens what was recorded of a run: a journal, or the logs of real members. Which of the two it is, is looked up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from quarterdeck.backend.clusters.observed_story import story_notes
from quarterdeck.backend.clusters.recorded.log_cluster import LogCluster, LoggedCluster
from quarterdeck.backend.clusters.recorded.log_lines import ImportedLogs, RecordLines, imported_logs
from quarterdeck.backend.clusters.recorded.recorded_cluster import RecordedCluster
from quarterdeck.backend.hazelcast.logs.reader import NoLogs
from quarterdeck.backend.hazelcast.logs.run_reader import check_logs
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.journal.files import (
    OPEN_SUFFIX,
    SEALED_SUFFIX,
    NoJournal,
    as_record,
    journal_files,
    run_directory,
)

LINES_LOOKED_AT = 200
"""A file without a record in its first lines is no journal."""


def recorded_run(
    path: Path, *, until_us: int | None = None, options: LogOptions | None = None, follow: bool = False
) -> RecordedCluster | LogCluster:
    """Open the run at `path`. With `follow`, logs are read on as they grow; a journal is read once.

    Raises:
        NoJournal: There is neither journal nor log, or no single run.
        OSError: Something cannot be read.
    """
    if is_journal(path):
        if follow:
            raise NoJournal(f"{path}: is a journal; only members' logs can be followed")
        run = RecordedCluster(path, until_us=until_us)
        imported = imported_logs((path, run_directory(path, run.run), path.parent))
        return run if imported is None else ImportedRun(path, imported, until_us=until_us)
    try:
        check_logs(path, options)
    except NoLogs as problem:
        raise NoJournal(str(problem)) from problem
    return LogCluster(path, options, follow=follow)


def is_journal(path: Path) -> bool:
    """Whether `path` holds records, or cannot hold anything else. Raises `NoJournal` where nothing is."""
    if path.is_file():
        return path.name.endswith((SEALED_SUFFIX, OPEN_SUFFIX)) or _has_record(path)
    if not path.exists():
        raise NoJournal(f"{path}: no such file or directory; name a journal, a run=… directory, or logs of members")
    try:
        return any(_has_record(file) for file in journal_files(path))
    except NoJournal:
        return False


def _has_record(file: Path) -> bool:
    try:
        with file.open("rb") as lines:
            return any(as_record(line) is not None for line in islice(lines, LINES_LOOKED_AT))
    except FileNotFoundError:  # finished between listing and looking, by a writer
        return True


class ImportedRun(LoggedCluster, RecordedCluster):
    """The run in the journal at `path`, with what was `imported` beside it. The lines can be read where the logs still stand."""

    def __init__(self, path: Path, imported: ImportedLogs, *, until_us: int | None = None) -> None:
        super().__init__(path, until_us=until_us)
        self.story = imported.story  # the journal has only the events
        self.logs = Path(imported.logs)
        self.lines = RecordLines.of(imported.lines)

    def notes(self) -> Sequence[str]:
        """How the reading goes, and what is observed."""
        return [*super().notes(), *story_notes(self.story)]

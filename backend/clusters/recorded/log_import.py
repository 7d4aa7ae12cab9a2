"""Keeps the logs of real members as a journal; beside it, which line made each record, and what is observed in the logs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from quarterdeck.backend.clusters.recorded.log_lines import ImportedLogs, RecordLines, keep_imported
from quarterdeck.backend.hazelcast.logs.log_follower import follow_run
from quarterdeck.backend.hazelcast.logs.run_reader import ReadProgress, RecordsRead, RunRead, check_logs, read_run
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.journal.files import run_directory
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.picture.text.formatting import bytes_text, counted

WRITER = "logs"
LOOK_SECONDS = 0.5
TENTHS = 10


class RunExists(ValueError):
    """The journal has a run of this name."""


def import_run(path: Path, root: Path, options: LogOptions, *, follow: bool = False) -> Iterator[str]:
    """Write what the logs at `path` show of the run `options.run` into the journal at `root`; says how far that is.

    With `follow` it goes on as the logs grow, for ever. Raises `NoLogs`, `NoJournal`, `RunExists` or `OSError`.
    """
    check_logs(path, options)
    if run_directory(root, options.run).exists():
        raise RunExists(f"{root}: has a run {options.run} already; give another name with --run")
    news = follow_run(path, options, _wait) if follow else read_run(path, options)
    written = tenth = 0
    lines = RecordLines()
    with JournalWriter(root, options.run, WRITER) as writer:
        for piece in news:
            match piece:
                case ReadProgress(done, total):
                    if total and done * TENTHS // total > tenth and done < total:
                        tenth = done * TENTHS // total
                        yield f"{tenth * 100 // TENTHS} % of {bytes_text(total)} read"
                case RecordsRead(records, places):
                    for record in records:
                        writer.append(record)
                    lines.add(records, places)
                    written += len(records)
                case RunRead(story):
                    keep_imported(writer.directory, ImportedLogs(str(path.resolve()), story, lines.columns()))
                    yield f"{counted(written, 'record')} of run {options.run} in {run_directory(root, options.run)}"
                    yield from (observation.headline for observation in story.observations if not follow)


def _wait() -> bool:
    time.sleep(LOOK_SECONDS)
    return False
